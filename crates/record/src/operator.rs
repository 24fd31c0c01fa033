//! What a derived topic makes of each record of its source.

use std::sync::Arc;

use tideline_types::TopicName;
use tideline_types::limits::{DERIVED_BYTES_MAX, DERIVED_RECORDS_MAX};

use crate::batch::Record;

/// A pure function of one record: the same record gives the same output, byte
/// for byte, on every machine and each time. No clock, no chance, no memory of
/// other records. Records that were erased are not shown to it.
pub trait Operator: Send + Sync + 'static {
    /// Adds what the record becomes: nothing, or some records.
    ///
    /// # Errors
    /// Why it cannot say. Depends on the record alone, as the output does: it
    /// may be written down in its place ([`OnError::Skip`]).
    fn apply(&self, record: &Record<'_>, out: &mut Output) -> Result<(), String>;
}

/// Makes operators from their texts.
pub trait Maker: Send + Sync + 'static {
    /// The operator that `text` declares for records of `source`: the same text,
    /// the same operator.
    ///
    /// # Errors
    /// What is wrong with the text, for people; names the part.
    fn make(&self, source: &TopicName, text: &str) -> Result<Arc<dyn Operator>, String>;
}

/// What becomes of a record on which an operator fails. It is never just left
/// out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// The reason stands in its place, as a record that says that it does.
    #[default]
    Skip,
    /// Nothing from there on can be read, until there is another operator.
    Halt,
}

/// What a record becomes. Reused from one record to the next.
#[derive(Clone, Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
    records: Vec<Made>,
    /// There was more than there may be.
    over: bool,
}

/// One record of an output, by where its key and value end.
#[derive(Clone, Copy, Debug)]
struct Made {
    key_end: usize,
    value_end: usize,
    skipped: bool,
}

impl Output {
    /// Adds a record. Beyond 1,000 records or 1 MiB from one, the operator has
    /// failed.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        self.add(key, value, false);
    }

    pub(crate) fn add(&mut self, key: &[u8], value: &[u8], skipped: bool) {
        let bytes = self.bytes.len() + key.len() + value.len();
        if self.records.len() == DERIVED_RECORDS_MAX || bytes > DERIVED_BYTES_MAX {
            self.over = true;
            return;
        }
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.records.push(Made { key_end, value_end: self.bytes.len(), skipped });
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
        self.over = false;
    }

    /// Of all keys and values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there was more than there may be.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Key, value, and whether it stands for a failure; in order.
    pub fn records(&self) -> impl Iterator<Item = (&[u8], &[u8], bool)> {
        let starts = std::iter::once(0).chain(self.records.iter().map(|made| made.value_end));
        self.records.iter().zip(starts).map(|(made, start)| {
            let value = &self.bytes[made.key_end..made.value_end];
            (&self.bytes[start..made.key_end], value, made.skipped)
        })
    }
}
