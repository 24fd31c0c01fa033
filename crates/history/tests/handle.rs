//! The handle over the memory engines: acknowledgement, tiers, recovery.

#[path = "handle/site.rs"]
mod site;
#[path = "handle/tiers.rs"]
mod tiers;
