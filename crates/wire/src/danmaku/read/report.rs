//! What became of a file's comments, counted, with the first of them by line.

use std::fmt;

use super::{Change, Entry, ReadError, Reason};
use crate::danmaku::{Mode, Pool};

/// Comments that are told one by one, at most; the rest are only counted.
const LINES_MAX: usize = 1_000;

/// What became of the comments of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Kept as they stood.
    pub kept: u64,
    /// Kept with changes.
    pub changed: u64,
    /// Dropped.
    pub dropped: u64,
    /// The file ended before its list did.
    pub unfinished: bool,
    /// Those that were taken, by pool and mode, in the order of [`Pool::ALL`]
    /// and [`Mode::ALL`].
    taken: [[u64; Mode::ALL.len()]; Pool::ALL.len()],
    /// How many had each change, in the order of [`Change::ALL`].
    changes: [u64; Change::ALL.len()],
    /// How many were dropped for each reason, in the order in which reasons
    /// first came; there are few.
    reasons: Vec<(Reason, u64)>,
    /// The first that were changed or dropped, each as a line.
    lines: Vec<String>,
}

impl Report {
    /// The report of a whole file, or why it cannot be read: what to look at
    /// before any of its comments is taken.
    pub fn of(entries: impl Iterator<Item = Result<Entry, ReadError>>) -> Result<Self, ReadError> {
        let mut report = Self::default();
        for entry in entries {
            report.note(&entry?);
        }
        Ok(report)
    }

    /// Counts one comment.
    pub fn note(&mut self, entry: &Entry) {
        if let Ok((item, _)) = &entry.outcome {
            self.taken[item.pool as usize][item.mode as usize] += 1;
        }
        match &entry.outcome {
            Ok((_, changes)) if changes.is_empty() => self.kept += 1,
            Ok((_, changes)) => {
                self.changed += 1;
                changes.iter().for_each(|change| self.changes[change as usize] += 1);
                let texts: Vec<_> = changes.iter().map(Change::as_str).collect();
                self.line(entry, format_args!("changed: {}", texts.join(", ")));
            }
            Err(Reason::Unfinished) => {
                self.unfinished = true;
                self.line(entry, format_args!("{}", Reason::Unfinished));
            }
            Err(reason) => {
                self.dropped += 1;
                match self.reasons.iter_mut().find(|(known, _)| known == reason) {
                    Some((_, count)) => *count += 1,
                    None => self.reasons.push((*reason, 1)),
                }
                self.line(entry, format_args!("dropped: {reason}"));
            }
        }
    }

    fn line(&mut self, entry: &Entry, what: fmt::Arguments<'_>) {
        if self.lines.len() < LINES_MAX {
            self.lines.push(match entry.line {
                0 => format!("comment {}: {what}", entry.number),
                line => format!("line {line}, comment {}: {what}", entry.number),
            });
        }
    }

    /// Comments that were read.
    pub fn total(&self) -> u64 {
        self.kept + self.changed + self.dropped
    }

    /// How many of a pool and a mode were taken, changed or not.
    pub fn taken(&self, pool: Pool, mode: Mode) -> u64 {
        self.taken[pool as usize][mode as usize]
    }

    /// How many had this change.
    pub fn count(&self, change: Change) -> u64 {
        self.changes[change as usize]
    }

    /// How many were dropped for each reason.
    pub fn reasons(&self) -> &[(Reason, u64)] {
        &self.reasons
    }

    /// The first comments that were changed or dropped, each as a line for
    /// people: where it stands, and what became of it. A thousand at most.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kept, changed, dropped, .. } = self;
        write!(f, "{} comments: {kept} kept, {changed} changed, {dropped} dropped", self.total())?;
        for pool in Pool::ALL {
            for mode in Mode::ALL {
                match self.taken(pool, mode) {
                    0 => {}
                    taken => write!(f, "\ntaken {taken}: {} {}", pool.name(), mode.name())?,
                }
            }
        }
        for change in Change::ALL {
            if self.count(change) > 0 {
                write!(f, "\nchanged {}: {}", self.count(change), change.as_str())?;
            }
        }
        for (reason, count) in &self.reasons {
            write!(f, "\ndropped {count}: {reason}")?;
        }
        if self.unfinished {
            write!(f, "\n{}", Reason::Unfinished)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::danmaku::read::{Changes, Limits};
    use crate::danmaku::{Item, xml};

    #[test]
    fn a_report_adds_up_and_says_where() {
        let mut report = Report::default();
        let mut changes = Changes::default();
        changes.add(Change::Mode);
        let item = Item::default();
        for (number, outcome) in [
            Ok((item.clone(), Changes::default())),
            Ok((Item { pool: Pool::Subtitle, mode: Mode::Bas, ..item }, changes)),
            Err(Reason::NoText),
            Err(Reason::Mode),
            Err(Reason::NoText),
            Err(Reason::Unfinished),
        ]
        .into_iter()
        .enumerate()
        {
            let number = number as u64 + 1;
            report.note(&Entry { line: number * 2, number, outcome });
        }
        assert_eq!(
            report.to_string(),
            "5 comments: 1 kept, 1 changed, 3 dropped\ntaken 1: normal scroll\n\
             taken 1: subtitle bas\nchanged 1: mode normalised\n\
             dropped 2: nothing of it can be seen\ndropped 1: unknown mode\n\
             the file ends before its list does"
        );
        assert_eq!(report.lines()[0], "line 4, comment 2: changed: mode normalised");
        assert_eq!(report.lines()[1], "line 6, comment 3: dropped: nothing of it can be seen");
    }

    #[test]
    fn a_file_with_two_roots_has_no_report() {
        let one = "<i><d p=\"1,1,25,0,0,0,0,1\">x</d></i>";
        let of = |file: &str| Report::of(xml::read_list(file.as_bytes(), Limits::default()));
        assert_eq!(of(one).unwrap().kept, 1);
        assert!(of(&format!("{one}<danuni/></i>")).is_err());
    }

    #[test]
    fn changes_pools_and_modes_are_told_by_their_place() {
        for (at, pool) in Pool::ALL.into_iter().enumerate() {
            assert_eq!(pool as usize, at);
        }
        for (at, mode) in Mode::ALL.into_iter().enumerate() {
            assert_eq!(mode as usize, at);
        }
        for (at, change) in Change::ALL.into_iter().enumerate() {
            assert_eq!(change as usize, at);
        }
    }
}
