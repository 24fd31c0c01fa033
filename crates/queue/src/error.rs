//! What can befall each operation.

use tideline_store::{AppendError, Outcome, ReadError, StoreError};
use tideline_types::{Epoch, Incarnation, PartitionId, Seq, TopicName};

use crate::StampError;

/// Why the topics could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store cannot give them.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A row that says what a topic is makes no sense.
    #[error("the row of topic {0:?} is malformed")]
    Row(String),
    /// The tables know a topic whose records the log does not have: the two
    /// are not of the same data folder.
    #[error("topic {0} is known, but the log does not hold its partitions")]
    Missing(TopicName),
}

/// Why a topic was not made.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// There is one of that name.
    #[error("topic {0} exists")]
    Exists(TopicName),
    /// The number of partitions is out of range.
    #[error("a topic has 1 to {max} partitions, not {given}")]
    Partitions {
        /// Asked for.
        given: u16,
        /// The limit.
        max: u16,
    },
    /// There are as many topics as there may be.
    #[error("there are {max} topics, which is the limit")]
    TooMany {
        /// The limit.
        max: usize,
    },
    /// A derived topic's source does not exist, stands on too many others, or is
    /// not the one that it had before.
    #[error("topic {0} cannot be derived from")]
    Source(TopicName),
    /// The text declares no operator.
    #[error("operator: {0}")]
    Operator(String),
    /// The store cannot take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a topic was not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// No such topic.
    #[error("topic {0} does not exist")]
    NoTopic(TopicName),
    /// Another topic is derived from it: delete that first.
    #[error("topic {1} is derived from topic {0}")]
    Source(TopicName, TopicName),
    /// Built in: the product itself writes it, or derives it.
    #[error("topic {0} is read-only")]
    ReadOnly(TopicName),
    /// The store failed; the deletion is finished at the next start.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a partition was not taken over.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// No such topic.
    #[error("topic {0} does not exist")]
    NoTopic(TopicName),
    /// No such partition.
    #[error("topic {0} has no partition {1}")]
    NoPartition(TopicName, PartitionId),
    /// A derived topic is written by nobody.
    #[error("topic {0} is derived")]
    Derived(TopicName),
    /// The journal refused.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why records were not acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum ProduceError {
    /// No such topic.
    #[error("topic {0} does not exist")]
    NoTopic(TopicName),
    /// No such partition.
    #[error("topic {0} has no partition {1}")]
    NoPartition(TopicName, PartitionId),
    /// The topic is written by the product itself, or derived.
    #[error("topic {0} is read-only")]
    ReadOnly(TopicName),
    /// A record, or all of them for one partition, are over a limit.
    #[error("{what} of {bytes} bytes, at most {bytes_max} are allowed")]
    TooLarge {
        /// Key, value or batch.
        what: &'static str,
        /// Given.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// What the producer says of itself and its records does not fit what is
    /// known of it.
    #[error(transparent)]
    Stamp(#[from] StampError),
    /// Another process has taken the partition over, and is to be asked. This
    /// one takes nothing more until it is started again.
    #[error("the partition has another owner, of epoch {by}")]
    Fenced {
        /// Whose.
        by: Epoch,
    },
    /// Too much waits: try again later.
    #[error("the log is full of unsynced writes")]
    Full,
    /// `log.max_bytes` is reached, or the disk is full.
    #[error("no space: {0}")]
    NoSpace(String),
    /// The store failed. Records of other partitions of the same call, and
    /// after [`StoreError::Failed`] also these, may be found after a restart.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ProduceError {
    /// May some of the records have been kept all the same?
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Store(error) => error.outcome(),
            _ => Outcome::NotDone,
        }
    }

    pub(crate) fn of_append(error: AppendError) -> Self {
        match error {
            AppendError::OverQuota { .. } => Self::NoSpace(error.to_string()),
            AppendError::Store(StoreError::NoSpace { what }) => Self::NoSpace(what),
            AppendError::Store(error) => Self::Store(error),
            AppendError::Fenced { epoch, .. } => Self::Fenced { by: epoch },
            // Out of order: the journal has dropped a tail for want of space
            // and this owner has not heard yet. No stream: the topic is going.
            AppendError::Full { .. }
            | AppendError::OutOfOrder { .. }
            | AppendError::NoStream(_) => Self::Full,
        }
    }
}

/// Why nothing can be read from there.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No such topic.
    #[error("topic {0} does not exist")]
    NoTopic(TopicName),
    /// No such partition.
    #[error("topic {0} has no partition {1}")]
    NoPartition(TopicName, PartitionId),
    /// Records between the place and `start` were freed: go on there,
    /// and take what was missed from elsewhere.
    #[error("records before {start} are gone")]
    Truncated {
        /// The first number that can be read.
        start: Seq,
    },
    /// The place lies on a tail that was lost. What reader and log have in
    /// common ends with (`epoch`, `seq`): undo what came after, go on there.
    #[error("the place is on a lost tail; the common part ends at epoch {epoch}, seq {seq}")]
    Diverged {
        /// The epoch of the last common record.
        epoch: Epoch,
        /// Its number; 0 if there is none.
        seq: Seq,
    },
    /// The topic was deleted and made again: begin anew.
    #[error("the topic was made anew (incarnation {incarnation})")]
    Recreated {
        /// Its present life.
        incarnation: Incarnation,
    },
    /// The operator of a derived topic fails on the record, and may not go on
    /// without it: declare another one.
    #[error("the operator fails on record {seq}: {why}")]
    Halted {
        /// The record.
        seq: Seq,
        /// What the operator says.
        why: String,
    },
    /// The store cannot give it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FetchError {
    /// A stream that is gone was the deleted topic's.
    pub(crate) fn of_read(error: ReadError, topic: &TopicName) -> Self {
        match error {
            ReadError::Truncated { start } => Self::Truncated { start },
            ReadError::NoStream(_) => Self::NoTopic(topic.clone()),
            ReadError::Store(error) => Self::Store(error),
        }
    }
}
