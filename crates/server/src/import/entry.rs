//! What a format makes of a record.

use serde::Serialize;
use tideline_types::UserId;
use tideline_types::limits::{FIELD_BYTES_MAX, KIND_BYTES_MAX, LENGTH_MS_MAX};

use super::ids::{cut_bytes, fit_id};
use super::records::Cut;

/// A mark as a file says it, and the title of its object where the file has
/// one. Serialises to the JSON shape of a mark with its user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Whose.
    pub user: String,
    /// A kind's name.
    pub kind: String,
    /// Which object, at most 64 bytes.
    pub id: String,
    /// Which part of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// How far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position_ms: Option<u64>,
    /// Of how much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_ms: Option<i64>,
    /// On which device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Of which group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Declared finished.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub finished: bool,
    /// The caller's name for the mark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// What the object is called; goes to the catalogue, not into the mark.
    #[serde(skip)]
    pub title: Option<String>,
}

impl Entry {
    /// Makes every field fit its limit, or says why it cannot: a long id, part,
    /// group or event id becomes its hash, a long device is cut.
    pub fn fit(mut self) -> Parsed {
        if let Err(bad) = UserId::check(&self.user) {
            return Parsed::Bad(bad.to_string());
        }
        if self.kind.is_empty() || self.kind.len() > KIND_BYTES_MAX {
            return Parsed::Bad("no kind: name one with --kind".into());
        }
        if self.id.is_empty() {
            return Parsed::Bad("no id".into());
        }
        for (name, length) in [("position_ms", self.position_ms), ("duration_ms", self.duration_ms)]
        {
            if length.is_some_and(|ms| ms > LENGTH_MS_MAX) {
                return Parsed::Bad(format!("{name} is over {LENGTH_MS_MAX}"));
            }
        }
        if self.event_ms.is_some_and(|ms| ms <= 0) {
            return Parsed::Bad("event_ms must be greater than 0".into());
        }
        self.id = fit_id(&self.id).into_owned();
        for field in [&mut self.part, &mut self.group, &mut self.event_id] {
            *field = field.take().filter(|t| !t.is_empty()).map(|t| fit_id(&t).into_owned());
        }
        self.device = self
            .device
            .take()
            .map(|text| cut_bytes(&text, FIELD_BYTES_MAX).to_owned())
            .filter(|text| !text.is_empty());
        self.title = self.title.take().filter(|title| !title.is_empty());
        Parsed::Mark(Box::new(self))
    }
}

/// What became of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A mark whose fields are within their limits.
    Mark(Box<Entry>),
    /// Nothing that is a mark, on purpose (an advertisement, an empty line).
    Skip,
    /// Not what the format promises; says why, for people.
    Bad(String),
}

/// One kind of file. Never panics, whatever the bytes.
pub trait Format: Send {
    /// How the file is cut into records.
    fn cut(&self) -> Cut;

    /// Reads the header row of a file that has one (`Cut::Csv`); an error
    /// means that the file is not of this format at all.
    fn header(&mut self, record: &[u8]) -> Result<(), String> {
        let _ = record;
        Ok(())
    }

    /// Reads one record.
    fn parse(&mut self, record: &[u8]) -> Parsed;
}

/// What stands in for the fields that a file leaves out.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// `--user`: whose marks these are.
    pub user: Option<String>,
    /// `--kind`
    pub kind: Option<String>,
}
