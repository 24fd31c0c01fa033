//! The rules of history, from outside: scenarios, and a comparison with a
//! plain model under random operations.

#![allow(clippy::unwrap_used)]

#[path = "history/desk.rs"]
mod desk;
#[path = "history/differential.rs"]
mod differential;
#[path = "history/scenarios.rs"]
mod scenarios;
