//! An outcome as one line of JSON, for people and for readers of topic
//! `history`. Write only: nothing reads it back.

use std::fmt::Write;

use tideline_types::Millis;

use super::{FirstOfDay, OutcomeRef};
use crate::row::RowRef;

/// A JSON object that is being written.
struct Object<'o> {
    out: &'o mut String,
    comma: bool,
}

impl<'o> Object<'o> {
    fn open(out: &'o mut String) -> Self {
        out.push('{');
        Self { out, comma: false }
    }

    fn key(&mut self, key: &str) {
        if self.comma {
            self.out.push(',');
        }
        self.comma = true;
        let _ = write!(self.out, "\"{key}\":");
    }

    fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.key(key);
        write_text(self.out, value);
        self
    }

    fn raw(&mut self, key: &str, value: impl std::fmt::Display) -> &mut Self {
        self.key(key);
        let _ = write!(self.out, "{value}");
        self
    }

    fn maybe_text(&mut self, key: &str, value: Option<&str>) -> &mut Self {
        if let Some(value) = value {
            self.text(key, value);
        }
        self
    }

    fn maybe(&mut self, key: &str, value: Option<impl std::fmt::Display>) -> &mut Self {
        if let Some(value) = value {
            self.raw(key, value);
        }
        self
    }

    fn row(&mut self, kind: &str, row: &RowRef<'_>) -> &mut Self {
        self.text("kind", kind)
            .text("id", &row.id.text())
            .maybe_text("part", row.part)
            .maybe("position_ms", row.position_ms)
            .maybe("duration_ms", row.duration_ms)
            .raw("event_ms", row.event_ms)
            .maybe_text("device", row.device)
            .maybe_text("group", row.group)
            .raw("finished", row.finished)
            .raw("plays", row.plays)
    }

    fn close(&mut self) {
        self.out.push('}');
    }
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A local day as `YYYY-MM-DD`; days out of the calendar's range as a number.
pub fn day_text(day: i32) -> String {
    let start = jiff::civil::date(1970, 1, 1);
    match start.checked_add(jiff::Span::new().try_days(day).unwrap_or_default()) {
        Ok(date) => date.to_string(),
        Err(_) => day.to_string(),
    }
}

impl FirstOfDay<'_> {
    /// The value of its record in topic `daily-first`: `{user,kind,id,day,event_ms}`.
    pub fn to_json(&self, user: &str) -> String {
        let mut out = String::with_capacity(128);
        Object::open(&mut out)
            .text("user", user)
            .text("kind", self.kind)
            .text("id", &self.id.text())
            .text("day", &day_text(self.day))
            .raw("event_ms", self.event_ms)
            .close();
        out
    }
}

impl OutcomeRef<'_> {
    /// The value of its record in topic `history`, readable. `user` is left
    /// out where it is not known.
    pub fn to_json(&self, user: Option<&str>) -> String {
        let mut out = String::with_capacity(192);
        let mut object = Object::open(&mut out);
        object.maybe_text("user", user).raw("taken_ms", self.taken_ms());
        match self {
            Self::Put(put) => {
                object.text("outcome", "put").row(put.kind, &put.row);
                if let Some(day) = put.first_of {
                    object.text("first_of", &day_text(day));
                }
            }
            Self::Delete(delete) => {
                object.text("outcome", "delete").key("keys");
                list(object.out, &delete.keys, |object, (kind, id)| {
                    object.text("kind", kind).text("id", &id.text());
                });
            }
            Self::Clear(clear) => {
                let id = clear.id.map(|id| id.text());
                object
                    .text("outcome", "clear")
                    .maybe_text("kind", clear.kind)
                    .maybe_text("id", id.as_deref())
                    .maybe("after_ms", clear.after_ms)
                    .maybe("before_ms", clear.before_ms);
            }
            Self::Switch(switch) => {
                object.text("outcome", "switch").raw("recording", switch.on);
            }
            Self::Erase(_) => {
                object.text("outcome", "erase");
            }
            Self::Restore(restore) => {
                let off: Option<Millis> = restore.off_since;
                object
                    .text("outcome", "restore")
                    .raw("deletes", restore.deletes.len())
                    .raw("pauses", restore.pauses.len())
                    .maybe("off_since_ms", off)
                    .key("rows");
                list(object.out, &restore.rows, |object, (kind, row)| {
                    object.row(kind, row);
                });
            }
        }
        object.close();
        out
    }
}

fn list<T>(out: &mut String, items: &[T], each: impl Fn(&mut Object<'_>, &T)) {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        let mut object = Object::open(out);
        each(&mut object, item);
        object.close();
    }
    out.push(']');
}
