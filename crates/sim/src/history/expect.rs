//! What an answer must say, by the oracle's model.

use tideline_history::mark::Verdict;
use tideline_history::outcome::OutcomeRef;
use tideline_history::owner::{Answer, Op};
use tideline_history::query::{Filter, ListQuery, ObjectKey, PageAt, Row};
use tideline_history::rules::Rules;
use tideline_record::batch::Record;

use super::oracle::Comes;
use super::world::Verdicts;
use tideline_harness::model::{Key, Model, ModelRow, Said, is_unfinished};

/// What one caller must be told.
#[derive(Default)]
pub(crate) struct Expected {
    pub(crate) asked: Option<(String, Op)>,
    pub(crate) verdicts: Verdicts,
    pub(crate) comes: Option<Comes>,
    /// The user and the time at the moment of a read.
    pub(crate) read: Option<(Box<Model>, i64)>,
    /// Decisions that the answer rests on.
    pub(crate) decisions: usize,
}

impl Expected {
    /// Panics unless the answer is the one that it must be.
    pub(crate) fn compare(&self, answer: &Answer, rules: &Rules) {
        match answer {
            Answer::Verdicts(verdicts) => {
                assert_eq!(verdicts.len(), self.verdicts.len(), "one verdict a mark");
                for (place, verdict) in verdicts {
                    let expected = self.verdicts.get(place);
                    assert_eq!(Some(&Comes::To(said(*verdict))), expected, "mark {place}");
                }
            }
            Answer::Deleted(count) => {
                assert_eq!(self.comes, Some(Comes::Deleted(*count)), "deleted");
            }
            Answer::Done => assert_eq!(self.comes, Some(Comes::Done)),
            read => {
                let (model, now) = self.read.as_ref().expect("a read was expected");
                let (user, op) = self.asked.as_ref().expect("a read was asked");
                compare_read(user, op, model, *now, read, rules);
            }
        }
    }
}

fn said(verdict: Verdict) -> Said {
    match verdict {
        Verdict::Accepted { first_today } => Said::Accepted { first: first_today },
        Verdict::Stale => Said::Stale,
        Verdict::Paused => Said::Paused,
        Verdict::Duplicate => Said::Duplicate,
        Verdict::OverCap => Said::OverCap,
        Verdict::Ahead | Verdict::BeforeEpoch => Said::Rejected,
    }
}

/// The reads that a client makes, by number.
pub(crate) fn read_op(which: u64, rules: &Rules) -> Op {
    let video = rules.kinds.find("video").expect("declared");
    let unfinished = Filter { unfinished: true, ..Filter::default() };
    match which % 6 {
        0 => Op::Rows(Filter::default()),
        1 => Op::Count(unfinished),
        2 => Op::Days(Filter::default()),
        3 => Op::Points(
            ["7", "007", "a", "z"]
                .iter()
                .map(|id| ObjectKey { kind: video, id: (*id).into() })
                .collect(),
        ),
        4 => Op::Recording,
        _ => {
            let filter = Filter { kinds: vec![video], ..Filter::default() };
            Op::List(ListQuery { filter, page: PageAt::Skip(1), limit: 3 })
        }
    }
}

fn compare_read(user: &str, op: &Op, model: &Model, now: i64, answer: &Answer, rules: &Rules) {
    let shown = model.shown(now);
    let ids = |rows: &[Row]| -> Vec<(Key, ModelRow)> {
        rows.iter().map(|r| as_model(r, rules)).collect()
    };
    let of_model = |rows: &[(Key, ModelRow)]| -> Vec<(Key, ModelRow)> {
        rows.iter()
            .map(|(key, row)| (key.clone(), ModelRow { remembered: Vec::new(), ..row.clone() }))
            .collect()
    };
    match (op, answer) {
        (Op::Rows(_), Answer::Rows(rows)) => {
            assert_eq!(ids(rows), of_model(&shown), "rows of {user}");
        }
        (Op::Count(_), Answer::Count(count)) => {
            let expected = shown.iter().filter(|(_, row)| is_unfinished(row)).count();
            assert_eq!(*count, expected, "unfinished rows of {user}");
        }
        (Op::Days(_), Answer::Days(days)) => {
            let mut expected: Vec<(i32, u32)> = Vec::new();
            for (_, row) in &shown {
                let day = model.day(row.event) as i32;
                match expected.last_mut() {
                    Some((last, count)) if *last == day => *count += 1,
                    _ => expected.push((day, 1)),
                }
            }
            assert_eq!(*days, expected, "days of {user}");
        }
        (Op::Points(keys), Answer::Points(rows)) => {
            for (key, row) in keys.iter().zip(rows) {
                let name = (rules.kinds.name(key.kind).to_owned(), key.id.to_string());
                let expected = shown.iter().find(|(own, _)| *own == name).cloned();
                let expected = expected.map(|one| of_model(&[one]).remove(0));
                assert_eq!(
                    row.as_ref().map(|r| as_model(r, rules)),
                    expected,
                    "{name:?} of {user}"
                );
            }
        }
        (Op::Recording, Answer::Recording(on)) => assert_eq!(*on, model.off.is_none()),
        (Op::List(query), Answer::List(list)) => {
            let of_kind: Vec<_> =
                shown.iter().filter(|((kind, _), _)| kind == "video").cloned().collect();
            let page: Vec<_> = of_kind.iter().skip(1).take(query.limit).cloned().collect();
            assert_eq!(ids(&list.rows), of_model(&page), "a page of {user}");
            assert_eq!(list.total, Some(of_kind.len()), "the total of {user}");
        }
        (op, answer) => panic!("{op:?} was answered with {answer:?}"),
    }
}

/// A row as the model would have it, but for remembered retries.
fn as_model(row: &Row, rules: &Rules) -> (Key, ModelRow) {
    let text = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
    let key = (rules.kinds.name(row.kind).to_owned(), row.id.to_string());
    let model = ModelRow {
        part: text(&row.part),
        position: row.position_ms.map(|ms| ms as i64),
        duration: row.duration_ms.map(|ms| ms as i64),
        event: row.event_ms.0,
        device: text(&row.device),
        group: text(&row.group),
        finished: row.finished,
        plays: row.plays,
        declared: row.facts.declared,
        began: row.facts.began,
        part_since: row.facts.part_since.0,
        remembered: Vec::new(),
    };
    (key, model)
}

/// The first of the day that a record of the log grants.
pub(crate) fn first_of(record: &Record<'_>) -> Option<(String, String, i64)> {
    if record.erased {
        return None;
    }
    let first = OutcomeRef::decode(record.value).expect("the log holds outcomes").first_of_day()?;
    let user = std::str::from_utf8(record.key).expect("firsts name their user").to_owned();
    Some((user, first.kind.to_owned(), i64::from(first.day)))
}
