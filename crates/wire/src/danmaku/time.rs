//! Seconds as decimal text, to milliseconds and back, without floats.
//!
//! Read: rounded to the nearest millisecond, half a millisecond up, on the
//! digits as they are written: `359.9994` is 359,999 ms, `359.9995` is
//! 360,000. So what an old file wrote of a 32-bit float (`8.2299995422363`)
//! comes back as it was meant (8,230), and no sum is off by one because
//! `1.005` has no exact float. Written: exact, with five decimals.

use super::Item;
use crate::json::push_u64;

/// A text that is no time in a video.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BadSeconds {
    /// Not a decimal number; also `NaN` and `inf`.
    #[error("not a decimal number")]
    NotANumber,
    /// Below zero by half a millisecond or more.
    #[error("before the start")]
    Negative,
    /// More than [`Item::PROGRESS_MS_MAX`].
    #[error("more than 24 days")]
    TooLarge,
}

/// Reads seconds, such as `490.19100`, `94`, `.5`, `-0.0` or `3.6e2`, to ms.
/// White space around them is passed over.
pub fn parse_seconds_ms(text: &str) -> Result<u32, BadSeconds> {
    let text = text.trim_ascii();
    let (negative, digits) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (mantissa, exponent) = match digits.iter().position(|b| matches!(b, b'e' | b'E')) {
        Some(at) => (&digits[..at], parse_exponent(&digits[at + 1..])?),
        None => (digits, 0),
    };
    let (whole, fraction) = match mantissa.iter().position(|b| *b == b'.') {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &[][..]),
    };
    let mut all = whole.iter().chain(fraction);
    if whole.len() + fraction.len() == 0 || !all.all(u8::is_ascii_digit) {
        return Err(BadSeconds::NotANumber);
    }
    let ms = scaled(whole, fraction, exponent)?;
    match (negative, ms) {
        (_, 0) => Ok(0),
        (true, _) => Err(BadSeconds::Negative),
        (false, ms) => Ok(ms),
    }
}

/// An exponent, where more than 9 digits are as good as endless.
fn parse_exponent(text: &[u8]) -> Result<i64, BadSeconds> {
    let (sign, digits) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        rest => (1, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(BadSeconds::NotANumber);
    }
    let add = |sum: i64, digit: &u8| (sum * 10 + i64::from(digit - b'0')).min(1_000_000_000);
    Ok(sign * digits.iter().fold(0, add))
}

/// `whole.fraction * 10^exponent` seconds in ms, rounded half up.
fn scaled(whole: &[u8], fraction: &[u8], exponent: i64) -> Result<u32, BadSeconds> {
    // The digits up to `point` are whole milliseconds, the next one decides.
    let point = whole.len() as i64 + exponent + 3;
    let mut digits = whole.iter().chain(fraction).map(|digit| u64::from(digit - b'0'));
    let mut ms = 0_u64;
    let mut at = 0;
    while at < point {
        let Some(digit) = digits.next() else { break };
        ms = ms * 10 + digit;
        at += 1;
        if ms > u64::from(Item::PROGRESS_MS_MAX) {
            return Err(BadSeconds::TooLarge);
        }
    }
    while at < point && ms > 0 {
        ms *= 10;
        at += 1;
        if ms > u64::from(Item::PROGRESS_MS_MAX) {
            return Err(BadSeconds::TooLarge);
        }
    }
    // With a point before the first digit there is a zero at the place that
    // decides.
    let up = point >= 0 && digits.next().is_some_and(|digit| digit >= 5);
    match u32::try_from(ms + u64::from(up)) {
        Ok(ms) if ms <= Item::PROGRESS_MS_MAX => Ok(ms),
        _ => Err(BadSeconds::TooLarge),
    }
}

/// Adds `ms` as seconds with five decimals: 490,191 ms is `490.19100`.
pub fn push_seconds_5(out: &mut Vec<u8>, ms: u32) {
    push_u64(out, u64::from(ms / 1000));
    out.push(b'.');
    push_thousandths(out, ms % 1000);
    out.extend_from_slice(b"00");
}

/// Adds `ms` as seconds with as many decimals as it has: `61.5`, `94`.
pub fn push_seconds(out: &mut Vec<u8>, ms: u32) {
    push_u64(out, u64::from(ms / 1000));
    if !ms.is_multiple_of(1000) {
        out.push(b'.');
        push_thousandths(out, ms % 1000);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

fn push_thousandths(out: &mut Vec<u8>, below_1000: u32) {
    let digit = |place: u32| b'0' + (below_1000 / place % 10) as u8;
    out.extend_from_slice(&[digit(100), digit(10), digit(1)]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_at_borders_are_read_as_decimals() {
        for (text, ms) in [
            ("359.9994", 359_999),
            ("359.9995", 360_000),
            ("359.99951", 360_000),
            ("359.99949999999999999999999999999", 359_999),
            ("360", 360_000),
            ("360.000", 360_000),
            ("3.6e2", 360_000),
            ("36000E-2", 360_000),
            ("0.0000036e+8", 360_000),
            ("1.005", 1_005),
            ("8.2299995422363", 8_230),
            ("490.19100", 490_191),
            ("-0.0", 0),
            ("-0.0004", 0),
            ("+2.5", 2_500),
            (" 94 ", 94_000),
            (".5", 500),
            ("5.", 5_000),
            ("0.0005", 1),
            ("0.00005", 0),
            ("5e-4", 1),
            ("9e-5", 0),
            ("1e-999999999999", 0),
            ("0e999999999999", 0),
            ("0000000000000000000000000000001", 1_000),
            ("2147483.647", Item::PROGRESS_MS_MAX),
            ("2147483.6474", Item::PROGRESS_MS_MAX),
        ] {
            assert_eq!(parse_seconds_ms(text), Ok(ms), "{text}");
        }
        for text in ["NaN", "inf", "-inf", "", "-", ".", "1.2.3", "1e", "1e+", "1,5", "0x1", "１"]
        {
            assert_eq!(parse_seconds_ms(text), Err(BadSeconds::NotANumber), "{text}");
        }
        for text in ["-1", "-0.001", "-0.0005", "-12e3"] {
            assert_eq!(parse_seconds_ms(text), Err(BadSeconds::Negative), "{text}");
        }
        for text in ["1e309", "2147483.6475", "2147483.648", "1e999999999999", &"9".repeat(500)] {
            assert_eq!(parse_seconds_ms(text), Err(BadSeconds::TooLarge), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_time_reads_back_as_it_was(ms in 0..=Item::PROGRESS_MS_MAX) {
            for push in [push_seconds_5, push_seconds] {
                let mut out = Vec::new();
                push(&mut out, ms);
                prop_assert_eq!(parse_seconds_ms(std::str::from_utf8(&out).unwrap()), Ok(ms));
            }
        }

        #[test]
        fn moving_the_point_changes_nothing(ms in 0..=Item::PROGRESS_MS_MAX, by in 0..20_usize) {
            let text = format!("{ms}{}e-{}", "0".repeat(by), by + 3);
            prop_assert_eq!(parse_seconds_ms(&text), Ok(ms));
            let text = format!("0.{}{ms:010}e{}", "0".repeat(by), by + 7);
            prop_assert_eq!(parse_seconds_ms(&text), Ok(ms));
        }

        #[test]
        fn it_rounds_as_exact_arithmetic_does(micros in 0..2_000_000_000_000_u64) {
            let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
            let want = (micros + 500) / 1000;
            prop_assert_eq!(parse_seconds_ms(&text).map(u64::from), Ok(want));
        }
    }
}
