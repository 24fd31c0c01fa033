//! Rows that a decision asks for: what is known of them, what is not.
//!
//! A decision that misses a row is put off until it has been read; nothing
//! decides on a guess. Rows that changed since are forgotten, so what is here
//! is always as the video in memory says.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use bytes::Bytes;

use crate::rows::Rows;

/// Rows of one video.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    /// The row of this sort key.
    Row(Bytes),
    /// Rows with `from <= key < to`, in order or from the end.
    Scan {
        /// The first key.
        from: Bytes,
        /// Right after the last.
        to: Bytes,
        /// From the end.
        reverse: bool,
        /// At most so many.
        limit: usize,
    },
}

/// Sort keys and values.
pub type Found = Vec<(Bytes, Bytes)>;

/// What was asked for, for one video.
#[derive(Debug, Default)]
pub struct Reads {
    rows: BTreeMap<Bytes, Option<Bytes>>,
    scans: BTreeMap<Read, Found>,
    want: BTreeSet<Read>,
}

impl Reads {
    /// A row, if it is known whether it is there; else it is asked for.
    pub fn row(&mut self, key: Bytes) -> Option<Option<Bytes>> {
        let known = self.rows.get(&key).cloned();
        if known.is_none() {
            self.want.insert(Read::Row(key));
        }
        known
    }

    /// Rows of a range, if they are known; else they are asked for.
    pub fn scan(
        &mut self,
        (from, to): (Bytes, Bytes),
        reverse: bool,
        limit: usize,
    ) -> Option<&Found> {
        let read = Read::Scan { from, to, reverse, limit };
        if !self.scans.contains_key(&read) {
            self.want.insert(read);
            return None;
        }
        self.scans.get(&read)
    }

    /// Whether something was asked for that is not known.
    pub fn is_waiting(&self) -> bool {
        !self.want.is_empty()
    }

    /// What is to be read; asked for once.
    pub fn take_wanted(&mut self) -> Vec<Read> {
        std::mem::take(&mut self.want).into_iter().collect()
    }

    /// Something was read.
    pub fn give(&mut self, read: Read, found: Found) {
        match read {
            Read::Row(key) => {
                self.rows.insert(key, found.into_iter().next().map(|(_, value)| value));
            }
            scan => _ = self.scans.insert(scan, found),
        }
    }

    /// These rows have changed.
    pub fn forget(&mut self, changed: &Rows) {
        if !self.rows.is_empty() {
            for key in changed.keys() {
                self.rows.remove(key);
            }
        }
        self.scans.retain(|read, _| match read {
            Read::Row(_) => true,
            Read::Scan { from, to, .. } => range(changed, from, to).next().is_none(),
        });
    }

    /// Nothing is known any more.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.scans.clear();
        self.want.clear();
    }
}

/// The changes of `from <= key < to`.
fn range<'a>(
    rows: &'a Rows,
    from: &Bytes,
    to: &Bytes,
) -> impl Iterator<Item = (&'a Bytes, &'a Option<Bytes>)> {
    rows.range::<[u8], _>((Bound::Included(&**from), Bound::Excluded(&**to)))
}

/// What a read comes to where `layers` of changes, the latest first, lie over
/// what the table has: `table` is its answer to the [`enlarged`] read. `None` if
/// that is needed and not given.
pub fn merge(read: &Read, layers: &[&Rows], table: Option<Found>) -> Option<Found> {
    match read {
        Read::Row(key) => match layers.iter().find_map(|rows| rows.get(key)) {
            Some(Some(value)) => Some(vec![(key.clone(), value.clone())]),
            Some(None) => Some(Vec::new()),
            None => table,
        },
        Read::Scan { from, to, reverse, limit } => {
            let table = table?;
            // Beyond the last row of a full answer the table was not read.
            let Read::Scan { limit: asked, .. } = enlarged(read, layers) else { return None };
            let full = table.len() >= asked;
            let edge = table.last().map(|(key, _)| key.clone()).filter(|_| full);
            let within = |key: &Bytes| match &edge {
                None => true,
                Some(edge) if *reverse => key >= edge,
                Some(edge) => key <= edge,
            };
            let mut all: BTreeMap<Bytes, Option<Bytes>> =
                table.into_iter().map(|(key, value)| (key, Some(value))).collect();
            for rows in layers.iter().rev() {
                let changed = range(rows, from, to).filter(|(key, _)| within(key));
                all.extend(changed.map(|(key, value)| (key.clone(), value.clone())));
            }
            let mut found: Found =
                all.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
            if *reverse {
                found.reverse();
            }
            found.truncate(*limit);
            Some(found)
        }
    }
}

/// What to read of the table for `read`, so that rows removed by `layers` do not
/// make the answer short.
pub fn enlarged(read: &Read, layers: &[&Rows]) -> Read {
    match read {
        Read::Row(_) => read.clone(),
        Read::Scan { from, to, reverse, limit } => {
            let removed =
                |rows: &&Rows| range(rows, from, to).filter(|(_, value)| value.is_none()).count();
            let limit = limit + layers.iter().map(removed).sum::<usize>();
            Read::Scan { from: from.clone(), to: to.clone(), reverse: *reverse, limit }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(n: u8) -> Bytes {
        Bytes::from(vec![n])
    }

    fn scan(map: &BTreeMap<Bytes, Bytes>, reverse: bool, limit: usize) -> Found {
        let all = map.iter().map(|(key, value)| (key.clone(), value.clone()));
        match reverse {
            true => all.rev().take(limit).collect(),
            false => all.take(limit).collect(),
        }
    }

    proptest! {
        #[test]
        fn a_merged_read_is_that_of_a_table_with_the_changes_made(
            table in prop::collection::btree_map(0_u8..40, any::<u8>(), 0..30),
            older in prop::collection::btree_map(0_u8..40, any::<Option<u8>>(), 0..10),
            newer in prop::collection::btree_map(0_u8..40, any::<Option<u8>>(), 0..10),
            reverse: bool, limit in 1_usize..20,
        ) {
            let rows = |changes: BTreeMap<u8, Option<u8>>| -> Rows {
                changes.into_iter().map(|(k, v)| (key(k), v.map(key))).collect()
            };
            let table: BTreeMap<Bytes, Bytes> = table.into_iter().map(|(k, v)| (key(k), key(v))).collect();
            let (older, newer) = (rows(older), rows(newer));
            let mut after = table.clone();
            for (key, value) in older.iter().chain(&newer) {
                match value {
                    Some(value) => after.insert(key.clone(), value.clone()),
                    None => after.remove(key),
                };
            }
            let layers = [&newer, &older];
            let read = Read::Scan { from: key(0), to: key(40), reverse, limit };
            let Read::Scan { limit: asked, .. } = enlarged(&read, &layers) else { unreachable!() };
            let given = scan(&table, reverse, asked);
            let merged = merge(&read, &layers, Some(given)).unwrap();
            prop_assert_eq!(&scan(&after, reverse, limit), &merged);
            for at in 0..40 {
                let read = Read::Row(key(at));
                let given = table.get(&key(at)).map(|v| (key(at), v.clone())).into_iter().collect();
                let want: Found = after.get(&key(at)).map(|v| (key(at), v.clone())).into_iter().collect();
                prop_assert_eq!(merge(&read, &layers, Some(given)), Some(want));
            }
        }
    }

    #[test]
    fn what_changed_is_asked_for_again() {
        let mut reads = Reads::default();
        assert_eq!(reads.row(key(1)), None);
        assert_eq!(reads.scan((key(0), key(5)), false, 9), None);
        let wanted = reads.take_wanted();
        assert_eq!(wanted.len(), 2);
        wanted.into_iter().for_each(|read| reads.give(read, Vec::new()));
        assert_eq!(reads.row(key(1)), Some(None));
        reads.forget(&Rows::from([(key(7), None)]));
        assert!(reads.scan((key(0), key(5)), false, 9).is_some());
        reads.forget(&Rows::from([(key(1), None)]));
        assert_eq!((reads.row(key(1)), reads.scan((key(0), key(5)), false, 9)), (None, None));
    }
}
