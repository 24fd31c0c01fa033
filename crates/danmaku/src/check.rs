//! Whether what lies at rest makes sense: every row by itself, and the rows of
//! a video against its facts.
//!
//! Always, of a video: as many index rows as contents as its facts say in all,
//! each id once in both; as many rows in the queue of a stretch as its facts
//! say shown and hidden. Wants rows in order, as the table walks them.

use std::collections::BTreeMap;

use tideline_types::{Epoch, Seq};

use crate::due;
use crate::id::CommentId;
use crate::rows::{self, Facts};
use crate::sent::Sent;
use crate::works;

/// What is known of the rows that were seen.
#[derive(Debug, Default)]
pub struct Checker {
    /// Videos, and what is decided like one.
    pub videos: u64,
    /// Comments of any state.
    pub comments: u64,
    /// What is wrong, for people.
    pub findings: Vec<String>,
    /// The partition key that rows are of now.
    key: Vec<u8>,
    facts: Option<Facts>,
    /// Rows of the queue of each stretch.
    queue: BTreeMap<u16, u64>,
    /// Ids of index rows and of contents, added up: the same ids in any order
    /// come to the same.
    indexes: Ids,
    contents: Ids,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ids {
    count: u64,
    sum: u64,
}

impl Ids {
    fn add(&mut self, id: CommentId) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(id.bits());
    }
}

/// How far a video is at rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The video.
    pub video: String,
    /// The epoch and the number of the last outcome in its rows.
    pub place: (Epoch, Seq),
}

impl Checker {
    /// Takes the next row; answers how far the video before it is at rest,
    /// where that ends with it.
    pub fn row(&mut self, key: &[u8], sort_key: &[u8], value: &[u8]) -> Option<Applied> {
        let applied = if key == self.key { None } else { self.end() };
        if key != self.key {
            self.key = key.to_vec();
        }
        let checked = match key.first() {
            Some(b'v') => self.video_row(sort_key, value),
            Some(b'u') => self.user_row(sort_key, value),
            Some(&works::KEY) if works::decode(sort_key, value).is_some() => Ok(()),
            Some(&due::KEY) if due::decode(sort_key, value).is_some() => Ok(()),
            _ => Err("it is none of ours".into()),
        };
        if let Err(why) = checked {
            let (key, sort_key) = (shown(key), shown(sort_key));
            self.findings.push(format!("tables/danmaku: row {sort_key} of {key}: {why}"));
        }
        applied
    }

    /// No more rows of this partition key.
    pub fn end(&mut self) -> Option<Applied> {
        let key = std::mem::take(&mut self.key);
        let (facts, queue) = (self.facts.take(), std::mem::take(&mut self.queue));
        let (indexes, contents) =
            (std::mem::take(&mut self.indexes), std::mem::take(&mut self.contents));
        let video = String::from_utf8(key.strip_prefix(b"v")?.to_vec()).ok()?;
        self.videos += 1;
        self.comments += contents.count;
        let Some(facts) = facts else {
            self.findings.push(format!("tables/danmaku: video {video:?} has rows and no facts"));
            return None;
        };
        let said: BTreeMap<u16, u64> = facts
            .queue
            .iter()
            .map(|(at, shown, hidden)| (*at, u64::from(*shown) + hidden))
            .collect();
        for (wrong, what) in [
            (indexes != contents, "its index rows and contents are not of the same comments"),
            (contents.count != facts.total, "it has not as many comments as its facts say"),
            (queue != said, "its queue is not as long as its facts say"),
        ] {
            if wrong {
                self.findings.push(format!("tables/danmaku: video {video:?}: {what}"));
            }
        }
        Some(Applied { video, place: (facts.epoch, facts.seq) })
    }

    fn video_row(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let bad = |bad: tideline_record::codec::BadBytes| bad.0.to_owned();
        match key.first() {
            Some(0x00) => self.facts = Some(Facts::decode(value).map_err(bad)?),
            Some(0x01) => {
                let json = std::str::from_utf8(value).map_err(|error| error.to_string())?;
                crate::filters::parse(json).map_err(|error| error.to_string())?;
            }
            Some(0x03) => _ = std::str::from_utf8(value).map_err(|error| error.to_string())?,
            Some(0x02) => _ = Sent::decode(value).map_err(bad)?,
            Some(0x10 | 0x20 | 0x30) => {
                let (id, index) = (rows::id_in(key).map_err(bad)?, rows::decode_index(value));
                if rows::index_key(id, &index.map_err(bad)?) != key {
                    return Err("an index that does not belong there".into());
                }
                self.indexes.add(id);
                if key[0] == 0x20 {
                    *self.queue.entry(id.stretch()).or_default() += 1;
                }
            }
            Some(0x40) => {
                let id = rows::id_of(key).map_err(bad)?;
                rows::decode_content(id, value).map_err(bad)?;
                self.contents.add(id);
            }
            Some(0x50) => {
                rows::id_of(key).map_err(bad)?;
                std::str::from_utf8(value).map_err(|error| error.to_string())?;
            }
            Some(0x60) if matches!(value.len(), 0 | 8) => _ = rows::id_of(key).map_err(bad)?,
            Some(0x70) if key.len() == 18 && value.len() == 1 => {}
            _ => return Err("it is none of ours".into()),
        }
        Ok(())
    }

    fn user_row(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        match key.first() {
            Some(b'v') if rows::wrote_on(key).is_some() && value.is_empty() => Ok(()),
            Some(b'x') => {
                let json = std::str::from_utf8(value).map_err(|error| error.to_string())?;
                crate::filters::parse(json).map(|_| ()).map_err(|error| error.to_string())
            }
            // Scores are nobody's to read here.
            Some(b'f') => Ok(()),
            _ => Err("it is none of ours".into()),
        }
    }
}

/// A key, as far as it can be shown.
fn shown(key: &[u8]) -> String {
    key.escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comment::{Content, State, Writer};
    use crate::outcome::{Change, sample};
    use crate::rows::Settings;

    /// The rows of a video with one comment in its queue.
    fn rows_of_one() -> Vec<(Vec<u8>, Vec<u8>)> {
        let Change::New { id, index, content } = sample().changes.swap_remove(0) else { panic!() };
        assert_eq!(index.state, State::Shown);
        let facts = Facts {
            epoch: Epoch(2),
            seq: Seq(7),
            settings: Settings::default(),
            total: 1,
            queue: vec![(id.stretch(), 1, 0)],
        };
        vec![
            (rows::FACTS_KEY.to_vec(), facts.encode()),
            (rows::index_key(id, &index).to_vec(), rows::encode_index(&index)),
            (rows::content_key(id).to_vec(), rows::encode_content(id, &content)),
            (rows::own_key(7, id).to_vec(), Vec::new()),
        ]
    }

    fn findings(rows: &[(Vec<u8>, Vec<u8>)]) -> (Vec<String>, Option<Applied>) {
        let mut checker = Checker::default();
        for (key, value) in rows {
            assert_eq!(checker.row(b"vv1", key, value), None);
        }
        let applied = checker.end();
        (checker.findings, applied)
    }

    #[test]
    fn a_sound_video_says_how_far_it_is() {
        let (found, applied) = findings(&rows_of_one());
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(applied, Some(Applied { video: "v1".into(), place: (Epoch(2), Seq(7)) }));
    }

    #[test]
    fn a_row_too_few_or_too_many_is_found() {
        for gone in 0..3 {
            let mut rows = rows_of_one();
            rows.remove(gone);
            assert!(!findings(&rows).0.is_empty(), "without row {gone}");
        }
        let mut rows = rows_of_one();
        rows[1].1 = vec![9];
        let (found, _) = findings(&rows);
        assert!(found[0].contains("another version"), "{found:?}");
        let mut rows = rows_of_one();
        rows.push((vec![0x99], Vec::new()));
        assert!(findings(&rows).0[0].contains("none of ours"));
    }

    #[test]
    fn contents_of_other_comments_are_found() {
        let mut rows = rows_of_one();
        let other = CommentId::from_bits(5).unwrap();
        let content = Content {
            color: 0,
            size: 25,
            sent_ms: other.time(),
            writer: Writer::Imported(Default::default()),
            weight: 0,
            attr: 0,
            client: None,
            text: "x".into(),
        };
        rows[2] = (rows::content_key(other).to_vec(), rows::encode_content(other, &content));
        assert!(findings(&rows).0[0].contains("not of the same comments"));
    }

    #[test]
    fn rows_of_users_are_looked_at_as_well() {
        let mut checker = Checker::default();
        let user = rows::user_key(7);
        checker.row(&user, &rows::wrote_key("v"), b"");
        checker.row(&user, b"x", b"[]");
        assert!(checker.findings.is_empty());
        checker.row(&user, b"x", b"{");
        checker.row(b"z", b"x", b"");
        assert_eq!(checker.findings.len(), 2);
    }
}
