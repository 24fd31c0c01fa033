//! A user's history as lines of JSON, and back, exactly.
//!
//! The first line: `{"tideline_export":1,"user":…,"rows":n,"facts":{…}}`; then
//! a row a line, newest first, with every fact. Kinds stand by name. Numbers
//! that JavaScript would round (fingerprints) stand as text. Unknown fields
//! and versions are refused: what is not understood cannot be put back.

use serde::{Deserialize, Serialize};
use tideline_history::facts::{Block, ExportDoc, ExportFacts, Floor, Pause, Reward};
use tideline_history::kinds::{KindId, Kinds};
use tideline_history::query::{Retry, Row, RowFacts};
use tideline_types::limits::{FIELD_BYTES_MAX, LENGTH_MS_MAX, RETRIES_PER_ROW};
use tideline_types::{Millis, UserId};

const VERSION: u32 = 1;

/// Lines that are no export of this version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct BadExport {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
    /// It names a kind that is not known here.
    pub unknown_kind: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    tideline_export: u32,
    user: String,
    rows: usize,
    facts: FactsLine,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FactsLine {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deletes: Vec<BlockLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pauses: Vec<(i64, i64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    off_since_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    floors: Vec<FloorLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rewards: Vec<RewardLine>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before_ms: Option<i64>,
    until_ms: i64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FloorLine {
    kind: String,
    event_ms: i64,
    id: Box<str>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RewardLine {
    kind: String,
    day: i32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowLine {
    kind: String,
    id: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    position_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    event_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<Box<str>>,
    finished: bool,
    plays: u32,
    declared: bool,
    began: bool,
    part_since_ms: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    retries: Vec<RetryLine>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RetryLine {
    fingerprint: String,
    taken_ms: i64,
    made: bool,
}

/// The lines of an export, each with its line end.
pub fn write_export(user: &UserId, doc: &ExportDoc, kinds: &Kinds) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + doc.rows.len() * 256);
    let head = Head {
        tideline_export: VERSION,
        user: user.as_str().into(),
        rows: doc.rows.len(),
        facts: facts_line(&doc.facts, kinds),
    };
    push_line(&mut out, &head);
    for row in &doc.rows {
        push_line(&mut out, &row_line(row, kinds));
    }
    out
}

fn push_line(out: &mut Vec<u8>, line: &impl Serialize) {
    serde_json::to_writer(&mut *out, line).expect("these structs have only string keys");
    out.push(b'\n');
}

/// Reads what [`write_export`] wrote. The user that the first line names is
/// not looked at: an export may be put back under another name.
pub fn read_export(lines: &[u8], kinds: &Kinds) -> Result<ExportDoc, BadExport> {
    let mut doc = ExportDoc::default();
    let mut promised = None;
    for (at, line) in lines.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let bad = |what: String| BadExport { line: at + 1, what, unknown_kind: false };
        let reader = Names { kinds, line: at + 1 };
        if promised.is_none() {
            let head: Head = serde_json::from_slice(line).map_err(|e| bad(e.to_string()))?;
            if head.tideline_export != VERSION {
                let found = head.tideline_export;
                return Err(bad(format!("export version {found}, this server reads {VERSION}")));
            }
            promised = Some(head.rows);
            doc.facts = reader.facts(head.facts)?;
        } else {
            let row: RowLine = serde_json::from_slice(line).map_err(|e| bad(e.to_string()))?;
            doc.rows.push(reader.row(row)?);
        }
    }
    let whole = |what: String| BadExport { line: 1, what, unknown_kind: false };
    let promised = promised.ok_or_else(|| whole("there is no line".into()))?;
    if promised != doc.rows.len() {
        let found = doc.rows.len();
        return Err(whole(format!("{promised} rows are announced, {found} came")));
    }
    Ok(doc)
}

fn facts_line(facts: &ExportFacts, kinds: &Kinds) -> FactsLine {
    let name = |kind: KindId| kinds.name(kind).to_owned();
    FactsLine {
        deletes: facts
            .deletes
            .iter()
            .map(|block| BlockLine {
                kind: block.kind.map(name),
                id: block.id.clone(),
                after_ms: block.after_ms.map(|ms| ms.0),
                before_ms: block.before_ms.map(|ms| ms.0),
                until_ms: block.until_ms.0,
            })
            .collect(),
        pauses: facts.pauses.iter().map(|pause| (pause.from_ms.0, pause.to_ms.0)).collect(),
        off_since_ms: facts.off_since.map(|ms| ms.0),
        floors: facts
            .floors
            .iter()
            .map(|floor| FloorLine {
                kind: name(floor.kind),
                event_ms: floor.event_ms.0,
                id: floor.id.clone(),
            })
            .collect(),
        rewards: facts
            .rewards
            .iter()
            .map(|reward| RewardLine { kind: name(reward.kind), day: reward.day })
            .collect(),
    }
}

fn row_line(row: &Row, kinds: &Kinds) -> RowLine {
    RowLine {
        kind: kinds.name(row.kind).into(),
        id: row.id.clone(),
        part: row.part.clone(),
        position_ms: row.position_ms,
        duration_ms: row.duration_ms,
        event_ms: row.event_ms.0,
        device: row.device.clone(),
        group: row.group.clone(),
        finished: row.finished,
        plays: row.plays,
        declared: row.facts.declared,
        began: row.facts.began,
        part_since_ms: row.facts.part_since.0,
        retries: row
            .facts
            .retries
            .iter()
            .map(|retry| RetryLine {
                fingerprint: format!("{:016x}", retry.fingerprint),
                taken_ms: retry.taken_ms.0,
                made: retry.made,
            })
            .collect(),
    }
}

/// Turns what a line says into what it means here.
struct Names<'a> {
    kinds: &'a Kinds,
    line: usize,
}

impl Names<'_> {
    fn bad(&self, what: impl Into<String>) -> BadExport {
        BadExport { line: self.line, what: what.into(), unknown_kind: false }
    }

    fn kind(&self, name: &str) -> Result<KindId, BadExport> {
        self.kinds.find(name).ok_or_else(|| BadExport {
            unknown_kind: true,
            ..self.bad(format!(
                "kind: {:?} is not declared",
                name.chars().take(64).collect::<String>()
            ))
        })
    }

    fn text(&self, name: &str, text: Option<Box<str>>) -> Result<Option<Box<str>>, BadExport> {
        match text {
            Some(text) if text.is_empty() || text.len() > FIELD_BYTES_MAX => {
                Err(self.bad(format!("{name}: must be 1 to {FIELD_BYTES_MAX} bytes")))
            }
            text => Ok(text),
        }
    }

    fn id(&self, id: Box<str>) -> Result<Box<str>, BadExport> {
        self.text("id", Some(id))?.ok_or_else(|| self.bad("id: is required"))
    }

    fn length(&self, name: &str, ms: Option<u64>) -> Result<Option<u64>, BadExport> {
        match ms {
            Some(ms) if ms > LENGTH_MS_MAX => {
                Err(self.bad(format!("{name}: at most {LENGTH_MS_MAX}")))
            }
            ms => Ok(ms),
        }
    }

    fn facts(&self, line: FactsLine) -> Result<ExportFacts, BadExport> {
        let deletes = line.deletes.into_iter().map(|block| {
            Ok(Block {
                kind: block.kind.map(|kind| self.kind(&kind)).transpose()?,
                id: self.text("id", block.id)?,
                after_ms: block.after_ms.map(Millis),
                before_ms: block.before_ms.map(Millis),
                until_ms: Millis(block.until_ms),
            })
        });
        let floors = line.floors.into_iter().map(|floor| {
            Ok(Floor {
                kind: self.kind(&floor.kind)?,
                event_ms: Millis(floor.event_ms),
                id: self.id(floor.id)?,
            })
        });
        let rewards = line
            .rewards
            .into_iter()
            .map(|reward| Ok(Reward { kind: self.kind(&reward.kind)?, day: reward.day }));
        let pauses = line.pauses.into_iter();
        Ok(ExportFacts {
            deletes: deletes.collect::<Result<_, _>>()?,
            pauses: pauses
                .map(|(from, to)| Pause { from_ms: Millis(from), to_ms: Millis(to) })
                .collect(),
            off_since: line.off_since_ms.map(Millis),
            floors: floors.collect::<Result<_, _>>()?,
            rewards: rewards.collect::<Result<_, _>>()?,
        })
    }

    fn row(&self, line: RowLine) -> Result<Row, BadExport> {
        if line.retries.len() > RETRIES_PER_ROW {
            return Err(self.bad(format!("retries: at most {RETRIES_PER_ROW}")));
        }
        let duration_ms = self.length("duration_ms", line.duration_ms)?;
        if duration_ms == Some(0) {
            return Err(self.bad("duration_ms: 0 is no duration"));
        }
        if line.event_ms <= 0 {
            return Err(self.bad("event_ms: must be greater than 0"));
        }
        let retries = line.retries.into_iter().map(|retry| {
            let fingerprint = u64::from_str_radix(&retry.fingerprint, 16)
                .map_err(|_| self.bad("fingerprint: must be 16 hexadecimal digits"))?;
            Ok(Retry { fingerprint, taken_ms: Millis(retry.taken_ms), made: retry.made })
        });
        Ok(Row {
            kind: self.kind(&line.kind)?,
            id: self.id(line.id)?,
            part: self.text("part", line.part)?,
            position_ms: self.length("position_ms", line.position_ms)?,
            duration_ms,
            event_ms: Millis(line.event_ms),
            device: self.text("device", line.device)?,
            group: self.text("group", line.group)?,
            finished: line.finished,
            plays: line.plays,
            facts: RowFacts {
                declared: line.declared,
                began: line.began,
                part_since: Millis(line.part_since_ms),
                retries: retries.collect::<Result<_, _>>()?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tideline_history::kinds::Kind;

    use super::*;

    fn kinds() -> Kinds {
        let kind = |name: &str| Kind {
            name: name.into(),
            declared: true,
            retention_days: 90,
            max_records: 1000,
            max_per_day: 0,
            daily_first: true,
        };
        Kinds::new(vec![kind("article"), kind("video")])
    }

    fn a_text() -> impl Strategy<Value = Option<Box<str>>> {
        prop::option::of(".{1,8}".prop_map(Into::into))
    }

    fn a_row() -> impl Strategy<Value = Row> {
        let lengths = (prop::option::of(0..=LENGTH_MS_MAX), prop::option::of(1..=LENGTH_MS_MAX));
        let texts = ("[^\n]{1,8}", a_text(), a_text(), a_text());
        let facts = (any::<bool>(), any::<bool>(), any::<i64>());
        let retry = (any::<u64>(), any::<i64>(), any::<bool>())
            .prop_map(|(fingerprint, ms, made)| Retry { fingerprint, taken_ms: Millis(ms), made });
        (
            0u8..2,
            texts,
            lengths,
            1i64..,
            any::<bool>(),
            any::<u32>(),
            facts,
            prop::collection::vec(retry, 0..=8),
        )
            .prop_map(|(kind, texts, lengths, event, finished, plays, facts, retries)| {
                Row {
                    kind: KindId(kind),
                    id: texts.0.into(),
                    part: texts.1,
                    device: texts.2,
                    group: texts.3,
                    position_ms: lengths.0,
                    duration_ms: lengths.1,
                    event_ms: Millis(event),
                    finished,
                    plays,
                    facts: RowFacts {
                        declared: facts.0,
                        began: facts.1,
                        part_since: Millis(facts.2),
                        retries,
                    },
                }
            })
    }

    fn a_doc() -> impl Strategy<Value = ExportDoc> {
        let ms = || prop::option::of(any::<i64>().prop_map(Millis));
        let block = (prop::option::of(0u8..2), a_text(), ms(), ms(), any::<i64>()).prop_map(
            |(kind, id, after_ms, before_ms, until)| Block {
                kind: kind.map(KindId),
                id,
                after_ms,
                before_ms,
                until_ms: Millis(until),
            },
        );
        let pause = (any::<i64>(), any::<i64>())
            .prop_map(|(from, to)| Pause { from_ms: Millis(from), to_ms: Millis(to) });
        let floor = (0u8..2, any::<i64>(), ".{1,8}").prop_map(|(kind, ms, id)| Floor {
            kind: KindId(kind),
            event_ms: Millis(ms),
            id: id.into(),
        });
        let reward =
            (0u8..2, any::<i32>()).prop_map(|(kind, day)| Reward { kind: KindId(kind), day });
        use prop::collection::vec;
        (
            vec(a_row(), 0..4),
            vec(block, 0..3),
            vec(pause, 0..3),
            ms(),
            vec(floor, 0..2),
            vec(reward, 0..2),
        )
            .prop_map(|(rows, deletes, pauses, off_since, floors, rewards)| ExportDoc {
                rows,
                facts: ExportFacts { deletes, pauses, off_since, floors, rewards },
            })
    }

    proptest! {
        #[test]
        fn an_export_reads_back_exactly(doc in a_doc()) {
            let user = UserId::new("u").unwrap();
            let lines = write_export(&user, &doc, &kinds());
            prop_assert_eq!(read_export(&lines, &kinds()), Ok(doc));
        }

        #[test]
        fn a_cut_export_is_refused(doc in a_doc(), cut in any::<prop::sample::Index>()) {
            let user = UserId::new("u").unwrap();
            let lines = write_export(&user, &doc, &kinds());
            let cut = cut.index(lines.len() - 1);
            prop_assert!(read_export(&lines[..cut], &kinds()).is_err());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = read_export(&bytes, &kinds());
        }
    }

    #[test]
    fn the_lines_are_these() {
        let row = Row {
            kind: KindId(1),
            id: "7".into(),
            part: None,
            position_ms: Some(5),
            duration_ms: None,
            event_ms: Millis(9),
            device: None,
            group: None,
            finished: false,
            plays: 0,
            facts: RowFacts {
                began: true,
                retries: vec![Retry { fingerprint: 255, taken_ms: Millis(10), made: false }],
                ..RowFacts::default()
            },
        };
        let facts = ExportFacts { deletes: vec![Block::all(Millis(3))], ..ExportFacts::default() };
        let doc = ExportDoc { rows: vec![row], facts };
        let lines = write_export(&UserId::new("u").unwrap(), &doc, &kinds());
        let golden = concat!(
            r#"{"tideline_export":1,"user":"u","rows":1,"facts":{"deletes":[{"until_ms":3}]}}"#,
            "\n",
            r#"{"kind":"video","id":"7","position_ms":5,"event_ms":9,"finished":false,"plays":0,"declared":false,"began":true,"part_since_ms":0,"retries":[{"fingerprint":"00000000000000ff","taken_ms":10,"made":false}]}"#,
            "\n",
        );
        assert_eq!(String::from_utf8(lines).unwrap(), golden);
        let other = golden.replace("\"tideline_export\":1", "\"tideline_export\":2");
        assert!(read_export(other.as_bytes(), &kinds()).unwrap_err().what.contains("version 2"));
        let strange = golden.replace("\"video\"", "\"opera\"");
        assert!(read_export(strange.as_bytes(), &kinds()).unwrap_err().unknown_kind);
    }
}
