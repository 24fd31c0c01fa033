//! What the fuzzers feed: see `targets.rs`. A workspace of its own, because
//! it is built by the nightly compiler with its instrumentation.

mod targets;

pub use targets::*;
