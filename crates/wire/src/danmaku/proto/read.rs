//! Reads segments, one element at a time.

use std::io::{self, BufRead};

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::danmaku::Attr;
use crate::danmaku::read::{Change, Draft, Entry, Limits, ReadError, Reason, entries};

/// Comments of a segment in protobuf.
pub fn read_segment<R: BufRead>(
    input: R,
    limits: Limits,
) -> impl Iterator<Item = Result<Entry, ReadError>> {
    let mut elements = Elements { input, limit: limits.element_bytes_max };
    entries(move |number| {
        let Some(bytes) = elements.next()? else { return Ok(None) };
        let outcome = bytes.and_then(|bytes| read_element(&bytes)).and_then(Draft::finish);
        Ok(Some(Entry { line: 0, number, outcome }))
    })
}

/// Cuts a segment into its elements.
struct Elements<R> {
    input: R,
    limit: usize,
}

const BROKEN: ReadError = ReadError::Format { line: 0, what: "no protobuf of comments" };

impl<R: BufRead> Elements<R> {
    /// The next element's bytes.
    fn next(&mut self) -> Result<Option<Result<Vec<u8>, Reason>>, ReadError> {
        loop {
            let Some(key) = self.varint()? else { return Ok(None) };
            let passed = match (key >> 3, key & 7) {
                (1, 2) => return self.element().map(Some),
                (1..=0x1FFF_FFFF, 0) => self.varint()?.map(drop).ok_or(Reason::CutOff),
                (1..=0x1FFF_FFFF, 1) => self.skip(8)?,
                (1..=0x1FFF_FFFF, 2) => match self.varint()? {
                    Some(length) => self.skip(length)?,
                    None => Err(Reason::CutOff),
                },
                (1..=0x1FFF_FFFF, 5) => self.skip(4)?,
                _ => return Err(BROKEN),
            };
            if let Err(reason) = passed {
                return Ok(Some(Err(reason)));
            }
        }
    }

    /// An element's bytes. One that is too long is passed over.
    fn element(&mut self) -> Result<Result<Vec<u8>, Reason>, ReadError> {
        let Some(length) = self.varint()? else { return Ok(Err(Reason::CutOff)) };
        if length > self.limit as u64 {
            return Ok(self.skip(length)?.and(Err(Reason::TooLong)));
        }
        let mut bytes = vec![0; length as usize];
        match self.input.read_exact(&mut bytes) {
            Ok(()) => Ok(Ok(bytes)),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(Err(Reason::CutOff)),
            Err(e) => Err(e.into()),
        }
    }

    /// A number; `None` where the file ends.
    fn varint(&mut self) -> Result<Option<u64>, ReadError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            match self.input.read_exact(&mut byte) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(e) => return Err(e.into()),
            }
            number |= u64::from(byte[0] & 0x7F) << shift;
            if byte[0] < 0x80 {
                return Ok(Some(number));
            }
        }
        Err(BROKEN)
    }

    fn skip(&mut self, mut count: u64) -> Result<Result<(), Reason>, ReadError> {
        while count > 0 {
            let chunk = self.input.fill_buf()?.len();
            if chunk == 0 {
                return Ok(Err(Reason::CutOff));
            }
            let taken = usize::try_from(count).map_or(chunk, |count| count.min(chunk));
            self.input.consume(taken);
            count -= taken as u64;
        }
        Ok(Ok(()))
    }
}

/// Fields as they were sent; what is not there is 0 or empty.
#[derive(Default)]
struct Fields<'a> {
    numbers: [u64; 16],
    sender: &'a [u8],
    text: &'a [u8],
    id_text: &'a [u8],
    others: bool,
}

fn read_element(element: &[u8]) -> Result<Draft, Reason> {
    let fields = read_fields(element)?;
    let mut draft = Draft::default();
    let number = |tag: usize| fields.numbers[tag] as i64;
    draft.item.id = match fields.numbers[1] {
        0 if !fields.id_text.is_empty() => {
            draft.id(&String::from_utf8_lossy(fields.id_text));
            draft.item.id
        }
        id => id as i64,
    };
    draft.progress_in(&number(2).to_string(), 1)?;
    draft.mode_number(&number(3).to_string())?;
    draft.size(&number(4).to_string());
    draft.color(&number(5).to_string());
    draft.item.sent_ms = number(8).checked_mul(1000).unwrap_or_else(|| {
        draft.changes.add(Change::Sent);
        0
    });
    draft.weight(&number(9).to_string());
    draft.pool_number(&number(11).to_string());
    // An int32 that is negative was sent as an int64.
    draft.item.attr = Attr(number(13) as u32);
    draft.item.likes = u32::try_from(number(15).max(0)).unwrap_or(u32::MAX);
    if fields.others {
        draft.changed(Change::Fields);
    }
    for (bytes, is_text) in [(fields.sender, false), (fields.text, true)] {
        let text = String::from_utf8_lossy(bytes);
        if matches!(text, std::borrow::Cow::Owned(_)) {
            draft.changed(Change::Encoding);
        }
        if is_text {
            draft.text(text);
        } else {
            draft.sender(&text);
        }
    }
    Ok(draft)
}

fn read_fields(mut element: &[u8]) -> Result<Fields<'_>, Reason> {
    let mut fields = Fields::default();
    let buf = &mut element;
    while !buf.is_empty() {
        let (tag, wire_type) = decode_key(buf).map_err(|_| Reason::Syntax)?;
        match (tag, wire_type) {
            (1..=5 | 8 | 9 | 11 | 13 | 15, WireType::Varint) => {
                fields.numbers[tag as usize] = decode_varint(buf).map_err(|_| Reason::Syntax)?;
            }
            (6 | 7 | 12, WireType::LengthDelimited) => {
                let length = decode_varint(buf).map_err(|_| Reason::Syntax)?;
                let length = usize::try_from(length).map_err(|_| Reason::Syntax)?;
                let (bytes, rest) = buf.split_at_checked(length).ok_or(Reason::Syntax)?;
                *buf = rest;
                match tag {
                    6 => fields.sender = bytes,
                    7 => fields.text = bytes,
                    _ => fields.id_text = bytes,
                }
            }
            _ => {
                fields.others = true;
                skip_field(wire_type, tag, buf, DecodeContext::default())
                    .map_err(|_| Reason::Syntax)?;
            }
        }
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::danmaku::proto::{put_item, put_state};
    use crate::danmaku::read::Changes;
    use crate::danmaku::samples::{an_item, full_item};
    use crate::danmaku::smart::Flags;
    use crate::danmaku::{Item, Mode};

    type Outcome = Result<(Item<'static>, Changes), Reason>;

    fn read(bytes: &[u8]) -> Vec<Outcome> {
        let read = read_segment(bytes, Limits::default());
        read.map(|entry| entry.unwrap().outcome).collect()
    }

    fn one(element: &[u8]) -> Outcome {
        let mut bytes = vec![0x0A, element.len() as u8];
        bytes.extend_from_slice(element);
        read(&bytes).remove(0)
    }

    #[test]
    fn no_colour_is_black_and_no_time_is_the_start() {
        let (item, changes) = one(b"\x18\x01\x20\x19\x3a\x01x").unwrap();
        assert_eq!((item.progress_ms, item.color, item.mode), (0, 0, Mode::Scroll));
        assert!(changes.is_empty());
    }

    #[test]
    fn fields_that_are_unknown_are_left_away_and_said() {
        let (_, changes) = one(b"\x18\x01\x20\x19\x3a\x01x\x52\x01a\xb0\x01\x01").unwrap();
        assert_eq!(changes.iter().collect::<Vec<_>>(), [Change::Fields]);
        assert_eq!(one(b"\x18\x01\x3a\x05x"), Err(Reason::Syntax));
        assert_eq!(one(b"\x20\x19\x3a\x01x"), Err(Reason::Mode));
    }

    #[test]
    fn an_id_may_be_text_alone() {
        let (item, _) = one(b"\x18\x01\x20\x19\x3a\x01x\x62\x109007199254740993").unwrap();
        assert_eq!(item.id, 9_007_199_254_740_993);
    }

    #[test]
    fn a_file_that_ends_in_the_middle_says_so() {
        let mut bytes = Vec::new();
        put_item(&mut bytes, &full_item());
        let whole = bytes.len();
        put_item(&mut bytes, &full_item());
        for cut in whole + 1..bytes.len() {
            let read = read(&bytes[..cut]);
            assert_eq!(read.len(), 2, "{cut}");
            assert!(read[0].is_ok());
            assert_eq!(read[1], Err(Reason::CutOff), "{cut}");
        }
    }

    #[test]
    fn what_is_too_long_is_passed_over() {
        let mut bytes = Vec::new();
        put_item(&mut bytes, &Item { text: "x".repeat(100).into(), ..full_item() });
        put_item(&mut bytes, &Item { text: "x".into(), ..full_item() });
        let entries = read_segment(&bytes[..], Limits { element_bytes_max: 90 });
        let outcomes: Vec<_> = entries.map(|entry| entry.unwrap().outcome).collect();
        assert_eq!(outcomes[0], Err(Reason::TooLong));
        assert!(outcomes[1].is_ok());
    }

    #[test]
    fn other_bytes_are_an_error() {
        for bytes in
            [&b"<i></i>"[..], b"{}", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x07"]
        {
            let last = read_segment(bytes, Limits::default()).last();
            assert!(
                matches!(last, Some(Err(_)) | Some(Ok(Entry { outcome: Err(_), .. }))),
                "{bytes:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(items in prop::collection::vec(an_item(), 0..6)) {
            let mut bytes = Vec::new();
            Flags { default: 3, flags: vec![(7, 1)] }.put_proto(&mut bytes);
            items.iter().for_each(|item| put_item(&mut bytes, item));
            put_state(&mut bytes, true);
            let want: Vec<Outcome> =
                items.into_iter().map(|item| Ok((item, Changes::default()))).collect();
            prop_assert_eq!(read(&bytes), want);
        }
    }
}
