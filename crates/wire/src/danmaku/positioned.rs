//! The text of a positioned comment: a JSON array.
//!
//! `[x, y, "from-to" opacity, seconds, text, rotation about z, about y, to x,
//! to y, ms of moving, ms before moving, outline, font, easing, path]`, of
//! which the first five have to be there. Numbers may be strings. A place is
//! in pixels of the player's stage, or, where it is a fraction, at most 1, of
//! its width or height.
//!
//! Old clients cut long texts off in the middle; [`repair`] closes such an
//! array where it can, losing only what was cut anyway.

mod repair;

use std::borrow::Cow;

pub use repair::repair;

use crate::json::{Reader, Value};

/// Entries of an array that are read; what is behind them is passed over.
const ENTRIES_MAX: usize = 15;
/// Entries that have to be there.
const ENTRIES_MIN: usize = 5;

/// A place along one side of the stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// In pixels of the player's stage.
    Pixels(f32),
    /// A part of the side, 0 to 1.
    Part(f32),
}

/// What a positioned text says.
#[derive(Clone, Debug, PartialEq)]
pub struct Positioned<'a> {
    /// Where it begins, from the left and from the top.
    pub from: (Place, Place),
    /// Where it goes.
    pub to: (Place, Place),
    /// How it can be seen at first and at last, 0 to 1.
    pub opacity: (f32, f32),
    /// How long it is shown, in ms.
    pub life_ms: u32,
    /// What it says.
    pub text: Cow<'a, str>,
    /// Turned about the axis towards the viewer, in degrees.
    pub rotate_z: f32,
    /// Turned about the vertical axis, in degrees.
    pub rotate_y: f32,
    /// How long it moves, in ms.
    pub move_ms: u32,
    /// How long it stands before it moves, in ms.
    pub delay_ms: u32,
    /// Whether its letters have a border.
    pub outline: bool,
    /// It moves along a path, which is not read.
    pub path: bool,
}

/// Reads a positioned text. `None` where it is no array of at least five
/// values, or one of the first four is no number.
pub fn parse(text: &str) -> Option<Positioned<'_>> {
    let mut entries: Vec<Value<'_>> = Vec::with_capacity(ENTRIES_MAX);
    let mut reader = Reader::new(text.as_bytes()).ok()?;
    if reader.peek() != Some(b'[') {
        return None;
    }
    reader
        .array(|reader| {
            let value = reader.value()?;
            if entries.len() < ENTRIES_MAX {
                entries.push(value);
            }
            Ok(())
        })
        .ok()?;
    reader.end().ok()?;
    if entries.len() < ENTRIES_MIN {
        return None;
    }
    let from = (place(&entries[0])?, place(&entries[1])?);
    let to = (
        entries.get(7).and_then(place).unwrap_or(from.0),
        entries.get(8).and_then(place).unwrap_or(from.1),
    );
    let ms_of = |at: usize| entries.get(at).and_then(number).map(|ms| ms.max(0.0) as u32);
    let degrees = |at: usize| entries.get(at).and_then(number).unwrap_or(0.0);
    Some(Positioned {
        from,
        to,
        opacity: opacity(&entries[2])?,
        life_ms: (number(&entries[3])?.max(0.0) * 1000.0) as u32,
        rotate_z: degrees(5),
        rotate_y: degrees(6),
        move_ms: ms_of(9).unwrap_or(500),
        delay_ms: ms_of(10).unwrap_or(0),
        outline: !matches!(entries.get(11), Some(Value::Bool(false)))
            && entries.get(11).and_then(written).as_deref() != Some("false"),
        path: entries.get(14).and_then(written).is_some_and(|path| path.starts_with('M')),
        text: written(&entries[4])?,
    })
}

/// What a positioned text says to a reader, or `None` where [`parse`] finds
/// nothing.
pub fn inner_text(text: &str) -> Option<Cow<'_, str>> {
    parse(text).map(|positioned| positioned.text)
}

/// A string, or a number as it is written.
fn written<'a>(value: &Value<'a>) -> Option<Cow<'a, str>> {
    match value {
        Value::String(text) => Some(text.text.clone()),
        Value::Number(digits) => Some(Cow::Borrowed(digits)),
        _ => None,
    }
}

/// A finite number; an empty string is 0.
fn number(value: &Value<'_>) -> Option<f32> {
    let text = written(value)?;
    let text = text.trim();
    if text.is_empty() {
        return Some(0.0);
    }
    text.parse().ok().filter(|number: &f32| number.is_finite())
}

fn place(value: &Value<'_>) -> Option<Place> {
    let number = number(value)?;
    let fraction = written(value)?.contains('.') && (0.0..=1.0).contains(&number);
    Some(if fraction { Place::Part(number) } else { Place::Pixels(number) })
}

/// `"from-to"`, or one number for both.
fn opacity(value: &Value<'_>) -> Option<(f32, f32)> {
    let text = written(value)?;
    let (from, to) = text.split_once('-').unwrap_or((&text, &text));
    let part = |text: &str| match text.trim() {
        "" => Some(1.0),
        text => text.parse().ok().filter(|part: &f32| part.is_finite()).map(|p| p.clamp(0.0, 1.0)),
    };
    Some((part(from)?, part(to)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_strings_may_be_mixed() {
        let text =
            r#"["0.5",568,"0.4-1",4.5,"a\nb",0,"45","1.0",0,3500,"0","true","x",1,"M1,2L3,4"]"#;
        let read = parse(text).unwrap();
        assert_eq!(read.from, (Place::Part(0.5), Place::Pixels(568.0)));
        assert_eq!(read.to, (Place::Part(1.0), Place::Pixels(0.0)));
        assert_eq!(read.opacity, (0.4, 1.0));
        assert_eq!((read.life_ms, read.move_ms, read.delay_ms), (4_500, 3_500, 0));
        assert_eq!((read.rotate_z, read.rotate_y), (0.0, 45.0));
        assert_eq!((&*read.text, read.outline, read.path), ("a\nb", true, true));
    }

    #[test]
    fn five_entries_are_enough() {
        let read = parse(r#"[1,2,0.5,3,7]"#).unwrap();
        assert_eq!(read.to, read.from);
        assert_eq!(read.from, (Place::Pixels(1.0), Place::Pixels(2.0)));
        assert_eq!((read.opacity, &*read.text), ((0.5, 0.5), "7"));
        assert!(read.outline && !read.path);
        assert!(!parse(r#"[1,2,"",3,"x",0,0,0,0,0,0,"false"]"#).unwrap().outline);
    }

    #[test]
    fn what_is_no_such_array_is_none() {
        for bad in [
            "",
            "x",
            "{}",
            "[]",
            "[1,2,1,3]",
            "[1,2,\"1-1\",3,\"x\"",
            "[null,2,1,3,\"x\"]",
            "[1,\"1e99\",1,3,\"x\"]",
            "[1,2,\"a-b\",3,\"x\"]",
            "[1,2,1,3,[]]",
            "[1,2,1,3,\"x\"]y",
            "[\"NaN\",2,1,3,\"x\"]",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
