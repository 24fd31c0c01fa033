//! The `tideline` program: configuration, the server, and what a command line
//! does with files and with a running server.
//!
//! Read in this order: `cli` (what can be typed), [`config`] (what can be
//! set), `serve` (config -> engines -> run -> stop), [`import`] (files of other
//! systems). The only crate that reads files of settings and the environment.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod backup;
mod banner;
mod bench;
mod check;
pub mod cli;
mod client;
pub mod config;
mod demo;
mod engines;
mod example;
mod export;
mod folder;
#[doc(hidden)]
pub mod fuzz;
pub mod import;
mod logging;
mod meta;
mod options;
mod pages;
mod serve;
mod settings;
mod tier;
mod token;
mod topic;
