//! The bytes of each partition: batches in order, synced together.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use tideline_record::batch::Choose;
use tideline_types::{Epoch, Millis, Seq, SeqRange, StreamId};

use crate::StoreError;

/// What a stream holds. Always: `start <= synced.next()`, `synced < next`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The epoch of the present owner.
    pub epoch: Epoch,
    /// The first number that can be read, or `synced.next()` if none can.
    pub start: Seq,
    /// The last number that survives power loss; 0 before the first.
    pub synced: Seq,
    /// The number that the next record gets.
    pub next: Seq,
}

/// Where an epoch's records begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochStart {
    /// Which epoch.
    pub epoch: Epoch,
    /// The number of the first record that it writes.
    pub first: Seq,
}

/// How much one read may bring.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimits {
    /// Stop before this many records are exceeded; the first batch always comes.
    pub records_max: usize,
    /// Stop before this many bytes are exceeded; the first batch always comes.
    pub bytes_max: usize,
}

/// Why an append was not taken. Nothing of it was, or ever will be, kept.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// Too much waits to be written or to be filled into segments.
    #[error("the log is full of unsynced writes ({waiting_bytes} bytes wait)")]
    Full {
        /// Bytes that wait.
        waiting_bytes: u64,
    },
    /// `log.max_bytes` is reached.
    #[error("the log holds {used_bytes} of {max_bytes} bytes allowed")]
    OverQuota {
        /// Bytes in use.
        used_bytes: u64,
        /// The limit.
        max_bytes: u64,
    },
    /// The batch is not the next one of its stream and epoch.
    #[error("stream {stream}: batch starts at {given}, the stream continues at {expected}")]
    OutOfOrder {
        /// Which stream.
        stream: StreamId,
        /// The first number of the batch.
        given: Seq,
        /// The number expected.
        expected: Seq,
    },
    /// Another owner has taken the stream over.
    #[error("stream {stream} is fenced by epoch {epoch}")]
    Fenced {
        /// Which stream.
        stream: StreamId,
        /// The epoch of the present owner.
        epoch: Epoch,
    },
    /// No such stream.
    #[error("stream {0} does not exist")]
    NoStream(StreamId),
    /// The store cannot take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why nothing could be read from there.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The number was freed; reading goes on at `start`.
    #[error("records before {start} are gone")]
    Truncated {
        /// The first number that can be read.
        start: Seq,
    },
    /// No such stream.
    #[error("stream {0} does not exist")]
    NoStream(StreamId),
    /// The store cannot give it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A run of a stream's records that is freed at once (a segment).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The numbers it covers.
    pub range: SeqRange,
    /// Its bytes on disk.
    pub bytes: u64,
    /// The greatest time of a record in it.
    pub newest: Millis,
}

/// What an erase did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EraseReport {
    /// Records that were looked at.
    pub seen: u64,
    /// Records that are empty now and were not before.
    pub erased: u64,
}

/// Bytes on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Everything the journal holds.
    pub total_bytes: u64,
    /// Written, but not yet in a segment of its own stream.
    pub unfilled_bytes: u64,
    /// `fsync` calls since it was opened.
    pub syncs: u64,
    /// Bytes appended since it was opened.
    pub appended_bytes: u64,
}

/// Told when a stream's synced number has grown, or will never grow again.
/// Called from the journal's own thread: must be short, may append, may not
/// wait for another sync.
pub trait SyncWatcher: Send + Sync {
    /// Everything up to `through` survives power loss.
    fn synced(&self, stream: StreamId, through: Seq);
    /// A write or a sync failed: nothing after the last `synced` is safe, and
    /// every append is refused until the journal is opened again.
    fn failed(&self, stream: StreamId, error: &StoreError);
    /// `epoch` has taken the stream over, elsewhere: nothing after the last
    /// `synced` is kept, whatever `append` said. Where the engine is in this
    /// process the former owner is told by `append` alone.
    fn fenced(&self, stream: StreamId, epoch: Epoch) {
        let what = format!("ownership of stream {stream}");
        let cause = format!("taken over by epoch {}", epoch.0);
        self.failed(stream, &StoreError::Failed { what, cause });
    }
    /// There was no space for the batches from `from` on: they are dropped,
    /// the stream continues at `from`, and nothing of them will be found
    /// after a restart. The owner must undo what it decided since.
    fn dropped(&self, stream: StreamId, from: Seq, error: &StoreError);
}

/// Batches of records, in order, for many streams at once.
///
/// A batch is the bytes of [`tideline_record::batch`]: it carries its stream, epoch,
/// first number, count and checksum, and is given back as it came.
///
/// ```text
///        start                synced        next
///          |                     |            |
///   freed  [ . . . readable . . .][ unsynced ).
/// ```
///
/// Laws:
/// - Appends of one stream are kept in order, with no gap and no double.
/// - `synced` is told only after the bytes survive power loss.
/// - Only synced batches are read. What was once read is read again, byte for
///   byte, until it is trimmed or erased: a tail found at opening is rewritten
///   and synced before any of it is read.
/// - After opening, the stream holds a prefix of what was appended that
///   includes everything synced. Bytes after the last whole batch are cut;
///   damage before it is `Damaged`, by name, and is never served or cut.
/// - A failed sync is never tried again: see [`SyncWatcher::failed`].
/// - `fence` raises the epoch durably; a batch of a lower epoch is refused.
/// - Appends of all streams that wait together share one sync.
pub trait Journal: Send + Sync + 'static {
    /// Makes the streams exist, empty, durable on return. Existing ones stay.
    fn create(&self, streams: &[StreamId]) -> Result<(), StoreError>;

    /// Removes the streams and frees their bytes.
    fn remove(&self, streams: &[StreamId]) -> Result<(), StoreError>;

    /// The streams that exist, in order.
    fn streams(&self) -> Vec<StreamId>;

    /// What `stream` holds now.
    fn bounds(&self, stream: StreamId) -> Option<Bounds>;

    /// Which epochs wrote the readable records, and what came right before
    /// them: in order, at most `EPOCHS_KEPT_MAX`, the present epoch last.
    /// Epochs that wrote nothing are left out, but for the present one. Empty
    /// before the first `fence`.
    fn epochs(&self, stream: StreamId) -> Vec<EpochStart>;

    /// Starts a new epoch, durable on return; what the former owner appended
    /// is synced or dropped first, and watchers of the former owner
    /// are told nothing more.
    fn fence(&self, stream: StreamId, watcher: Arc<dyn SyncWatcher>)
    -> Result<Bounds, AppendError>;

    /// Takes an encoded batch of the epoch of the last `fence` of this journal
    /// (without one, every batch is `Fenced`), to be written and synced soon. Does not wait:
    /// the watcher says when it is safe.
    fn append(&self, stream: StreamId, batch: Bytes) -> Result<(), AppendError>;

    /// Synced batches in order; the first contains `from`. Empty when `from`
    /// is after `synced`.
    fn read(
        &self,
        stream: StreamId,
        from: Seq,
        limits: ReadLimits,
    ) -> Result<Vec<Bytes>, ReadError>;

    /// The extents of `stream` in order; the last one still grows.
    fn extents(&self, stream: StreamId) -> Vec<Extent>;

    /// Frees what lies at or below `through`, by whole extents. The start
    /// advances durably before a byte goes; it may stay lower than asked.
    fn trim(&self, stream: StreamId, through: Seq) -> Result<Seq, StoreError>;

    /// Makes every record in `range` for which `choose(seq, key, value)` says
    /// true empty and marked erased, at its position, in every file that holds
    /// it. Durable on return; nothing of it is left on the disk.
    fn erase(
        &self,
        stream: StreamId,
        range: SeqRange,
        choose: &mut Choose<'_>,
    ) -> Result<EraseReport, StoreError>;

    /// Writes a copy of all streams, each up to a number that is at least what
    /// was synced when the call began, into the empty folder `into`.
    fn backup(&self, into: &Path) -> Result<(), StoreError>;

    /// Bytes and counts.
    fn usage(&self) -> Usage;

    /// `Err` when the journal is read-only, and why.
    fn health(&self) -> Result<(), StoreError>;

    /// Writes and syncs what waits, then stops. Appends are refused after it.
    fn close(&self) -> Result<(), StoreError>;
}
