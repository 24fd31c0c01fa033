//! What callers do: few videos, few users, limits of a handful, so that
//! everything meets everything.

use tideline_danmaku::ask::{Action, ImportItem, Op, SettingsPatch};
use tideline_danmaku::comment::{Actor, Draft, Rank, Role};
use tideline_danmaku::{CommentId, STRETCH_MS};
use tideline_types::UserId;
use tideline_wire::danmaku::{Item, Mode, Pool};

use crate::rng::Rng;

pub(crate) const VIDEOS: [&str; 3] = ["1", "av2", "电影"];
pub(crate) const USERS: [&str; 4] = ["ann", "bo", "7", "é"];
/// Comments of one stretch in a crowd: more than a queue holds in memory.
const CROWD: u32 = 300;

/// One stream of calls.
pub(crate) struct Workload {
    rng: Rng,
    /// Comments that callers were told of.
    known: Vec<(String, CommentId)>,
    /// A file with a crowd in it is still to be imported.
    crowd: bool,
    start: i64,
}

impl Workload {
    pub(crate) fn new(seed: u64, start: i64) -> Self {
        let mut rng = Rng::new(seed, "workload");
        let crowd = rng.once_in(16);
        Self { rng, known: Vec::new(), crowd, start }
    }

    /// A caller was told of this comment.
    pub(crate) fn knows(&mut self, video: &str, id: CommentId) {
        self.known.push((video.into(), id));
    }

    pub(crate) fn video(&mut self) -> String {
        (*self.rng.pick(&VIDEOS)).to_owned()
    }

    fn name(&mut self) -> &'static str {
        self.rng.pick::<&'static str>(&USERS)
    }

    fn actor(&mut self, role: Role) -> Actor {
        Actor { user: user(self.name()), role }
    }

    /// A post.
    pub(crate) fn post(&mut self) -> (String, Op) {
        let role = if self.rng.once_in(8) { Role::Owner } else { Role::Viewer };
        let pool =
            if role == Role::Owner && self.rng.once_in(2) { Pool::Subtitle } else { Pool::Normal };
        let within = [0, 1, 90_000, STRETCH_MS - 1];
        let progress_ms = self.rng.below(3) as u32 * STRETCH_MS + self.rng.pick(&within);
        let draft = Draft {
            text: (*self.rng.pick(&["a", "<b> & \"c\"", "弹幕 🐕"])).into(),
            progress_ms,
            mode: *self.rng.pick(&[Mode::Scroll, Mode::Scroll, Mode::Top, Mode::Reverse]),
            size: 25,
            color: *self.rng.pick(&[0, 0x00ff_ffff]),
            pool,
            client_id: self.rng.maybe(2, &["c1".to_owned(), "c2".to_owned()]),
        };
        (self.video(), Op::Post { draft, actor: self.actor(role) })
    }

    /// Something about a comment that is known.
    pub(crate) fn about(&mut self) -> Option<(String, Op)> {
        if self.known.is_empty() {
            return None;
        }
        let (video, id) = self.rng.pick(&self.known).clone();
        let op = match self.rng.below(12) {
            0 => Op::Recall { id, actor: self.actor(Role::Viewer) },
            1 => Op::Like { id, actor: self.actor(Role::Viewer) },
            2..4 => Op::Report { id, actor: self.actor(Role::Viewer), reason: 1 },
            _ => {
                let action = *self.rng.pick(&[
                    Action::Hide,
                    Action::Block,
                    Action::Restore,
                    Action::Restore,
                    Action::Rank(Rank::Protected),
                    Action::Rank(Rank::Recommended),
                    Action::Rank(Rank::Plain),
                    Action::Move(Pool::Subtitle),
                    Action::Move(Pool::Normal),
                ]);
                Op::Moderate { id, action, actor: self.actor(Role::Owner) }
            }
        };
        Some((video, op))
    }

    /// What an owner sets: the limit above, among others.
    pub(crate) fn set(&mut self) -> (String, Op) {
        let mut patch = SettingsPatch::default();
        match self.rng.below(5) {
            0..3 => patch.limit = Some(self.rng.maybe(2, &[100])),
            3 => patch.duration_ms = Some(self.rng.maybe(2, &[700_000, 2 * STRETCH_MS])),
            _ => patch.closed = Some(self.rng.once_in(4)),
        }
        (self.video(), Op::Set { patch, actor: self.actor(Role::Owner) })
    }

    /// A file, with lines that others have, too.
    pub(crate) fn import(&mut self) -> (String, Op) {
        let crowd = self.crowd && self.rng.once_in(4);
        self.crowd &= !crowd;
        let from = self.rng.below(8) as u32;
        let (lines, spread) = match crowd {
            true => (1_000..1_000 + CROWD, 1),
            false => (from..from + 1 + self.rng.below(5) as u32, 3),
        };
        let line = |n: u32| ImportItem {
            item: Item {
                id: i64::from(n),
                progress_ms: n % spread * STRETCH_MS,
                sent_ms: self.start - 1_000_000 + i64::from(n) * 1_000,
                text: format!("line {n}").into(),
                ..Item::default()
            },
            nth: 0,
        };
        let items = lines.map(line).collect();
        (self.video(), Op::Import { items, actor: self.actor(Role::Owner) })
    }

    /// A user goes.
    pub(crate) fn erase(&mut self) -> (String, Op) {
        (self.video(), Op::Erase { user: user(self.name()) })
    }

    /// A read.
    pub(crate) fn read(&mut self) -> (String, Op) {
        let op = match self.rng.below(5) {
            0 => Op::View,
            1 => Op::All,
            2 => Op::Segment(1 + self.rng.below(4) as u32),
            3 => own(self.name()),
            _ => match self.known.is_empty() {
                true => Op::View,
                false => {
                    let (video, id) = self.rng.pick(&self.known).clone();
                    return (video, Op::Find { id });
                }
            },
        };
        (self.video(), op)
    }

    /// Every read there is.
    pub(crate) fn reads(&self) -> Vec<(String, Op)> {
        let mut reads = Vec::new();
        for video in VIDEOS {
            reads.extend([Op::View, Op::All].map(|op| (video.to_owned(), op)));
            reads.extend((1..5).map(|n| (video.to_owned(), Op::Segment(n))));
            reads.extend(USERS.map(|name| (video.to_owned(), own(name))));
        }
        reads.extend(self.known.iter().map(|(video, id)| (video.clone(), Op::Find { id: *id })));
        reads
    }
}

/// The call that changes nothing, and lets a queue come to rest.
pub(crate) fn nudge() -> Op {
    let actor = Actor { user: user("owner"), role: Role::Owner };
    Op::Set { patch: SettingsPatch::default(), actor }
}

fn own(name: &str) -> Op {
    Op::Own { user: user(name), below: None, limit: 100 }
}

fn user(name: &str) -> UserId {
    UserId::new(name).expect("a name of the workload")
}
