//! How an import went, in numbers that add up.

use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// `sent` = accepted + stale + paused + duplicate + `over_cap` + rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Marks that went to the server.
    pub sent: u64,
    /// Changed a row.
    pub accepted: u64,
    /// Something newer stands, or it is too old.
    pub stale: u64,
    /// Recording was off at its time.
    pub paused: u64,
    /// Taken before.
    pub duplicate: u64,
    /// Over the day's cap.
    pub over_cap: u64,
    /// Refused by the server, each with a reason.
    pub rejected: u64,
    /// Lines that could not be read.
    pub bad_lines: u64,
    /// Records that are no marks, on purpose.
    pub left_out: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.accepted += other.accepted;
        self.stale += other.stale;
        self.paused += other.paused;
        self.duplicate += other.duplicate;
        self.over_cap += other.over_cap;
        self.rejected += other.rejected;
        self.bad_lines += other.bad_lines;
        self.left_out += other.left_out;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} sent: {} accepted, {} stale, {} paused, {} duplicate, {} over the day's cap, \
             {} rejected; {} bad lines, {} records left out",
            self.sent,
            self.accepted,
            self.stale,
            self.paused,
            self.duplicate,
            self.over_cap,
            self.rejected,
            self.bad_lines,
            self.left_out
        )
    }
}
