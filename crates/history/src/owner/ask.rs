//! Calls about one user: reads, deletes, switches; and what they answer.

use tideline_store::StoreError;
use tideline_types::Millis;

use super::{Effect, Hot, Owner, Parked, SlotId, State, Status};
use crate::facts::ExportDoc;
use crate::mark::{Ack, Verdict};
use crate::query::{ClearFilter, Filter, List, ListQuery, ObjectKey, Row};
use crate::rules::{RestoreError, RestoreReport, Rules, TooMany};

/// A call about one user.
#[derive(Clone, Debug)]
pub enum Op {
    /// A page of the list.
    List(ListQuery),
    /// Every row, newest first.
    Rows(Filter),
    /// How many rows.
    Count(Filter),
    /// How many rows on each local day, newest first.
    Days(Filter),
    /// These rows.
    Points(Vec<ObjectKey>),
    /// Whether recording is on.
    Recording,
    /// Everything, for a restore.
    Export,
    /// Delete these.
    Delete(Vec<ObjectKey>),
    /// Delete what the filter matches.
    Clear(ClearFilter),
    /// Recording on or off.
    Switch(bool),
    /// Erase everything about the user.
    Erase,
    /// Put an export back.
    Restore(Box<ExportDoc>),
    /// Forget what no read and no decision can tell any more.
    Tidy,
}

impl Op {
    /// Whether it changes nothing.
    pub(crate) fn is_read(&self) -> bool {
        match self {
            Self::List(_)
            | Self::Rows(_)
            | Self::Count(_)
            | Self::Days(_)
            | Self::Points(_)
            | Self::Recording
            | Self::Export => true,
            Self::Delete(_)
            | Self::Clear(_)
            | Self::Switch(_)
            | Self::Erase
            | Self::Restore(_)
            | Self::Tidy => false,
        }
    }
}

/// What a call or a write comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Of a write: each mark's place in its set, and its verdict.
    Verdicts(Vec<(u32, Verdict)>),
    /// Of `List`.
    List(List),
    /// Of `Rows`.
    Rows(Vec<Row>),
    /// Of `Count`.
    Count(usize),
    /// Of `Days`: days since the epoch, and rows.
    Days(Vec<(i32, u32)>),
    /// Of `Points`, in order.
    Points(Vec<Option<Row>>),
    /// Of `Recording`.
    Recording(bool),
    /// Of `Export`.
    Export(Box<ExportDoc>),
    /// Of `Delete` and `Clear`: rows that were shown and are no more.
    Deleted(u64),
    /// Of `Switch` and `Erase`.
    Done,
    /// Of `Restore`.
    Restored(RestoreReport),
    /// Of anything.
    Refused(Refusal),
}

/// Why an owner does not do as it is asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A bound is reached; it passes by itself.
    #[error("overloaded: {0}")]
    Overloaded(&'static str),
    /// The log took a fault and is read-only until the server starts again.
    #[error("the log is read-only: {0}")]
    ReadOnly(String),
    /// The disk or the log's quota is full; nothing of the call was kept.
    #[error("no space: {0}")]
    NoSpace(String),
    /// The user's rows cannot be read.
    #[error("damaged rows: {0}")]
    Damaged(String),
    /// The user has too many of something.
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// The export cannot be put back.
    #[error(transparent)]
    Restore(#[from] RestoreError),
}

impl<W> Owner<W> {
    /// Carries out one call about `user`, once the user is in memory.
    pub fn ask(
        &mut self,
        now: Millis,
        user: &str,
        op: Op,
        waiter: W,
        effects: &mut Vec<Effect<W>>,
    ) {
        let in_memory = self.slots.find(user).and_then(|slot| self.slots.get(slot));
        let reads_memory = op.is_read() && matches!(in_memory, Some(State::Hot(_)));
        // A read of a user in memory costs none, however little is left.
        let admitted = if reads_memory { self.running() } else { self.admit(1, !op.is_read()) };
        if let Err(refusal) = admitted {
            effects.push(Effect::Answer(waiter, Answer::Refused(refusal)));
            return;
        }
        let now = self.take(now);
        let slot = self.slot_of(user, effects);
        if let Some(State::Waiting(waiting)) = self.slots.get_mut(slot) {
            waiting.parked.push_back(Parked::Call { op, waiter });
            self.parked += 1;
        } else {
            self.call(slot, op, now, waiter, effects);
        }
        self.settle(effects);
    }

    /// Whether anything is taken at all.
    fn running(&self) -> Result<(), Refusal> {
        match &self.status {
            Status::Running => Ok(()),
            Status::Recovering => Err(Refusal::Overloaded("the partition is recovering")),
            Status::Failed(error) => Err(Refusal::ReadOnly(error.to_string())),
        }
    }

    /// Whether `more` marks or calls may come in, which may be logged or not.
    pub(super) fn admit(&mut self, more: usize, logged: bool) -> Result<(), Refusal> {
        self.running()?;
        if logged && self.lag.bytes() > self.options.lag_bytes_max {
            self.rested();
            if self.lag.bytes() > self.options.lag_bytes_max {
                return Err(Refusal::Overloaded("too much is logged that is not yet at rest"));
            }
        }
        if self.parked + more > self.options.parked_max {
            return Err(Refusal::Overloaded("too many calls wait for users to be loaded"));
        }
        if self.hot_bytes > self.options.hot_bytes_max {
            self.evict();
            if self.hot_bytes > self.options.hot_bytes_max / 4 * 5 {
                return Err(Refusal::Overloaded("memory is full of changes not yet at rest"));
            }
        }
        if self.pack.bytes() > self.options.pack_bytes_max * 4 {
            return Err(Refusal::Overloaded("the log does not keep up"));
        }
        Ok(())
    }

    /// Carries out `op` on a user in memory.
    pub(super) fn call(
        &mut self,
        slot: SlotId,
        op: Op,
        now: Millis,
        waiter: W,
        effects: &mut Vec<Effect<W>>,
    ) {
        let Some(State::Hot(hot)) = self.slots.get_mut(slot) else {
            unreachable!("calls are carried out for users in memory")
        };
        hot.used = super::SECOND_CHANCES;
        if let Some(answer) = read(hot, &op, &self.rules, now) {
            effects.push(Effect::Answer(waiter, answer));
            return;
        }
        if let Op::Tidy = op {
            self.tidy(slot, now);
            effects.push(Effect::Answer(waiter, Answer::Done));
            return;
        }
        let (rules, user) = (&self.rules, &hot.timeline);
        let mut outcomes = vec![Vec::new()];
        let out = &mut outcomes[0];
        let answer: Result<Answer, Refusal> = match op {
            Op::Delete(keys) => {
                rules.delete(user, &keys, now, out).map(Answer::Deleted).map_err(Refusal::from)
            }
            Op::Clear(filter) => {
                rules.clear(user, &filter, now, out).map(Answer::Deleted).map_err(Refusal::from)
            }
            Op::Switch(on) => {
                rules.switch(user, on, now, out).map(|_| Answer::Done).map_err(Refusal::from)
            }
            Op::Restore(doc) => {
                let report = rules.restore(user, &doc, now, &mut outcomes);
                report.map(Answer::Restored).map_err(Refusal::from)
            }
            Op::Erase => {
                rules.erase(user, now, out);
                Ok(Answer::Done)
            }
            _ => unreachable!("reads and tidying have been answered"),
        };
        for outcome in outcomes.into_iter().filter(|outcome| !outcome.is_empty()) {
            self.scratch = outcome;
            self.log_scratch(slot, now);
        }
        let answer = answer.unwrap_or_else(Answer::Refused);
        self.answer(waiter, answer, Ack::Durable, effects);
    }
}

/// The answer of a read; `None` for a call that changes something.
fn read(hot: &Hot, op: &Op, rules: &Rules, now: Millis) -> Option<Answer> {
    let user = &hot.timeline;
    Some(match op {
        Op::List(query) => Answer::List(user.list(query, rules, now)),
        Op::Rows(filter) => Answer::Rows(user.rows(filter, rules, now)),
        Op::Count(filter) => Answer::Count(user.count(filter, rules, now)),
        Op::Days(filter) => Answer::Days(user.days(filter, rules, now)),
        Op::Points(keys) => {
            Answer::Points(keys.iter().map(|key| user.row(key.kind, &key.id, rules, now)).collect())
        }
        Op::Recording => Answer::Recording(user.recording()),
        Op::Export => Answer::Export(Box::new(user.export(rules, now))),
        _ => return None,
    })
}

impl From<&StoreError> for Refusal {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::NoSpace { .. } => Self::NoSpace(error.to_string()),
            StoreError::Damaged { .. } => Self::Damaged(error.to_string()),
            _ => Self::ReadOnly(error.to_string()),
        }
    }
}
