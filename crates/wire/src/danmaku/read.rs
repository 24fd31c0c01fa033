//! Reading comments from files, however broken: what every reader shares.
//!
//! A reader is an iterator of [`Entry`]s over any `BufRead`. It holds one
//! comment at a time, bounded by [`Limits`]; says of each whether it was kept
//! as it stood, kept with changes, or dropped and why; and goes on behind what
//! is broken. An error ends it: the file is not what it was taken for, and
//! nothing that was read before should be used. Whoever cannot take comments
//! back reads the file twice, the first time for its [`Report`] alone.
//!
//! What is clear is repaired: characters that cannot be, missing fields that
//! have a usual value, numbers beyond their range, arrays that were cut off,
//! bare `&` and `<`. What is not clear is dropped: unknown modes, texts that
//! show nothing, times that are no number.

mod color;
mod draft;
mod elements;
mod open;
mod report;
mod source;
mod tree;

use std::fmt;
use std::io;

use super::{BadSeconds, Item};

pub use color::parse_color;
pub(in crate::danmaku) use draft::Draft;
pub(in crate::danmaku) use elements::{Shape, read_element, read_elements};
pub use open::{FileFormat, inflated, open, sniff};
pub use report::Report;
pub(in crate::danmaku) use source::Source;
pub(in crate::danmaku) use tree::Tree;

/// Bounds of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one comment with all that belongs to it, at most. A longer one
    /// is dropped.
    pub element_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { element_bytes_max: tideline_types::limits::DANMAKU_ELEMENT_BYTES_MAX }
    }
}

/// One comment of a file, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The line that it starts on, from 1; 0 in files without lines.
    pub line: u64,
    /// Its place among the comments of the file, from 1.
    pub number: u64,
    /// The comment as it is taken, with what was changed, or why it was
    /// dropped.
    pub outcome: Result<(Item<'static>, Changes), Reason>,
}

/// The entries that `next` makes, which is told the number of each, up to its
/// end or its first error.
pub(in crate::danmaku) fn entries(
    mut next: impl FnMut(u64) -> Result<Option<Entry>, ReadError>,
) -> impl Iterator<Item = Result<Entry, ReadError>> {
    let mut number = 0;
    let mut ended = false;
    std::iter::from_fn(move || {
        if ended {
            return None;
        }
        number += 1;
        let entry = next(number);
        ended = !matches!(entry, Ok(Some(_)));
        entry.transpose()
    })
}

/// What a reader changed in a comment that it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// Control characters were removed, or carriage returns became line feeds.
    Text,
    /// Bytes or halves of characters that stand for none became U+FFFD.
    Encoding,
    /// A bare `&` or `<`, or an unknown reference, was taken as text.
    Markup,
    /// Its time was rounded to a millisecond.
    Rounded,
    /// Its time was before the start.
    Start,
    /// Its mode was another way to say this one.
    Mode,
    /// Its pool is unknown; it is a normal comment.
    Pool,
    /// Its size was missing or out of range.
    Size,
    /// Its colour was missing or out of range.
    Color,
    /// When it was sent was missing or no number.
    Sent,
    /// Its sender is no hash, and was hashed.
    Sender,
    /// Its sender's hash had zeros in front.
    SenderZeros,
    /// Its id was missing or no number.
    Id,
    /// Its weight was out of range.
    Weight,
    /// Its array was closed or put right.
    Positioned,
    /// Fields or a style that comments here do not have were left away.
    Fields,
}

impl Change {
    /// All of them, in the order in which a report tells them.
    pub const ALL: [Self; 16] = [
        Self::Text,
        Self::Encoding,
        Self::Markup,
        Self::Rounded,
        Self::Start,
        Self::Mode,
        Self::Pool,
        Self::Size,
        Self::Color,
        Self::Sent,
        Self::Sender,
        Self::SenderZeros,
        Self::Id,
        Self::Weight,
        Self::Positioned,
        Self::Fields,
    ];

    /// What was done, for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "control characters removed",
            Self::Encoding => "broken characters replaced",
            Self::Markup => "bare markup taken as text",
            Self::Rounded => "time rounded to a millisecond",
            Self::Start => "time before the start set to it",
            Self::Mode => "mode normalised",
            Self::Pool => "unknown pool taken as normal",
            Self::Size => "size set to one that can be",
            Self::Color => "colour set to one that can be",
            Self::Sent => "without the time of sending",
            Self::Sender => "sender hashed",
            Self::SenderZeros => "zeros in front of the sender removed",
            Self::Id => "without its id",
            Self::Weight => "weight set to one that can be",
            Self::Positioned => "positioned array repaired",
            Self::Fields => "fields left away",
        }
    }
}

/// A set of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes(u16);

impl Changes {
    /// Adds one.
    pub fn add(&mut self, change: Change) {
        self.0 |= 1 << change as u16;
    }

    /// Whether it is in the set.
    pub fn has(self, change: Change) -> bool {
        self.0 & (1 << change as u16) != 0
    }

    /// Whether nothing was changed.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those in the set, in the order of [`Change::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Change> {
        Change::ALL.into_iter().filter(move |change| self.has(*change))
    }
}

/// Why a comment was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// It is empty, or nothing of it can be seen.
    NoText,
    /// Its time cannot be read.
    Progress(BadSeconds),
    /// Its mode is unknown, so that no one can say how it should be shown.
    Mode,
    /// It lacks fields that have no usual value.
    Fields,
    /// It is longer than the limit.
    TooLong,
    /// It is positioned, and its array is none.
    Positioned,
    /// It cannot be parsed.
    Syntax,
    /// It was deleted or hidden where it comes from.
    Hidden,
    /// The file ends in the middle of it.
    CutOff,
    /// No comment: the file ends before its list does, and more may be
    /// missing.
    Unfinished,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoText => "nothing of it can be seen",
            Self::Progress(bad) => return write!(f, "its time is {bad}"),
            Self::Mode => "unknown mode",
            Self::Fields => "fields are missing",
            Self::TooLong => "longer than the limit",
            Self::Positioned => "positioned, but its array cannot be read",
            Self::Syntax => "cannot be parsed",
            Self::Hidden => "deleted or hidden at its source",
            Self::CutOff => "the file ends in the middle of it",
            Self::Unfinished => "the file ends before its list does",
        })
    }
}

/// Why a file cannot be read at all, or no further.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The bytes do not come.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is not of this format.
    #[error("line {line}: {what}")]
    Format {
        /// Where, from 1.
        line: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// It is of no format that is known.
    #[error("not a file of comments of a known format")]
    Unknown,
}
