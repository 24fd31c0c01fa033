//! A day row: the marks of one kind and one day of UTC, in bits.
//!
//! ```text
//! version (4)  count (gamma)  marks, oldest first
//! mark: time since the mark before, within the day
//!       id: 0 decimal: 0 as many digits as before | 1 digits (5); the number
//!           1 then 0 UUID: 1 of version 4 in 122 bits | 0 128 bits
//!                  10 number of 128 bits   11 text
//!       length: 1 position and duration | 0 position? duration?
//!       state: 0 begun | 10 played once | 11 flags, plays, change of part?
//!       part? (then change of part?) device? group?
//! ```
//!
//! Retries are not in it: they live for a day, in a row of their own.

use tideline_types::limits::{FIELD_BYTES_MAX, LENGTH_MS_MAX};
use tideline_types::{DAY_MS, Millis};

use super::bits::{BitReader, BitWriter};
use crate::codec::{BadBytes, Reader};
use crate::id::{IdBuf, PackedId};
use crate::retry::Retries;
use crate::row::RowRef;

const VERSION: u64 = 1;
/// Decimal ids are taken to have as many digits as the one before; the first
/// as many as this.
const DIGITS: u32 = 15;
/// A duration below this, in s, takes 14 bits.
const SHORT_S: u64 = 1 << 13;

/// A mark as it is read: what texts it has lie in `texts`.
pub(super) struct DayMark {
    id: IdBuf,
    part: Option<String>,
    device: Option<String>,
    group: Option<String>,
    position_ms: Option<u64>,
    duration_ms: Option<u64>,
    event_ms: Millis,
    state: State,
    part_since: Millis,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    finished: bool,
    declared: bool,
    began: bool,
    plays: u32,
}

const BEGUN: State = State { finished: false, declared: false, began: true, plays: 0 };
const PLAYED: State = State { finished: true, declared: false, began: false, plays: 1 };

impl DayMark {
    pub(super) fn borrow(&self) -> RowRef<'_> {
        RowRef {
            id: self.id.borrow(),
            part: self.part.as_deref(),
            position_ms: self.position_ms,
            duration_ms: self.duration_ms,
            event_ms: self.event_ms,
            device: self.device.as_deref(),
            group: self.group.as_deref(),
            finished: self.state.finished,
            declared: self.state.declared,
            began: self.state.began,
            plays: self.state.plays,
            part_since: self.part_since,
            retries: Retries::EMPTY,
        }
    }
}

fn day_start(day: i32) -> i64 {
    i64::from(day) * DAY_MS
}

/// The value of a day row; `rows` lie on that day, oldest first, at least one.
pub(super) fn write(day: i32, rows: &[RowRef<'_>]) -> Vec<u8> {
    let mut bits = BitWriter::default();
    bits.put(VERSION, 4);
    bits.gamma(rows.len() as u64);
    let mut state = Between::new(day, rows.len());
    for row in rows {
        state.write_time(row.event_ms, &mut bits);
        state.write_id(row.id, &mut bits);
        write_length(row, &mut bits);
        write_state(row, &mut bits);
        for (which, text) in [row.part, row.device, row.group].into_iter().enumerate() {
            bits.flag(text.is_some());
            let Some(text) = text else { continue };
            state.write_text(text, &mut bits);
            if which == 0 {
                bits.flag(row.part_since != Millis(0));
                write_since(row, &mut bits);
            }
        }
    }
    bits.finish()
}

/// Reads a day row.
pub(super) fn read(day: i32, value: &[u8]) -> Result<Vec<DayMark>, BadBytes> {
    let mut bits = BitReader::new(value);
    if bits.get(4)? != VERSION {
        return Err(BadBytes("unknown version"));
    }
    let count = bits.gamma()?;
    // A mark takes at least four bytes.
    if count > value.len() as u64 {
        return Err(BadBytes("an impossible count"));
    }
    let mut state = Between::new(day, count as usize);
    let mut marks: Vec<DayMark> = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let mark = state.read_mark(&mut bits)?;
        mark.borrow().check()?;
        marks.push(mark);
    }
    if !bits.is_at_end() {
        return Err(BadBytes("bits are left over"));
    }
    Ok(marks)
}

/// What one mark says about the next.
struct Between {
    day: i32,
    /// Marks that are left, this one too.
    left: u64,
    /// Time of the mark before, from the day's start.
    time: u64,
    digits: u32,
    texts: Vec<String>,
}

impl Between {
    fn new(day: i32, count: usize) -> Self {
        Self { day, left: count as u64, time: 0, digits: DIGITS, texts: Vec::new() }
    }

    fn mean_gap(&self) -> u64 {
        (DAY_MS as u64 - self.time) / (self.left + 1)
    }

    fn write_time(&mut self, event_ms: Millis, bits: &mut BitWriter) {
        let time = (event_ms.0 - day_start(self.day)) as u64;
        if self.left == 1 {
            bits.below(time - self.time, DAY_MS as u64 - self.time);
        } else {
            bits.rice(time - self.time, self.mean_gap());
        }
        self.time = time;
        self.left -= 1;
    }

    fn read_time(&mut self, bits: &mut BitReader<'_>) -> Result<Millis, BadBytes> {
        let gap = match self.left {
            1 => bits.below(DAY_MS as u64 - self.time)?,
            _ => bits.rice(self.mean_gap())?,
        };
        if gap >= DAY_MS as u64 - self.time {
            return Err(BadBytes("a mark lies outside its day"));
        }
        self.time += gap;
        self.left -= 1;
        let at = day_start(self.day) + self.time as i64;
        if at > 0 { Ok(Millis(at)) } else { Err(BadBytes("a time is not after 0")) }
    }

    fn write_id(&mut self, id: PackedId<'_>, bits: &mut BitWriter) {
        let raw = id.raw();
        if let Some(number) = id.as_u64() {
            let digits = number.checked_ilog10().map_or(1, |log| log + 1);
            bits.flag(false);
            bits.flag(digits != self.digits);
            if digits != self.digits {
                bits.put(u64::from(digits), 5);
                self.digits = digits;
            }
            let (first, count) = decimals(digits);
            bits.below(number - first, count);
        } else if id.is_uuid() {
            bits.put(0b10, 2);
            let random = raw[6] >> 4 == 4 && raw[8] >> 6 == 2;
            bits.flag(random);
            if random {
                bits.bytes(&raw[..6]);
                bits.put(u64::from(raw[6] & 15), 4);
                bits.put(u64::from(raw[7]), 8);
                bits.put(u64::from(raw[8] & 63), 6);
                bits.bytes(&raw[9..]);
            } else {
                bits.bytes(raw);
            }
        } else if id.is_text() {
            bits.put(0b111, 3);
            bits.gamma(raw.len() as u64);
            bits.bytes(raw);
        } else {
            bits.put(0b110, 3);
            bits.bytes(raw);
        }
    }

    fn read_id(&mut self, bits: &mut BitReader<'_>) -> Result<IdBuf, BadBytes> {
        if !bits.flag()? {
            if bits.flag()? {
                self.digits = bits.get(5)? as u32;
            }
            if !(1..=20).contains(&self.digits) {
                return Err(BadBytes("an id has an impossible number of digits"));
            }
            let (first, count) = decimals(self.digits);
            let number = first.checked_add(bits.below(count)?);
            return number.map(IdBuf::of_u64).ok_or(BadBytes("a number is over 64 bits"));
        }
        let (form, raw) = if !bits.flag()? {
            let raw = if bits.flag()? {
                let mut raw = bits.byte_vec(6)?;
                raw.push(0x40 | bits.get(4)? as u8);
                raw.push(bits.get(8)? as u8);
                raw.push(0x80 | bits.get(6)? as u8);
                raw.extend(bits.byte_vec(7)?);
                raw
            } else {
                bits.byte_vec(16)?
            };
            (PackedId::UUID_FORM, raw)
        } else if bits.flag()? {
            let len = bits.gamma()?;
            if len > FIELD_BYTES_MAX as u64 {
                return Err(BadBytes("a text has an impossible length"));
            }
            let mut raw = vec![len as u8];
            raw.extend(bits.byte_vec(len as usize)?);
            (PackedId::TEXT_FORM, raw)
        } else {
            (PackedId::WIDE_FORM, bits.byte_vec(16)?)
        };
        Ok(IdBuf::of(PackedId::read_body(form, &mut Reader::new(&raw))?))
    }

    /// `0` as one before | `10` "ep" and a number | `110` of 64 characters |
    /// `111` any.
    fn write_text(&mut self, text: &str, bits: &mut BitWriter) {
        if let Some(at) = self.texts.iter().position(|own| own == text) {
            bits.flag(false);
            bits.below(at as u64, self.texts.len() as u64);
            return;
        }
        if let Some(number) = episode(text) {
            bits.put(0b10, 2);
            bits.gamma(u64::from(number) + 1);
            return;
        }
        let codes: Option<Vec<u64>> = text.bytes().map(code_of).collect();
        match codes {
            Some(codes) => {
                bits.put(0b110, 3);
                bits.below(codes.len() as u64 - 1, FIELD_BYTES_MAX as u64);
                codes.iter().for_each(|&code| bits.put(code, 6));
            }
            None => {
                bits.put(0b111, 3);
                bits.below(text.len() as u64 - 1, FIELD_BYTES_MAX as u64);
                bits.bytes(text.as_bytes());
            }
        }
        self.texts.push(text.to_owned());
    }

    fn read_text(&mut self, bits: &mut BitReader<'_>) -> Result<String, BadBytes> {
        if !bits.flag()? {
            let at = bits.below(self.texts.len() as u64)?;
            let text = self.texts.get(at as usize);
            return text.cloned().ok_or(BadBytes("a text before is not there"));
        }
        if !bits.flag()? {
            let number = u16::try_from(bits.gamma()? - 1);
            return match number {
                Ok(number) => Ok(format!("ep{number}")),
                Err(_) => Err(BadBytes("an episode is out of range")),
            };
        }
        let any = bits.flag()?;
        let len = bits.below(FIELD_BYTES_MAX as u64)? as usize + 1;
        let bytes = if any {
            bits.byte_vec(len)?
        } else {
            let chars = (0..len).map(|_| Ok(CHARACTERS[bits.get(6)? as usize]));
            chars.collect::<Result<Vec<u8>, BadBytes>>()?
        };
        let text = String::from_utf8(bytes).map_err(|_| BadBytes("a text is not UTF-8"))?;
        self.texts.push(text.clone());
        Ok(text)
    }

    fn read_mark(&mut self, bits: &mut BitReader<'_>) -> Result<DayMark, BadBytes> {
        let event_ms = self.read_time(bits)?;
        let id = self.read_id(bits)?;
        let (position_ms, duration_ms) = read_length(bits)?;
        let (state, mut part_since) = read_state(event_ms, bits)?;
        let part = match bits.flag()? {
            true => Some(self.read_text(bits)?),
            false => None,
        };
        if part.is_some() && bits.flag()? {
            part_since = read_since(event_ms, bits)?;
        }
        let mut text = || bits.flag()?.then(|| self.read_text(bits)).transpose();
        let (device, group) = (text()?, text()?);
        Ok(DayMark {
            id,
            part,
            device,
            group,
            position_ms,
            duration_ms,
            event_ms,
            state,
            part_since,
        })
    }
}

/// The least number of so many digits, and how many there are up to the
/// greatest that fits in 64 bits.
fn decimals(digits: u32) -> (u64, u64) {
    match digits {
        1 => (0, 10),
        20 => (10u64.pow(19), u64::MAX - 10u64.pow(19) + 1),
        _ => (10u64.pow(digits - 1), 9 * 10u64.pow(digits - 1)),
    }
}

fn write_length(row: &RowRef<'_>, bits: &mut BitWriter) {
    let both = row.position_ms.is_some() && row.duration_ms.is_some();
    bits.flag(both);
    if !both {
        bits.flag(row.position_ms.is_some());
        if row.position_ms.is_none() {
            bits.flag(row.duration_ms.is_some());
        }
    }
    if let Some(duration) = row.duration_ms {
        match duration % 1000 {
            0 if duration / 1000 < SHORT_S => {
                bits.flag(false);
                bits.below(duration / 1000 - 1, SHORT_S);
            }
            0 => {
                bits.put(0b10, 2);
                bits.gamma(duration / 1000);
            }
            _ => {
                bits.put(0b11, 2);
                bits.rice(duration, 1 << 22);
            }
        }
    }
    match (row.position_ms, row.duration_ms) {
        (Some(position), Some(duration)) => {
            bits.flag(position > duration);
            match position > duration {
                false => bits.below(position, duration + 1),
                true => bits.gamma(position - duration),
            }
        }
        (Some(position), None) => bits.rice(position, 1 << 22),
        (None, _) => {}
    }
}

fn read_length(bits: &mut BitReader<'_>) -> Result<(Option<u64>, Option<u64>), BadBytes> {
    let both = bits.flag()?;
    let has_position = both || bits.flag()?;
    let has_duration = both || (!has_position && bits.flag()?);
    let mut duration_ms = None;
    if has_duration {
        let duration = match (bits.flag()?, true) {
            (false, _) => (bits.below(SHORT_S)? + 1) * 1000,
            (true, _) if bits.flag()? => bits.rice(1 << 22)?,
            (true, _) => bits.gamma()?.saturating_mul(1000),
        };
        if duration == 0 || duration > LENGTH_MS_MAX {
            return Err(BadBytes("a row has an impossible position or duration"));
        }
        duration_ms = Some(duration);
    }
    let position_ms = match (has_position, duration_ms) {
        (false, _) => None,
        (true, None) => Some(bits.rice(1 << 22)?),
        (true, Some(duration)) => Some(match bits.flag()? {
            false => bits.below(duration + 1)?,
            true => bits.gamma()?.saturating_add(duration),
        }),
    };
    Ok((position_ms, duration_ms))
}

fn write_state(row: &RowRef<'_>, bits: &mut BitWriter) {
    let &RowRef { finished, declared, began, plays, .. } = row;
    let state = State { finished, declared, began, plays };
    let since_alone = row.part.is_none() && row.part_since != Millis(0);
    match state {
        BEGUN if !since_alone => bits.flag(false),
        PLAYED if !since_alone => bits.put(0b10, 2),
        _ => {
            bits.put(0b11, 2);
            [finished, declared, began, since_alone].into_iter().for_each(|is| bits.flag(is));
            bits.gamma(u64::from(plays) + 1);
            if since_alone {
                write_since(row, bits);
            }
        }
    }
}

fn read_state(event_ms: Millis, bits: &mut BitReader<'_>) -> Result<(State, Millis), BadBytes> {
    if !bits.flag()? {
        return Ok((BEGUN, Millis(0)));
    }
    if !bits.flag()? {
        return Ok((PLAYED, Millis(0)));
    }
    let (finished, declared, began) = (bits.flag()?, bits.flag()?, bits.flag()?);
    let since_alone = bits.flag()?;
    let plays = u32::try_from(bits.gamma()? - 1).map_err(|_| BadBytes("too many plays"))?;
    let since = if since_alone { read_since(event_ms, bits)? } else { Millis(0) };
    Ok((State { finished, declared, began, plays }, since))
}

/// The row's change of part, told back from its time; nothing where none was.
fn write_since(row: &RowRef<'_>, bits: &mut BitWriter) {
    if row.part_since != Millis(0) {
        let back = row.event_ms.0.wrapping_sub(row.part_since.0);
        bits.flag(back < 0);
        bits.rice(back.unsigned_abs(), 1 << 16);
    }
}

fn read_since(event_ms: Millis, bits: &mut BitReader<'_>) -> Result<Millis, BadBytes> {
    let later = bits.flag()?;
    let back = i64::try_from(bits.rice(1 << 16)?).map_err(|_| BadBytes("a time is too far"))?;
    let since = if later { event_ms.0.saturating_add(back) } else { event_ms.0 - back };
    if since > 0 { Ok(Millis(since)) } else { Err(BadBytes("a time is not after 0")) }
}

/// The number of `ep7`, in its only form.
fn episode(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("ep")?;
    let number: u16 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

const CHARACTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

fn code_of(character: u8) -> Option<u64> {
    let code = match character {
        b'a'..=b'z' => character - b'a',
        b'A'..=b'Z' => character - b'A' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    };
    Some(u64::from(code))
}
