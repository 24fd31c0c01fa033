//! What stands inside a line of subtitles.

use std::io::Write as _;

use super::WRITTEN;
use crate::danmaku::positioned::{Place, Positioned};
use crate::json::{push_str, push_u64};

/// The stage that pixels of positioned comments are of.
const STAGE: (f32, f32) = (672.0, 438.0);

/// Adds a time: hours, minutes, seconds, hundredths (cut).
pub(super) fn put_time(out: &mut Vec<u8>, ms: u64) {
    let (hours, minutes) = (ms / 3_600_000, ms / 60_000 % 60);
    let (seconds, hundredths) = (ms / 1000 % 60, ms / 10 % 100);
    write!(out, "{hours}:{minutes:02}:{seconds:02}.{hundredths:02}").expect(WRITTEN);
}

/// Adds a colour, unless it is the style's white. Black letters get a white
/// border.
pub(super) fn put_color(out: &mut Vec<u8>, color: u32) {
    if color == 0x00FF_FFFF {
        return;
    }
    let [_, red, green, blue] = color.to_be_bytes();
    write!(out, "\\c&H{blue:02X}{green:02X}{red:02X}&").expect(WRITTEN);
    if color == 0 {
        push_str(out, "\\3c&HFFFFFF&");
    }
}

/// How transparent: 0 is not at all.
pub(super) fn alpha(opacity: f32) -> u8 {
    255 - (opacity.clamp(0.0, 1.0) * 255.0).round() as u8
}

/// The lines of a text. Besides line feeds, old clients wrote `/n`; where a
/// letter or digit of ASCII follows it, it is taken for text (`and/not`).
pub(super) fn lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let (mut start, mut from) = (0, 0);
    while let Some(found) = text[from..].find(['\n', '/']) {
        let at = from + found;
        let rest = &text[at..];
        let followed = rest.as_bytes().get(2).is_some_and(u8::is_ascii_alphanumeric);
        let length = match rest {
            _ if rest.starts_with('\n') => 1,
            _ if rest.starts_with("/n") && !followed => 2,
            _ => 0,
        };
        if length > 0 {
            lines.push(&text[start..at]);
            start = at + length;
        }
        from = at + length.max(1);
    }
    lines.push(&text[start..]);
    lines
}

/// Adds lines with their escapes, and ends the line of the file.
pub(super) fn put_lines(out: &mut Vec<u8>, lines: &[&str]) {
    for (at, line) in lines.iter().enumerate() {
        if at > 0 {
            push_str(out, "\\N");
        }
        for byte in line.bytes() {
            match byte {
                // A space without width keeps it from beginning a tag.
                b'\\' => push_str(out, "\\\u{200b}"),
                b'{' => push_str(out, "\\{"),
                b'}' => push_str(out, "\\}"),
                byte => out.push(byte),
            }
        }
    }
    push_str(out, "\r\n");
}

/// Adds where a positioned comment is and goes, how it looks, on a `screen` of
/// width and height.
pub(super) fn put_positioned(
    out: &mut Vec<u8>,
    positioned: &Positioned<'_>,
    screen: (u32, u32),
    size: u8,
) {
    let (width, height) = (screen.0 as f32, screen.1 as f32);
    let at = |place: &Place, stage: f32, screen: f32| match *place {
        Place::Part(part) => (part * screen).round() as i64,
        Place::Pixels(pixels) => (pixels * screen / stage).round() as i64,
    };
    let on_screen = |(x, y): &(Place, Place)| (at(x, STAGE.0, width), at(y, STAGE.1, height));
    let ((x, y), (to_x, to_y)) = (on_screen(&positioned.from), on_screen(&positioned.to));
    if (x, y) == (to_x, to_y) {
        write!(out, "\\pos({x},{y})").expect(WRITTEN);
    } else {
        let begin = positioned.delay_ms;
        let end = begin.saturating_add(positioned.move_ms);
        write!(out, "\\move({x},{y},{to_x},{to_y},{begin},{end})").expect(WRITTEN);
    }
    let (from, to) = (alpha(positioned.opacity.0), alpha(positioned.opacity.1));
    if (from, to) != (0, 0) {
        write!(out, "\\alpha&H{from:02X}&").expect(WRITTEN);
    }
    if from != to {
        write!(out, "\\t(0,{},\\alpha&H{to:02X}&)", positioned.life_ms).expect(WRITTEN);
    }
    // Here degrees go the other way round.
    for (tag, degrees) in [("\\frz", -positioned.rotate_z), ("\\fry", -positioned.rotate_y)] {
        if degrees != 0.0 {
            write!(out, "{tag}{}", degrees.round() as i64).expect(WRITTEN);
        }
    }
    push_str(out, "\\fs");
    push_u64(out, (f32::from(size) * height / STAGE.1).round().max(1.0) as u64);
    if !positioned.outline {
        push_str(out, "\\bord0");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_and_an_n_is_a_line_end_but_within_a_word() {
        assert_eq!(lines("a/nb"), ["a/nb"]);
        assert_eq!(lines("and/not"), ["and/not"]);
        assert_eq!(lines("a/n哈\nb/n"), ["a", "哈", "b", ""]);
        assert_eq!(lines("/n/n/n识"), ["", "", "", "识"]);
        assert_eq!(lines("/n/nabc"), ["", "/nabc"]);
        assert_eq!(lines(""), [""]);
    }

    #[test]
    fn times_are_cut_to_hundredths() {
        let shown = |ms| {
            let mut out = Vec::new();
            put_time(&mut out, ms);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(shown(359_999), "0:05:59.99");
        assert_eq!(shown(36_000_000), "10:00:00.00");
        assert_eq!(shown(0), "0:00:00.00");
    }
}
