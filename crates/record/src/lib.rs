//! Records: the bytes of a batch and of a frame that covers a range, and the
//! pure functions that make other records of them.
//!
//! What logs hold, what goes to readers and what readers hand on is one form.
//! It stands below the engines that keep it and apart from them, so that a
//! reader links no engine, and may derive what a host derives. Knows nothing of
//! files, networks or where a topic lies.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod batch;
pub mod codec;
pub mod derive;
pub mod digest;
pub mod frame;
#[doc(hidden)]
pub mod fuzz;
pub mod kv;
mod operator;

pub use operator::{Maker, OnError, Operator, Output};
