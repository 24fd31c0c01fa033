//! Every comment that may be there, and how it may stand.

use std::collections::{BTreeMap, BTreeSet};

use crate::ledger::Lie;

/// How a comment may stand, but for what the queue does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// Shown, or hidden for want of room.
    Live,
    /// Taken back by its writer.
    Recalled,
    /// Hidden by the owner.
    Hidden,
    /// Blocked by the owner.
    Blocked,
    /// Deleted with its writer.
    Gone,
}

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A comment, under a name for retries.
    Post { user: String, text: String, client: String, progress_ms: u32 },
    /// What is to become of one: one of these.
    Change { id: String, fates: Vec<Fate> },
    /// Nothing that shows in how a comment stands.
    Rank { id: String, rank: &'static str },
    /// The most that may be shown.
    Limit(u32),
    /// Everything of a user goes.
    Erase(String),
}

#[derive(Clone, Debug)]
struct Known {
    user: String,
    text: String,
    fates: BTreeSet<Fate>,
}

/// A comment as its writer's list has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which.
    pub id: String,
    /// Whose list.
    pub user: String,
    /// What it says.
    pub text: String,
    /// How it stands.
    pub fate: Fate,
    /// Hidden for want of room.
    pub overflow: bool,
    /// When in the video.
    pub progress_ms: u64,
}

/// A video as a server shows it.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The lists of its writers.
    pub rows: Vec<Row>,
    /// Counts that it tells.
    pub total: u64,
    /// Shown.
    pub shown: u64,
    /// Hidden for want of room.
    pub overflow: u64,
    /// The limit in force.
    pub limit: u64,
    /// Ids of the whole, in JSON.
    pub whole: BTreeSet<String>,
    /// Ids of each segment in JSON, and how many it has in XML.
    pub segments: Vec<(BTreeSet<String>, usize)>,
}

/// One video.
#[derive(Clone, Debug)]
pub struct Ledger {
    comments: BTreeMap<String, Known>,
    /// Posts that may have happened: whose, and what they say.
    maybe: Vec<(String, String)>,
    limits: BTreeSet<u64>,
}

impl Ledger {
    /// Of a video without comments, with this limit.
    pub fn new(limit: u64) -> Self {
        Self { comments: BTreeMap::new(), maybe: Vec::new(), limits: BTreeSet::from([limit]) }
    }

    /// Ids of comments that may be there.
    pub(super) fn ids(&self) -> Vec<String> {
        let there = |known: &Known| known.fates.iter().any(|fate| *fate != Fate::Gone);
        self.comments.iter().filter(|(_, k)| there(k)).map(|(id, _)| id.clone()).collect()
    }

    /// Comments that were acknowledged.
    pub fn known(&self) -> usize {
        self.comments.len()
    }

    /// It was answered that this is done; a post, that it is `id`.
    pub fn done(&mut self, ask: &Ask, id: Option<&str>) -> Result<(), Lie> {
        match (ask, id) {
            (Ask::Post { user, text, .. }, Some(id)) => {
                if let Some(known) = self.comments.get(id) {
                    return match known.user == *user && known.text == *text {
                        true => Ok(()),
                        false => Err(Lie(format!("{id} is {known:?}, posted was {text:?}"))),
                    };
                }
                if let Some(other) = self.standing(text) {
                    return Err(Lie(format!("{text:?} was {other}, and by a retry is {id}, too")));
                }
                self.maybe.retain(|(_, own)| own != text);
                self.learn(id, user, text, Fate::Live);
            }
            (Ask::Post { text, .. }, None) => return Err(Lie(format!("{text:?} has no id"))),
            (Ask::Change { id, fates }, _) => {
                if let Some(known) = self.comments.get_mut(id) {
                    known.fates = fates.iter().copied().collect();
                }
            }
            (Ask::Limit(limit), _) => self.limits = BTreeSet::from([u64::from(*limit)]),
            (Ask::Erase(user), _) => {
                self.maybe.retain(|(own, _)| own != user);
                let of = self.comments.values_mut().filter(|known| known.user == *user);
                of.for_each(|known| known.fates = BTreeSet::from([Fate::Gone]));
            }
            (Ask::Rank { .. }, _) => {}
        }
        Ok(())
    }

    /// No answer came, or one that says nothing: it may be done.
    pub fn unknown(&mut self, ask: &Ask) {
        match ask {
            Ask::Post { user, text, .. } => {
                if self.standing(text).is_none() && !self.maybe.iter().any(|(_, own)| own == text) {
                    self.maybe.push((user.clone(), text.clone()));
                }
            }
            Ask::Change { id, fates } => {
                if let Some(known) = self.comments.get_mut(id) {
                    known.fates.extend(fates);
                }
            }
            Ask::Limit(limit) => _ = self.limits.insert(u64::from(*limit)),
            Ask::Erase(user) => {
                let of = self.comments.values_mut().filter(|known| known.user == *user);
                of.for_each(|known| _ = known.fates.insert(Fate::Gone));
            }
            Ask::Rank { .. } => {}
        }
    }

    /// The comment of this text that is there for certain: a retry is that one.
    fn standing(&self, text: &str) -> Option<&String> {
        let is = |known: &Known| known.text == text && !known.fates.contains(&Fate::Gone);
        self.comments.iter().find(|(_, known)| is(known)).map(|(id, _)| id)
    }

    fn learn(&mut self, id: &str, user: &str, text: &str, fate: Fate) {
        let (user, text, fates) = (user.to_owned(), text.to_owned(), BTreeSet::from([fate]));
        self.comments.insert(id.to_owned(), Known { user, text, fates });
    }

    /// What a server shows after a start is all there is: it must be something
    /// that may be, and is what must be from now on.
    pub fn read(&mut self, reading: &Reading) -> Result<(), Lie> {
        let mut rows = BTreeMap::new();
        for row in &reading.rows {
            if rows.insert(&row.id, row).is_some() {
                return Err(Lie(format!("{} is in a list twice", row.id)));
            }
            let same = |k: &Known| k.user == row.user && k.text == row.text;
            match self.comments.get(&row.id) {
                Some(known) if !same(known) => {
                    return Err(Lie(format!("{row:?} was acknowledged as {known:?}")));
                }
                Some(_) => {}
                None => {
                    let wanted = (row.user.clone(), row.text.clone());
                    let Some(at) = self.maybe.iter().position(|maybe| *maybe == wanted) else {
                        return Err(Lie(format!("nobody posted {row:?}, or it is there twice")));
                    };
                    self.maybe.remove(at);
                    self.learn(&row.id, &row.user, &row.text, row.fate);
                }
            }
        }
        self.maybe.clear();
        for (id, known) in &mut self.comments {
            let fate = rows.get(id).map_or(Fate::Gone, |row| row.fate);
            if !known.fates.contains(&fate) {
                return Err(Lie(format!("comment {id} is {fate:?}: {known:?}")));
            }
            known.fates = BTreeSet::from([fate]);
        }
        if !self.limits.contains(&reading.limit) {
            return Err(Lie(format!("the limit is {}, not {:?}", reading.limit, self.limits)));
        }
        self.limits = BTreeSet::from([reading.limit]);
        agree(reading)
    }
}

/// Counts, lists and bodies say the same, and no more is shown than may be.
fn agree(reading: &Reading) -> Result<(), Lie> {
    let count = |is: &dyn Fn(&Row) -> bool| reading.rows.iter().filter(|row| is(row)).count();
    let shown: BTreeSet<String> = reading
        .rows
        .iter()
        .filter(|row| row.fate == Fate::Live && !row.overflow)
        .map(|row| row.id.clone())
        .collect();
    let told = (reading.total, reading.shown, reading.overflow);
    let listed = (count(&|_| true) as u64, shown.len() as u64, count(&|row| row.overflow) as u64);
    if told != listed {
        return Err(Lie(format!("total, shown, overflow: told {told:?}, listed {listed:?}")));
    }
    if reading.shown > reading.limit {
        return Err(Lie(format!("{} are shown, the limit is {}", reading.shown, reading.limit)));
    }
    if reading.whole != shown {
        return Err(Lie(format!("the whole has {:?}, the lists {shown:?}", reading.whole)));
    }
    for (at, (ids, elements)) in reading.segments.iter().enumerate() {
        let of = |row: &&Row| row.progress_ms / SEGMENT_MS == at as u64;
        let rows = reading.rows.iter().filter(of);
        let due: BTreeSet<String> =
            rows.map(|row| row.id.clone()).filter(|id| shown.contains(id)).collect();
        if *ids != due || *elements != due.len() {
            let n = at + 1;
            return Err(Lie(format!("segment {n} has {ids:?} and {elements} in XML, not {due:?}")));
        }
    }
    Ok(())
}

/// Of one segment.
pub(super) const SEGMENT_MS: u64 = 360_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn post(text: &str) -> Ask {
        let (user, client) = ("ann".to_owned(), text.to_owned());
        Ask::Post { user, text: text.into(), client, progress_ms: 0 }
    }

    fn row(id: &str, text: &str, fate: Fate) -> Row {
        let (id, user, text) = (id.to_owned(), "ann".to_owned(), text.to_owned());
        Row { id, user, text, fate, overflow: false, progress_ms: 0 }
    }

    fn reading(rows: Vec<Row>) -> Reading {
        let live = rows.iter().filter(|row| row.fate == Fate::Live);
        let whole: BTreeSet<String> = live.map(|row| row.id.clone()).collect();
        Reading {
            total: rows.len() as u64,
            shown: whole.len() as u64,
            limit: 100,
            segments: vec![(whole.clone(), whole.len())],
            whole,
            rows,
            ..Reading::default()
        }
    }

    #[test]
    fn what_was_acknowledged_must_be_there_and_what_was_not_may_be() {
        let mut ledger = Ledger::new(100);
        ledger.done(&post("a"), Some("1")).unwrap();
        ledger.unknown(&post("b"));
        assert!(ledger.clone().read(&reading(vec![])).is_err());
        assert!(ledger.clone().read(&reading(vec![row("1", "a", Fate::Live)])).is_ok());
        let both = vec![row("1", "a", Fate::Live), row("2", "b", Fate::Live)];
        assert!(ledger.read(&reading(both)).is_ok());
        assert!(ledger.read(&reading(vec![row("1", "a", Fate::Live)])).is_err(), "seen, and lost");
    }

    #[test]
    fn what_was_deleted_is_never_back_and_what_may_have_been_is_known_once_read() {
        let mut ledger = Ledger::new(100);
        ledger.done(&post("a"), Some("1")).unwrap();
        ledger.unknown(&Ask::Erase("ann".into()));
        assert!(ledger.clone().read(&reading(vec![row("1", "a", Fate::Live)])).is_ok());
        ledger.read(&reading(vec![])).unwrap();
        assert!(ledger.read(&reading(vec![row("1", "a", Fate::Live)])).is_err());
    }

    #[test]
    fn a_hidden_comment_that_shows_a_retry_that_doubles_and_a_wrong_count_are_lies() {
        let mut ledger = Ledger::new(100);
        ledger.done(&post("a"), Some("1")).unwrap();
        assert!(ledger.clone().done(&post("a"), Some("2")).is_err());
        let hide = Ask::Change { id: "1".into(), fates: vec![Fate::Hidden] };
        ledger.done(&hide, None).unwrap();
        assert!(ledger.clone().read(&reading(vec![row("1", "a", Fate::Live)])).is_err());
        let hidden = reading(vec![row("1", "a", Fate::Hidden)]);
        assert!(ledger.clone().read(&Reading { total: 2, ..hidden.clone() }).is_err());
        assert!(ledger.read(&hidden).is_ok());
    }
}
