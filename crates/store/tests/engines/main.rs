//! Every engine runs the laws of its seam; the default journal also meets
//! every fault that the faulty disk has.

#![allow(clippy::unwrap_used)]

mod crash;
mod faults;
mod laws;
mod local;
mod script;
