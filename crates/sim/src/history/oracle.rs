//! What must be so: each partition's decisions in order, folded by a plain
//! model, and how many of them each batch of the log holds.
//!
//! After a crash a partition's log ends with one of the batches that were
//! appended, at or after the last that was acknowledged; what was decided
//! later never happened. Nothing else is accepted.

use std::collections::BTreeMap;

use tideline_harness::model::{Key, Model, ModelBlock, ModelMark, Said};

/// One thing done to one user.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Mark(ModelMark),
    Delete(Vec<Key>),
    Clear(ModelBlock, bool),
    Switch(bool),
    Erase,
}

/// What it should come to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Comes {
    To(Said),
    Deleted(u64),
    Done,
}

#[derive(Clone, Debug)]
struct Decided {
    user: String,
    now: i64,
    action: Action,
}

/// One partition.
pub(crate) struct Oracle {
    fresh: Model,
    decided: Vec<Decided>,
    users: BTreeMap<String, Model>,
    /// (last number of a batch, decisions made when it was sealed).
    batches: Vec<(u64, usize)>,
    /// Decisions up to which somebody was told that all is safe.
    told: usize,
    /// The decisions that changed something: these must be in the log.
    changes: Vec<usize>,
    /// (user, kind, day) of firsts granted by decisions that still stand.
    firsts: Vec<(usize, (String, String, i64))>,
}

impl Oracle {
    pub(crate) fn new(fresh: Model) -> Self {
        Self {
            fresh,
            decided: Vec::new(),
            users: BTreeMap::new(),
            batches: vec![(0, 0)],
            told: 0,
            changes: Vec::new(),
            firsts: Vec::new(),
        }
    }

    /// Decisions so far.
    pub(crate) fn decisions(&self) -> usize {
        self.decided.len()
    }

    /// Decides as the owner should have.
    pub(crate) fn decide(&mut self, user: &str, now: i64, action: Action) -> Comes {
        let decided = Decided { user: user.into(), now, action };
        let was_off = self.user(user).off;
        let comes = self.fold(&decided);
        let changed = match (&comes, &decided.action) {
            (Comes::To(said), _) => matches!(said, Said::Accepted { .. }),
            (_, Action::Switch(_)) => was_off != self.user(user).off,
            (Comes::Deleted(count), Action::Clear(_, true)) => *count > 0,
            _ => true,
        };
        self.decided.push(decided);
        if changed {
            self.changes.push(self.decided.len());
        }
        if let Comes::To(Said::Accepted { first: true }) = comes
            && let Some(Decided { action: Action::Mark(mark), .. }) = self.decided.last()
        {
            let day = self.fresh.day(now);
            self.firsts.push((self.decided.len(), (user.into(), mark.kind.clone(), day)));
        }
        comes
    }

    fn fold(&mut self, decided: &Decided) -> Comes {
        let fresh = &self.fresh;
        let user = self.users.entry(decided.user.clone()).or_insert_with(|| fresh.clone());
        match &decided.action {
            Action::Mark(mark) => Comes::To(user.mark(mark, decided.now)),
            Action::Delete(keys) => Comes::Deleted(user.delete(keys, decided.now)),
            Action::Clear(filter, finished) => {
                Comes::Deleted(user.clear(filter, *finished, decided.now))
            }
            Action::Switch(on) => {
                user.switch(*on, decided.now);
                Comes::Done
            }
            Action::Erase => {
                user.erase(decided.now);
                Comes::Done
            }
        }
    }

    /// The user as they should be.
    pub(crate) fn user(&self, user: &str) -> &Model {
        self.users.get(user).unwrap_or(&self.fresh)
    }

    /// A batch was appended whose last number is `last`.
    pub(crate) fn appended(&mut self, last: u64) {
        self.batches.push((last, self.decided.len()));
    }

    /// Somebody was told what rests on the first `decisions`.
    pub(crate) fn told(&mut self, decisions: usize) {
        self.told = self.told.max(decisions);
    }

    /// The log turned out to end at `last`.
    pub(crate) fn ends_at(&mut self, last: u64) {
        let at = self.batches.iter().rposition(|(end, _)| *end == last);
        let at = at.unwrap_or_else(|| panic!("the log ends at {last}, where no batch ends"));
        let keep = self.batches[at].1;
        let safe = self.changes.iter().rev().find(|made| **made <= self.told).copied();
        let safe = safe.unwrap_or(0);
        assert!(keep >= safe, "{keep} decisions survive, the {safe}th was told safe");
        self.told = self.told.min(keep);
        self.changes.retain(|made| *made <= keep);
        self.batches.truncate(at + 1);
        self.decided.truncate(keep);
        self.firsts.retain(|(made, _)| *made <= keep);
        self.users.clear();
        let decided = std::mem::take(&mut self.decided);
        for one in &decided {
            self.fold(one);
        }
        self.decided = decided;
    }

    /// The firsts that must be in the log, each once, sorted.
    pub(crate) fn firsts(&self) -> Vec<(String, String, i64)> {
        let mut firsts: Vec<_> = self.firsts.iter().map(|(_, first)| first.clone()).collect();
        firsts.sort();
        firsts
    }
}
