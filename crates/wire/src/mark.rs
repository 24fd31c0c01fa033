//! The fields of a mark, as sent, and their bounds.

use tideline_types::UserId;
use tideline_types::limits::{FIELD_BYTES_MAX, LENGTH_MS_MAX};

use crate::Fault;

/// A mark as sent, over whichever face, with nothing looked up and no time
/// decided. `None` where the caller said nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkFields<'a> {
    /// Whose.
    pub user: Option<&'a str>,
    /// The name of a kind.
    pub kind: Option<&'a str>,
    /// Which object.
    pub id: Option<&'a str>,
    /// Which part of it.
    pub part: Option<&'a str>,
    /// How far, in ms.
    pub position_ms: Option<u64>,
    /// Of how much, in ms.
    pub duration_ms: Option<u64>,
    /// When, in ms since the epoch.
    pub event_ms: Option<i64>,
    /// On which device.
    pub device: Option<&'a str>,
    /// Of which group.
    pub group: Option<&'a str>,
    /// Declared finished.
    pub finished: bool,
    /// The caller's name for the mark.
    pub event_id: Option<&'a str>,
}

impl MarkFields<'_> {
    /// Whether each field that is there is within its bounds, and `kind` and
    /// `id` are there. Says nothing of `user`'s absence, of which kinds are
    /// declared, and of the time, which a device's clock error may move first.
    pub fn check(&self) -> Result<(), Fault> {
        if let Some(user) = self.user {
            UserId::check(user).map_err(|bad| Fault::invalid(bad.0))?;
        }
        if self.id.is_none() {
            return Err(Fault::invalid("id: is required"));
        }
        if self.kind.is_none() {
            return Err(Fault::invalid("kind: is required"));
        }
        let texts = [
            ("id", self.id),
            ("part", self.part),
            ("device", self.device),
            ("group", self.group),
            ("event_id", self.event_id),
        ];
        for (name, text) in texts {
            if text.is_some_and(|text| text.is_empty() || text.len() > FIELD_BYTES_MAX) {
                return Err(bad_text(name));
            }
        }
        let lengths = [("position_ms", self.position_ms), ("duration_ms", self.duration_ms)];
        for (name, length) in lengths {
            if length.is_some_and(|ms| ms > LENGTH_MS_MAX) {
                return Err(Fault::invalid(format!("{name}: at most {LENGTH_MS_MAX}")));
            }
        }
        Ok(())
    }
}

fn bad_text(name: &str) -> Fault {
    Fault::invalid(format!("{name}: must be 1 to {FIELD_BYTES_MAX} bytes"))
}
