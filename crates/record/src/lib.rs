//! Records: the bytes of a batch, and of a frame that covers a range.
//!
//! What logs hold, what goes to readers and what readers hand on is one form.
//! It stands below the engines that keep it and apart from them, so that a
//! reader links no engine. Knows nothing of files, networks or topics' names.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod batch;
pub mod codec;
pub mod frame;
#[doc(hidden)]
pub mod fuzz;
