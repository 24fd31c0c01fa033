//! The rules of history, from outside: scenarios, and a comparison with a
//! plain model under random operations.

#[path = "history/desk.rs"]
mod desk;
#[path = "history/scenarios.rs"]
mod scenarios;
