//! Reads the files of Niconico: XML, and JSON of three generations.
//!
//! Where and how a comment is shown is said by commands: `ue`, `shita` or
//! `naka`, a size, a colour. Times are hundredths of a second. Fonts and other
//! commands are left away; deleted and invisible comments are dropped.

mod json;
mod xml;

use crate::danmaku::Mode;
use crate::danmaku::read::{Change, Draft, Reason, parse_color};

pub use json::read_list;
pub use xml::read_packet;

/// What is said of a comment besides its text.
#[derive(Debug, Default)]
struct Facts<'a> {
    /// Hundredths of a second.
    vpos: Option<&'a str>,
    /// Milliseconds.
    vpos_ms: Option<&'a str>,
    commands: Vec<&'a str>,
    /// Seconds, and microseconds besides.
    date: Option<&'a str>,
    date_usec: Option<&'a str>,
    user: Option<&'a str>,
    id: Option<&'a str>,
    deleted: bool,
}

fn read_facts(draft: &mut Draft, facts: &Facts<'_>) -> Result<(), Reason> {
    if facts.deleted {
        return Err(Reason::Hidden);
    }
    match (facts.vpos_ms, facts.vpos) {
        (Some(ms), _) => draft.progress_in(ms, 1)?,
        (None, Some(hundredths)) => draft.progress_in(hundredths, 10)?,
        (None, None) => return Err(Reason::Fields),
    }
    for command in &facts.commands {
        read_command(draft, command)?;
    }
    if let Some(date) = facts.date {
        draft.sent(date);
        let usec: i64 = facts.date_usec.and_then(|usec| usec.parse().ok()).unwrap_or(0);
        let ms = usec.clamp(0, 999_999) / 1000;
        draft.item.sent_ms = draft.item.sent_ms.saturating_add(ms);
    }
    draft.sender_of(facts.user.unwrap_or_default());
    if let Some(id) = facts.id {
        draft.id(id);
    }
    Ok(())
}

fn read_command(draft: &mut Draft, command: &str) -> Result<(), Reason> {
    match &*command.to_ascii_lowercase() {
        "ue" => draft.item.mode = Mode::Top,
        "shita" => draft.item.mode = Mode::Bottom,
        "naka" => draft.item.mode = Mode::Scroll,
        "big" => draft.item.size = 36,
        "small" => draft.item.size = 16,
        // Nothing is said of it here: the sender is hashed in any case.
        "medium" | "184" | "" => {}
        "invisible" => return Err(Reason::Hidden),
        other => match parse_color(other) {
            Some(color) => draft.item.color = color,
            None => draft.changed(Change::Fields),
        },
    }
    Ok(())
}
