//! What a process did to a folder, in order: the material of power cuts.
//!
//! A [`Trail`] holds every change of the folder's files and entries, the
//! beginning and end of every sync, and marks that a client set beside them.
//! Its order is a true one: if one call had returned before another was made,
//! it stands before it; a mark that was set after an answer came stands after
//! everything that the answer waited for.
//!
//! Files and folders are nodes: a number each, kept over renames. Knows
//! nothing of what the files mean.

mod calls;
mod names;
mod ptrace;
mod recorder;

use std::ffi::OsString;
use std::ops::Range;

pub use recorder::{Ended, Recorder};

/// Sends a signal to the process with the id `process`.
pub fn signal(process: u32, signal: i32) -> std::io::Result<()> {
    ptrace::signal(process as libc::pid_t, signal)
}

/// A file or a folder, for as long as it lives. The recorded folder is 0.
pub type Node = u32;

/// The recorded folder itself.
pub const ROOT: Node = 0;

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// In which folder.
    pub folder: Node,
    /// Its name there.
    pub name: OsString,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A new, empty file or folder.
    Make {
        /// Where.
        at: Entry,
        /// What.
        node: Node,
        /// Whether it is a folder.
        folder: bool,
    },
    /// An entry took another name, in place of what stood there.
    Move {
        /// The former name.
        from: Entry,
        /// The present name.
        to: Entry,
    },
    /// An entry is gone.
    Drop {
        /// Which.
        at: Entry,
    },
    /// Bytes of a file.
    Write {
        /// Of which file.
        node: Node,
        /// From where.
        offset: u64,
        /// Where in [`Trail::bytes`].
        bytes: Range<usize>,
    },
    /// A file was cut or extended with zeroes.
    Length {
        /// Which file.
        node: Node,
        /// Its new length in bytes.
        len: u64,
    },
    /// A sync of a file or folder was asked for.
    SyncBegin {
        /// Of what.
        node: Node,
        /// Which call, for its end.
        call: u32,
    },
    /// A sync came back well.
    SyncEnd {
        /// Which call.
        call: u32,
    },
    /// A client noted something.
    Mark(u64),
}

/// Everything that happened, in order.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    events: Vec<Event>,
    bytes: Vec<u8>,
    start: usize,
    calls: u32,
    surprises: Vec<String>,
}

impl Trail {
    /// What happened, in order. Before [`Trail::start`] stands what was there.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// How many events describe the folder as it was found, all of it durable.
    pub fn start(&self) -> usize {
        self.start
    }

    /// The bytes of a write.
    pub fn bytes(&self, range: &Range<usize>) -> &[u8] {
        &self.bytes[range.clone()]
    }

    /// Calls that touched the folder in a way that no event can tell: with one
    /// of these the trail proves nothing.
    pub fn surprises(&self) -> &[String] {
        &self.surprises
    }

    /// Adds an event; returns its place.
    pub fn push(&mut self, event: Event) -> usize {
        self.events.push(event);
        self.events.len() - 1
    }

    /// Adds a write.
    pub fn write(&mut self, node: Node, offset: u64, bytes: &[u8]) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.push(Event::Write { node, offset, bytes: from..self.bytes.len() });
    }

    /// Adds the beginning of a sync; returns the call's number.
    pub fn sync_begin(&mut self, node: Node) -> u32 {
        let call = self.calls;
        self.calls += 1;
        self.push(Event::SyncBegin { node, call });
        call
    }

    /// Adds a whole sync.
    pub fn sync(&mut self, node: Node) {
        let call = self.sync_begin(node);
        self.push(Event::SyncEnd { call });
    }

    /// The same run on a disk whose syncs do nothing: a test that does not find
    /// losses in it finds none anywhere.
    pub fn without_syncs(mut self) -> Self {
        for event in &mut self.events[self.start..] {
            if matches!(event, Event::SyncEnd { .. }) {
                *event = Event::Mark(u64::MAX);
            }
        }
        self
    }

    /// Declares what was added so far to be what was found.
    pub fn begin(&mut self) {
        self.start = self.events.len();
    }

    fn surprise(&mut self, what: String) {
        self.surprises.push(what);
    }
}
