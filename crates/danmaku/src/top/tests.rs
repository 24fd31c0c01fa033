use proptest::prelude::*;
use tideline_types::Millis;

use super::*;
use crate::id::Mint;

/// The queue as one would write it down: every comment in one list, every rule
/// by looking at all of them.
#[derive(Clone, Debug)]
struct Plain {
    scope: Scope,
    limit: usize,
    /// Order, and whether it is shown.
    all: Vec<(Order, bool)>,
}

impl Plain {
    fn orders(&self, shown: bool) -> Vec<Order> {
        let mut orders: Vec<_> =
            self.all.iter().filter(|(_, is)| *is == shown).map(|(order, _)| *order).collect();
        orders.sort_unstable();
        orders
    }

    fn count(&self, at: u16) -> usize {
        self.orders(true).iter().filter(|order| order.1.stretch() == at).count()
    }

    /// Those that are compared with one of stretch `at`.
    fn peers(&self, at: u16, shown: bool) -> Vec<Order> {
        let mut orders = self.orders(shown);
        orders.retain(|o| self.scope == Scope::Video || o.1.stretch() == at);
        orders
    }

    fn set(&mut self, order: Order, shown: bool) {
        let entry = self.all.iter_mut().find(|(own, _)| *own == order).unwrap();
        entry.1 = shown;
    }

    fn add(&mut self, order: Order) {
        let at = order.1.stretch();
        let outranked = self.peers(at, false).last().is_some_and(|best| *best > order);
        self.all.push((order, !outranked));
        self.settle();
    }

    fn remove(&mut self, id: CommentId) -> Option<Order> {
        let at = self.all.iter().position(|((_, own), _)| *own == id)?;
        let ((rank, id), _) = self.all.remove(at);
        self.settle();
        Some((rank, id))
    }

    fn settle(&mut self) {
        loop {
            let shown = self.orders(true);
            if shown.len() > self.limit {
                let stretches: BTreeSet<u16> = shown.iter().map(|o| o.1.stretch()).collect();
                let at = stretches.into_iter().max_by_key(|at| (self.count(*at), *at)).unwrap();
                let low = self.peers(at, true)[0];
                self.set(low, false);
                continue;
            }
            let misplaced = shown.iter().copied().find(|low| {
                let at = low.1.stretch();
                self.peers(at, false).last().is_some_and(|best| best > low)
            });
            if let Some(low) = misplaced {
                self.set(low, false);
                continue;
            }
            if shown.len() == self.limit {
                return;
            }
            let hidden = self.orders(false);
            let stretches: BTreeSet<u16> = hidden.iter().map(|o| o.1.stretch()).collect();
            let Some(at) = stretches.into_iter().min_by_key(|at| (self.count(*at), *at)) else {
                return;
            };
            let best = *self.peers(at, false).last().unwrap();
            self.set(best, true);
        }
    }
}

/// The queue with a disk under it that holds all overflow comments.
struct Real {
    top: Top,
    disk: BTreeSet<Order>,
    shown: BTreeSet<Order>,
    fills: usize,
}

impl Real {
    fn hide(&mut self, order: Order) {
        assert!(self.shown.remove(&order), "hidden, and was not shown");
        self.top.unshow(order);
        self.top.overflowed(order);
        self.disk.insert(order);
    }

    fn show(&mut self, order: Order) {
        self.shown.insert(order);
        self.top.show(order);
    }

    fn add(&mut self, order: Order) {
        match self.top.arrive(order) {
            Arrival::Hidden => {
                self.top.overflowed(order);
                self.disk.insert(order);
            }
            Arrival::Shown(hides) => {
                self.show(order);
                if let Some(low) = hides {
                    self.hide(low);
                }
            }
        }
        self.settle();
    }

    fn remove(&mut self, order: Order) {
        if self.shown.remove(&order) {
            self.top.unshow(order);
        } else {
            assert!(self.disk.remove(&order));
            self.top.left_overflow(order);
        }
        self.settle();
    }

    fn settle(&mut self) {
        loop {
            match self.top.step() {
                Step::Rest => break,
                Step::Hide(order) => self.hide(order),
                Step::Return(order) => {
                    assert!(self.disk.remove(&order), "returned, and was not overflow");
                    self.top.left_overflow(order);
                    self.show(order);
                }
                Step::Fill(at) => {
                    self.fills += 1;
                    let best = self.disk.iter().rev().filter(|o| o.1.stretch() == at);
                    let best: Vec<_> = best.take(self.top.reserve_max + 1).copied().collect();
                    let whole = best.len() <= self.top.reserve_max;
                    self.top.fill(at, best, whole);
                }
            }
        }
        assert!(self.shown.len() as u32 <= self.top.limit());
        assert_eq!(self.shown.len() as u32, self.top.shown());
        assert_eq!(self.disk.len() as u64, self.top.overflow());
        let known: usize = self.top.stretches.values().map(|s| s.reserve.len()).sum();
        assert!(known <= self.top.stretches.len() * self.top.reserve_max, "memory is bounded");
    }

    /// As after a start: what is shown, and how many are not.
    fn restart(&mut self) {
        let Top { scope, limit, reserve_max, .. } = self.top;
        let counts: Vec<_> = self.top.counts().collect();
        self.top = Top::with_reserve(scope, limit, reserve_max);
        for (at, _, count) in counts {
            self.top.load(at, count);
        }
        for order in self.shown.clone() {
            self.top.show(order);
        }
        self.settle();
    }
}

#[derive(Clone, Debug)]
enum Act {
    Post { stretch: u16, rank: Rank },
    Old { stretch: u16, ms: i64, rank: Rank },
    Remove(usize),
    Rank(usize, Rank),
    Limit(u32),
    Scope(bool),
    Restart,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let rank = prop_oneof![6 => Just(Rank::Plain), 1 => Just(Rank::Recommended), 1 => Just(Rank::Protected)];
    let act = prop_oneof![
        10 => (0_u16..4, rank.clone()).prop_map(|(stretch, rank)| Act::Post { stretch, rank }),
        2 => (0_u16..4, 0_i64..60_000, rank.clone()).prop_map(|(stretch, ms, rank)| Act::Old { stretch, ms, rank }),
        5 => any::<usize>().prop_map(Act::Remove),
        3 => (any::<usize>(), rank).prop_map(|(at, rank)| Act::Rank(at, rank)),
        1 => (0_u32..20).prop_map(Act::Limit),
        1 => any::<bool>().prop_map(Act::Scope),
        1 => Just(Act::Restart),
    ];
    prop::collection::vec(act, 1..200)
}

fn scope_of(video: bool) -> Scope {
    if video { Scope::Video } else { Scope::Segment }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn the_queue_shows_what_the_plain_one_shows(acts in acts(), video: bool, limit in 0_u32..20, reserve in 1_usize..6) {
        let scope = scope_of(video);
        let mut plain = Plain { scope, limit: limit as usize, all: Vec::new() };
        let top = Top::with_reserve(scope, limit, reserve);
        let mut real = Real { top, disk: BTreeSet::new(), shown: BTreeSet::new(), fills: 0 };
        let (mut mint, mut now) = (Mint::default(), 1_796_000_000_000);
        let mut old = Mint::default();
        for act in acts {
            match act {
                Act::Post { stretch, rank } => {
                    now += 1;
                    let order = (rank, mint.next(Millis(now), stretch));
                    plain.add(order);
                    real.add(order);
                }
                Act::Old { stretch, ms, rank } => {
                    let order = (rank, old.next(Millis(1_700_000_000_000 + ms), stretch));
                    plain.add(order);
                    real.add(order);
                }
                Act::Remove(at) if !plain.all.is_empty() => {
                    let id = plain.all[at % plain.all.len()].0.1;
                    let order = plain.remove(id).unwrap();
                    real.remove(order);
                }
                Act::Rank(at, rank) if !plain.all.is_empty() => {
                    let at = at % plain.all.len();
                    let ((was, id), shown) = plain.all[at];
                    let order = (rank, id);
                    if shown {
                        plain.all[at].0 = order;
                        plain.settle();
                        real.shown.remove(&(was, id));
                        real.top.unshow((was, id));
                        real.show(order);
                        real.top.reordered();
                        real.settle();
                    } else if rank < was {
                        plain.all[at].0 = order;
                        plain.settle();
                        real.disk.remove(&(was, id));
                        real.top.left_overflow((was, id));
                        real.disk.insert(order);
                        real.top.overflowed(order);
                        real.settle();
                    } else if rank > was {
                        plain.all.remove(at);
                        plain.add(order);
                        real.disk.remove(&(was, id));
                        real.top.left_overflow((was, id));
                        real.add(order);
                    }
                }
                Act::Limit(limit) => {
                    plain.limit = limit as usize;
                    plain.settle();
                    real.top.set(real.top.scope, limit);
                    real.settle();
                }
                Act::Scope(video) => {
                    plain.scope = scope_of(video);
                    plain.settle();
                    real.top.set(plain.scope, real.top.limit());
                    real.settle();
                }
                Act::Restart => real.restart(),
                _ => {}
            }
            let shown: Vec<_> = real.shown.iter().copied().collect();
            prop_assert_eq!(shown, plain.orders(true));
            let hidden: Vec<_> = real.disk.iter().copied().collect();
            prop_assert_eq!(hidden, plain.orders(false));
        }
    }
}

/// Posts `count` comments to stretch 0 and answers the queue and their orders.
fn full(limit: u32, count: u32) -> (Real, Vec<Order>) {
    let top = Top::new(Scope::Video, limit);
    let mut real = Real { top, disk: BTreeSet::new(), shown: BTreeSet::new(), fills: 0 };
    let mut mint = Mint::default();
    let orders: Vec<_> = (0..count)
        .map(|n| (Rank::Plain, mint.next(Millis(1_796_000_000_000 + i64::from(n)), 0)))
        .collect();
    for order in &orders {
        real.add(*order);
    }
    (real, orders)
}

#[test]
fn over_the_limit_the_lowest_goes_and_the_highest_of_the_hidden_comes_back() {
    let (mut real, orders) = full(3, 5);
    assert_eq!(real.shown.iter().copied().collect::<Vec<_>>(), orders[2..]);
    real.remove(orders[3]);
    assert_eq!(real.shown, BTreeSet::from([orders[1], orders[2], orders[4]]));
}

#[test]
fn a_million_hidden_comments_cost_no_more_memory_than_a_reserve() {
    let (real, _) = full(100, 100_000);
    assert_eq!((real.top.shown(), real.top.overflow()), (100, 99_900));
    assert!(real.top.bytes() < 16 << 10, "{} bytes", real.top.bytes());
}

#[test]
fn a_limit_that_rises_brings_back_more_than_a_reserve_holds() {
    let (mut real, orders) = full(100, 2_000);
    real.top.set(Scope::Video, 1_500);
    real.settle();
    assert_eq!(real.shown.iter().copied().collect::<Vec<_>>(), orders[500..]);
    assert!(real.fills >= 1_400 / RESERVE, "{} fills", real.fills);
}

#[test]
fn the_fullest_stretch_gives_and_of_two_the_later() {
    let top = Top::new(Scope::Segment, 4);
    let mut real = Real { top, disk: BTreeSet::new(), shown: BTreeSet::new(), fills: 0 };
    let mut mint = Mint::default();
    let mut post = |at| (Rank::Plain, mint.next(Millis(1_796_000_000_000), at));
    let (a, b, c, d) = (post(0), post(0), post(1), post(1));
    [a, b, c, d].into_iter().for_each(|order| real.add(order));
    let e = post(2);
    real.add(e);
    assert_eq!(real.disk, BTreeSet::from([c]), "of 0 and 1, as full, the later gives");
    let f = post(0);
    real.add(f);
    assert_eq!(real.disk, BTreeSet::from([a, c]), "0 is the fullest with the new one");
    real.remove(e);
    assert_eq!(real.disk, BTreeSet::from([a]), "1 is the emptiest that has any");
}

#[test]
fn limits_follow_the_duration() {
    let minutes = |m: u32| limit_by_duration(Some(m * 60_000));
    assert_eq!([1, 3, 15, 40, 60, 61].map(minutes), [300, 500, 1_500, 3_000, 6_000, 8_000]);
    assert_eq!(limit_by_duration(Some(30_000)), 100);
    assert_eq!(limit_by_duration(Some(30_001)), 300);
    assert_eq!(limit_by_duration(None), 3_000);
    assert!([100, 300, 500, 1_500, 3_000, 6_000, 8_000].iter().all(|l| LIMITS.contains(l)));
}
