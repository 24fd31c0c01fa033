//! Marks in JSON: one, an array, `{"marks": [...]}`, or one a line.
//!
//! What is wrong with a mark is told beside its neighbours; what is wrong with
//! the body is told alone.

use std::borrow::Cow;

use tideline_types::limits::BATCH_MARKS_MAX;

use super::reader::{Fields, Reader, Syntax, Value};
use crate::{Code, Fault, MarkFields};

/// Whether a body held one mark by itself or many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An object.
    One,
    /// An array, a batch or lines.
    Many,
}

/// Reads a mark or an array of marks: hands each, or what is wrong with it, to
/// `visit` in order. Marks may have been visited before an error is found.
pub fn read_marks(
    body: &[u8],
    mut visit: impl FnMut(Result<MarkFields<'_>, Fault>),
) -> Result<Shape, Fault> {
    let mut reader = Reader::new(body)?;
    let shape = match reader.peek() {
        Some(b'{') => {
            read_mark(&mut reader, &mut visit)?;
            Shape::One
        }
        Some(b'[') => {
            read_array(&mut reader, &mut visit)?;
            Shape::Many
        }
        None => return Err(Fault::invalid("body: is empty, a mark or an array of marks is due")),
        Some(_) => {
            reader.value()?;
            reader.end()?;
            return Err(Fault::invalid("body: must be a mark or an array of marks"));
        }
    };
    reader.end()?;
    Ok(shape)
}

/// Reads `{"marks": [...]}`, as [`read_marks`] reads an array.
pub fn read_batch(
    body: &[u8],
    mut visit: impl FnMut(Result<MarkFields<'_>, Fault>),
) -> Result<Shape, Fault> {
    let mut reader = Reader::new(body)?;
    if reader.peek() != Some(b'{') {
        reader.value()?;
        return Err(Fault::invalid(BATCH_SHAPE));
    }
    let mut fields = Fields::default();
    let (mut there, mut too_many) = (false, None);
    reader
        .object(|name, reader| {
            if name.text != "marks" {
                fields.unknown(&name.text);
                return reader.value().map(drop);
            }
            fields.once(0, "marks");
            if reader.peek() != Some(b'[') {
                fields.fault(|| BATCH_SHAPE.into());
                return reader.value().map(drop);
            }
            there = true;
            match read_array(reader, &mut visit) {
                Ok(()) => Ok(()),
                Err(Stop::Syntax(syntax)) => Err(syntax),
                Err(Stop::Fault(fault)) => {
                    too_many = Some(fault);
                    Err(Syntax { at: 0, what: "too many" })
                }
            }
        })
        .map_err(|syntax| too_many.take().unwrap_or_else(|| syntax.into()))?;
    reader.end()?;
    fields.finish(())?;
    if there { Ok(Shape::Many) } else { Err(Fault::invalid(BATCH_SHAPE)) }
}

const BATCH_SHAPE: &str =
    "marks: must be an array (or send one mark a line as application/x-ndjson)";

/// Reads one mark a line, as [`read_marks`] reads an array. Empty lines are
/// passed over.
pub fn read_lines(
    body: &[u8],
    mut visit: impl FnMut(Result<MarkFields<'_>, Fault>),
) -> Result<Shape, Fault> {
    let (mut marks, mut at) = (0, 0);
    for (number, line) in body.split(|byte| *byte == b'\n').enumerate() {
        let told = |syntax: Syntax| {
            let syntax = Syntax { at: at + syntax.at, ..syntax };
            Fault::invalid(format!("body: line {}: {syntax}", number + 1))
        };
        let mut reader = Reader::new(line).map_err(told)?;
        if reader.peek().is_some() {
            marks += 1;
            if marks > BATCH_MARKS_MAX {
                return Err(too_many());
            }
            read_mark(&mut reader, &mut visit).map_err(told)?;
            reader.end().map_err(told)?;
        }
        at += line.len() + 1;
    }
    Ok(Shape::Many)
}

pub(super) enum Stop {
    Syntax(Syntax),
    Fault(Fault),
}

impl From<Stop> for Fault {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Syntax(syntax) => syntax.into(),
            Stop::Fault(fault) => fault,
        }
    }
}

fn too_many() -> Fault {
    Fault {
        code: Code::PayloadTooLarge,
        detail: format!("marks: at most {BATCH_MARKS_MAX} in one write").into(),
    }
}

pub(super) fn read_array<'a>(
    reader: &mut Reader<'a>,
    visit: &mut impl FnMut(Result<MarkFields<'_>, Fault>),
) -> Result<(), Stop> {
    let (mut marks, mut over) = (0, false);
    let read = reader.array(|reader| {
        marks += 1;
        over = marks > BATCH_MARKS_MAX;
        if over {
            return Err(Syntax { at: 0, what: "too many" });
        }
        read_mark(reader, visit)
    });
    match read {
        Err(_) if over => Err(Stop::Fault(too_many())),
        Err(syntax) => Err(Stop::Syntax(syntax)),
        Ok(()) => Ok(()),
    }
}

/// The fields of a mark; a text with escapes is owned.
#[derive(Default)]
struct MarkJson<'a> {
    user: Option<Cow<'a, str>>,
    kind: Option<Cow<'a, str>>,
    id: Option<Cow<'a, str>>,
    part: Option<Cow<'a, str>>,
    position_ms: Option<u64>,
    duration_ms: Option<u64>,
    event_ms: Option<i64>,
    device: Option<Cow<'a, str>>,
    group: Option<Cow<'a, str>>,
    finished: bool,
    event_id: Option<Cow<'a, str>>,
}

fn read_mark<'a>(
    reader: &mut Reader<'a>,
    visit: &mut impl FnMut(Result<MarkFields<'_>, Fault>),
) -> Result<(), Syntax> {
    if reader.peek() != Some(b'{') {
        reader.value()?;
        visit(Err(Fault::invalid("a mark must be an object")));
        return Ok(());
    }
    let (mut fields, mut mark) = (Fields::default(), MarkJson::default());
    reader.object(|name, reader| field(&name.text, reader.value()?, &mut fields, &mut mark))?;
    let whole = fields.finish(mark);
    visit(whole.as_ref().map(MarkJson::fields).map_err(Clone::clone));
    Ok(())
}

fn field<'a>(
    name: &str,
    value: Value<'a>,
    fields: &mut Fields,
    mark: &mut MarkJson<'a>,
) -> Result<(), Syntax> {
    let number = match name {
        "user" => 0,
        "kind" => 1,
        "id" => 2,
        "part" => 3,
        "position_ms" => 4,
        "duration_ms" => 5,
        "event_ms" => 6,
        "device" => 7,
        "group" => 8,
        "finished" => 9,
        "event_id" => 10,
        _ => {
            fields.unknown(name);
            return Ok(());
        }
    };
    fields.once(number, name);
    match number {
        0 => mark.user = fields.id(name, value),
        1 => mark.kind = fields.text(name, value),
        2 => mark.id = fields.id(name, value),
        3 => mark.part = fields.text(name, value),
        4 => mark.position_ms = fields.unsigned(name, value),
        5 => mark.duration_ms = fields.unsigned(name, value),
        6 => mark.event_ms = fields.signed(name, value),
        7 => mark.device = fields.text(name, value),
        8 => mark.group = fields.id(name, value),
        9 => mark.finished = fields.boolean(name, value) == Some(true),
        _ => mark.event_id = fields.id(name, value),
    }
    Ok(())
}

impl MarkJson<'_> {
    fn fields(&self) -> MarkFields<'_> {
        MarkFields {
            user: self.user.as_deref(),
            kind: self.kind.as_deref(),
            id: self.id.as_deref(),
            part: self.part.as_deref(),
            position_ms: self.position_ms,
            duration_ms: self.duration_ms,
            event_ms: self.event_ms,
            device: self.device.as_deref(),
            group: self.group.as_deref(),
            finished: self.finished,
            event_id: self.event_id.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a body comes to: each mark as `user/kind/id@position`, or its
    /// fault.
    fn read(body: &str) -> Result<Vec<String>, String> {
        let mut seen = Vec::new();
        read_marks(body.as_bytes(), |mark| seen.push(shown(mark))).map_err(|f| f.to_string())?;
        Ok(seen)
    }

    fn shown(mark: Result<MarkFields<'_>, Fault>) -> String {
        match mark.and_then(|mark| mark.check().map(|()| mark)) {
            Ok(mark) => format!(
                "{}/{}/{}@{}",
                mark.user.unwrap_or("-"),
                mark.kind.unwrap_or("-"),
                mark.id.unwrap_or("-"),
                mark.position_ms.map_or("-".into(), |ms| ms.to_string())
            ),
            Err(fault) => fault.to_string(),
        }
    }

    fn one(mark: &str) -> String {
        read(mark).unwrap().remove(0)
    }

    #[test]
    fn ids_sent_as_numbers_are_kept_digit_by_digit() {
        let huge = "123456789012345678901234567890";
        assert_eq!(
            one(&format!(r#"{{"kind":"v","id":{huge},"user":7}}"#)),
            format!("7/v/{huge}@-")
        );
        assert_eq!(one(r#"{"kind":"v","id":9007199254740993}"#), "-/v/9007199254740993@-");
        assert_eq!(one(r#"{"kind":"v","id":"007"}"#), "-/v/007@-");
        for bad in ["1.5", "-1", "1e3", "-0"] {
            let text = one(&format!(r#"{{"kind":"v","id":{bad}}}"#));
            assert!(
                text.starts_with("invalid_argument: id: a number must be an integer"),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_wrong_with_a_mark_names_the_field() {
        for (mark, fault) in [
            (r#"{"kind":"v","id":"a","positon_ms":1}"#, "positon_ms: unknown field"),
            (r#"{"kind":"v"}"#, "id: is required"),
            (r#"{"id":"a"}"#, "kind: is required"),
            (r#"{"kind":"v","id":null}"#, "id: is required"),
            (r#"{"kind":"v","id":""}"#, "id: must be 1 to 64 bytes"),
            (r#"{"kind":"v","id":true}"#, "id: must be a string"),
            (r#"{"kind":"v","id":["a"]}"#, "id: must be a string"),
            (r#"{"kind":7,"id":"a"}"#, "kind: must be a string"),
            (r#"{"kind":"v","id":"a","part":5}"#, "part: must be a string"),
            (r#"{"kind":"v","id":"a","device":""}"#, "device: must be 1 to 64 bytes"),
            (r#"{"kind":"v","id":"a\ud800"}"#, "id: holds half a surrogate pair"),
            (r#"{"kind":"v","id":"a","position_ms":"1"}"#, "position_ms: must be an integer"),
            (
                r#"{"kind":"v","id":"a","position_ms":-1}"#,
                "position_ms: must be an integer, 0 or greater",
            ),
            (
                r#"{"kind":"v","id":"a","position_ms":1.0}"#,
                "position_ms: must be an integer, 0 or greater",
            ),
            (
                r#"{"kind":"v","id":"a","duration_ms":9007199254740992}"#,
                "duration_ms: at most 9007199254740991",
            ),
            (r#"{"kind":"v","id":"a","event_ms":1e3}"#, "event_ms: must be an integer"),
            (
                r#"{"kind":"v","id":"a","event_ms":99999999999999999999}"#,
                "event_ms: must be an integer",
            ),
            (r#"{"kind":"v","id":"a","finished":1}"#, "finished: must be true or false"),
            (r#"{"kind":"v","id":"a","id":"b"}"#, "id: comes twice"),
            (r#"{"kind":"v","id":"a","user":""}"#, "user must be 1 to 128 bytes"),
        ] {
            assert_eq!(one(mark), format!("invalid_argument: {fault}"), "{mark}");
        }
    }

    #[test]
    fn null_counts_as_absent_and_nothing_else_does() {
        let mark = r#"{"kind":"v","id":"a","part":null,"position_ms":null,"event_ms":null,
            "duration_ms":null,"device":null,"group":null,"finished":null,"event_id":null}"#;
        assert_eq!(one(mark), "-/v/a@-");
    }

    #[test]
    fn a_bad_mark_does_not_stop_its_neighbours() {
        let body = r#"[{"kind":"v","id":"a","x":{"y":[1,{}]}}, 5, null, {"kind":"v","id":"b","position_ms":3}]"#;
        let want = [
            "invalid_argument: x: unknown field",
            "invalid_argument: a mark must be an object",
            "invalid_argument: a mark must be an object",
            "-/v/b@3",
        ];
        assert_eq!(read(body).unwrap(), want);
    }

    #[test]
    fn a_body_that_is_no_json_is_refused_whole() {
        for body in [
            "",
            " ",
            r#"{"kind":"#,
            "[",
            "[{}",
            "[{},]",
            "{} {}",
            "\"a\"",
            "7",
            "nul",
            "{\"a\":1,}",
        ] {
            assert!(read(body).unwrap_err().starts_with("invalid_argument: body: "), "{body:?}");
        }
        assert!(read_marks(b"[\"\xff\"]", |_| ()).is_err());
    }

    #[test]
    fn a_batch_is_an_object_or_lines() {
        let mut seen = Vec::new();
        read_batch(br#"{"marks":[{"kind":"v","id":1,"user":"u"}]}"#, |m| seen.push(shown(m)))
            .unwrap();
        let lines = b"{\"kind\":\"v\",\"id\":2,\"user\":\"u\"}\r\n\n{\"id\":1}\n7\n";
        read_lines(lines, |m| seen.push(shown(m))).unwrap();
        let required = "invalid_argument: kind: is required";
        assert_eq!(
            seen,
            ["u/v/1@-", "u/v/2@-", required, "invalid_argument: a mark must be an object"]
        );
        for bad in [&b"{}"[..], b"[]", b"{\"marks\":7}", b"{\"marks\":[],\"x\":1}", b"{\"kind\":1}"]
        {
            assert!(read_batch(bad, |_| ()).is_err());
        }
        let torn = read_lines(b"{\"kind\":\"v\",\"id\":2}\n{\"ki", |_| ()).unwrap_err();
        assert!(torn.detail.contains("line 2"), "{torn}");
    }

    #[test]
    fn a_batch_over_the_limit_is_too_large() {
        let marks = |n: usize| vec!["{\"kind\":\"v\",\"id\":1}"; n];
        let array = |n| format!("[{}]", marks(n).join(","));
        assert!(read_marks(array(10_000).as_bytes(), |_| ()).is_ok());
        let over = read_marks(array(10_001).as_bytes(), |_| ()).unwrap_err();
        assert_eq!(over.code, Code::PayloadTooLarge);
        let batch = format!("{{\"marks\":{}}}", array(10_001));
        assert_eq!(read_batch(batch.as_bytes(), |_| ()).unwrap_err().code, Code::PayloadTooLarge);
        let lines = marks(10_001).join("\n");
        assert_eq!(read_lines(lines.as_bytes(), |_| ()).unwrap_err().code, Code::PayloadTooLarge);
    }
}
