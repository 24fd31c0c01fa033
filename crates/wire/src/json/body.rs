//! The small bodies: keys, settings, items of the catalogue.

use std::borrow::Cow;

use tideline_types::limits::{
    BATCH_KEYS_MAX, BATCH_MARKS_MAX, FIELD_BYTES_MAX, LENGTH_MS_MAX, TITLE_CHARS_MAX,
    URL_BYTES_MAX, USER_BYTES_MAX,
};

use super::reader::{Fields, Reader, Syntax, Value};
use crate::{Code, Fault};

/// One object, and perhaps one part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyJson<'a> {
    /// The name of a kind.
    pub kind: Cow<'a, str>,
    /// Its id: 1 to 64 bytes.
    pub id: Cow<'a, str>,
    /// 1 to 64 bytes.
    pub part: Option<Cow<'a, str>>,
}

/// What an item of the catalogue is to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemJson<'a> {
    /// At most 256 characters.
    pub title: Option<Cow<'a, str>>,
    /// Address of a picture, at most 2,048 bytes.
    pub cover: Option<Cow<'a, str>>,
    /// Address of a page, at most 2,048 bytes.
    pub url: Option<Cow<'a, str>>,
    /// 1 to 64 bytes.
    pub group: Option<Cow<'a, str>>,
    /// 1 to 64 bytes.
    pub work: Option<Cow<'a, str>>,
    /// A user: 1 to 128 bytes.
    pub owner: Option<Cow<'a, str>>,
    /// In ms.
    pub duration_ms: Option<u64>,
    /// Its place in its group.
    pub order: Option<i64>,
}

/// An item and the object it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutItem<'a> {
    /// The name of a kind.
    pub kind: Cow<'a, str>,
    /// 1 to 64 bytes.
    pub id: Cow<'a, str>,
    /// What it is to say.
    pub item: ItemJson<'a>,
}

/// Reads `{"keys": [{"kind", "id", "part"?}]}`, at most 1,000.
pub fn read_keys(body: &[u8]) -> Result<Vec<KeyJson<'_>>, Fault> {
    read_list(body, "keys", BATCH_KEYS_MAX, |reader| {
        let (mut fields, mut key) = (Fields::default(), (None, None, None));
        reader.object(|name, reader| {
            let value = reader.value()?;
            let name = &*name.text;
            let Some(number) = ["kind", "id", "part"].iter().position(|known| *known == name)
            else {
                fields.unknown(name);
                return Ok(());
            };
            fields.once(number as u32, name);
            match number {
                0 => key.0 = fields.text(name, value),
                1 => key.1 = fields.id(name, value),
                _ => key.2 = fields.text(name, value),
            }
            Ok(())
        })?;
        Ok(fields.finish(()).and_then(|()| {
            let (kind, id) = required(key.0, key.1)?;
            bounded("part", key.2.as_deref(), FIELD_BYTES_MAX)?;
            Ok(KeyJson { kind, id, part: key.2 })
        }))
    })
}

/// Reads `{"recording": true}` or `false`.
pub fn read_recording(body: &[u8]) -> Result<bool, Fault> {
    let mut reader = Reader::new(body)?;
    let (mut fields, mut recording) = (Fields::default(), None);
    reader.object(|name, reader| {
        let value = reader.value()?;
        match &*name.text {
            "recording" => {
                fields.once(0, "recording");
                recording = fields.boolean("recording", value);
            }
            other => fields.unknown(other),
        }
        Ok(())
    })?;
    reader.end()?;
    fields.finish(())?;
    recording.ok_or_else(|| Fault::invalid("recording: is required, true or false"))
}

/// Reads one item, whose object stands in the path.
pub fn read_item(body: &[u8]) -> Result<ItemJson<'_>, Fault> {
    let mut reader = Reader::new(body)?;
    let (_, _, item) = item(&mut reader, false)??;
    reader.end()?;
    Ok(item)
}

/// Reads `{"items": [{"kind", "id", …}]}`, at most 10,000.
pub fn read_items(body: &[u8]) -> Result<Vec<PutItem<'_>>, Fault> {
    read_list(body, "items", BATCH_MARKS_MAX, |reader| {
        Ok(item(reader, true)?.and_then(|(kind, id, item)| {
            let (kind, id) = required(kind, id)?;
            Ok(PutItem { kind, id, item })
        }))
    })
}

type ItemParts<'a> = (Option<Cow<'a, str>>, Option<Cow<'a, str>>, ItemJson<'a>);

fn item<'a>(reader: &mut Reader<'a>, keyed: bool) -> Result<Result<ItemParts<'a>, Fault>, Syntax> {
    let (mut fields, mut kind, mut id) = (Fields::default(), None, None);
    let mut item = ItemJson::default();
    reader.object(|name, reader| {
        let value: Value<'a> = reader.value()?;
        let name = &*name.text;
        let number = match name {
            "kind" if keyed => 0,
            "id" if keyed => 1,
            "title" => 2,
            "cover" => 3,
            "url" => 4,
            "group" => 5,
            "work" => 6,
            "owner" => 7,
            "duration_ms" => 8,
            "order" => 9,
            _ => {
                fields.unknown(name);
                return Ok(());
            }
        };
        fields.once(number, name);
        match number {
            0 => kind = fields.text(name, value),
            1 => id = fields.id(name, value),
            2 => item.title = fields.text(name, value),
            3 => item.cover = fields.text(name, value),
            4 => item.url = fields.text(name, value),
            5 => item.group = fields.id(name, value),
            6 => item.work = fields.id(name, value),
            7 => item.owner = fields.id(name, value),
            8 => item.duration_ms = fields.unsigned(name, value),
            _ => item.order = fields.signed(name, value),
        }
        Ok(())
    })?;
    Ok(fields.finish(()).and_then(|()| {
        check_item(&item)?;
        Ok((kind, id, item))
    }))
}

fn check_item(item: &ItemJson<'_>) -> Result<(), Fault> {
    if item.title.as_ref().is_some_and(|title| title.chars().count() > TITLE_CHARS_MAX) {
        return Err(Fault::invalid(format!("title: at most {TITLE_CHARS_MAX} characters")));
    }
    bounded("cover", item.cover.as_deref(), URL_BYTES_MAX)?;
    bounded("url", item.url.as_deref(), URL_BYTES_MAX)?;
    bounded("group", item.group.as_deref(), FIELD_BYTES_MAX)?;
    bounded("work", item.work.as_deref(), FIELD_BYTES_MAX)?;
    bounded("owner", item.owner.as_deref(), USER_BYTES_MAX)?;
    if item.duration_ms.is_some_and(|ms| ms > LENGTH_MS_MAX) {
        return Err(Fault::invalid(format!("duration_ms: at most {LENGTH_MS_MAX}")));
    }
    Ok(())
}

fn bounded(name: &str, text: Option<&str>, bytes_max: usize) -> Result<(), Fault> {
    if text.is_some_and(|text| text.is_empty() || text.len() > bytes_max) {
        return Err(Fault::invalid(format!("{name}: must be 1 to {bytes_max} bytes")));
    }
    Ok(())
}

fn required<'a>(
    kind: Option<Cow<'a, str>>,
    id: Option<Cow<'a, str>>,
) -> Result<(Cow<'a, str>, Cow<'a, str>), Fault> {
    bounded("id", id.as_deref(), FIELD_BYTES_MAX)?;
    let id = id.ok_or_else(|| Fault::invalid("id: is required"))?;
    let kind = kind.ok_or_else(|| Fault::invalid("kind: is required"))?;
    Ok((kind, id))
}

/// Reads `{"<name>": [...]}`, at most `max` of them; the first that is wrong
/// is told with its place.
fn read_list<'a, T>(
    body: &'a [u8],
    list: &'static str,
    max: usize,
    mut each: impl FnMut(&mut Reader<'a>) -> Result<Result<T, Fault>, Syntax>,
) -> Result<Vec<T>, Fault> {
    let mut reader = Reader::new(body)?;
    let (mut fields, mut there, mut wrong) = (Fields::default(), false, None);
    let mut taken = Vec::new();
    let mut seen = 0;
    reader.object(|name, reader| {
        if name.text != list {
            fields.unknown(&name.text);
            return reader.value().map(drop);
        }
        fields.once(0, list);
        there = true;
        reader.array(|reader| {
            seen += 1;
            if reader.peek() != Some(b'{') {
                wrong.get_or_insert(Fault::invalid(format!("{list}[{}]: no object", seen - 1)));
                return reader.value().map(drop);
            }
            match each(reader)? {
                Ok(one) if seen <= max => taken.push(one),
                Ok(_) => (),
                Err(fault) => {
                    let detail = format!("{list}[{}].{}", seen - 1, fault.detail);
                    wrong.get_or_insert(Fault { detail: detail.into(), ..fault });
                }
            }
            Ok(())
        })
    })?;
    reader.end()?;
    if seen > max {
        let detail = format!("{list}: at most {max} in one call").into();
        return Err(Fault { code: Code::PayloadTooLarge, detail });
    }
    fields.finish(())?;
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    if there { Ok(taken) } else { Err(Fault::invalid(format!("{list}: is required"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_order_and_faults_name_their_place() {
        let body = br#"{"keys":[{"kind":"video","id":7},{"kind":"shop","id":"a","part":"p"}]}"#;
        let keys = read_keys(body).unwrap();
        assert_eq!((&*keys[0].id, keys[1].part.as_deref()), ("7", Some("p")));
        for (body, detail) in [
            (r#"{"keys":[{"kind":"v","id":"a"},{"kind":"v"}]}"#, "keys[1].id: is required"),
            (r#"{"keys":[{"kind":"v","id":"a","x":1}]}"#, "keys[0].x: unknown field"),
            (r#"{"keys":[7]}"#, "keys[0]: no object"),
            (r#"{"keys":7}"#, "body: no JSON: no array at byte 8"),
            (r#"{}"#, "keys: is required"),
            (r#"{"keys":[],"more":1}"#, "more: unknown field"),
        ] {
            assert_eq!(read_keys(body.as_bytes()).unwrap_err().detail, detail, "{body}");
        }
        let many = format!(r#"{{"keys":[{}]}}"#, vec![r#"{"kind":"v","id":1}"#; 1001].join(","));
        assert_eq!(read_keys(many.as_bytes()).unwrap_err().code, Code::PayloadTooLarge);
    }

    #[test]
    fn settings_are_one_boolean() {
        assert_eq!(read_recording(br#"{"recording":false}"#), Ok(false));
        for bad in [
            "{}",
            r#"{"recording":null}"#,
            r#"{"recording":1}"#,
            r#"{"recording":true,"x":1}"#,
            "true",
            "",
        ] {
            assert!(read_recording(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_item_is_held_to_its_limits() {
        let item = read_item(br#"{"title":"T","order":-2,"duration_ms":5,"group":12}"#).unwrap();
        assert_eq!((item.order, item.group.as_deref()), (Some(-2), Some("12")));
        assert!(read_item(format!(r#"{{"title":"{}"}}"#, "é".repeat(256)).as_bytes()).is_ok());
        assert!(read_item(format!(r#"{{"title":"{}"}}"#, "é".repeat(257)).as_bytes()).is_err());
        assert!(read_item(br#"{"kind":"video"}"#).is_err());
        let items = read_items(br#"{"items":[{"kind":"video","id":"7","title":"T"}]}"#).unwrap();
        assert_eq!(&*items[0].kind, "video");
    }
}
