//! Writes elements.

use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};

use crate::danmaku::{Item, clean};

/// Adds one comment as an element of a segment.
pub fn put_item(out: &mut Vec<u8>, item: &Item<'_>) {
    let text = clean(&item.text);
    let sender = item.sender.to_string();
    let id_text = if item.id == 0 { String::new() } else { item.id.to_string() };
    let fields = [
        Field::Number(1, item.id as u64),
        Field::Number(2, item.progress_ms.into()),
        Field::Number(3, item.mode.number().into()),
        Field::Number(4, item.size.into()),
        Field::Number(5, item.color.into()),
        Field::Text(6, &sender),
        Field::Text(7, &text),
        Field::Number(8, item.sent_ms.div_euclid(1000) as u64),
        Field::Number(9, item.weight.into()),
        Field::Number(11, item.pool.number().into()),
        Field::Text(12, &id_text),
        // An int32: a set bit 31 would be a negative number of ten bytes.
        Field::Number(13, i64::from(item.attr.0 as i32) as u64),
        Field::Number(15, item.likes.into()),
    ];
    encode_key(1, WireType::LengthDelimited, out);
    encode_varint(fields.iter().map(Field::len).sum::<usize>() as u64, out);
    fields.iter().for_each(|field| field.put(out));
}

/// Adds whether a video is closed to new comments. Nothing where it is open.
pub fn put_state(out: &mut Vec<u8>, closed: bool) {
    Field::Number(2, closed.into()).put(out);
}

/// One field of an element.
enum Field<'a> {
    Number(u32, u64),
    Text(u32, &'a str),
}

impl Field<'_> {
    fn len(&self) -> usize {
        match *self {
            Self::Number(_, 0) | Self::Text(_, "") => 0,
            Self::Number(tag, number) => key_len(tag) + encoded_len_varint(number),
            Self::Text(tag, text) => {
                key_len(tag) + encoded_len_varint(text.len() as u64) + text.len()
            }
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Number(_, 0) | Self::Text(_, "") => {}
            Self::Number(tag, number) => {
                encode_key(tag, WireType::Varint, out);
                encode_varint(number, out);
            }
            Self::Text(tag, text) => {
                encode_key(tag, WireType::LengthDelimited, out);
                encode_varint(text.len() as u64, out);
                out.extend_from_slice(text.as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;
    use crate::danmaku::samples::{an_item, full_item};
    use crate::danmaku::{Attr, Mode, Sender};
    use crate::danmaku_v1::{Element, Segment};

    fn element(item: &Item<'_>) -> Element {
        Element {
            id: item.id,
            progress_ms: item.progress_ms as i32,
            mode: item.mode.number().into(),
            size: item.size.into(),
            color: item.color,
            sender: item.sender.to_string(),
            text: clean(&item.text).into_owned(),
            sent_s: item.sent_ms.div_euclid(1000),
            weight: item.weight.into(),
            pool: item.pool.number().into(),
            id_text: if item.id == 0 { String::new() } else { item.id.to_string() },
            attr: item.attr.0 as i32,
            likes: item.likes.into(),
        }
    }

    proptest! {
        #[test]
        fn it_writes_what_prost_writes(items in prop::collection::vec(an_item(), 0..4)) {
            let mut out = Vec::new();
            items.iter().for_each(|item| put_item(&mut out, item));
            put_state(&mut out, true);
            let elements = items.iter().map(element).collect();
            let segment = Segment { elements, state: 1, flags: None };
            prop_assert_eq!(out, segment.encode_to_vec());
        }
    }

    #[test]
    fn the_bytes_of_an_element_are_these() {
        let mut out = Vec::new();
        put_item(&mut out, &full_item());
        let hex: String = out.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, GOLDEN);
    }

    const GOLDEN: &str = "0a590880d49df0babab5961a10cff51d1801201928ffffff07320761363231366439\
         3a1623696e636c7564653c737464696f2e683e2026202227408092b3d806480b6213\
         3138383631313734343930393539333234313668057807";

    #[test]
    fn black_at_the_start_has_neither_time_nor_colour() {
        let item = Item {
            color: 0,
            mode: Mode::Top,
            sender: Sender::new(0xA),
            attr: Attr::default(),
            text: "x".into(),
            ..Item::default()
        };
        let mut out = Vec::new();
        put_item(&mut out, &item);
        assert_eq!(out, b"\x0a\x0a\x18\x05\x20\x19\x32\x01a\x3a\x01x");
        let mut open = Vec::new();
        put_state(&mut open, false);
        assert!(open.is_empty());
    }
}
