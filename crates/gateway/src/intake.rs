//! Marks on their way in: from the fields of a request to a set that history
//! decides, and from its verdicts to the counts of the answer.
//!
//! Counts always add up to what was sent: each mark is either refused here, or
//! has a place in the set and a verdict.

use std::sync::Arc;

use tideline_history::kinds::{KindId, Kinds};
use tideline_history::mark::{Ack, Mark, MarkSet, Path, Verdict};
use tideline_types::limits::BATCH_MARKS_MAX;
use tideline_types::{Millis, UserId};
use tideline_wire::json::{push_str, push_string, push_u64};
use tideline_wire::{Code, Fault, MarkFields};

use crate::Gateway;
use crate::problem::Problem;

/// Marks of one request, as they are taken in.
pub(crate) struct Intake<'a> {
    kinds: &'a Kinds,
    /// The user of marks that name none.
    user: Option<&'a str>,
    marks: MarkSet,
    /// Marks seen so far, refused ones included.
    seen: usize,
    rejected: Vec<(usize, Fault)>,
    /// The kind that was found last: batches come in runs of one kind.
    last_kind: Option<KindId>,
}

impl<'a> Intake<'a> {
    /// Marks of one user.
    pub(crate) fn of_user(kinds: &'a Kinds, user: &'a UserId, room: usize) -> Self {
        Self { user: Some(user.as_str()), ..Self::of_many(kinds, room) }
    }

    /// Marks of many users, each with its own.
    pub(crate) fn of_many(kinds: &'a Kinds, room: usize) -> Self {
        Self {
            kinds,
            user: None,
            marks: MarkSet::with_capacity(room.min(BATCH_MARKS_MAX)),
            seen: 0,
            rejected: Vec::new(),
            last_kind: None,
        }
    }

    /// Takes one mark, or what is wrong with it.
    pub(crate) fn take(&mut self, mark: Result<MarkFields<'_>, Fault>) {
        let place = self.seen;
        self.seen += 1;
        if self.seen > BATCH_MARKS_MAX {
            return;
        }
        if let Err(fault) = mark.and_then(|mark| self.push(&mark)) {
            self.rejected.push((place, fault));
        }
    }

    fn push(&mut self, mark: &MarkFields<'_>) -> Result<(), Fault> {
        mark.check()?;
        let user = match (mark.user, self.user) {
            (Some(user), Some(own)) if user != own && user != "me" => {
                return Err(Fault::invalid("user: is not the user of the request"));
            }
            (_, Some(own)) => own,
            (Some(user), None) => user,
            (None, None) => return Err(Fault::invalid("user: is required")),
        };
        let kind = self.kind(mark.kind.unwrap_or_default())?;
        self.marks.push(&Mark {
            user,
            kind,
            id: mark.id.unwrap_or_default(),
            part: mark.part,
            position_ms: mark.position_ms,
            duration_ms: mark.duration_ms.filter(|ms| *ms > 0),
            sent_ms: mark.event_ms.map(Millis),
            device: mark.device,
            group: mark.group,
            finished: mark.finished,
            event_id: mark.event_id,
        });
        Ok(())
    }

    fn kind(&mut self, name: &str) -> Result<KindId, Fault> {
        if let Some(last) = self.last_kind.filter(|last| self.kinds.name(*last) == name) {
            return Ok(last);
        }
        let unknown = || Fault::unknown_kind(name);
        let kind = self.kinds.find(name).ok_or_else(unknown)?;
        if !self.kinds.get(kind).declared {
            return Err(unknown());
        }
        self.last_kind = Some(kind);
        Ok(kind)
    }

    /// What is wrong with the first mark, if it was refused.
    pub(crate) fn first_fault(&self) -> Option<&Fault> {
        self.rejected.first().map(|(_, fault)| fault)
    }

    /// Has history decide what was taken.
    pub(crate) async fn write(
        self,
        gateway: &Gateway,
        shift_ms: i64,
        path: Path,
        ack: Ack,
    ) -> Result<Taken, Problem> {
        if self.seen > BATCH_MARKS_MAX {
            let detail = format!("marks: at most {BATCH_MARKS_MAX} in one write");
            return Err(Problem::new(Code::PayloadTooLarge, detail));
        }
        let marks = Arc::new(self.marks);
        let verdicts = if marks.is_empty() {
            Vec::new()
        } else {
            gateway.inner.history.write(marks.clone(), shift_ms, path, ack).await?
        };
        let taken = Taken::new(marks, &verdicts, self.rejected);
        gateway.inner.meters.count_marks(self.seen, taken.rejected.len());
        Ok(taken)
    }
}

/// What became of the marks of one request.
#[derive(Debug)]
pub(crate) struct Taken {
    marks: Arc<MarkSet>,
    pub(crate) accepted: u32,
    pub(crate) stale: u32,
    pub(crate) paused: u32,
    pub(crate) duplicate: u32,
    pub(crate) over_cap: u32,
    /// By place in the request, in order.
    pub(crate) rejected: Vec<(usize, Fault)>,
    /// Places in the set of firsts of the day.
    firsts: Vec<usize>,
    /// Kinds of which a mark was taken, each once.
    kinds: Vec<KindId>,
}

impl Taken {
    pub(crate) fn new(
        marks: Arc<MarkSet>,
        verdicts: &[Verdict],
        mut rejected: Vec<(usize, Fault)>,
    ) -> Self {
        let mut late = Vec::new();
        let mut taken = Self {
            marks,
            accepted: 0,
            stale: 0,
            paused: 0,
            duplicate: 0,
            over_cap: 0,
            rejected: Vec::new(),
            firsts: Vec::new(),
            kinds: Vec::new(),
        };
        let mut skipped = rejected.iter().map(|(place, _)| *place).peekable();
        let mut place = 0;
        for (at, verdict) in verdicts.iter().enumerate() {
            while skipped.next_if_eq(&place).is_some() {
                place += 1;
            }
            match verdict {
                Verdict::Accepted { first_today } => {
                    taken.accepted += 1;
                    let kind = taken.marks.kind(at);
                    if taken.kinds.last() != Some(&kind) && !taken.kinds.contains(&kind) {
                        taken.kinds.push(kind);
                    }
                    if *first_today {
                        taken.firsts.push(at);
                    }
                }
                Verdict::Stale => taken.stale += 1,
                Verdict::Paused => taken.paused += 1,
                Verdict::Duplicate => taken.duplicate += 1,
                Verdict::OverCap => taken.over_cap += 1,
                Verdict::Ahead => late.push((place, AHEAD)),
                Verdict::BeforeEpoch => late.push((place, BEFORE)),
            }
            place += 1;
        }
        if !late.is_empty() {
            rejected.extend(late.into_iter().map(|(place, why)| (place, Fault::invalid(why))));
            rejected.sort_by_key(|(place, _)| *place);
        }
        taken.rejected = rejected;
        taken
    }

    /// The firsts of the day, as (user, kind), in order.
    pub(crate) fn firsts(&self) -> impl Iterator<Item = (&str, KindId)> {
        self.firsts.iter().map(|at| {
            let mark = self.marks.get(*at);
            (mark.user, mark.kind)
        })
    }

    /// The answer in JSON; `users` where each first is told with its user.
    pub(crate) fn json(&self, kinds: &Kinds, day_flag: &str, users: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(160);
        let counts = [
            ("{\"accepted\":", self.accepted),
            (",\"stale\":", self.stale),
            (",\"paused\":", self.paused),
            (",\"duplicate\":", self.duplicate),
            (",\"over_cap\":", self.over_cap),
        ];
        for (name, count) in counts {
            push_str(&mut out, name);
            push_u64(&mut out, count.into());
        }
        push_str(&mut out, ",\"rejected\":[");
        for (at, (place, fault)) in self.rejected.iter().enumerate() {
            push_str(&mut out, if at == 0 { "{\"index\":" } else { ",{\"index\":" });
            push_u64(&mut out, *place as u64);
            push_str(&mut out, ",\"code\":");
            push_string(&mut out, fault.code.as_str());
            push_str(&mut out, ",\"detail\":");
            push_string(&mut out, &fault.detail);
            out.push(b'}');
        }
        push_str(&mut out, "],\"day_flag\":");
        push_string(&mut out, day_flag);
        push_str(&mut out, ",\"first_today\":[");
        for (at, (user, kind)) in self.firsts().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            if users {
                push_str(&mut out, "{\"user\":");
                push_string(&mut out, user);
                push_str(&mut out, ",\"kind\":");
            }
            push_string(&mut out, kinds.name(kind));
            if users {
                out.push(b'}');
            }
        }
        push_str(&mut out, "]}");
        out
    }
}

const AHEAD: &str = "event_ms: more than a day ahead of the server's clock";
const BEFORE: &str = "event_ms: must be greater than 0, once put right by the client's clock";

/// The opaque flag of a day: the day in the server's time zone, and the kinds
/// of which a mark was taken on it. `before` is what the caller sent. Only ever
/// a hint: the owner of a user's partition decides without it.
pub(crate) fn day_flag(gateway: &Gateway, taken: &Taken, before: Option<&str>) -> String {
    let history = &gateway.inner.history;
    let day = history.rules().day_of(gateway.inner.clock.now());
    let mut flag = format!("1.{day}");
    let before = before.and_then(|before| before.strip_prefix(&flag)).unwrap_or_default();
    let known = |name: &&str| history.kinds().find(name).is_some();
    let mut names: Vec<&str> = before.split('.').filter(known).collect();
    names.extend(taken.kinds.iter().map(|kind| history.kinds().name(*kind)));
    names.sort_unstable();
    names.dedup();
    for name in names {
        flag.push('.');
        flag.push_str(name);
    }
    flag
}
