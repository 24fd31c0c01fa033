//! What a reader of topics links: to follow one, to derive from it, and to keep
//! a local cache that is right. No engine and no server code.
//!
//! | | |
//! |---|---|
//! | [`Follower`] | a partition over the network: ranges that join, and stops that ask for something |
//! | [`derive::frames`](tideline_record::derive::frames) | what an [`Operator`](tideline_record::Operator) makes of a range, here instead of there |
//! | [`Cache`] | what keys have, by their changes and by fills, whatever comes first |
//! | [`Checker`] | whether readers show what they should, by samples |
//! | [`Follow`] | a topic of changes in caches, filled from a [`Tier`] |
//!
//! Checkpoints are the caller's: keep [`Follower::stands`] together with what
//! was applied, in one write, and begin with [`From::After`] that place.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod backoff;
mod cache;
mod check;
mod checkpoints;
mod follow;
mod follower;
#[cfg(feature = "sabotage")]
pub mod sabotage;
mod source;
mod tier;
mod track;

pub use backoff::Backoff;
pub use cache::{Cache, Change, Filled, Filling, Found, Refused as FillRefused};
pub use check::{Alarm, Checker, Tally};
pub use checkpoints::Checkpoints;
pub use follow::{Follow, FollowOptions, Got, Standing};
pub use follower::{Follower, Next, Options, Refused};
pub use source::{BadSource, Source, TopicAbout};
pub use tier::{Entry, Found as TierFound, Piece, Snapshot, Tier, TierError};
pub use track::{From, Stopped, Track, Unfit};
