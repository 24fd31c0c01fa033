//! Following a subtree: what a server sends, and a copy that keeps itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tideline_types::{Position, Seq};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::ask::Refusal;
use crate::follower::{Event, Follower, Seen};
use crate::handle::Meta;
use crate::path::Path;
use crate::task::{Door, Driver, Snapshot};
use crate::tree::Tree;

/// An observer as the server sees it: a place, and nothing that waits for it.
pub struct Observation {
    driver: Arc<Driver>,
    root: Path,
    at: Option<Position>,
    door: Option<(Arc<Door>, watch::Receiver<Seq>)>,
    /// A snapshot on its way, and the next chunk of it.
    sending: Option<(Arc<Snapshot>, usize)>,
}

impl Meta {
    /// Observes the subtree of `path`, from where an observer is, or from a
    /// snapshot.
    pub fn observe(&self, path: &Path, from: Option<Position>) -> Result<Observation, Refusal> {
        let (door, _) = self.driver.resolve(path)?;
        let driver = self.driver.clone();
        Ok(Observation { driver, root: door.root.clone(), at: from, door: None, sending: None })
    }

    /// Keeps a copy of the subtree of `path`. `on_change` hears each commit's
    /// changes together, in order; it must be short.
    pub fn follow(
        &self,
        path: &Path,
        on_change: impl FnMut(&[Seen]) + Send + 'static,
    ) -> Result<LocalCopy, Refusal> {
        let observation = self.observe(path, None)?;
        let root = observation.root.clone();
        let (follower, at) = (Mutex::default(), watch::Sender::new(Ok(None)));
        let shared = Arc::new(Shared { follower, at });
        let task = tokio::spawn(keep(self.clone(), observation, shared.clone(), on_change));
        Ok(LocalCopy { meta: self.clone(), root, shared, task })
    }
}

impl Observation {
    /// The root of the subtree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What comes next; waits for it. Dropping the future loses nothing.
    ///
    /// # Errors
    /// `NoSubtree` once the subtree is dropped, and what reads are refused
    /// with. The place is the same as before.
    pub async fn next(&mut self) -> Result<Event, Refusal> {
        loop {
            if let Some((snapshot, next)) = &mut self.sending {
                if let Some(chunk) = snapshot.chunks.get(*next) {
                    *next += 1;
                    return Ok(Event::Chunk(chunk.clone()));
                }
                self.at = Some(snapshot.at);
                self.sending = None;
            }
            let (door, synced) = match &mut self.door {
                Some(door) => door,
                none => {
                    let door = self.driver.door(&self.root);
                    let door = door.ok_or_else(|| Refusal::NoSubtree(self.root.clone()))?;
                    let synced = door.watch();
                    none.insert((door, synced))
                }
            };
            if Door::is_over(*synced.borrow_and_update()) {
                self.door = None;
                continue;
            }
            match self.driver.frame(door, self.at.unwrap_or_default()) {
                Ok(Some((frame, end))) => {
                    self.at = Some(end);
                    return Ok(Event::Frame(frame));
                }
                // The door stays as long as this holds it.
                Ok(None) => _ = synced.changed().await,
                Err(resync) => {
                    let why = self.at.map_or(crate::tail::Resync::New, |_| resync);
                    self.sending = Some((self.driver.snapshot(door).await?, 0));
                    return Ok(Event::Resync(why));
                }
            }
        }
    }
}

struct Shared {
    follower: Mutex<Follower>,
    /// Where the copy is; an error once it follows no more.
    at: watch::Sender<Result<Option<Position>, Refusal>>,
}

impl Shared {
    fn follower(&self) -> MutexGuard<'_, Follower> {
        self.follower.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A copy of a subtree that keeps itself, until it is dropped.
pub struct LocalCopy {
    meta: Meta,
    root: Path,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl LocalCopy {
    /// Looks at the copy; `None` before the first snapshot has come. Paths in
    /// it are below the subtree's root.
    pub fn read<T>(&self, look: impl FnOnce(&Tree) -> T) -> Option<T> {
        self.shared.follower().tree().map(look)
    }

    /// Waits until the copy holds what `seq` wrote: a writer reads its own
    /// write.
    pub async fn wait(&self, seq: Seq) -> Result<(), Refusal> {
        let mut at = self.shared.at.subscribe();
        let there = |at: &Result<Option<Position>, Refusal>| match at {
            Ok(at) => at.is_some_and(|at| at.seq >= seq),
            Err(_) => true,
        };
        let reached = at.wait_for(there).await;
        match reached.map(|at| at.clone()) {
            Ok(at) => at.map(|_| ()),
            Err(_) => Err(Refusal::NoSubtree(self.root.clone())),
        }
    }

    /// Waits until the copy holds all that was acknowledged before this call.
    pub async fn sync(&self) -> Result<(), Refusal> {
        let (_, at) = self.meta.sync(&self.root).await?;
        self.wait(at.seq).await
    }

    /// Follows no more; answers when nothing more is told.
    pub async fn close(mut self) {
        self.task.abort();
        // Aborted, or ended in a panic of the callback, which was printed.
        _ = (&mut self.task).await;
    }
}

impl Drop for LocalCopy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn keep(
    meta: Meta,
    mut observation: Observation,
    shared: Arc<Shared>,
    mut on_change: impl FnMut(&[Seen]) + Send + 'static,
) {
    loop {
        let event = match observation.next().await {
            Ok(event) => event,
            Err(refusal) => {
                _ = shared.at.send_replace(Err(refusal));
                return;
            }
        };
        let (told, at) = {
            let mut follower = shared.follower();
            (follower.take(&event), follower.position())
        };
        match told {
            Ok(told) => told.iter().filter(|seen| !seen.is_empty()).for_each(|s| on_change(s)),
            Err(error) => {
                tracing::error!(root = %observation.root, %error, "a copy of metadata begins anew");
                match meta.observe(&observation.root, None) {
                    Ok(again) => observation = again,
                    Err(refusal) => {
                        _ = shared.at.send_replace(Err(refusal));
                        return;
                    }
                }
            }
        }
        _ = shared.at.send_replace(Ok(at));
    }
}
