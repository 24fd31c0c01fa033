//! What must be so: the log of a partition, folded by a plain model, outcome by
//! outcome, and each answer held against it.
//!
//! After a crash the log ends with one of the batches that were appended, at
//! or after the last number that anybody was told; what was decided later
//! never happened. Nothing else is accepted.

use std::collections::BTreeMap;
use std::sync::Arc;

use tideline_danmaku::ask::{Answer, Changes, Moderated, Op, Refusal, Snapshot};
use tideline_danmaku::outcome::Outcome;
use tideline_danmaku::video::Event;
use tideline_record::batch::BatchRef;
use tideline_types::Seq;

use super::plain::{Plain, Setup};

/// A call, and what had been told to anybody when it was made.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) video: String,
    pub(crate) op: Op,
    pub(crate) from: u64,
}

/// One partition.
#[derive(Default)]
pub(crate) struct Oracle {
    /// Each video as it became, with the number of the outcome.
    videos: BTreeMap<String, Vec<(u64, Arc<Plain>)>>,
    /// What viewers see of each outcome.
    seen: Vec<(u64, String, Vec<Event>)>,
    /// The last number of each batch.
    ends: Vec<u64>,
    /// Somebody was told what rests on everything through this.
    told: u64,
}

impl Oracle {
    /// What somebody was told of so far.
    pub(crate) fn told(&self) -> u64 {
        self.told
    }

    /// The last number that is in the log.
    pub(crate) fn last(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// A batch goes into the log.
    pub(crate) fn appended(&mut self, setup: &Setup, batch: &BatchRef<'_>) {
        for record in batch.records() {
            let video = std::str::from_utf8(record.key).expect("outcomes name their video");
            let outcome = Outcome::decode(record.value).expect("the log holds outcomes");
            let versions = self.videos.entry(video.into()).or_insert_with(fresh);
            let mut next = Plain::clone(&versions.last().expect("it begins with one").1);
            let events = next.take(setup, &outcome);
            versions.push((record.seq.0, Arc::new(next)));
            self.seen.push((record.seq.0, video.into(), events));
        }
        self.ends.push(batch.range().through.0);
    }

    /// The log turned out to end at `last`.
    pub(crate) fn ends_at(&mut self, last: u64) {
        assert!(last == 0 || self.ends.contains(&last), "the log ends at {last}, inside a batch");
        assert!(last >= self.told, "the log ends at {last}, {} was told", self.told);
        self.ends.retain(|end| *end <= last);
        self.seen.retain(|(seq, ..)| *seq <= last);
        self.videos.values_mut().for_each(|all| all.retain(|(seq, _)| *seq <= last));
    }

    /// The video through a number.
    pub(crate) fn at(&self, video: &str, seq: Seq) -> Arc<Plain> {
        let versions = self.videos.get(video);
        let found = versions.and_then(|all| all.iter().rev().find(|(own, _)| *own <= seq.0));
        found.map(|(_, plain)| plain.clone()).unwrap_or_default()
    }

    /// What viewers of a video saw after one number and through another.
    pub(crate) fn changes(&self, video: &str, since: Seq, through: Seq) -> Vec<(Seq, Event)> {
        let within = |seq: u64| since.0 < seq && seq <= through.0;
        let of = self.seen.iter().filter(|(seq, own, _)| own == video && within(*seq));
        of.flat_map(|(seq, _, events)| events.iter().map(|event| (Seq(*seq), event.clone())))
            .collect()
    }

    /// Panics unless the answer is one that the call may have.
    pub(crate) fn check(&mut self, setup: &Setup, asked: &Asked, answer: &Answer) {
        let Asked { video, op, from } = asked;
        let told = match answer {
            Answer::Refused(Refusal::Damaged(what)) => panic!("{op:?} finds damage: {what}"),
            Answer::Refused(Refusal::NotFound) => self.first(asked, |plain| is_missing(plain, op)),
            Answer::Refused(_) | Answer::Done => return,
            Answer::Posted(posted) => {
                let there = self.at(video, posted.seq);
                let id = posted.comment.id;
                assert_eq!(there.comments.get(&id), Some(&posted.comment), "as posted");
                posted.seq.0
            }
            Answer::Imported(tally) => {
                let Op::Import { items, .. } = op else { panic!("{op:?} has {answer:?}") };
                let done = (tally.taken + tally.duplicates) as usize + tally.refused.len();
                assert_eq!(done, items.len(), "each item is taken, there, or refused");
                self.first(asked, |plain| {
                    let mut times = BTreeMap::<&str, u32>::new();
                    for comment in plain.comments.values() {
                        *times.entry(&comment.content.text).or_default() += 1;
                    }
                    items.iter().all(|item| times.get(&*item.item.text) == Some(&1))
                })
            }
            Answer::Comment(comment) | Answer::Moderated(Moderated { comment, .. }) => {
                self.first(asked, |plain| plain.comments.get(&comment.id) == Some(comment))
            }
            Answer::Settings(set) => self.first(asked, |plain| plain.settings == *set),
            Answer::Erased(_) => {
                let Op::Erase { user } = op else { panic!("{op:?} has {answer:?}") };
                self.first(asked, |plain| plain.of(user.as_str()).is_empty())
            }
            Answer::Own(comments) => {
                let Op::Own { user, .. } = op else { panic!("{op:?} has {answer:?}") };
                self.first(asked, |plain| plain.of(user.as_str()) == *comments)
            }
            Answer::Found(found) => {
                let Op::Find { id } = op else { panic!("{op:?} has {answer:?}") };
                self.first(asked, |plain| plain.comments.get(id) == found.as_ref())
            }
            Answer::View(view) => {
                let plain = self.at(video, view.seq);
                let figures = (view.total, view.shown, view.counted, view.overflow);
                let due = (plain.total(), plain.shown(), plain.counted(), plain.overflow());
                assert_eq!(figures, due, "figures through {}", view.seq);
                assert!(view.counted <= view.limit, "over the limit: {view:?}");
                assert_eq!((view.limit, view.segments), (plain.limit(setup), plain.segments()));
                view.seq.0
            }
            Answer::Snapshot(Some(snapshot)) => self.check_snapshot(setup, asked, snapshot),
            Answer::Snapshot(None) => {
                let Op::Segment(n) = op else { panic!("{op:?} has {answer:?}") };
                self.first(asked, |plain| plain.stretches(*n).is_none())
            }
            Answer::Changes(Changes::Range { since, through, events, .. }) => {
                assert!(since <= through, "a range ends where it begins, or later");
                assert_eq!(*events, self.changes(video, *since, *through), "what happened");
                through.0
            }
            Answer::Changes(Changes::Lagged { through }) => through.0,
        };
        if op.is_read() {
            assert!(told >= *from, "{op:?} shows {told}, {from} was told before");
        }
        self.told = self.told.max(told);
    }

    fn check_snapshot(&self, setup: &Setup, asked: &Asked, snapshot: &Snapshot) -> u64 {
        let plain = self.at(&asked.video, snapshot.seq);
        assert_eq!(snapshot.items, plain.items(&snapshot.stretches), "what {asked:?} shows");
        let counted = snapshot.items.iter().filter(|c| c.index.counts()).count();
        assert!(counted <= snapshot.limit as usize, "over the limit: {counted}");
        assert_eq!((snapshot.limit, snapshot.closed), (plain.limit(setup), plain.settings.closed));
        if let Op::Segment(n) = asked.op {
            assert_eq!(Some(&snapshot.stretches), plain.stretches(n).as_ref());
        }
        snapshot.seq.0
    }

    /// The number at which a video first became as `is` says, of what somebody
    /// who asked then may see.
    fn first(&self, asked: &Asked, is: impl Fn(&Plain) -> bool) -> u64 {
        let begin = self.at(&asked.video, Seq(asked.from));
        if is(&begin) {
            return asked.from;
        }
        let versions = self.videos.get(&asked.video).into_iter().flatten();
        let mut later = versions.filter(|(seq, _)| *seq > asked.from);
        let found = later.find(|(_, plain)| is(plain)).map(|(seq, _)| *seq);
        found.unwrap_or_else(|| panic!("at no time since {} was it so: {:?}", asked.from, asked.op))
    }
}

fn fresh() -> Vec<(u64, Arc<Plain>)> {
    vec![(0, Arc::default())]
}

/// Whether the comment that a call is about may be said not to be there.
fn is_missing(plain: &Plain, op: &Op) -> bool {
    match op {
        Op::Recall { id, .. } | Op::Moderate { id, .. } => !plain.comments.contains_key(id),
        Op::Like { id, .. } | Op::Report { id, .. } => {
            plain.comments.get(id).is_none_or(|comment| !comment.index.is_shown())
        }
        _ => true,
    }
}
