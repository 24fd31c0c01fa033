//! One comment while its fields are read: puts right what is clear, and
//! remembers that it did.

use std::borrow::Cow;

use super::{Change, Changes, Reason, parse_color};
use crate::danmaku::{
    BadSeconds, Item, Mode, Pool, Sender, clean, is_invisible, parse_seconds_ms, positioned,
};

/// Times of sending from here on are in ms, as recorders write them; before,
/// in seconds (until the year 5138).
const SENT_MS_FROM: i64 = 100_000_000_000;
/// Times of sending end here, some three thousand years from now: what is
/// beyond is none, and would read as another in seconds.
const SENT_MS_END: i64 = SENT_MS_FROM * 1000;
/// The highest weight.
const WEIGHT_MAX: u8 = 11;

/// A comment that is being read. Fields that are never set have their usual
/// value.
#[derive(Debug, Default)]
pub(in crate::danmaku) struct Draft {
    pub(in crate::danmaku) item: Item<'static>,
    pub(in crate::danmaku) changes: Changes,
}

impl Draft {
    pub(in crate::danmaku) fn changed(&mut self, change: Change) {
        self.changes.add(change);
    }

    /// Seconds as decimal text.
    pub(in crate::danmaku) fn progress_s(&mut self, text: &str) -> Result<(), Reason> {
        self.item.progress_ms = match parse_seconds_ms(text) {
            Ok(ms) => ms,
            Err(BadSeconds::Negative) => {
                self.changed(Change::Start);
                0
            }
            Err(bad) => return Err(Reason::Progress(bad)),
        };
        if has_digits_below_ms(text) {
            self.changed(Change::Rounded);
        }
        Ok(())
    }

    /// Whole numbers of `ms` milliseconds each.
    pub(in crate::danmaku) fn progress_in(&mut self, text: &str, ms: i64) -> Result<(), Reason> {
        let number: i64 =
            text.trim().parse().map_err(|_| Reason::Progress(BadSeconds::NotANumber))?;
        if number < 0 {
            self.changed(Change::Start);
        }
        let progress = number.max(0).checked_mul(ms).and_then(|ms| u32::try_from(ms).ok());
        self.item.progress_ms = progress
            .filter(|ms| *ms <= Item::PROGRESS_MS_MAX)
            .ok_or(Reason::Progress(BadSeconds::TooLarge))?;
        Ok(())
    }

    /// A mode's number.
    pub(in crate::danmaku) fn mode_number(&mut self, text: &str) -> Result<(), Reason> {
        let number = text.trim().parse::<i64>().map_err(|_| Reason::Mode)?;
        self.item.mode = Mode::from_number(number).ok_or(Reason::Mode)?;
        if i64::from(self.item.mode.number()) != number {
            self.changed(Change::Mode);
        }
        Ok(())
    }

    pub(in crate::danmaku) fn pool_number(&mut self, text: &str) {
        let pool = text.trim().parse().ok().and_then(Pool::from_number);
        self.item.pool = self.or_changed(pool, Pool::Normal, Change::Pool);
    }

    pub(in crate::danmaku) fn size(&mut self, text: &str) {
        self.item.size = match text.trim().parse::<i64>() {
            Ok(size @ 1..=255) => size as u8,
            Ok(256..) => {
                self.changed(Change::Size);
                u8::MAX
            }
            _ => {
                self.changed(Change::Size);
                Item::SIZE
            }
        };
    }

    /// A colour as a decimal number, or as pages write it. Of larger numbers,
    /// and of negative ones, the lower 24 bits: they carry an opacity above.
    pub(in crate::danmaku) fn color(&mut self, text: &str) {
        let text = text.trim();
        self.item.color = match text.parse::<i64>() {
            Ok(color @ 0..=0x00FF_FFFF) => color as u32,
            Ok(color) => {
                self.changed(Change::Color);
                (color & 0x00FF_FFFF) as u32
            }
            Err(_) => self.or_changed(parse_color(text), Item::WHITE, Change::Color),
        };
    }

    /// A time in seconds, or in ms where it cannot be seconds. Returns whether
    /// it was in ms.
    pub(in crate::danmaku) fn sent(&mut self, text: &str) -> bool {
        let sent = text.trim().parse::<i64>().ok().and_then(|sent| {
            let in_ms = sent >= SENT_MS_FROM;
            Some((if in_ms { sent } else { sent.checked_mul(1000)? }, in_ms))
        });
        let (sent_ms, in_ms) = self.or_changed(sent, (0, false), Change::Sent);
        self.item.sent_ms = sent_ms;
        in_ms
    }

    /// A sender's hash, or whatever stands in its place, hashed.
    pub(in crate::danmaku) fn sender(&mut self, text: &str) {
        let text = text.trim();
        match Sender::parse(text) {
            Some(sender) => {
                self.item.sender = sender;
                if sender.to_string().len() != text.len() {
                    self.changed(Change::SenderZeros);
                }
            }
            None => self.sender_of(text),
        }
    }

    /// The name or number of a sender: its CRC-32, which is what the files of
    /// other sites carry for it. Empty: no one.
    pub(in crate::danmaku) fn sender_of(&mut self, name: &str) {
        let name = name.trim();
        if !name.is_empty() {
            self.changed(Change::Sender);
            self.item.sender = Sender::new(crc32(name.as_bytes()));
        }
    }

    pub(in crate::danmaku) fn id(&mut self, text: &str) {
        let id = text.trim().parse().ok();
        self.item.id = self.or_changed(id, 0, Change::Id);
    }

    pub(in crate::danmaku) fn weight(&mut self, text: &str) {
        let weight = text.trim().parse::<i64>().ok();
        let number = weight.unwrap_or(0).clamp(0, WEIGHT_MAX.into());
        if weight != Some(number) {
            self.changed(Change::Weight);
        }
        self.item.weight = number as u8;
    }

    pub(in crate::danmaku) fn text(&mut self, text: impl Into<String>) {
        self.item.text = Cow::Owned(text.into());
    }

    /// The comment, if it can be shown.
    pub(in crate::danmaku) fn finish(mut self) -> Result<(Item<'static>, Changes), Reason> {
        let cleaned = match clean(&self.item.text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(cleaned) => Some(cleaned),
        };
        if let Some(cleaned) = cleaned {
            self.changed(Change::Text);
            self.text(cleaned);
        }
        if self.item.sent_ms.unsigned_abs() >= SENT_MS_END.unsigned_abs() {
            self.changed(Change::Sent);
            self.item.sent_ms = 0;
        }
        if is_invisible(&self.item.text) {
            return Err(Reason::NoText);
        }
        if self.item.mode == Mode::Positioned {
            let repaired = match positioned::repair(&self.item.text).ok_or(Reason::Positioned)? {
                Cow::Borrowed(_) => None,
                Cow::Owned(repaired) => Some(repaired),
            };
            if let Some(repaired) = repaired {
                self.changed(Change::Positioned);
                self.text(repaired);
            }
        }
        Ok((self.item, self.changes))
    }

    fn or_changed<T>(&mut self, value: Option<T>, usual: T, change: Change) -> T {
        value.unwrap_or_else(|| {
            self.changed(change);
            usual
        })
    }
}

/// Whether seconds say more than milliseconds do. Not told of a number with an
/// exponent, which no file has.
fn has_digits_below_ms(text: &str) -> bool {
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    fraction.bytes().skip(3).any(|digit| matches!(digit, b'1'..=b'9'))
}

/// CRC-32 as zlib has it.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(set: impl FnOnce(&mut Draft)) -> (Item<'static>, Vec<Change>) {
        let mut draft = Draft::default();
        draft.text("x");
        set(&mut draft);
        let (item, changes) = draft.finish().unwrap();
        (item, changes.iter().collect())
    }

    #[test]
    fn a_colour_beyond_its_range_is_its_lower_bits() {
        for (text, color, changes) in [
            ("0", 0, vec![]),
            ("1", 1, vec![]),
            ("255", 255, vec![]),
            ("38979", 38979, vec![]),
            ("16777214", 16_777_214, vec![]),
            ("16777215", 16_777_215, vec![]),
            ("16777216", 0, vec![Change::Color]),
            ("-1", 16_777_215, vec![Change::Color]),
            ("4294901760", 0x00FF_0000, vec![Change::Color]),
            ("#00f", 255, vec![]),
            ("", 0x00FF_FFFF, vec![Change::Color]),
        ] {
            let (item, changed) = draft(|draft| draft.color(text));
            assert_eq!((item.color, changed), (color, changes), "{text}");
        }
    }

    #[test]
    fn a_name_is_hashed_as_other_sites_do() {
        for (name, hash) in [
            ("1", 0x83DC_EFB7),
            ("2", 0x1AD5_BE0D),
            ("33", 0x0A62_16D9),
            ("62", 0x0012_D20A),
            ("558830935", 0xA3EF_E724),
        ] {
            let (item, changed) = draft(|draft| draft.sender_of(name));
            assert_eq!((item.sender, changed), (Sender::new(hash), vec![Change::Sender]));
        }
        assert_eq!(draft(|draft| draft.sender("guest name")).1, [Change::Sender]);
        assert_eq!(draft(|draft| draft.sender("")).1, []);
        assert_eq!(draft(|draft| draft.sender("A6216D9")).1, []);
        for zero in ["0", "D0"] {
            assert_eq!(draft(|draft| draft.sender(zero)).1, []);
        }
        let (item, changed) = draft(|draft| draft.sender("0a6216d9"));
        assert_eq!((item.sender, changed), (Sender::new(0x0A62_16D9), vec![Change::SenderZeros]));
    }

    #[test]
    fn numbers_out_of_range_are_put_into_it() {
        let sizes = [("0", 25), ("-3", 25), ("x", 25), ("300", 255), ("5", 5), ("255", 255)];
        for (text, size) in sizes {
            let (item, changed) = draft(|draft| draft.size(text));
            assert_eq!(item.size, size);
            assert_eq!(changed.is_empty(), size == text.parse().unwrap_or(0));
        }
        for (text, weight) in [("11", 11), ("12", 11), ("-1", 0), ("x", 0), ("0", 0)] {
            let (item, changed) = draft(|draft| draft.weight(text));
            assert_eq!((item.weight, changed.is_empty()), (weight, weight.to_string() == text));
        }
        assert_eq!(draft(|draft| draft.pool_number("3")).1, [Change::Pool]);
        assert_eq!(draft(|draft| draft.id("9007199254740993")).0.id, 9_007_199_254_740_993);
        assert_eq!(draft(|draft| draft.id("9223372036854775808")).1, [Change::Id]);
    }

    #[test]
    fn times_of_sending_are_seconds_or_milliseconds() {
        for (text, sent_ms) in [
            ("1484219280", 1_484_219_280_000),
            ("1484219280123", 1_484_219_280_123),
            ("-5", -5_000),
        ] {
            let (item, changed) = draft(|draft| {
                draft.sent(text);
            });
            assert_eq!((item.sent_ms, changed), (sent_ms, vec![]));
        }
        for bad in ["", "now", "-9223372036854775808", "100000000000000", "-100000000000"] {
            let (item, changed) = draft(|draft| {
                draft.sent(bad);
            });
            assert_eq!((item.sent_ms, changed), (0, vec![Change::Sent]));
        }
    }

    #[test]
    fn times_are_rounded_and_it_is_said() {
        let (item, changed) = draft(|draft| draft.progress_s("8.2299995422363").unwrap());
        assert_eq!((item.progress_ms, changed), (8_230, vec![Change::Rounded]));
        let (item, changed) = draft(|draft| draft.progress_s("490.19100").unwrap());
        assert_eq!((item.progress_ms, changed), (490_191, vec![]));
        let (item, changed) = draft(|draft| draft.progress_s("-2.5").unwrap());
        assert_eq!((item.progress_ms, changed), (0, vec![Change::Start]));
        let mut none = Draft::default();
        let refused = none.progress_s("NaN");
        assert_eq!(refused, Err(Reason::Progress(BadSeconds::NotANumber)));
        assert_eq!(none.progress_in("4000000000", 10), Err(Reason::Progress(BadSeconds::TooLarge)));
        assert_eq!(none.progress_in("-4", 10), Ok(()));
        assert!(none.changes.has(Change::Start));
    }

    #[test]
    fn modes_that_no_one_knows_are_no_comments() {
        for mode in ["0", "10", "x", ""] {
            assert_eq!(Draft::default().mode_number(mode), Err(Reason::Mode), "{mode}");
        }
        let (item, changed) = draft(|draft| draft.mode_number("3").unwrap());
        assert_eq!((item.mode, changed), (Mode::Scroll, vec![Change::Mode]));
    }
}
