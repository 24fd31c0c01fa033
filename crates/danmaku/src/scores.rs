//! Scores in bulk: a model's flags of one segment for one viewer, a line each,
//! as they are imported and as records of topic `danmaku-flags` say them.
//!
//! ```text
//! {"user":"ann","video":"7","segment":1,"flags":{"default":5,"flags":[["id",11],…]}}
//! ```
//!
//! `flags` is looked at once, and kept and handed out as it came.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tideline_types::UserId;
use tideline_types::limits::{SCORES_BYTES_MAX, VIDEO_BYTES_MAX};
use tideline_wire::danmaku::smart::Flags;

/// Flags in the scores of a segment, at most: more do not fit in their bytes.
const FLAGS_MAX: usize = SCORES_BYTES_MAX / 4;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scores {
    /// For whom.
    pub user: UserId,
    /// Of which video.
    pub video: String,
    /// Of which segment, from 1.
    pub segment: u32,
    /// As they came.
    pub flags: Bytes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    user: Id,
    video: Id,
    segment: u32,
    #[serde(borrow)]
    flags: &'a RawValue,
}

/// Ids are texts; a number is taken as it is written.
#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Text(String),
    Number(u64),
}

impl From<Id> for String {
    fn from(id: Id) -> Self {
        match id {
            Id::Text(text) => text,
            Id::Number(number) => number.to_string(),
        }
    }
}

impl Scores {
    /// Reads a line; errs with the field and what is wrong with it.
    pub fn read(line: &[u8]) -> Result<Self, String> {
        let line: Line<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let user = UserId::new(&String::from(line.user)).map_err(|bad| bad.0.to_string())?;
        let video = String::from(line.video);
        if !(1..=VIDEO_BYTES_MAX).contains(&video.len()) {
            return Err(format!("video: must have 1 to {VIDEO_BYTES_MAX} bytes"));
        }
        if line.segment == 0 {
            return Err("segment: must be a number from 1".into());
        }
        let flags = line.flags.get().as_bytes();
        if flags.len() > SCORES_BYTES_MAX {
            return Err(format!("flags: at most {SCORES_BYTES_MAX} bytes"));
        }
        Flags::from_json(flags, FLAGS_MAX).map_err(|bad| bad.to_string())?;
        let flags = Bytes::copy_from_slice(flags);
        Ok(Self { user, video, segment: line.segment, flags })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_keeps_its_flags_as_they_came() {
        let line = br#"{"user":"ann","video":7,"segment":2,"flags":{ "default": 3, "flags": [["1",11]] }}"#;
        let scores = Scores::read(line).unwrap();
        assert_eq!((scores.user.as_str(), &*scores.video, scores.segment), ("ann", "7", 2));
        assert_eq!(scores.flags, &br#"{ "default": 3, "flags": [["1",11]] }"#[..]);
    }

    #[test]
    fn what_is_wrong_with_a_line_is_named() {
        let flags = r#"{"default":3,"flags":[]}"#;
        for (line, why) in [
            (format!(r#"{{"user":"","video":"v","segment":1,"flags":{flags}}}"#), "user"),
            (format!(r#"{{"user":"a","video":"","segment":1,"flags":{flags}}}"#), "video: must"),
            (format!(r#"{{"user":"a","video":"v","segment":0,"flags":{flags}}}"#), "segment: must"),
            (
                r#"{"user":"a","video":"v","segment":1,"flags":{"default":12}}"#.into(),
                "flags: must",
            ),
            (format!(r#"{{"user":"a","video":"v","segment":1,"flag":{flags}}}"#), "unknown field"),
            (r#"{"user":"a","video":"v","segment":1}"#.into(), "missing field"),
            ("nothing".into(), "expected"),
        ] {
            let told = Scores::read(line.as_bytes()).unwrap_err();
            assert!(told.contains(why), "{line}: {told}");
        }
        let long = format!(r#"{{"default":3,"flags":[{}]}}"#, " ".repeat(SCORES_BYTES_MAX));
        let line = format!(r#"{{"user":"a","video":"v","segment":1,"flags":{long}}}"#);
        assert!(Scores::read(line.as_bytes()).unwrap_err().starts_with("flags: at most"));
    }
}
