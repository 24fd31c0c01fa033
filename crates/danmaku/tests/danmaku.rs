//! One partition over engines in memory: whole calls, and every cut.

#![allow(clippy::unwrap_used, reason = "a test ends where it is wrong")]

#[path = "danmaku/bounds.rs"]
mod bounds;
#[path = "danmaku/crashes.rs"]
mod crashes;
#[path = "danmaku/partition.rs"]
mod partition;
#[path = "danmaku/queue.rs"]
mod queue;
#[path = "danmaku/scenarios.rs"]
mod scenarios;
