//! What objects are called and look like: titles, covers, groups, owners.
//!
//! One [`Item`] per object, not per user. An item comes from two places, asked
//! in this order: the rows that were [put](Catalogue::put) here, and, where a
//! kind has one, its owner's HTTP service ([`SourceOptions`] tells what that
//! must answer). Read bottom up: `item` (the row and its bytes), `batch` (what
//! to ask an owner next, and when: pure), `source` (the task that asks),
//! `write` (rows put together, synced once), [`Catalogue`] (the handle).
//!
//! A reader waits no longer than it said and is told what it did not get. Knows
//! nothing of users, marks, lists or status codes of our own.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
mod batch;
mod catalogue;
#[doc(hidden)]
pub mod fuzz;
mod item;
mod shelf;
mod source;
mod write;

pub use catalogue::{Catalogue, Joined, OpenError, Options, Stats};
pub use item::{BadItem, Item};
pub use source::SourceOptions;
pub use write::PutError;
