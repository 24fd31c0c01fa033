//! Who waits for a video to change.
//!
//! A waiter holds no change: it is told a number, and asks for what happened
//! since the one it knows. So a slow one holds up nobody, and costs no memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tideline_types::Seq;
use tokio::sync::watch;

/// Videos that are watched.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    rooms: Mutex<HashMap<Box<str>, Arc<watch::Sender<Seq>>>>,
}

impl Rooms {
    pub(super) fn watch(&self, video: &str) -> Watch {
        let mut rooms = self.lock();
        // Videos that nobody watches any more go when there are many.
        if rooms.len() >= 2 * rooms.values().filter(|room| !room.is_closed()).count() + 64 {
            rooms.retain(|_, room| !room.is_closed());
        }
        let room =
            rooms.entry(video.into()).or_insert_with(|| Arc::new(watch::Sender::new(Seq::ZERO)));
        Watch { changed: room.subscribe() }
    }

    /// The video changed, through this number.
    pub(super) fn changed(&self, video: &str, seq: Seq) {
        if let Some(room) = self.lock().get(video) {
            room.send_replace(seq);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<watch::Sender<Seq>>>> {
        self.rooms.lock().expect("nothing panics while it is held")
    }
}

/// Waits for a video to change.
#[derive(Debug)]
pub struct Watch {
    changed: watch::Receiver<Seq>,
}

impl Watch {
    /// Waits until the video has changed since the last call, or since the
    /// watch began; answers the number of the latest change. Changes that were
    /// made before the watch began are not told. `None` once the server stops.
    pub async fn changed(&mut self) -> Option<Seq> {
        self.changed.changed().await.ok()?;
        Some(*self.changed.borrow_and_update())
    }
}
