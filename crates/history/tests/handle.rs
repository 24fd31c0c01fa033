//! The handle over the memory engines: acknowledgement, tiers, recovery.

#![allow(clippy::unwrap_used, reason = "a test ends where it is wrong")]

#[path = "handle/site.rs"]
mod site;
#[path = "handle/tiers.rs"]
mod tiers;
