//! A live room: many viewers of one video, each of whom is told every change
//! once.
//!
//! The room holds the latest changes, once for all; a viewer is a number: what
//! they know everything through. Always: the ranges `(a, b]` that a viewer gets
//! follow one another without a gap, so nothing is missed and nothing comes
//! twice. A viewer who falls behind what the room holds is told so and loads
//! anew; nobody waits for them. Knows nothing of sockets and clocks.

use std::collections::VecDeque;

use tideline_types::Seq;

use crate::ask::Changes;
use crate::video::Event;

/// Changes that a room holds, at most.
pub const EVENTS_MAX: usize = 4_096;

/// One video's room.
#[derive(Debug)]
pub struct Room {
    /// Everything after `from` and through `through` is in `events`.
    from: Seq,
    through: Seq,
    events: VecDeque<(Seq, Event)>,
    viewers: u32,
}

/// Someone in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Viewer {
    known: Seq,
}

/// What a viewer is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// Nothing has happened.
    Nothing,
    /// Everything after `after` and through `through`, in order. There may be
    /// nothing in it: other videos have numbers, too.
    Range {
        /// What the viewer knew everything through.
        after: Seq,
        /// What they know everything through now.
        through: Seq,
        /// Each with its number.
        events: Vec<(Seq, Event)>,
    },
    /// Too far behind: load a snapshot of at least this number, and join with
    /// its number.
    Lagged {
        /// What the room knows everything through.
        through: Seq,
    },
}

impl Room {
    /// A room that knows nothing from before `through`.
    pub fn new(through: Seq) -> Self {
        Self { from: through, through, events: VecDeque::new(), viewers: 0 }
    }

    /// What the room knows everything through: ask for changes since then.
    pub fn through(&self) -> Seq {
        self.through
    }

    /// Viewers in it.
    pub fn viewers(&self) -> u32 {
        self.viewers
    }

    /// Takes in what happened since [`Room::through`]. After a gap every viewer
    /// who does not know more is lagged.
    pub fn hear(&mut self, changes: Changes) {
        match changes {
            Changes::Lagged { through } => {
                self.events.clear();
                (self.from, self.through) = (through, through);
            }
            Changes::Range { since, through, events } if since <= self.through => {
                let news = events.into_iter().filter(|(seq, _)| *seq > self.through);
                self.events.extend(news);
                self.through = self.through.max(through);
                while self.events.len() > EVENTS_MAX {
                    if let Some((dropped, _)) = self.events.pop_front() {
                        self.from = dropped;
                    }
                }
            }
            Changes::Range { since, through, events } => {
                (self.from, self.through) = (since, through);
                self.events = events.into();
            }
        }
    }

    /// Somebody joins who knows everything through `known`, from the body they
    /// loaded; without one, what happens from now on is enough for them.
    pub fn join(&mut self, known: Option<Seq>) -> Viewer {
        self.viewers += 1;
        Viewer { known: known.unwrap_or(self.through) }
    }

    /// Somebody leaves.
    pub fn leave(&mut self, _viewer: Viewer) {
        self.viewers = self.viewers.saturating_sub(1);
    }

    /// What a viewer has not been told. After `Lagged` they know nothing more
    /// than before: they join anew.
    pub fn tell(&self, viewer: &mut Viewer) -> Told {
        let after = viewer.known;
        if after >= self.through {
            // They may have loaded a body that is ahead of the room.
            return Told::Nothing;
        }
        if after < self.from {
            return Told::Lagged { through: self.through };
        }
        let at = self.events.partition_point(|(seq, _)| *seq <= after);
        let events: Vec<(Seq, Event)> = self.events.range(at..).cloned().collect();
        viewer.known = self.through;
        Told::Range { after, through: self.through, events }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::id::CommentId;

    fn event(seq: u64) -> (Seq, Event) {
        (Seq(seq), Event::Hidden(CommentId::from_bits(seq).unwrap()))
    }

    fn range(since: u64, through: u64, seqs: impl Iterator<Item = u64>) -> Changes {
        let events = seqs.filter(|seq| (since + 1..=through).contains(seq)).map(event).collect();
        Changes::Range { since: Seq(since), through: Seq(through), events }
    }

    #[test]
    fn one_who_falls_behind_is_told_so_and_holds_up_nobody() {
        let mut room = Room::new(Seq(10));
        let mut slow = room.join(Some(Seq(10)));
        let mut quick = room.join(None);
        for at in 0..10 {
            let since = 10 + at * 1000;
            room.hear(range(since, since + 1000, since + 1..=since + 1000));
            assert!(
                matches!(room.tell(&mut quick), Told::Range { events, .. } if events.len() == 1000)
            );
        }
        assert_eq!(room.tell(&mut slow), Told::Lagged { through: Seq(10_010) });
        room.leave(slow);
        assert_eq!(room.viewers(), 1);
        let mut again = room.join(Some(Seq(10_010)));
        assert_eq!(room.tell(&mut again), Told::Nothing);
    }

    #[test]
    fn a_room_that_lost_the_thread_says_so_to_those_who_had_it() {
        let mut room = Room::new(Seq(5));
        let mut viewer = room.join(Some(Seq(5)));
        room.hear(Changes::Lagged { through: Seq(50) });
        assert_eq!(room.tell(&mut viewer), Told::Lagged { through: Seq(50) });
    }

    proptest! {
        #[test]
        fn every_viewer_gets_every_change_once_and_in_order(
            // What happens: 0 an outcome of this video, 1 of another, 2 the
            // room hears, 3 and more: a viewer joins at a body of some age, or
            // is told.
            steps in prop::collection::vec((0_u8..6, any::<prop::sample::Index>()), 1..200),
        ) {
            let mut log: Vec<(Seq, Event)> = Vec::new();
            let (mut last, mut room) = (0_u64, Room::new(Seq(0)));
            // A viewer, what their body held, and what they were told since.
            let mut viewers: Vec<(Viewer, Seq, Vec<Seq>)> = Vec::new();
            let tell = |room: &Room, viewer: &mut (Viewer, Seq, Vec<Seq>)| {
                if let Told::Range { events, .. } = room.tell(&mut viewer.0) {
                    viewer.2.extend(events.iter().map(|(seq, _)| *seq));
                }
            };
            for (what, at) in steps {
                match what {
                    0 => { last += 1; log.push(event(last)); }
                    1 => last += 1,
                    2 => {
                        // Sometimes it hears again what it knows.
                        let since = at.index(room.through().0 as usize + 1) as u64;
                        room.hear(range(since, last, log.iter().map(|(seq, _)| seq.0)));
                    }
                    3 => {
                        let known = Seq(at.index(last as usize + 1) as u64);
                        viewers.push((room.join(Some(known)), known, Vec::new()));
                    }
                    _ if viewers.is_empty() => {}
                    _ => {
                        let at = at.index(viewers.len());
                        tell(&room, &mut viewers[at]);
                    }
                }
            }
            room.hear(range(room.through().0, last, log.iter().map(|(seq, _)| seq.0)));
            for mut viewer in viewers {
                tell(&room, &mut viewer);
                let want: Vec<Seq> = log.iter().map(|(seq, _)| *seq).filter(|seq| *seq > viewer.1).collect();
                prop_assert_eq!(viewer.2, want);
            }
        }
    }
}
