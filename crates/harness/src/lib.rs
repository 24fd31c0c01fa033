//! What puts a running Tideline through kills and power cuts, and knows what
//! it may have lost.
//!
//! - [`ledger`]: what was asked, what was answered, and every state that the
//!   server may therefore be in.
//! - [`server`], [`http`], [`reading`], [`session`]: starts a server, asks it,
//!   reads it whole, and compares.
//! - [`comments`]: the same of comments across a video, with a ledger of their
//!   own.
//! - [`trail`]: records what a process does to a folder, call by call.
//! - [`image`]: from a trail and a moment, folders that a disk may legally
//!   leave behind when the power goes.
//!
//! - [`linear`]: whether what clients of one key saw could have come from one
//!   that does one thing at a time.
//! - [`model`]: the rules of history, written out plainly, for tests that hold
//!   the product against them.
//!
//! Stands beside the product and imports nothing of it: what it checks, it
//! checks from outside.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod comments;
pub mod http;
pub mod image;
pub mod ledger;
pub mod linear;
pub mod model;
pub mod reading;
pub mod rng;
pub mod server;
pub mod session;
pub mod trail;
