//! Who follows topics over this server's connections, and how far each one is.
//!
//! One entry for each subscription that is open, so as many as there are
//! streams. It says what was handed to the connection: what the reader at its
//! other end made of it, the reader alone knows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tideline_types::{Millis, PartitionId, Position, TopicName};

/// Entries in one answer, at most.
pub(crate) const SHOWN_MAX: usize = 1000;

/// One open subscription.
pub(crate) struct Reader {
    /// The caller's name, as limits and logs have it.
    pub caller: Box<str>,
    pub topic: TopicName,
    pub partition: PartitionId,
    /// When it began.
    pub since: Millis,
    covered: AtomicU64,
    bytes: AtomicU64,
}

impl Reader {
    /// The last number it was handed, or was told holds nothing for it; 0
    /// before the first.
    pub(crate) fn covered(&self) -> u64 {
        self.covered.load(Ordering::Relaxed)
    }

    /// Bytes of frames it was handed.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// All of them, by age.
#[derive(Default)]
pub(crate) struct Readers {
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    next: u64,
    readers: BTreeMap<u64, Arc<Reader>>,
}

impl Readers {
    /// Counts a subscription until what this returns is dropped.
    pub(crate) fn enter(
        &self,
        caller: &str,
        topic: &TopicName,
        partition: PartitionId,
        since: Millis,
    ) -> Entered {
        let reader = Arc::new(Reader {
            caller: caller.into(),
            topic: topic.clone(),
            partition,
            since,
            covered: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        });
        let mut open = lock(&self.open);
        let number = open.next;
        open.next += 1;
        open.readers.insert(number, Arc::clone(&reader));
        drop(open);
        Entered { number, reader, open: Arc::clone(&self.open) }
    }

    /// Those of a topic, the oldest first, and whether there are more than
    /// [`SHOWN_MAX`].
    pub(crate) fn of(&self, topic: &TopicName) -> (Vec<Arc<Reader>>, bool) {
        let open = lock(&self.open);
        let mut found = open.readers.values().filter(|reader| reader.topic == *topic);
        let shown = found.by_ref().take(SHOWN_MAX).cloned().collect();
        (shown, found.next().is_some())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        lock(&self.open).readers.len()
    }
}

/// One subscription, for as long as it is open.
pub(crate) struct Entered {
    number: u64,
    reader: Arc<Reader>,
    open: Arc<Mutex<Open>>,
}

impl Entered {
    /// Says how far it is now.
    pub(crate) fn stands(&self, at: Option<Position>) {
        if let Some(at) = at {
            self.reader.covered.store(at.seq.0, Ordering::Relaxed);
        }
    }

    /// Counts what was handed on.
    pub(crate) fn handed(&self, bytes: usize) {
        self.reader.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        lock(&self.open).readers.remove(&self.number);
    }
}

/// Nothing is left half done in there.
fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tideline_types::{Epoch, Incarnation, Seq};

    use super::*;

    #[test]
    fn a_reader_is_listed_with_its_place_while_its_subscription_is_open() {
        let readers = Readers::default();
        let topic = TopicName::new("clicks").unwrap();
        let other =
            readers.enter("anyone", &TopicName::new("views").unwrap(), PartitionId(0), Millis(1));
        let entered = readers.enter("t1", &topic, PartitionId(3), Millis(5));
        let at = Position { incarnation: Incarnation(1), epoch: Epoch(2), seq: Seq(40) };
        entered.stands(Some(at));
        entered.handed(100);
        let (found, more) = readers.of(&topic);
        assert_eq!((found.len(), more, readers.count()), (1, false, 2));
        assert_eq!((found[0].covered(), found[0].bytes(), &*found[0].caller), (40, 100, "t1"));
        drop(entered);
        assert!(readers.of(&topic).0.is_empty());
        drop(other);
        assert_eq!(readers.count(), 0);
    }

    #[test]
    fn an_answer_holds_so_many_and_says_that_there_are_more() {
        let readers = Readers::default();
        let topic = TopicName::new("clicks").unwrap();
        let enter = |_| readers.enter("anyone", &topic, PartitionId(0), Millis(0));
        let open: Vec<_> = (0..=SHOWN_MAX).map(enter).collect();
        let (found, more) = readers.of(&topic);
        assert_eq!((found.len(), more), (SHOWN_MAX, true));
        drop(open);
    }
}
