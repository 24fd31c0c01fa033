//! Names, numbers and bounds that every part of Tideline agrees on.
//!
//! A position is never a bare number, a time always says its unit, and every
//! bound stands in [`limits`]. Knows nothing of files, topics' contents,
//! marks or networks; depends on `std` alone.

mod id;
pub mod limits;
mod position;
mod sabotage;
mod time;

pub use id::{BadId, PartitionId, StreamId, TopicName, UserId, partition_of};
pub use position::{BadPosition, Epoch, Incarnation, Position, Seq, SeqRange};
pub use time::{DAY_MS, HOUR_MS, Millis};
