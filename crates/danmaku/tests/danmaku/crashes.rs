//! Cut anywhere and start again: nothing that was acknowledged is lost, and the
//! same log comes to the same rows.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tideline_danmaku::CommentId;
use tideline_danmaku::STRETCH_MS;
use tideline_danmaku::ask::{Action, Answer, ImportItem, Op, SettingsPatch};
use tideline_danmaku::comment::{Draft, Rank, Role, State};
use tideline_danmaku::options::Options;
use tideline_danmaku::rows;
use tideline_danmaku::top::Scope;
use tideline_store::mem::MemTable;
use tideline_wire::danmaku::{Item, Pool};

use crate::partition::{Dump, Partition, START, actor, bounds, draft, user};

#[derive(Clone, Debug)]
enum Act {
    Post { video: u8, user: u8, stretch: u32, client: Option<u8> },
    Moderate { target: prop::sample::Index, action: u8 },
    Recall(prop::sample::Index),
    Mark { target: prop::sample::Index, user: u8, like: bool },
    Import { video: u8, from: u8, count: u8 },
    Erase { video: u8, user: u8 },
    Read,
    Sync,
    Commit,
    SyncTable,
    Place,
    Tick(u16),
    Serve,
    Crash { kept: prop::sample::Index, rows: u64, limit: u32, video_scope: bool, short: bool },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    use prop::sample::Index;
    let act = prop_oneof![
        20 => (0_u8..2, 0_u8..3, 0_u32..3, prop::option::of(0_u8..3))
            .prop_map(|(video, user, stretch, client)| Act::Post { video, user, stretch, client }),
        8 => (any::<Index>(), 0_u8..9).prop_map(|(target, action)| Act::Moderate { target, action }),
        2 => any::<Index>().prop_map(Act::Recall),
        4 => (any::<Index>(), 0_u8..3, any::<bool>()).prop_map(|(target, user, like)| Act::Mark { target, user, like }),
        2 => (0_u8..2, 0_u8..9, 1_u8..6).prop_map(|(video, from, count)| Act::Import { video, from, count }),
        1 => (0_u8..2, 0_u8..3).prop_map(|(video, user)| Act::Erase { video, user }),
        8 => Just(Act::Read),
        8 => Just(Act::Sync),
        3 => Just(Act::Commit),
        2 => Just(Act::SyncTable),
        2 => Just(Act::Place),
        4 => (1_u16..2000).prop_map(Act::Tick),
        4 => Just(Act::Serve),
        2 => (any::<Index>(), any::<u64>(), 1_u32..6, any::<bool>(), any::<bool>())
            .prop_map(|(kept, rows, limit, video_scope, short)| Act::Crash { kept, rows, limit, video_scope, short }),
    ];
    prop::collection::vec(act, 1..150)
}

fn options(limit: u32, video_scope: bool) -> Options {
    let limit_scope = if video_scope { Scope::Video } else { Scope::Segment };
    Options { limit: Some(limit), limit_scope, report_threshold: 2, ..Options::default() }
}

fn action(n: u8) -> Action {
    [
        Action::Hide,
        Action::Block,
        Action::Restore,
        Action::Restore,
        Action::Rank(Rank::Protected),
        Action::Rank(Rank::Recommended),
        Action::Rank(Rank::Plain),
        Action::Move(Pool::Subtitle),
        Action::Move(Pool::Normal),
    ][usize::from(n)]
}

fn item(n: u8) -> ImportItem {
    let item = Item {
        id: n.into(),
        progress_ms: u32::from(n % 3) * STRETCH_MS,
        sent_ms: START - 1_000_000 + i64::from(n) * 1000,
        text: format!("file {n}").into(),
        ..Item::default()
    };
    ImportItem { item, nth: 0 }
}

/// What callers asked, and were told. Times are numbers of calls.
#[derive(Default)]
struct Ledger {
    clock: u64,
    /// Calls without an answer, by ticket, and when they were made.
    calls: BTreeMap<u64, (u64, String, Op)>,
    /// Comments that were acknowledged: when asked for, where, by whom.
    posted: Vec<(u64, String, String, CommentId)>,
    /// When a user last posted under a video, acknowledged or not.
    last_post: BTreeMap<(String, String), u64>,
    /// When a user was last to be erased there, acknowledged or not.
    last_erase: BTreeMap<(String, String), u64>,
    /// Erases that were acknowledged.
    erased: Vec<(u64, String, String)>,
}

impl Ledger {
    fn call(&mut self, p: &mut Partition, video: String, op: Op) {
        self.clock += 1;
        match &op {
            Op::Post { actor, .. } => {
                self.last_post.insert((video.clone(), actor.user.to_string()), self.clock);
            }
            Op::Erase { user } => {
                self.last_erase.insert((video.clone(), user.to_string()), self.clock);
            }
            _ => {}
        }
        let ticket = p.call(&video, op.clone());
        self.calls.insert(ticket, (self.clock, video, op));
    }

    fn hear(&mut self, p: &mut Partition) {
        for (ticket, answer) in std::mem::take(&mut p.answers) {
            let Some((when, video, op)) = self.calls.remove(&ticket) else { continue };
            match (answer, op) {
                (Answer::Posted(posted), Op::Post { actor, .. }) => {
                    self.posted.push((when, video, actor.user.to_string(), posted.comment.id));
                }
                (Answer::Erased(_), Op::Erase { user }) => {
                    self.erased.push((when, video, user.to_string()));
                }
                _ => {}
            }
        }
    }

    fn check(&self, p: &mut Partition) {
        for (when, video, user, id) in &self.posted {
            let erased = self.last_erase.get(&(video.clone(), user.clone()));
            if erased.is_none_or(|erased| erased < when) {
                assert!(p.find(video, *id).is_some(), "an acknowledged comment is lost");
            }
        }
        for (when, video, user) in &self.erased {
            let posted = self.last_post.get(&(video.clone(), user.clone()));
            if posted.is_none_or(|posted| posted < when) {
                assert!(p.own(video, user).is_empty(), "an erased user is back");
            }
        }
    }
}

/// The rows that all of a log comes to, from nothing.
fn folded(log: &[bytes::Bytes], now: i64, options: Options) -> Dump {
    let mut p = Partition::open(MemTable::new(), log.to_vec(), 99, now, options, bounds());
    p.rest();
    p.dump()
}

/// Every promise about the queue, read off the rows of each video.
fn check_queue(dump: &Dump, limit: u32, scope: Scope) {
    let mut videos: BTreeMap<&[u8], (Vec<_>, Vec<_>)> = BTreeMap::new();
    for ((partition, key), value) in dump.iter().filter(|((partition, _), _)| partition[0] == b'v')
    {
        let (shown, overflow) = videos.entry(partition).or_default();
        match key[0] {
            0x10 => {
                let index = rows::decode_index(value).unwrap();
                assert!(index.is_shown() && !index.counts());
            }
            0x20 => {
                let index = rows::decode_index(value).unwrap();
                let order = rows::order_of(key).unwrap();
                assert!(index.counts() && index.rank == order.0);
                match index.state {
                    State::Shown => shown.push(order),
                    State::Overflow => overflow.push(order),
                    other => panic!("{other:?} in the queue"),
                }
            }
            _ => {}
        }
    }
    for (shown, overflow) in videos.values() {
        assert!(shown.len() <= limit as usize, "over the limit");
        assert!(overflow.is_empty() || shown.len() == limit as usize, "room is left empty");
        for low in shown {
            for best in overflow {
                let peers = scope == Scope::Video || low.1.stretch() == best.1.stretch();
                assert!(!peers || low > best, "a hidden comment stands above a shown one");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn a_cut_anywhere_loses_nothing_acknowledged_and_ends_in_the_same_rows(acts in acts(), limit in 1_u32..6, video_scope: bool) {
        let mut set = (limit, video_scope);
        let mut p = Partition::new(options(limit, video_scope));
        let mut ledger = Ledger::default();
        for act in acts {
            p.now += 1;
            let target = |at: prop::sample::Index, ledger: &Ledger| {
                (!ledger.posted.is_empty()).then(|| {
                    let (_, video, _, id) = at.get(&ledger.posted);
                    (video.clone(), *id)
                })
            };
            let call = match act {
                Act::Post { video, user, stretch, client } => {
                    let client_id = client.map(|c| format!("c{c}"));
                    let draft = Draft { client_id, ..draft("text", stretch * STRETCH_MS) };
                    let actor = actor(&format!("u{user}"), Role::Viewer);
                    Some((format!("v{video}"), Op::Post { draft, actor }))
                }
                Act::Moderate { target: at, action: n } => target(at, &ledger).map(|(video, id)| {
                    (video, Op::Moderate { id, action: action(n), actor: actor("o", Role::Owner) })
                }),
                Act::Recall(at) => target(at, &ledger).map(|(video, id)| {
                    (video, Op::Recall { id, actor: actor("u0", Role::Viewer) })
                }),
                Act::Mark { target: at, user, like } => target(at, &ledger).map(|(video, id)| {
                    let actor = actor(&format!("u{user}"), Role::Viewer);
                    let op = if like { Op::Like { id, actor } } else { Op::Report { id, actor, reason: 1 } };
                    (video, op)
                }),
                Act::Import { video, from, count } => {
                    let items = (from..from + count).map(item).collect();
                    Some((format!("v{video}"), Op::Import { items, actor: actor("o", Role::Owner) }))
                }
                Act::Erase { video, user: n } => {
                    Some((format!("v{video}"), Op::Erase { user: user(&format!("u{n}")) }))
                }
                Act::Read => { p.read_one(); None }
                Act::Sync => { p.sync_one(); None }
                Act::Commit => { p.commit_one(); None }
                Act::SyncTable => { p.sync_table(); None }
                Act::Place => { p.keep_place(); None }
                Act::Tick(ms) => { p.tick(ms.into()); None }
                Act::Serve => { p.serve(); None }
                Act::Crash { kept, rows, limit, video_scope, short } => {
                    ledger.hear(&mut p);
                    ledger.calls.clear();
                    let kept = kept.index(p.unsynced() + 1);
                    let mut seed = rows | 1;
                    set = (limit, video_scope);
                    p = p.crash(kept, |_, _, unsynced| {
                        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        (seed >> 33) as usize % (unsynced + 1)
                    }, options(limit, video_scope));
                    if short {
                        p = p.start_short_of_memory(options(limit, video_scope));
                    }
                    None
                }
            };
            if let Some((video, op)) = call {
                ledger.call(&mut p, video, op);
            }
            ledger.hear(&mut p);
        }
        p.serve();
        ledger.hear(&mut p);
        // A call that changes nothing brings each queue to rest.
        for video in ["v0", "v1"] {
            let set = Op::Set { patch: SettingsPatch::default(), actor: actor("o", Role::Owner) };
            let done = p.ask(video, set);
            prop_assert!(matches!(done, Answer::Settings(_)), "{:?}", done);
        }
        ledger.check(&mut p);
        p.rest();
        let dump = p.dump();
        let (limit, video_scope) = set;
        check_queue(&dump, limit, options(limit, video_scope).limit_scope);
        prop_assert_eq!(folded(&p.log, p.now, options(limit, video_scope)), dump);
    }
}
