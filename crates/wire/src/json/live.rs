//! The frames of a live connection in JSON: one object with a `type`.

use std::borrow::Cow;

use super::comments::{PostJson, post};
use super::marks::{Stop, read_array};
use super::reader::{Fields, Reader};
use crate::{Fault, MarkFields};

/// A frame from a client.
#[derive(Clone, Debug)]
pub struct UpJson<'a> {
    /// The client's number for it; comes back in the answer.
    pub id: Option<u64>,
    /// What it says.
    pub say: SayJson<'a>,
}

/// What a frame says.
#[derive(Clone, Debug)]
pub enum SayJson<'a> {
    /// Marks.
    Progress(ProgressJson<'a>),
    /// From now on, what happens in a room.
    Join {
        /// `video:` and the video's id.
        room: Cow<'a, str>,
        /// What the client has covers up to here.
        from_seq: Option<u64>,
    },
    /// No more of it.
    Leave {
        /// Which; none = all.
        room: Option<Cow<'a, str>>,
    },
    /// A comment in a room.
    Post {
        /// Which.
        room: Cow<'a, str>,
        /// The comment.
        post: PostJson<'a>,
    },
}

/// The marks of a frame, not read yet.
#[derive(Clone, Debug)]
pub struct ProgressJson<'a> {
    /// The device's clock, in ms since the epoch.
    pub client_now_ms: Option<i64>,
    /// `durable` or `fast`, as sent.
    pub ack: Option<Cow<'a, str>>,
    /// As an earlier answer gave it.
    pub day_flag: Option<Cow<'a, str>>,
    /// At the array.
    marks: Reader<'a>,
}

impl ProgressJson<'_> {
    /// Hands each mark, or what is wrong with it, to `visit`, in order.
    pub fn read(
        mut self,
        mut visit: impl FnMut(Result<MarkFields<'_>, Fault>),
    ) -> Result<(), Fault> {
        read_array(&mut self.marks, &mut visit).map_err(Stop::into)
    }
}

/// The fields of any frame.
#[derive(Default)]
struct Frame<'a> {
    kind: Option<Cow<'a, str>>,
    id: Option<u64>,
    marks: Option<Reader<'a>>,
    client_now_ms: Option<i64>,
    ack: Option<Cow<'a, str>>,
    day_flag: Option<Cow<'a, str>>,
    room: Option<Cow<'a, str>>,
    from_seq: Option<u64>,
    post: Option<Reader<'a>>,
}

/// The fields that a frame may have besides `type` and `id`, by its type.
const FIELDS: [(&str, &[&str]); 4] = [
    ("progress", &["marks", "client_now_ms", "ack", "day_flag"]),
    ("join", &["room", "from_seq"]),
    ("leave", &["room"]),
    ("say", &["room", "comment"]),
];

/// Reads one frame.
pub fn read_up(body: &[u8]) -> Result<UpJson<'_>, Fault> {
    let mut reader = Reader::new(body)?;
    let (mut fields, mut frame, mut names) = (Fields::default(), Frame::default(), Vec::new());
    if reader.peek() != Some(b'{') {
        return Err(Fault::invalid("frame: must be a JSON object with a type"));
    }
    reader.object(|name, reader| {
        let number = match &*name.text {
            "type" => 0,
            "id" => 1,
            "marks" => 2,
            "client_now_ms" => 3,
            "ack" => 4,
            "day_flag" => 5,
            "room" => 6,
            "from_seq" => 7,
            "comment" => 8,
            other => {
                fields.unknown(other);
                return reader.value().map(drop);
            }
        };
        let name = name.text;
        fields.once(number, &name);
        if number == 2 {
            if reader.peek() == Some(b'[') {
                frame.marks = Some(reader.clone());
            } else {
                fields.fault(|| "marks: must be an array".into());
            }
        }
        if number == 8 {
            frame.post = Some(reader.clone());
        }
        let value = reader.value()?;
        match number {
            0 => frame.kind = fields.text(&name, value),
            1 => frame.id = fields.unsigned(&name, value),
            2 | 8 => {}
            3 => frame.client_now_ms = fields.signed(&name, value),
            4 => frame.ack = fields.text(&name, value),
            5 => frame.day_flag = fields.text(&name, value),
            6 => frame.room = fields.text(&name, value),
            _ => frame.from_seq = fields.unsigned(&name, value),
        }
        if number > 1 {
            names.push(name);
        }
        Ok(())
    })?;
    reader.end()?;
    fields.finish(())?;
    frame.finish(&names)
}

impl<'a> Frame<'a> {
    fn finish(self, names: &[Cow<'_, str>]) -> Result<UpJson<'a>, Fault> {
        let kind = self.kind.as_deref().unwrap_or_default();
        let Some((_, known)) = FIELDS.iter().find(|(name, _)| *name == kind) else {
            let types = "type: must be progress, join, leave or say";
            return Err(Fault::invalid(types));
        };
        if let Some(name) = names.iter().find(|name| !known.contains(&name.as_ref())) {
            return Err(Fault::invalid(format!("{name}: is not a field of {kind}")));
        }
        let required = |name: &str| Fault::invalid(format!("{name}: is required"));
        let say = match kind {
            "progress" => SayJson::Progress(ProgressJson {
                client_now_ms: self.client_now_ms,
                ack: self.ack,
                day_flag: self.day_flag,
                marks: self.marks.ok_or_else(|| required("marks"))?,
            }),
            "join" => SayJson::Join {
                room: self.room.ok_or_else(|| required("room"))?,
                from_seq: self.from_seq,
            },
            "leave" => SayJson::Leave { room: self.room },
            _ => SayJson::Post {
                room: self.room.ok_or_else(|| required("room"))?,
                post: post(&mut self.post.ok_or_else(|| required("comment"))?)?,
            },
        };
        Ok(UpJson { id: self.id, say })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(body: &str) -> String {
        read_up(body.as_bytes()).unwrap_err().detail.into_owned()
    }

    #[test]
    fn marks_are_read_wherever_the_type_stands() {
        for body in [
            r#"{"type":"progress","id":7,"marks":[{"kind":"video","id":"1"},{"id":2}]}"#,
            r#"{"marks":[{"kind":"video","id":"1"},{"id":2}],"id":7,"type":"progress"}"#,
        ] {
            let frame = read_up(body.as_bytes()).unwrap();
            assert_eq!(frame.id, Some(7));
            let SayJson::Progress(progress) = frame.say else { panic!("{body}") };
            let mut seen = Vec::new();
            progress
                .read(|mark| seen.push(mark.and_then(|m| m.check()).map_err(|f| f.detail)))
                .unwrap();
            assert_eq!(seen, [Ok(()), Err("kind: is required".into())]);
        }
    }

    #[test]
    fn rooms_are_joined_and_left() {
        let join = read_up(br#"{"type":"join","room":"video:a","from_seq":9}"#).unwrap();
        let SayJson::Join { room, from_seq } = join.say else { panic!() };
        assert_eq!((&*room, from_seq), ("video:a", Some(9)));
        let leave = read_up(br#"{"type":"leave"}"#).unwrap();
        assert!(matches!(leave.say, SayJson::Leave { room: None }));
    }

    #[test]
    fn a_comment_is_said_in_a_room() {
        let frame =
            br#"{"type":"say","id":1,"room":"video:a","comment":{"text":"hi","progress_ms":7}}"#;
        let SayJson::Post { room, post } = read_up(frame).unwrap().say else { panic!() };
        assert_eq!((&*room, &*post.text, post.progress_ms), ("video:a", "hi", 7));
        let no_time = r#"{"type":"say","room":"video:a","comment":{"text":"hi"}}"#;
        assert_eq!(fault(no_time), "progress_ms: is required");
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(fault("[]"), "frame: must be a JSON object with a type");
        assert_eq!(fault("{}"), "type: must be progress, join, leave or say");
        assert_eq!(fault(r#"{"type":"x"}"#), "type: must be progress, join, leave or say");
        assert_eq!(fault(r#"{"type":"progress"}"#), "marks: is required");
        assert_eq!(fault(r#"{"type":"progress","marks":{}}"#), "marks: must be an array");
        assert_eq!(fault(r#"{"type":"join"}"#), "room: is required");
        assert_eq!(
            fault(r#"{"type":"join","room":"r","marks":[]}"#),
            "marks: is not a field of join"
        );
        assert_eq!(fault(r#"{"type":"leave","rom":"r"}"#), "rom: unknown field");
        assert_eq!(fault(r#"{"type":"leave","type":"leave"}"#), "type: comes twice");
    }
}
