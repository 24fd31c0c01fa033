//! The bodies of calls about comments.

use std::borrow::Cow;

use super::reader::{Fields, Reader, Value};
use crate::Fault;
use crate::danmaku::read::parse_color;
use crate::danmaku::{Item, Mode, Pool};

/// A comment as it is posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostJson<'a> {
    /// What it says.
    pub text: Cow<'a, str>,
    /// When in the video, in ms.
    pub progress_ms: u32,
    /// How it is shown; scrolls if not said.
    pub mode: Mode,
    /// Of its letters, 1 to 255; 25 if not said.
    pub size: u8,
    /// `0xRRGGBB`; white if not said.
    pub color: u32,
    /// Which pool; special for a script or BAS, else normal, if not said.
    pub pool: Pool,
    /// The caller's name for it, for retries.
    pub client_id: Option<Cow<'a, str>>,
    /// In whose name; for services.
    pub user: Option<Cow<'a, str>>,
}

/// What is to become of a comment: one thing at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchJson {
    /// `"rank": "protected" | "recommended" | "plain"`.
    Rank(RankJson),
    /// `"state": "hidden" | "blocked" | "shown"`.
    State(StateJson),
    /// `"pool": "normal" | "subtitle"`.
    Pool(Pool),
}

/// A rank, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankJson {
    /// To stay.
    Protected,
    /// Worth seeing.
    Recommended,
    /// Nothing in particular.
    Plain,
}

/// A state that may be asked for, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateJson {
    /// Shown to nobody.
    Hidden,
    /// Shown to nobody: it breaks rules.
    Blocked,
    /// Undoes both, and what reports did.
    Shown,
}

/// Settings of a video; what is absent stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VideoSettingsJson {
    /// In ms; `null`: nobody knows.
    pub duration_ms: Option<Option<u32>>,
    /// The most comments shown; `null`: by the duration.
    pub limit: Option<Option<u32>>,
    /// Whether viewers may post.
    pub closed: Option<bool>,
}

/// Reads a post.
pub fn read_post(body: &[u8]) -> Result<PostJson<'_>, Fault> {
    let mut reader = Reader::new(body)?;
    let post = post(&mut reader)?;
    reader.end()?;
    Ok(post)
}

/// Reads a post within another text.
pub(super) fn post<'a>(reader: &mut Reader<'a>) -> Result<PostJson<'a>, Fault> {
    let mut post = PostJson {
        text: Cow::Borrowed(""),
        progress_ms: 0,
        mode: Mode::Scroll,
        size: Item::SIZE,
        color: Item::WHITE,
        pool: Pool::Normal,
        client_id: None,
        user: None,
    };
    let (mut fields, mut text, mut progress, mut pool) = (Fields::default(), None, None, None);
    reader.object(|name, reader| {
        let value = reader.value()?;
        let name = &*name.text;
        let known = ["text", "progress_ms", "mode", "size", "color", "pool", "client_id", "user"];
        let Some(number) = known.iter().position(|known| *known == name) else {
            fields.unknown(name);
            return Ok(());
        };
        fields.once(number as u32, name);
        match number {
            0 => text = fields.text(name, value),
            1 => progress = small(&mut fields, name, value),
            2 => post.mode = named(&mut fields, name, value, Mode::from_name).unwrap_or(post.mode),
            3 => post.size = size(&mut fields, name, value).unwrap_or(post.size),
            4 => post.color = color(&mut fields, name, value).unwrap_or(post.color),
            5 => pool = named(&mut fields, name, value, Pool::from_name),
            6 => post.client_id = fields.text(name, value),
            _ => post.user = fields.id(name, value),
        }
        Ok(())
    })?;
    fields.finish(())?;
    post.text = text.ok_or_else(|| Fault::invalid("text: is required"))?;
    post.progress_ms = progress.ok_or_else(|| Fault::invalid("progress_ms: is required"))?;
    let own =
        if matches!(post.mode, Mode::Script | Mode::Bas) { Pool::Special } else { Pool::Normal };
    post.pool = pool.unwrap_or(own);
    Ok(post)
}

/// Reads what is to become of a comment.
pub fn read_patch(body: &[u8]) -> Result<PatchJson, Fault> {
    let mut reader = Reader::new(body)?;
    let (mut fields, mut patch, mut count) = (Fields::default(), None, 0);
    reader.object(|name, reader| {
        let value = reader.value()?;
        let name = &*name.text;
        count += 1;
        patch = match name {
            "rank" => named(&mut fields, name, value, rank).map(PatchJson::Rank),
            "state" => named(&mut fields, name, value, state).map(PatchJson::State),
            "pool" => named(&mut fields, name, value, Pool::from_name).map(PatchJson::Pool),
            _ => {
                fields.unknown(name);
                None
            }
        };
        Ok(())
    })?;
    reader.end()?;
    fields.finish(())?;
    let one = || Fault::invalid("body: one of rank, state and pool is due, and no more");
    patch.filter(|_| count == 1).ok_or_else(one)
}

/// Reads settings of a video.
pub fn read_video_settings(body: &[u8]) -> Result<VideoSettingsJson, Fault> {
    let mut reader = Reader::new(body)?;
    let (mut fields, mut settings) = (Fields::default(), VideoSettingsJson::default());
    reader.object(|name, reader| {
        let value = reader.value()?;
        let name = &*name.text;
        match name {
            "duration_ms" => {
                fields.once(0, name);
                settings.duration_ms = Some(small(&mut fields, name, value));
            }
            "limit" => {
                fields.once(1, name);
                settings.limit = Some(small(&mut fields, name, value));
            }
            "closed" => {
                fields.once(2, name);
                settings.closed = fields.boolean(name, value);
            }
            _ => fields.unknown(name),
        }
        Ok(())
    })?;
    reader.end()?;
    fields.finish(settings)
}

/// Reads `{"reason": 1}`, 0 to 255; an empty body is reason 0.
pub fn read_report(body: &[u8]) -> Result<u8, Fault> {
    let mut reader = Reader::new(body)?;
    if reader.peek().is_none() {
        return Ok(0);
    }
    let (mut fields, mut reason) = (Fields::default(), None);
    reader.object(|name, reader| {
        let value = reader.value()?;
        match &*name.text {
            "reason" => {
                fields.once(0, "reason");
                reason = small(&mut fields, "reason", value);
            }
            other => fields.unknown(other),
        }
        Ok(())
    })?;
    reader.end()?;
    fields.finish(())?;
    u8::try_from(reason.unwrap_or(0)).map_err(|_| Fault::invalid("reason: at most 255"))
}

fn small(fields: &mut Fields, name: &str, value: Value<'_>) -> Option<u32> {
    let number = fields.unsigned(name, value)?;
    let small = u32::try_from(number).ok();
    if small.is_none() {
        fields.fault(|| format!("{name}: at most {}", u32::MAX));
    }
    small
}

fn size(fields: &mut Fields, name: &str, value: Value<'_>) -> Option<u8> {
    let number = fields.unsigned(name, value)?;
    let size = u8::try_from(number).ok().filter(|size| *size > 0);
    if size.is_none() {
        fields.fault(|| format!("{name}: must be 1 to 255"));
    }
    size
}

/// `#rrggbb` or its like, or a number.
fn color(fields: &mut Fields, name: &str, value: Value<'_>) -> Option<u32> {
    let color = match &value {
        Value::Null => return None,
        Value::Number(digits) => digits.parse().ok().filter(|color| *color <= Item::WHITE),
        Value::String(text) => parse_color(&text.text),
        _ => None,
    };
    if color.is_none() {
        fields.fault(|| format!("{name}: must be #rrggbb, or a number up to {}", Item::WHITE));
    }
    color
}

fn named<T>(
    fields: &mut Fields,
    name: &str,
    value: Value<'_>,
    find: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    let text = fields.text(name, value)?;
    let found = find(&text);
    if found.is_none() {
        fields.fault(|| format!("{name}: {:?} is none", crate::fault::shortened(&text)));
    }
    found
}

fn rank(name: &str) -> Option<RankJson> {
    match name {
        "protected" => Some(RankJson::Protected),
        "recommended" => Some(RankJson::Recommended),
        "plain" => Some(RankJson::Plain),
        _ => None,
    }
}

fn state(name: &str) -> Option<StateJson> {
    match name {
        "hidden" => Some(StateJson::Hidden),
        "blocked" => Some(StateJson::Blocked),
        "shown" => Some(StateJson::Shown),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(body: &str) -> String {
        read_post(body.as_bytes()).unwrap_err().detail.into_owned()
    }

    #[test]
    fn a_post_has_usual_values_for_what_it_does_not_say() {
        let post = read_post(br#"{"text":"hi","progress_ms":5}"#).unwrap();
        assert_eq!((post.mode, post.pool, post.size), (Mode::Scroll, Pool::Normal, 25));
        assert_eq!((post.color, post.progress_ms, &*post.text), (0xFF_FFFF, 5, "hi"));
        let post = br##"{"text":"x","progress_ms":0,"mode":"bas","color":"#00ff7f","size":36}"##;
        let post = read_post(post).unwrap();
        assert_eq!(
            (post.mode, post.pool, post.size, post.color),
            (Mode::Bas, Pool::Special, 36, 0xFF7F)
        );
        assert_eq!(read_post(br#"{"text":"x","progress_ms":0,"color":255}"#).unwrap().color, 255);
    }

    #[test]
    fn what_is_wrong_with_a_post_is_named() {
        assert_eq!(fault(r#"{"progress_ms":1}"#), "text: is required");
        assert_eq!(fault(r#"{"text":"x"}"#), "progress_ms: is required");
        let base = |more: &str| fault(&format!(r#"{{"text":"x","progress_ms":1,{more}}}"#));
        assert_eq!(base(r#""mode":"fly""#), "mode: \"fly\" is none");
        assert_eq!(
            base(r#""color":16777216"#),
            "color: must be #rrggbb, or a number up to 16777215"
        );
        assert_eq!(base(r#""color":-1"#), "color: must be #rrggbb, or a number up to 16777215");
        assert_eq!(base(r#""size":0"#), "size: must be 1 to 255");
        assert_eq!(base(r#""text":"y""#), "text: comes twice");
        assert_eq!(base(r#""colour":1"#), "colour: unknown field");
        assert_eq!(
            fault(r#"{"text":"\ud83d","progress_ms":1}"#),
            "text: holds half a surrogate pair"
        );
        assert_eq!(
            fault(r#"{"text":"x","progress_ms":4294967296}"#),
            "progress_ms: at most 4294967295"
        );
    }

    #[test]
    fn a_comment_is_changed_one_thing_at_a_time() {
        let read = |body: &str| read_patch(body.as_bytes());
        assert_eq!(read(r#"{"rank":"protected"}"#), Ok(PatchJson::Rank(RankJson::Protected)));
        assert_eq!(read(r#"{"state":"shown"}"#), Ok(PatchJson::State(StateJson::Shown)));
        assert_eq!(read(r#"{"pool":"subtitle"}"#), Ok(PatchJson::Pool(Pool::Subtitle)));
        for bad in
            ["{}", r#"{"rank":"plain","pool":"normal"}"#, r#"{"rank":"plain","rank":"plain"}"#]
        {
            assert!(read(bad).unwrap_err().detail.starts_with("body: one of"), "{bad}");
        }
        assert_eq!(read(r#"{"state":"gone"}"#).unwrap_err().detail, "state: \"gone\" is none");
    }

    #[test]
    fn null_in_settings_says_that_nobody_knows_and_absent_says_nothing() {
        let read = |body: &str| read_video_settings(body.as_bytes()).unwrap();
        assert_eq!(read("{}"), VideoSettingsJson::default());
        let all = read(r#"{"duration_ms":null,"limit":500,"closed":true}"#);
        let want = VideoSettingsJson {
            duration_ms: Some(None),
            limit: Some(Some(500)),
            closed: Some(true),
        };
        assert_eq!(all, want);
        assert_eq!(read_report(b"").unwrap(), 0);
        assert_eq!(read_report(br#"{"reason":7}"#).unwrap(), 7);
        assert!(read_report(br#"{"reason":256}"#).is_err());
    }
}
