//! The list of dandanplay's clients: `{"count":n,"comments":[{"cid","p","m"}]}`.
//!
//! `p` is seconds with two decimals (cut, not rounded, so that a comment does
//! not move into the next segment), mode 1, 4 or 5, colour and sender. `cid`
//! is a number, as these clients declare it.

mod read;
mod write;

pub use read::read_list;
pub use write::{SEPARATOR, put_head, put_item, put_tail};
