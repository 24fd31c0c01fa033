//! The marks of a gRPC write, read straight from the message's bytes.
//!
//! A batch of 500 marks has some 3,000 strings; making each of them a `String`
//! would cost more than deciding them. So the server takes the message as it
//! came ([`RawRecord`]) and [`read_batch`] lends the fields out one mark at a
//! time. It takes and refuses the same bytes as prost, and reads the same
//! values: a property holds the two together. Unknown fields are skipped.

use bytes::{Buf, BufMut, Bytes};
use prost::DecodeError;
use prost::encoding::{
    DecodeContext, WireType, check_wire_type, decode_key, decode_varint, skip_field,
};

use crate::MarkFields;

/// Bytes that are no `RecordRequest`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    /// A key, a number or a group that is none.
    #[error("{0}")]
    Malformed(#[from] DecodeError),
    /// A length reaches past the end.
    #[error("a length reaches past the end of the message")]
    Short,
    /// A string holds other bytes.
    #[error("a string is not UTF-8")]
    NotText,
}

/// A `RecordRequest` as it came, not parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawRecord(pub Bytes);

impl prost::Message for RawRecord {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        buf.put_slice(&self.0);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        skip_field(wire_type, tag, buf, ctx)
    }

    fn encoded_len(&self) -> usize {
        self.0.len()
    }

    fn decode(mut buf: impl Buf) -> Result<Self, DecodeError> {
        let whole = buf.remaining();
        Ok(Self(buf.copy_to_bytes(whole)))
    }

    fn clear(&mut self) {
        self.0 = Bytes::new();
    }
}

/// What a `RecordRequest` says besides its marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchHead<'a> {
    /// The user of marks that name none; empty = none.
    pub user: &'a str,
    /// As in the enum `Ack`.
    pub ack: i32,
    /// The device's clock, in ms since the epoch.
    pub client_now_ms: Option<i64>,
    /// As an earlier answer gave it.
    pub day_flag: &'a str,
    /// Comes back in the answer.
    pub id: u64,
}

/// Reads a `RecordRequest`: hands each mark to `visit`, in order, and returns
/// the rest at the end. Marks may have been visited before an error is found.
/// Empty strings in a mark count as absent.
pub fn read_batch<'a>(
    message: &'a [u8],
    mut visit: impl FnMut(MarkFields<'a>),
) -> Result<BatchHead<'a>, BadMessage> {
    let mut head = BatchHead::default();
    let buf = &mut { message };
    while !buf.is_empty() {
        let (tag, wire_type) = decode_key(buf)?;
        match tag {
            1 => head.user = text(wire_type, buf)?,
            2 => visit(read_mark(delimited(wire_type, buf)?)?),
            3 => head.ack = varint(wire_type, buf)? as i32,
            4 => head.client_now_ms = Some(varint(wire_type, buf)? as i64),
            5 => head.day_flag = text(wire_type, buf)?,
            6 => head.id = varint(wire_type, buf)?,
            _ => skip_field(wire_type, tag, buf, DecodeContext::default())?,
        }
    }
    Ok(head)
}

/// The user that a `RecordRequest` names, wherever in it; marks are passed
/// over unread.
pub fn batch_user(message: &[u8]) -> Result<&str, BadMessage> {
    let mut user = "";
    let buf = &mut { message };
    while !buf.is_empty() {
        let (tag, wire_type) = decode_key(buf)?;
        match tag {
            1 => user = text(wire_type, buf)?,
            _ => skip_field(wire_type, tag, buf, DecodeContext::default())?,
        }
    }
    Ok(user)
}

fn read_mark(mut message: &[u8]) -> Result<MarkFields<'_>, BadMessage> {
    let mut mark = MarkFields::default();
    let buf = &mut message;
    let said = |text: &'_ str| !text.is_empty();
    while !buf.is_empty() {
        let (tag, wire_type) = decode_key(buf)?;
        match tag {
            1 => mark.user = Some(text(wire_type, buf)?).filter(|t| said(t)),
            2 => mark.kind = Some(text(wire_type, buf)?).filter(|t| said(t)),
            3 => mark.id = Some(text(wire_type, buf)?).filter(|t| said(t)),
            4 => mark.part = Some(text(wire_type, buf)?).filter(|t| said(t)),
            5 => mark.position_ms = Some(varint(wire_type, buf)?),
            6 => mark.duration_ms = Some(varint(wire_type, buf)?),
            7 => mark.event_ms = Some(varint(wire_type, buf)? as i64),
            8 => mark.device = Some(text(wire_type, buf)?).filter(|t| said(t)),
            9 => mark.group = Some(text(wire_type, buf)?).filter(|t| said(t)),
            10 => mark.finished = varint(wire_type, buf)? != 0,
            11 => mark.event_id = Some(text(wire_type, buf)?).filter(|t| said(t)),
            _ => skip_field(wire_type, tag, buf, DecodeContext::default())?,
        }
    }
    Ok(mark)
}

fn varint(wire_type: WireType, buf: &mut &[u8]) -> Result<u64, BadMessage> {
    check_wire_type(WireType::Varint, wire_type)?;
    Ok(decode_varint(buf)?)
}

pub(crate) fn delimited<'a>(
    wire_type: WireType,
    buf: &mut &'a [u8],
) -> Result<&'a [u8], BadMessage> {
    check_wire_type(WireType::LengthDelimited, wire_type)?;
    let len = decode_varint(buf)?;
    let len = usize::try_from(len).ok().filter(|len| *len <= buf.len()).ok_or(BadMessage::Short)?;
    let (taken, rest) = buf.split_at(len);
    *buf = rest;
    Ok(taken)
}

fn text<'a>(wire_type: WireType, buf: &mut &'a [u8]) -> Result<&'a str, BadMessage> {
    let bytes = delimited(wire_type, buf)?;
    std::str::from_utf8(bytes).map_err(|_| BadMessage::NotText)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;
    use crate::history_v1 as v1;

    fn fields(mark: &v1::Mark) -> MarkFields<'_> {
        fn said(text: &str) -> Option<&str> {
            Some(text).filter(|text| !text.is_empty())
        }
        MarkFields {
            user: said(&mark.user),
            kind: said(&mark.kind),
            id: said(&mark.id),
            part: mark.part.as_deref().and_then(said),
            position_ms: mark.position_ms,
            duration_ms: mark.duration_ms,
            event_ms: mark.event_ms,
            device: mark.device.as_deref().and_then(said),
            group: mark.group.as_deref().and_then(said),
            finished: mark.finished,
            event_id: mark.event_id.as_deref().and_then(said),
        }
    }

    /// Both parsers take the bytes and read the same, or both refuse them.
    fn compare(bytes: &[u8]) {
        let mut marks = Vec::new();
        let ours = read_batch(bytes, |mark| marks.push(mark));
        match (v1::RecordRequest::decode(bytes), ours) {
            (Ok(theirs), Ok(head)) => {
                let want: Vec<_> = theirs.marks.iter().map(fields).collect();
                assert_eq!(marks, want);
                assert_eq!(head.user, theirs.user);
                assert_eq!(batch_user(bytes), Ok(&*theirs.user));
                assert_eq!(head.ack, theirs.ack);
                assert_eq!(head.client_now_ms, theirs.client_now_ms);
                assert_eq!(head.day_flag, theirs.day_flag);
                assert_eq!(head.id, theirs.id);
            }
            (Err(_), Err(_)) => (),
            (theirs, ours) => panic!("{bytes:02x?}: prost says {theirs:?}, we say {ours:?}"),
        }
    }

    fn mark() -> impl Strategy<Value = v1::Mark> {
        let text = || proptest::option::of("[a-zé]{0,5}");
        let number = || proptest::option::of(any::<u64>());
        let texts = ("[a-z]{0,4}", "[a-z]{0,4}", ".{0,5}", text(), text(), text(), text());
        (texts, number(), number(), proptest::option::of(any::<i64>()), any::<bool>()).prop_map(
            |(texts, position_ms, duration_ms, event_ms, finished)| v1::Mark {
                user: texts.0,
                kind: texts.1,
                id: texts.2,
                part: texts.3,
                device: texts.4,
                group: texts.5,
                event_id: texts.6,
                position_ms,
                duration_ms,
                event_ms,
                finished,
            },
        )
    }

    fn request() -> impl Strategy<Value = v1::RecordRequest> {
        let head = ("[a-z]{0,4}", any::<i32>(), proptest::option::of(any::<i64>()), ".{0,4}");
        (head, proptest::collection::vec(mark(), 0..4), any::<u64>()).prop_map(
            |((user, ack, client_now_ms, day_flag), marks, id)| v1::RecordRequest {
                user,
                marks,
                ack,
                client_now_ms,
                day_flag,
                id,
            },
        )
    }

    proptest! {
        #[test]
        fn it_reads_what_prost_reads_of_whole_messages(request in request()) {
            compare(&request.encode_to_vec());
        }

        #[test]
        fn it_reads_and_refuses_as_prost_does_when_bytes_are_changed(
            request in request(),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = request.encode_to_vec();
            if bytes.is_empty() { return Ok(()); }
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            compare(&bytes);
            compare(&bytes[..cut.index(bytes.len())]);
        }

        #[test]
        fn it_reads_and_refuses_as_prost_does_any_bytes(
            bytes in proptest::collection::vec(prop_oneof![0u8..32, any::<u8>()], 0..64),
        ) {
            compare(&bytes);
        }
    }

    #[test]
    fn a_raw_message_goes_through_the_codec_unchanged() {
        let bytes = v1::RecordRequest { user: "u".into(), ..Default::default() }.encode_to_vec();
        let raw = RawRecord::decode(&*bytes).unwrap();
        assert_eq!(raw.encode_to_vec(), bytes);
    }

    #[test]
    fn the_bytes_of_a_mark_are_these() {
        let request = v1::RecordRequest {
            user: "u".into(),
            marks: vec![v1::Mark {
                kind: "video".into(),
                id: "7".into(),
                position_ms: Some(300),
                ..Default::default()
            }],
            ..Default::default()
        };
        let golden = b"\x0a\x01u\x12\x0d\x12\x05video\x1a\x017\x28\xac\x02";
        assert_eq!(request.encode_to_vec(), golden);
        compare(golden);
    }
}
