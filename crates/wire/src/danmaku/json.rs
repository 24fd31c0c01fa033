//! Comments as JSON of our own: every field of an [`Item`](super::Item).
//!
//! Ids are strings, because a number of JavaScript ends at 2^53. A list is
//! `{"items":[…]}`; in a file of lines each line is one comment.

mod read;
mod write;

pub use read::{read_lines, read_list};
pub use write::{SEPARATOR, put_fields, put_head, put_item, put_tail};
