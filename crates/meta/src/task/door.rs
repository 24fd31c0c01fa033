//! One subtree as callers and observers find it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tideline_types::{Incarnation, Position, Seq};
use tokio::sync::watch;

use super::Driver;
use crate::ask::{Answer, Ask, Refusal, Subtree};
use crate::path::Path;
use crate::snapshot::{self, For};
use crate::tail::{Frame, Resync};

/// A subtree that is durable. What it keeps for observers, it keeps once for
/// all of them.
pub(crate) struct Door {
    /// Where.
    pub(crate) root: Path,
    /// Which life.
    pub(crate) life: Incarnation,
    /// The last seq that observers may see. `u64::MAX` when it is over.
    synced: watch::Sender<Seq>,
    /// The frame that was last asked for, by the place it goes on from.
    frame: Mutex<Option<(Position, Position, Bytes)>>,
    /// The snapshot that was last asked for.
    snapshot: Mutex<Option<Arc<Snapshot>>>,
}

/// A subtree as observers are sent it.
pub(crate) struct Snapshot {
    pub(crate) at: Position,
    pub(crate) chunks: Vec<Bytes>,
}

const OVER: Seq = Seq(u64::MAX);

impl Door {
    pub(super) fn new(root: Path, life: Incarnation, synced: Seq) -> Self {
        let (frame, snapshot) = (Mutex::default(), Mutex::default());
        Self { root, life, synced: watch::Sender::new(synced), frame, snapshot }
    }

    pub(super) fn changed(&self, seq: Seq) {
        self.synced.send_replace(seq);
    }

    pub(super) fn shut(&self) {
        self.synced.send_replace(OVER);
    }

    /// Told when there is more to see.
    pub(crate) fn watch(&self) -> watch::Receiver<Seq> {
        self.synced.subscribe()
    }

    /// Whether `seq` says that this life is over.
    pub(crate) fn is_over(seq: Seq) -> bool {
        seq == OVER
    }
}

impl Driver {
    /// Every subtree, by path.
    pub(crate) fn subtrees(&self) -> Vec<Subtree> {
        let all = self.view.look_at_all(|owner| owner.describe().collect::<Vec<_>>());
        let mut all = all.concat();
        all.retain_mut(|subtree| {
            let door = self.door(&subtree.root);
            subtree.observers = door.as_ref().map_or(0, |door| door.synced.receiver_count() as u64);
            door.is_some()
        });
        all.sort_by(|a, b| a.root.cmp(&b.root));
        all
    }

    /// The next frame for an observer at `from`, and where it is then.
    pub(crate) fn frame(
        &self,
        door: &Door,
        from: Position,
    ) -> Result<Option<(Bytes, Position)>, Resync> {
        let mut kept = door.frame.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((after, end, bytes)) = kept.as_ref().filter(|(after, ..)| *after == from) {
            debug_assert!(after < end);
            return Ok(Some((bytes.clone(), *end)));
        }
        let at = self.partition_of(&door.root);
        let framed = self.view.look(at, |owner| owner.frame(&door.root, from));
        let Some(bytes) = framed.unwrap_or(Err(Resync::New))? else { return Ok(None) };
        let end = Frame::decode(&bytes).expect("a frame of ours reads back").end();
        *kept = Some((from, end, bytes.clone()));
        Ok(Some((bytes, end)))
    }

    /// A snapshot from which the tail goes on: the one that was last made, if
    /// it is near enough, else a new one.
    pub(crate) async fn snapshot(&self, door: &Arc<Door>) -> Result<Arc<Snapshot>, Refusal> {
        let kept = door.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(kept) = kept.filter(|kept| self.frame(door, kept.at).is_ok()) {
            return Ok(kept);
        }
        let image = match self.ask(&door.root, Ask::Picture).await {
            Answer::Image(image) => image,
            Answer::Refused(refusal) => return Err(refusal),
            _ => return Err(Refusal::NoSubtree(door.root.clone())),
        };
        let at = image.position();
        let encode = move || snapshot::encode(&image.tree, image.epoch, For::Observer);
        let encoded = tokio::task::spawn_blocking(encode).await;
        let chunks = encoded.map_err(|_| Refusal::Overloaded("the server is stopping"))?;
        let made = Arc::new(Snapshot { at, chunks });
        let mut kept = door.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some(made.clone());
        Ok(made)
    }
}
