//! The handle over the memory engines, and over those on disk: acknowledgement,
//! tiers, recovery, bounds.

#![allow(clippy::unwrap_used, reason = "a test ends where it is wrong")]

#[path = "handle/bounds.rs"]
mod bounds;
#[path = "handle/files.rs"]
mod files;
#[path = "handle/large.rs"]
mod large;
#[path = "handle/site.rs"]
mod site;
#[path = "handle/tiers.rs"]
mod tiers;
