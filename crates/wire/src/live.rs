//! The frames of a live connection in protobuf, as the server reads them:
//! marks stay the bytes that came.

use prost::Message as _;
use prost::encoding::{DecodeContext, decode_key, skip_field};

use crate::BadMessage;
use crate::batch::delimited;
use crate::danmaku_v1::Segment;
use crate::live_v1::{Down, Join, Leave, Say, down};

/// A frame from a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Up<'a> {
    /// A `RecordRequest`, for [`crate::read_batch`].
    Progress(&'a [u8]),
    /// From now on, what happens in a room.
    Join(Join),
    /// No more of it.
    Leave(Leave),
    /// A comment in a room.
    Post(Say),
    /// Nothing that this server knows.
    Nothing,
}

/// Reads one frame; of several things in one, the last counts.
pub fn read_up(frame: &[u8]) -> Result<Up<'_>, BadMessage> {
    let mut up = Up::Nothing;
    let buf = &mut { frame };
    while !buf.is_empty() {
        let (tag, wire_type) = decode_key(buf)?;
        match tag {
            1 => up = Up::Progress(delimited(wire_type, buf)?),
            2 => up = Up::Join(Join::decode(delimited(wire_type, buf)?)?),
            3 => up = Up::Leave(Leave::decode(delimited(wire_type, buf)?)?),
            4 => up = Up::Post(Say::decode(delimited(wire_type, buf)?)?),
            _ => skip_field(wire_type, tag, buf, DecodeContext::default())?,
        }
    }
    Ok(up)
}

/// The bytes of one frame from the server.
pub fn write_down(what: down::What) -> Vec<u8> {
    Down { what: Some(what) }.encode_to_vec()
}

/// Elements, as [`crate::danmaku::proto`] writes them, as the message that they
/// are; `None` for other bytes.
pub fn segment_of(elements: &[u8]) -> Option<Segment> {
    Segment::decode(elements).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{history_v1, live_v1, read_batch};

    #[test]
    fn marks_in_a_frame_come_as_they_were_sent() {
        let mark = history_v1::Mark { kind: "video".into(), id: "1".into(), ..Default::default() };
        let request = history_v1::RecordRequest { marks: vec![mark], id: 7, ..Default::default() };
        let sent = live_v1::Up { say: Some(live_v1::up::Say::Progress(request)) }.encode_to_vec();
        let Up::Progress(batch) = read_up(&sent).unwrap() else { panic!() };
        let mut ids = Vec::new();
        let head = read_batch(batch, |mark| ids.push(mark.id)).unwrap();
        assert_eq!((head.id, ids), (7, vec![Some("1")]));
    }

    #[test]
    fn every_other_frame_reads_as_it_was_written() {
        let join = Join { room: "video:a".into(), from_seq: Some(0) };
        let leave = Leave { room: "video:a".into() };
        let say = Say { text: "hi".into(), color: Some(0), ..Say::default() };
        for (sent, read) in [
            (live_v1::up::Say::Join(join.clone()), Up::Join(join)),
            (live_v1::up::Say::Leave(leave.clone()), Up::Leave(leave)),
            (live_v1::up::Say::Post(say.clone()), Up::Post(say)),
        ] {
            let bytes = live_v1::Up { say: Some(sent) }.encode_to_vec();
            assert_eq!(read_up(&bytes).unwrap(), read);
        }
        assert_eq!(read_up(b"").unwrap(), Up::Nothing);
        assert!(read_up(b"\x0a\x05ab").is_err());
    }
}
