//! A user's history: what they watched, read or browsed, and how far they got.
//!
//! Read in this order: [`mark`] (what a caller says), `rules` (what the owner
//! decides), `outcome` (what is logged), `timeline` (a user in memory), `rows`
//! (a user at rest), `owner` (one partition: order, acknowledgement, tiers),
//! `task` (the threads and waits around owners), [`History`] (the handle).
//!
//! Knows nothing of HTTP, JSON, titles or which engine stands behind a seam.

pub mod kinds;
pub mod mark;
pub mod query;
