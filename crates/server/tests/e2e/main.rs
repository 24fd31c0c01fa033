//! The real program, on free ports and folders of its own: what it prints,
//! what it answers, what is left after it was killed.

mod backup;
mod checkpoints;
mod cli;
mod comments;
mod hosts;
mod import;
mod meta;
mod observers;
mod owners;
mod program;
mod serve;
mod streams;
mod tiers;
mod tokens;
mod tree;
mod zookeeper;
