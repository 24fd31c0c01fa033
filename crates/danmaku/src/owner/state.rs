//! What an owner holds, takes and gives: its bounds and figures, the videos in
//! memory, and those that wait to be.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use tideline_record::batch::BatchBuilder;
use tideline_store::{Commit, StoreError};
use tideline_types::{Millis, Seq};

use crate::ask::{Answer, Op};
use crate::reads::{Read, Reads};
use crate::rows::Rows;
use crate::rules::Progress;
use crate::video::{Rest, Video};

/// What bounds one partition.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Bytes of videos in memory. Above it, videos at rest are let go; above
    /// five quarters of it, calls that change something are refused.
    pub hot_bytes_max: usize,
    /// Bytes of outcomes that are logged and not at rest, as a start would
    /// hold them. Above half of it, videos come to rest early; above all of it,
    /// what would be logged is refused. Goes over by what was let in before:
    /// calls that wait for rows, the open pack.
    pub lag_bytes_max: usize,
    /// How long a change may wait before it is written to rows, in ms.
    pub flush_after_ms: u64,
    /// Bytes of changes of a video that are written at once.
    pub flush_bytes: usize,
    /// Videos on their way to rows at a time.
    pub flights_max: usize,
    /// Calls that may wait for rows.
    pub parked_max: usize,
    /// An open pack of this many bytes is logged at once.
    pub pack_bytes_max: usize,
    /// How long a count waits to be told, in ms.
    pub count_after_ms: u64,
}

/// What the driver must do, in order.
#[derive(Debug)]
pub enum Effect<W> {
    /// Append this batch to the partition's log.
    Append(BatchBuilder),
    /// Read the video's rows, as [`crate::cold::read`] does, then call
    /// [`super::Owner::loaded`].
    Load {
        /// Which.
        video: Arc<str>,
        /// Tells an owner's life before a reset from the one after.
        generation: u32,
    },
    /// Read these rows of a video, then call [`super::Owner::read`].
    Read {
        /// Which.
        video: Arc<str>,
        /// To be given back.
        generation: u32,
        /// What.
        reads: Vec<Read>,
    },
    /// Commit, in order and after every earlier flush of this partition; make
    /// it durable, then call [`super::Owner::flushed`].
    Flush(Flush),
    /// The video changed, through this number, which is synced.
    Changed(Arc<str>, Seq),
    /// Tell the caller.
    Answer(W, Answer),
}

/// A video's image on its way to rest.
#[derive(Debug)]
pub struct Flush {
    /// To be given back, with `generation`.
    pub video: Arc<str>,
    /// Tells an owner's life before a reset from the one after.
    pub generation: u32,
    /// What to write, in order.
    pub commits: Vec<Commit>,
}

/// Figures of one partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Videos in memory.
    pub videos: usize,
    /// Their bytes.
    pub hot_bytes: usize,
    /// Videos with changes that are not at rest.
    pub dirty_videos: usize,
    /// Outcomes that are synced and not at rest.
    pub lag: u64,
    /// Bytes that a start would read back into memory.
    pub lag_bytes: usize,
    /// Calls that wait for rows.
    pub parked: usize,
    /// Calls that wait for a sync.
    pub waiting: usize,
}

/// A call that waits its turn.
#[derive(Debug)]
pub(super) struct Call<W> {
    pub(super) op: Op,
    pub(super) waiter: W,
    pub(super) progress: Progress,
    /// What it came to; the queue has still to come to rest.
    pub(super) answer: Option<Answer>,
}

/// A video that is loaded.
#[derive(Debug)]
pub(super) struct Hot<W> {
    pub(super) video: Video,
    pub(super) dirty: Option<Box<Dirty>>,
    pub(super) calls: VecDeque<Call<W>>,
    pub(super) reads: Reads,
    /// What is being read now; empty if nothing is.
    pub(super) reading: Vec<Read>,
    /// Changes that came to rest while something was being read: the read may
    /// not have seen them.
    pub(super) landed: Rows,
    /// Second chances before the video may be let go.
    pub(super) used: u8,
    /// A count is due to be told.
    pub(super) counting: bool,
    /// Bytes that it counts for.
    pub(super) counted: usize,
}

/// What of a video is not at rest.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    pub(super) rest: Rest,
    /// Below every outcome in `rest`; `None` while that is empty.
    pub(super) from: Option<Seq>,
    pub(super) since_ticks: u64,
    pub(super) flight: Option<Flight>,
}

/// What is being written now; put back if that fails.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) rest: Rest,
    pub(super) from: Seq,
}

/// An outcome found in the log.
#[derive(Debug)]
pub(super) struct Logged {
    pub(super) seq: Seq,
    pub(super) value: Bytes,
    /// Something of it lies elsewhere than in its video's rows.
    pub(super) elsewhere: bool,
}

/// A video that is not loaded, with what waits for that.
#[derive(Debug)]
pub(super) struct Waiting<W> {
    /// Outcomes found in the log at start, not yet known to be at rest.
    pub(super) overlay: Vec<Logged>,
    pub(super) overlay_bytes: usize,
    pub(super) parked: VecDeque<(Op, W)>,
    pub(super) loading: bool,
}

#[derive(Debug)]
pub(super) enum State<W> {
    /// `None` only while a step works on it.
    Hot(Option<Box<Hot<W>>>),
    Waiting(Box<Waiting<W>>),
}

#[derive(Debug)]
pub(super) enum Status {
    Running,
    Recovering,
    Failed(StoreError),
}

/// An outcome that waits for the log.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) taken: Millis,
    pub(super) video: Arc<str>,
    pub(super) bytes: Vec<u8>,
}

impl<W> Default for Waiting<W> {
    fn default() -> Self {
        Self { overlay: Vec::new(), overlay_bytes: 0, parked: VecDeque::new(), loading: false }
    }
}
