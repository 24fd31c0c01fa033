//! Comments as protobuf: the message `Segment` of `danmaku.proto`, one element
//! at a time.
//!
//! A message is the elements one after the other, in the order in which they
//! are put; there is no tail, and bytes of other fields may stand before or
//! after (so a viewer's flags are put in front of bytes that all share).
//! As proto3 says, a field that is 0 or empty is left out.

mod read;
mod write;

pub use read::read_segment;
pub use write::{put_item, put_state};
