//! Which characters a comment keeps, whether any of them can be seen, and how
//! they are counted.
//!
//! A cleaned text holds no control character but tab and line feed, so that
//! every format can carry it: XML could not, not even as a reference.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar as _;

/// How long a text is: in Unicode scalars. An emoji of several (a family, a
/// flag) counts each.
pub fn chars(text: &str) -> usize {
    text.chars().count()
}

/// `text` without control characters (U+0000 to U+001F and U+007F to U+009F,
/// but tab and line feed) and without U+FFFE and U+FFFF. Carriage returns
/// become line feeds, alone or with the line feed after them.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_removed) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => cleaned.push('\n'),
            c if is_removed(c) => {}
            c => cleaned.push(c),
        }
    }
    Cow::Owned(cleaned)
}

fn is_removed(c: char) -> bool {
    (c.is_control() && !matches!(c, '\t' | '\n')) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Whether nothing of a text can be seen: it is empty, or holds white space,
/// fillers, marks of direction, joiners and combining marks alone.
pub fn is_invisible(text: &str) -> bool {
    text.chars().all(|c| {
        c.is_whitespace()
            // The soft hyphen, the filler of Hangul and the empty cell of
            // Braille take room and show nothing.
            || matches!(c, '\u{ad}' | '\u{115f}' | '\u{2800}')
            || c.width().unwrap_or(0) == 0
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_characters_go_and_everything_else_stays() {
        let same =
            ["", "a\tb\nc", "哈哈哈", "\u{1F415}", "👨‍👩‍👧‍👦", "e\u{301}", "\u{202e}abc", "\u{e000}"];
        for text in same {
            assert_eq!(clean(text), text);
        }
        for (text, cleaned) in [
            ("av1141873\u{16}", "av1141873"),
            ("\u{13}\u{1F415}", "\u{1F415}"),
            ("a\0b\u{7f}c\u{9f}d\u{fffe}e\u{ffff}", "abcde"),
            ("a\r\nb\rc\r", "a\nb\nc\n"),
            ("\r\r\n\n", "\n\n\n"),
        ] {
            assert_eq!(clean(text), cleaned);
        }
    }

    #[test]
    fn what_cannot_be_seen_is_told_from_what_can() {
        let empty = [
            "",
            " \t\n",
            "\u{3000}",
            "\u{200b}",
            "\u{3164}",
            "\u{202e}",
            "\u{301}\u{302}",
            "\u{115f}\u{1160}",
            "\u{ffa0}",
            "\u{2800}",
            "\u{feff}\u{200d}\u{200c}",
            "\u{ad}",
            "\u{2066}\u{2069}",
            "\u{fe0f}",
            "\u{e0041}\u{e007f}",
            "\u{180e}",
            "\u{7}",
        ];
        for text in empty {
            assert!(is_invisible(text), "{text:?}");
        }
        let seen = [
            "a",
            ".",
            "👨‍👩‍👧‍👦",
            "e\u{301}",
            "\u{202e}a",
            "。",
            "〜",
            "⠁",
            "\u{1F415}",
            "각",
            "\u{e000}",
        ];
        for text in seen {
            assert!(!is_invisible(text), "{text:?}");
        }
    }

    #[test]
    fn a_family_of_four_counts_seven() {
        assert_eq!(chars("👨‍👩‍👧‍👦"), 7);
        assert_eq!(chars("ab\u{1F415}"), 3);
    }

    proptest! {
        #[test]
        fn cleaning_twice_is_cleaning_once(text in any::<String>()) {
            let once = clean(&text).into_owned();
            prop_assert_eq!(clean(&once), once.as_str());
            prop_assert!(!once.chars().any(|c| c.is_control() && c != '\t' && c != '\n'));
        }
    }
}
