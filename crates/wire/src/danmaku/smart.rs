//! One viewer's flags beside the comments that all share.
//!
//! In front of compressed XML: the length of the flags in bytes (u32,
//! big-endian), the flags as JSON (`{"default":f,"flags":[["id",flag],…]}`),
//! then the XML in gzip, to the end. In protobuf the flags are field 3 of the
//! segment, which may stand in front of the shared bytes as well.
//!
//! Flags go from 0 (hide) to [`FLAG_MAX`] (always show). Ids are strings.

use prost::Message as _;

use super::json::SEPARATOR;
use crate::danmaku_v1::{self, Segment};
use crate::json::{Reader, Syntax, Value, push_i64, push_str, push_u64};

/// The highest flag.
pub const FLAG_MAX: u8 = 11;

/// Flags of one viewer for the comments of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// What holds for a comment that has none.
    pub default: u8,
    /// Comments by id, each with its flag, in the order in which they came.
    pub flags: Vec<(i64, u8)>,
}

/// Bytes that are no flags, or a frame that ends too early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFlags {
    /// No JSON.
    #[error("flags: {0}")]
    Syntax(Syntax),
    /// JSON, but of another shape.
    #[error("flags: must be {{\"default\":f,\"flags\":[[id,flag],…]}}, each flag 0 to 11")]
    Shape,
    /// More than asked for.
    #[error("flags: more than {0}")]
    TooMany(usize),
    /// The frame ends before its flags do.
    #[error("frame: ends before its flags do")]
    Short,
}

impl Flags {
    /// Adds the flags as JSON.
    pub fn put_json(&self, out: &mut Vec<u8>) {
        push_str(out, "{\"default\":");
        push_u64(out, self.default.into());
        push_str(out, ",\"flags\":[");
        for (at, (id, flag)) in self.flags.iter().enumerate() {
            if at > 0 {
                out.extend_from_slice(SEPARATOR);
            }
            push_str(out, "[\"");
            push_i64(out, *id);
            push_str(out, "\",");
            push_u64(out, (*flag).into());
            out.push(b']');
        }
        push_str(out, "]}");
    }

    /// Adds the flags as field 3 of a segment.
    pub fn put_proto(&self, out: &mut Vec<u8>) {
        let flag = |&(id, flag): &(i64, u8)| danmaku_v1::Flag { id, flag: flag.into() };
        let flags = danmaku_v1::Flags {
            flags: self.flags.iter().map(flag).collect(),
            default_flag: self.default.into(),
        };
        let segment = Segment { flags: Some(flags), ..Segment::default() };
        segment.encode(out).expect("a Vec takes all bytes");
    }

    /// Reads flags from JSON: at most `max` of them. An id may be a string or
    /// an integer.
    pub fn from_json(bytes: &[u8], max: usize) -> Result<Self, BadFlags> {
        let mut reader = Reader::new(bytes).map_err(BadFlags::Syntax)?;
        let mut read = Read { flags: Self::default(), fault: None };
        if reader.peek() != Some(b'{') {
            return Err(BadFlags::Shape);
        }
        reader
            .object(|name, reader| match &*name.text {
                "default" => {
                    let value = reader.value()?;
                    read.default(&value);
                    Ok(())
                }
                "flags" if reader.peek() == Some(b'[') => {
                    reader.array(|reader| read.pair(reader, max))
                }
                _ => {
                    read.fault.get_or_insert(BadFlags::Shape);
                    reader.value().map(drop)
                }
            })
            .and_then(|()| reader.end())
            .map_err(BadFlags::Syntax)?;
        read.fault.map_or(Ok(read.flags), Err)
    }
}

struct Read {
    flags: Flags,
    fault: Option<BadFlags>,
}

impl Read {
    fn default(&mut self, value: &Value<'_>) {
        match flag(value) {
            Some(flag) => self.flags.default = flag,
            None => self.fault = Some(BadFlags::Shape),
        }
    }

    /// One `[id, flag]`.
    fn pair(&mut self, reader: &mut Reader<'_>, max: usize) -> Result<(), Syntax> {
        if reader.peek() != Some(b'[') {
            self.fault.get_or_insert(BadFlags::Shape);
            return reader.value().map(drop);
        }
        let mut at = 0;
        let (mut id, mut level) = (None, None);
        reader.array(|reader| {
            let value = reader.value()?;
            match at {
                0 => id = self::id(&value),
                1 => level = flag(&value),
                _ => (id, level) = (None, None),
            }
            at += 1;
            Ok(())
        })?;
        match (id, level) {
            _ if self.flags.flags.len() >= max => {
                self.fault.get_or_insert(BadFlags::TooMany(max));
            }
            (Some(id), Some(level)) => self.flags.flags.push((id, level)),
            _ => {
                self.fault.get_or_insert(BadFlags::Shape);
            }
        }
        Ok(())
    }
}

fn id(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Number(digits) => digits.parse().ok(),
        Value::String(text) => text.text.parse().ok(),
        _ => None,
    }
}

fn flag(value: &Value<'_>) -> Option<u8> {
    match value {
        Value::Number(digits) => digits.parse().ok().filter(|flag| *flag <= FLAG_MAX),
        _ => None,
    }
}

/// Adds what stands in front of the compressed XML: the length and `flags`,
/// JSON that goes out as it came. At most 4 GiB, which no store holds.
pub fn put_frame_head(out: &mut Vec<u8>, flags: &[u8]) {
    let length = u32::try_from(flags.len()).expect("a viewer's flags are bounded");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(flags);
}

/// Cuts a frame into its flags and the compressed XML.
pub fn read_frame(frame: &[u8]) -> Result<(&[u8], &[u8]), BadFlags> {
    let (length, rest) = frame.split_first_chunk().ok_or(BadFlags::Short)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| BadFlags::Short)?;
    rest.split_at_checked(length).ok_or(BadFlags::Short)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::danmaku::proto;
    use crate::danmaku::samples::full_item;

    #[test]
    fn a_frame_is_a_length_the_flags_and_the_rest() {
        let flags = Flags { default: 3, flags: vec![(i64::MAX, 11), (-7, 0)] };
        let mut json = Vec::new();
        flags.put_json(&mut json);
        let text = r#"{"default":3,"flags":[["9223372036854775807",11],["-7",0]]}"#;
        assert_eq!(std::str::from_utf8(&json).unwrap(), text);

        let mut frame = Vec::new();
        put_frame_head(&mut frame, &json);
        frame.extend_from_slice(b"\x1f\x8b compressed");
        assert_eq!(frame[..4], [0, 0, 0, text.len() as u8]);
        assert_eq!(read_frame(&frame), Ok((text.as_bytes(), &b"\x1f\x8b compressed"[..])));
        assert_eq!(read_frame(&frame[..20]), Err(BadFlags::Short));
        assert_eq!(read_frame(&[0, 0, 0]), Err(BadFlags::Short));
    }

    #[test]
    fn flags_in_front_of_shared_bytes_are_one_message() {
        let mut out = Vec::new();
        Flags { default: 5, flags: vec![(7, 2)] }.put_proto(&mut out);
        assert_eq!(out, [0x1a, 8, 0x0a, 4, 8, 7, 16, 2, 0x78, 5]);
        proto::put_item(&mut out, &full_item());
        let segment = Segment::decode(&out[..]).unwrap();
        assert_eq!(segment.elements.len(), 1);
        assert_eq!(segment.flags.unwrap().default_flag, 5);
    }

    #[test]
    fn flags_of_another_shape_are_refused() {
        for bad in [
            "[]",
            "{}x",
            "{\"default\":12}",
            "{\"default\":-1}",
            "{\"default\":\"1\"}",
            "{\"more\":1}",
            "{\"flags\":7}",
            "{\"flags\":[7]}",
            "{\"flags\":[[7]]}",
            "{\"flags\":[[7,1,1]]}",
            "{\"flags\":[[7.5,1]]}",
            "{\"flags\":[[9223372036854775808,1]]}",
            "",
        ] {
            assert!(Flags::from_json(bad.as_bytes(), 9).is_err(), "{bad}");
        }
        let two = br#"{"flags":[[1,1],["2",2]]}"#;
        assert_eq!(Flags::from_json(two, 1), Err(BadFlags::TooMany(1)));
        let flags = Flags { default: 0, flags: vec![(1, 1), (2, 2)] };
        assert_eq!(Flags::from_json(two, 2), Ok(flags));
        assert_eq!(Flags::from_json(b"{}", 0), Ok(Flags::default()));
    }

    proptest! {
        #[test]
        fn flags_read_back_as_they_were(
            default in 0..=FLAG_MAX,
            flags in prop::collection::vec((any::<i64>(), 0..=FLAG_MAX), 0..9),
        ) {
            let flags = Flags { default, flags };
            let mut json = Vec::new();
            flags.put_json(&mut json);
            prop_assert_eq!(Flags::from_json(&json, 9), Ok(flags));
        }
    }
}
