//! What one partition has for its log, and what becomes of it while that is
//! full.
//!
//! Busy for a moment, the log is tried again; over its quota, and with nothing
//! of the partition in flight, what is unsent is given up. Then nothing new is
//! decided until the partition is at rest, or for a while: given up again and
//! again, it would never come to rest, and the log never be freed.

use std::collections::VecDeque;

use bytes::Bytes;
use tideline_store::{AppendError, StoreError};
use tideline_types::{Epoch, Seq};

use super::log_error;
use crate::PartitionWriter;

/// Batches on their way to the log.
pub(super) struct Outbox {
    view: &'static str,
    writer: PartitionWriter,
    /// Batches that the log was too full to take, in order.
    unsent: VecDeque<Bytes>,
    /// The log is over its quota, not merely busy.
    over_quota: Option<StoreError>,
    /// What had been decided was given up, and for how many ticks nothing is.
    full: Option<(StoreError, u32)>,
}

impl Outbox {
    pub(super) fn new(view: &'static str, writer: PartitionWriter) -> Self {
        Self { view, writer, unsent: VecDeque::new(), over_quota: None, full: None }
    }

    /// Appends a batch, after those that are unsent.
    pub(super) fn append(&mut self, batch: Bytes) -> Result<(), StoreError> {
        self.unsent.push_back(batch);
        self.send()
    }

    /// Appends what is unsent. Stops, without an error, while the log is full.
    fn send(&mut self) -> Result<(), StoreError> {
        while let Some(batch) = self.unsent.front() {
            match self.writer.append_bytes(batch.clone()) {
                Ok(_) => _ = self.unsent.pop_front(),
                Err(AppendError::Full { .. }) => return Ok(()),
                Err(error @ AppendError::OverQuota { .. }) => {
                    self.over_quota = Some(StoreError::NoSpace { what: error.to_string() });
                    return Ok(());
                }
                // The journal has dropped a tail and tells so next.
                Err(AppendError::OutOfOrder { .. }) => return Ok(()),
                Err(AppendError::Store(error)) => return Err(error),
                Err(error) => return Err(log_error(self.view, &error)),
            }
        }
        self.over_quota = None;
        Ok(())
    }

    /// Tries again what is unsent. `synced` is the last number that is safe.
    /// Answers from where on, and why, batches have been given up.
    pub(super) fn retry(&mut self, synced: Seq) -> Result<Option<(Seq, StoreError)>, StoreError> {
        self.send()?;
        let from = self.writer.next();
        match self.over_quota.take() {
            Some(error) if from == synced.next() => {
                self.give_up(&error);
                Ok(Some((from, error)))
            }
            _ => Ok(None),
        }
    }

    /// The journal has dropped everything from `from` on.
    pub(super) fn dropped(&mut self, from: Seq, error: &StoreError) {
        self.writer.rewind(from);
        self.give_up(error);
    }

    fn give_up(&mut self, error: &StoreError) {
        self.unsent.clear();
        self.over_quota = None;
        self.full = Some((error.clone(), FULL_FOR_TICKS));
    }

    /// A tick has passed: lets calls decide again once that can come to
    /// something.
    pub(super) fn tick(&mut self, settled: bool) {
        self.full = self.full.take().and_then(|(error, left)| match left.checked_sub(1) {
            Some(left) if !settled => Some((error, left)),
            _ => None,
        });
    }

    /// The epoch that the log has now.
    pub(super) fn log_epoch(&self) -> Epoch {
        self.writer.log_epoch()
    }

    /// Why nothing may be decided now, if so.
    pub(super) fn refusal(&self) -> Option<&StoreError> {
        self.full.as_ref().map(|(error, _)| error)
    }
}

/// How long a partition without space comes to rest before it tries to log
/// more, unless all of it is at rest: five seconds.
const FULL_FOR_TICKS: u32 = 250;
