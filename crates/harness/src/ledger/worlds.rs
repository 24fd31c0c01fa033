//! Every state that a server may be in, given what it was asked and what it
//! answered.
//!
//! A durable answer: it happened. No answer: for each user some first part of
//! it happened, or nothing. A fast answer: it happened, until a crash; after
//! one it may have happened, but only if everything before it did. A reading
//! leaves the states that it fits; when none is left, the server lied.

use std::collections::{BTreeMap, BTreeSet};

use super::op::{Op, Step};
use super::person::{Became, Caps, Person, Seen};

/// What an answer counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tally {
    /// Marks that changed something.
    pub accepted: u64,
    /// Marks that lost.
    pub stale: u64,
    /// Marks that came while recording was off.
    pub paused: u64,
    /// Marks that were taken before.
    pub duplicate: u64,
    /// Rows that went, where the answer says so.
    pub deleted: u64,
    /// Users and kinds that had their first of the day.
    pub firsts: BTreeSet<(String, String)>,
}

impl Tally {
    /// How many marks were counted.
    pub fn marks(&self) -> u64 {
        self.accepted + self.stale + self.paused + self.duplicate
    }

    fn count(&mut self, user: &str, step: &Step, became: Became) {
        match became {
            Became::Accepted(first) => {
                self.accepted += 1;
                if let (true, Step::Mark(mark, _)) = (first, step) {
                    self.firsts.insert((user.to_owned(), mark.kind.clone()));
                }
            }
            Became::Stale => self.stale += 1,
            Became::Paused => self.paused += 1,
            Became::Duplicate => self.duplicate += 1,
            Became::Deleted(rows) => self.deleted += rows,
            Became::Done => (),
        }
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            accepted: self.accepted + other.accepted,
            stale: self.stale + other.stale,
            paused: self.paused + other.paused,
            duplicate: self.duplicate + other.duplicate,
            deleted: self.deleted + other.deleted,
            firsts: self.firsts.union(&other.firsts).cloned().collect(),
        }
    }
}

/// What a reader found of one user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The whole list.
    pub list: Vec<Seen>,
    /// The list of `unfinished=true`.
    pub unfinished: Vec<Seen>,
    /// Whether recording is on.
    pub recording: bool,
    /// Kinds and ids in topic `daily-first`, in order, where it was read.
    pub firsts: Option<Vec<(String, String)>>,
}

/// A reading or an answer that no allowed state gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lie(pub String);

/// One user's allowed states, and what is not certain yet.
#[derive(Clone, Debug)]
struct Account {
    /// Never empty; each as of the last certain answer.
    worlds: BTreeSet<Person>,
    /// Answered fast since then.
    tail: Vec<Step>,
    /// For people: what happened of late.
    story: Vec<String>,
}

impl Account {
    /// What is not certain, and then `more`, happened up to some point.
    fn open_up(&mut self, more: Vec<Step>, caps: &Caps) {
        let mut steps = std::mem::take(&mut self.tail);
        steps.extend(more);
        self.story.push(format!("-- {} uncertain", steps.len()));
        let mut reached = self.worlds.clone();
        for step in &steps {
            reached = after(reached, step, caps);
            self.worlds.extend(reached.iter().cloned());
        }
    }
}

/// The accounts of some users, each of whom is asked by one connection alone.
#[derive(Clone, Debug)]
pub struct Ledger {
    caps: Caps,
    accounts: BTreeMap<String, Account>,
    /// What was sent and is not answered.
    pending: Option<Op>,
}

impl Ledger {
    /// Nothing has happened to anyone.
    pub fn new(caps: Caps) -> Self {
        Self { caps, accounts: BTreeMap::new(), pending: None }
    }

    /// The users that were ever named.
    pub fn users(&self) -> Vec<String> {
        self.accounts.keys().cloned().collect()
    }

    /// Notes that a user exists, before anything happens to them.
    pub fn know(&mut self, user: &str) {
        self.account(user);
    }

    fn account(&mut self, user: &str) -> &mut Account {
        self.accounts.entry(user.to_owned()).or_insert_with(|| Account {
            worlds: BTreeSet::from([Person::default()]),
            tail: Vec::new(),
            story: Vec::new(),
        })
    }

    /// `op` is on its way. Only one is at a time.
    pub fn sent(&mut self, op: Op) {
        assert!(self.pending.is_none(), "a connection waits for its answer");
        for user in by_user(&op).into_keys() {
            let request = op.request();
            let body = request.body.unwrap_or_default();
            let mut line = format!("{} {} {body}", request.method, request.path);
            line.truncate(1_000);
            self.account(&user).story.push(line);
        }
        self.pending = Some(op);
    }

    /// The answer came: what was sent has happened, with these counts (`None`
    /// where the call gives none).
    pub fn answered(&mut self, tally: Option<&Tally>) -> Result<(), Lie> {
        let op = self.pending.take().expect("an answer follows what was sent");
        let users = by_user(&op);
        let mut sums = BTreeSet::from([Tally::default()]);
        for (user, steps) in &users {
            let outcomes = self.outcomes(user, steps);
            let tallies: BTreeSet<_> = outcomes.iter().map(|(_, tally)| tally.clone()).collect();
            sums = sums.iter().flat_map(|a| tallies.iter().map(|b| a.plus(b))).collect();
            let alone = users.len() == 1;
            let fits = |of: &Tally| !alone || tally.is_none_or(|tally| tally == of);
            let account = self.account(user);
            account.story.push(format!("  -> {tally:?}"));
            if op.is_fast() {
                account.tail.extend(steps.iter().cloned());
                continue;
            }
            account.tail.clear();
            let worlds = outcomes.into_iter().filter(|(_, tally)| fits(tally));
            account.worlds = worlds.map(|(world, _)| world).collect();
        }
        match tally {
            Some(tally) if !sums.contains(tally) => Err(self.lie(
                users.keys(),
                &format!("the answer is {tally:?}, one of these was due: {sums:?}"),
            )),
            _ => Ok(()),
        }
    }

    /// Every allowed state of a user after `steps`, with what each counted.
    fn outcomes(&mut self, user: &str, steps: &[Step]) -> Vec<(Person, Tally)> {
        let caps = self.caps.clone();
        let account = self.account(user);
        let worlds = account.worlds.iter().map(|world| {
            let (mut world, mut tally) = (world.clone(), Tally::default());
            for step in &account.tail {
                world.apply(step, &caps);
            }
            for step in steps {
                let became = world.apply(step, &caps);
                tally.count(user, step, became);
            }
            (world, tally)
        });
        worlds.collect()
    }

    /// The server is gone: of what was not certain, each user keeps some first
    /// part. Gives back what had no answer, to be sent again.
    pub fn crashed(&mut self) -> Option<Op> {
        let op = self.pending.take();
        let mut open = op.as_ref().map(by_user).unwrap_or_default();
        for (user, account) in &mut self.accounts {
            account.open_up(open.remove(user).unwrap_or_default(), &self.caps);
        }
        op
    }

    /// The server refused in a way that does not say whether it happened.
    pub fn uncertain(&mut self) {
        let Some(op) = self.pending.take() else { return };
        let caps = self.caps.clone();
        for (user, steps) in by_user(&op) {
            self.account(&user).open_up(steps, &caps);
        }
    }

    /// A reading of one user; the states that it does not fit are out.
    pub fn read(&mut self, user: &str, found: &Found) -> Result<(), Lie> {
        let caps = self.caps.clone();
        let account = self.account(user);
        let now = |world: &Person| {
            let mut world = world.clone();
            for step in &account.tail {
                world.apply(step, &caps);
            }
            world
        };
        let fitting: BTreeSet<_> =
            account.worlds.iter().filter(|world| fits(&now(world), found)).cloned().collect();
        if fitting.is_empty() {
            let told = account.worlds.iter().map(|world| difference(&now(world), found));
            let nearest = told.min_by_key(String::len).unwrap_or_default();
            let told = format!("{user}, of {} allowed states {nearest}", account.worlds.len());
            return Err(self.lie(std::iter::once(&user.to_owned()), &told));
        }
        account.worlds = fitting;
        Ok(())
    }

    /// How many states a user may be in.
    pub fn worlds(&self, user: &str) -> usize {
        self.accounts.get(user).map_or(1, |account| account.worlds.len())
    }

    /// How a user may look to a reader: lists of all allowed states.
    pub fn looks(&self, user: &str) -> BTreeSet<Vec<Seen>> {
        let worlds = self.accounts.get(user).map(|account| &account.worlds);
        worlds.into_iter().flatten().map(Person::list).collect()
    }

    /// Whether all allowed states of a user look the same to a reader.
    pub fn looks_certain(&self, user: &str) -> bool {
        let Some(account) = self.accounts.get(user) else { return true };
        let looks: BTreeSet<_> =
            account.worlds.iter().map(|world| (world.list(), world.recording())).collect();
        looks.len() == 1
    }

    fn lie<'a>(&self, users: impl Iterator<Item = &'a String>, what: &str) -> Lie {
        let mut text = format!("{what}\n");
        for user in users {
            let Some(account) = self.accounts.get(user) else { continue };
            let from = account.story.len().saturating_sub(40);
            text += &format!("the latest of {user}:\n  {}\n", account.story[from..].join("\n  "));
        }
        Lie(text)
    }
}

fn by_user(op: &Op) -> BTreeMap<String, Vec<Step>> {
    let mut users: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (user, step) in op.steps() {
        users.entry(user).or_default().push(step);
    }
    users
}

fn after(worlds: BTreeSet<Person>, step: &Step, caps: &Caps) -> BTreeSet<Person> {
    worlds
        .into_iter()
        .map(|mut world| {
            world.apply(step, caps);
            world
        })
        .collect()
}

fn fits(world: &Person, found: &Found) -> bool {
    world.list() == found.list
        && world.unfinished() == found.unfinished
        && world.recording() == found.recording
        && found.firsts.as_ref().is_none_or(|firsts| firsts_fit(world, firsts))
}

/// Each first once; after an erase it may be gone, but not doubled.
fn firsts_fit(world: &Person, firsts: &[(String, String)]) -> bool {
    let once: BTreeMap<_, _> = firsts.iter().cloned().collect();
    once.len() == firsts.len()
        && once.iter().all(|(kind, id)| world.firsts().get(kind) == Some(id))
        && (world.erased() || once.len() == world.firsts().len())
}

/// In words, how a reading differs from a state.
fn difference(world: &Person, found: &Found) -> String {
    let mut text = String::from("against the nearest:\n");
    let mut rows = |what: &str, due: &[Seen], got: &[Seen]| {
        for row in due.iter().filter(|row| !got.contains(row)) {
            text += &format!("  {what} lacks {row:?}\n");
        }
        for row in got.iter().filter(|row| !due.contains(row)) {
            text += &format!("  {what} has {row:?}\n");
        }
    };
    rows("the list", &world.list(), &found.list);
    rows("unfinished", &world.unfinished(), &found.unfinished);
    if world.recording() != found.recording {
        text += &format!("  recording is {}\n", found.recording);
    }
    if let Some(firsts) = &found.firsts
        && !firsts_fit(world, firsts)
    {
        text += &format!("  firsts are {firsts:?}, due {:?}\n", world.firsts());
    }
    text
}
