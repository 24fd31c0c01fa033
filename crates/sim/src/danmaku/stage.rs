//! Who watches: ready bodies, rooms, and viewers with what is on their screens.
//!
//! A body is patched with what happened since, and must be the one that would
//! be built anew. A viewer loads segments, joins their room with the number of
//! the bodies, and shows what it is told as it is told it: no comment twice,
//! none missing. Rooms are driven as the gateway drives them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;

use tideline_danmaku::CommentId;
use tideline_danmaku::ask::{Answer, Changes, Op, Snapshot};
use tideline_danmaku::segment::{Bodies, Body, Format, Patched};
use tideline_danmaku::video::Event;
use tideline_types::Seq;

use super::world::{KEYS, World};

/// Pushes that a viewer may fall behind.
const INBOX_MAX: usize = 3;
const FORMATS: [Format; 3] = [Format::Xml, Format::Proto, Format::Json];

/// A body: of a video's segment, in a format.
type Key = (String, u32, usize);

/// What a call is for.
#[derive(Clone)]
enum Purpose {
    Build(Key),
    Patch(Key),
    Hear(String),
    Load { viewer: usize, segment: u32 },
    Enter(usize),
    Join(usize),
}

/// What a room tells.
enum Push {
    Range { after: Seq, through: Seq, events: Vec<(Seq, Event)> },
    Lagged(Seq),
}

/// A room with somebody in it.
struct Room {
    at: Seq,
    changed: bool,
    asking: bool,
}

/// A segment on a screen.
struct Part {
    segment: u32,
    stretches: RangeInclusive<u16>,
    seq: Seq,
    screen: Vec<CommentId>,
}

struct Viewer {
    video: String,
    parts: Vec<Part>,
    /// Segments to be loaded, and through which number at least.
    want: VecDeque<u32>,
    least: Seq,
    /// What it was told everything through, once it has joined.
    seat: Option<Seq>,
    in_room: bool,
    inbox: VecDeque<Arc<Push>>,
    lagged: bool,
    busy: bool,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Stage {
    shelf: BTreeMap<Key, Body>,
    rooms: BTreeMap<String, Room>,
    viewers: Vec<Viewer>,
    calls: BTreeMap<u64, Purpose>,
}

impl Stage {
    /// How many viewers there are.
    pub(crate) fn viewers(&self) -> usize {
        self.viewers.len()
    }

    /// Somebody opens a video and loads some of its segments.
    pub(crate) fn open(&mut self, video: &str, segments: &[u32]) {
        self.viewers.push(Viewer {
            video: video.into(),
            parts: Vec::new(),
            want: segments.iter().copied().collect(),
            least: Seq::ZERO,
            seat: None,
            in_room: false,
            inbox: VecDeque::new(),
            lagged: false,
            busy: false,
        });
    }

    /// The server is gone, with all that it held; screens stay as they are.
    pub(crate) fn cut(&mut self) {
        self.shelf.clear();
        self.rooms.clear();
        self.calls.clear();
        for viewer in &mut self.viewers {
            viewer.inbox.clear();
            (viewer.seat, viewer.in_room) = (None, false);
            (viewer.lagged, viewer.busy) = (false, false);
        }
    }

    /// A reader asks for a body.
    pub(crate) fn fetch(&mut self, world: &mut World, video: &str, segment: u32, format: usize) {
        let key = (video.to_owned(), segment, format);
        let (op, purpose) = match self.shelf.get(&key) {
            Some(body) => (Op::Changes { since: body.seq() }, Purpose::Patch(key)),
            None => (Op::Segment(segment), Purpose::Build(key)),
        };
        self.ask(world, video, op, purpose);
    }

    /// A video changed.
    pub(crate) fn changed(&mut self, video: &str) {
        if let Some(room) = self.rooms.get_mut(video) {
            room.changed = true;
        }
    }

    /// A room that knows of a change asks what it was; answers whether any did.
    pub(crate) fn hear(&mut self, world: &mut World) -> bool {
        let mut due = self.rooms.iter_mut().filter(|(_, room)| room.changed && !room.asking);
        let Some((video, room)) = due.next() else { return false };
        room.asking = true;
        room.changed = false;
        let (video, op) = (video.clone(), Op::Changes { since: room.at });
        self.ask(world, &video, op, Purpose::Hear(video.clone()));
        true
    }

    /// A viewer goes on; answers whether there was anything to do.
    pub(crate) fn go_on(&mut self, world: &mut World, at: usize) -> bool {
        let viewer = &mut self.viewers[at];
        if viewer.busy {
            return false;
        }
        let video = viewer.video.clone();
        if let Some(segment) = viewer.want.front().copied() {
            viewer.busy = true;
            let purpose = Purpose::Load { viewer: at, segment };
            self.ask(world, &video, Op::Segment(segment), purpose);
            return true;
        }
        if viewer.seat.is_none() {
            viewer.busy = true;
            self.ask(world, &video, Op::View, Purpose::Enter(at));
            return true;
        }
        let Some(push) = viewer.inbox.pop_front() else { return false };
        let lagged_from = match &*push {
            Push::Range { after, .. } => *after,
            Push::Lagged(through) => *through,
        };
        if std::mem::take(&mut viewer.lagged) {
            // Told from where pushes go on: what does not reach that is loaded.
            viewer.reload(lagged_from);
            viewer.seat = Some(lagged_from);
            viewer.inbox.push_front(push);
            return true;
        }
        viewer.told(&push);
        self.compare(world, at);
        true
    }

    fn ask(&mut self, world: &mut World, video: &str, op: Op, purpose: Purpose) {
        let call = world.ask(video, op);
        self.calls.insert(call, purpose);
    }

    /// A call was answered; whether it was one of these.
    pub(crate) fn answered(&mut self, world: &mut World, call: u64, answer: &Answer) -> bool {
        let Some(purpose) = self.calls.remove(&call) else { return false };
        match (purpose, answer) {
            (Purpose::Build(key), Answer::Snapshot(Some(snapshot))) => {
                let body = bodies(&key.0).build(FORMATS[key.2], snapshot);
                check_body(world, &key, &body);
                self.shelf.insert(key, body);
            }
            (Purpose::Patch(key), Answer::Changes(changes)) => self.patch(world, &key, changes),
            (Purpose::Build(_) | Purpose::Patch(_), _) => {}
            (Purpose::Hear(video), answer) => self.heard(&video, answer),
            (Purpose::Load { viewer, segment }, answer) => {
                self.viewers[viewer].loaded(segment, answer);
            }
            (Purpose::Enter(at), Answer::View(view)) => {
                let viewer = &mut self.viewers[at];
                // In the room before it asks: what happens in between is told
                // twice, and dropped once.
                let room = Room { at: view.seq, changed: true, asking: false };
                self.rooms.entry(viewer.video.clone()).or_insert(room);
                viewer.in_room = true;
                let from = viewer.parts.iter().map(|part| part.seq).min().unwrap_or(view.seq);
                let (video, op) = (viewer.video.clone(), Op::Changes { since: from });
                self.ask(world, &video, op, Purpose::Join(at));
            }
            (Purpose::Join(at), Answer::Changes(changes)) => {
                let viewer = &mut self.viewers[at];
                viewer.busy = false;
                match changes {
                    Changes::Range { since, through, events, .. } => {
                        viewer.seat = Some(*since);
                        let (after, events) = (*since, events.clone());
                        viewer.told(&Push::Range { after, through: *through, events });
                        self.compare(world, at);
                    }
                    Changes::Lagged { through } => {
                        viewer.reload(*through);
                        viewer.seat = Some(*through);
                    }
                }
            }
            // Refused: it is tried again.
            (Purpose::Enter(at) | Purpose::Join(at), _) => {
                let viewer = &mut self.viewers[at];
                (viewer.busy, viewer.in_room) = (false, false);
                viewer.inbox.clear();
            }
        }
        true
    }

    fn patch(&mut self, world: &World, key: &Key, changes: &Changes) {
        let Some(body) = self.shelf.get_mut(key) else { return };
        let current = match changes {
            Changes::Range { through, events, .. } => {
                bodies(&key.0).patch(body, *through, events) != Patched::Stale
            }
            Changes::Lagged { .. } => false,
        };
        match current {
            true => check_body(world, key, body),
            false => _ = self.shelf.remove(key),
        }
    }

    fn heard(&mut self, video: &str, answer: &Answer) {
        let Some(room) = self.rooms.get_mut(video) else { return };
        room.asking = false;
        let push = match answer {
            Answer::Changes(Changes::Range { through, events, .. }) if events.is_empty() => {
                room.at = room.at.max(*through);
                return;
            }
            Answer::Changes(Changes::Range { through, events, .. }) => {
                Push::Range { after: room.at, through: *through, events: events.clone() }
            }
            Answer::Changes(Changes::Lagged { through }) => Push::Lagged(*through),
            _ => return room.changed = true,
        };
        room.at = match &push {
            Push::Range { through, .. } | Push::Lagged(through) => *through,
        };
        let push = Arc::new(push);
        for viewer in self.viewers.iter_mut().filter(|v| v.in_room && v.video == video) {
            viewer.inbox.push_back(push.clone());
            if viewer.inbox.len() > INBOX_MAX {
                viewer.inbox.pop_front();
                viewer.lagged = true;
            }
        }
    }

    /// A screen shows what the segment holds through its number.
    fn compare(&self, world: &World, at: usize) {
        for part in &self.viewers[at].parts {
            let video = &self.viewers[at].video;
            let mut screen = part.screen.clone();
            screen.sort_unstable();
            let plain = world.oracle(video).at(video, part.seq);
            let mut due: Vec<_> = plain.items(&part.stretches).iter().map(|c| c.id).collect();
            due.sort_unstable();
            assert_eq!(screen, due, "segment {} of {video} through {}", part.segment, part.seq);
        }
    }

    /// Nothing happens any more: every screen shows what there is.
    pub(crate) fn check_current(&self, world: &World) {
        for viewer in &self.viewers {
            let last = world.last(&viewer.video);
            let plain = world.oracle(&viewer.video).at(&viewer.video, last);
            for part in &viewer.parts {
                let due = plain.items(&part.stretches).len();
                assert_eq!(part.screen.len(), due, "what is on a screen of {}", viewer.video);
            }
        }
    }
}

impl Viewer {
    /// Everything on the screen that does not reach `least` is loaded again.
    fn reload(&mut self, least: Seq) {
        self.least = self.least.max(least);
        self.want.extend(self.parts.iter().map(|part| part.segment));
        self.parts.clear();
    }

    fn loaded(&mut self, segment: u32, answer: &Answer) {
        self.busy = false;
        match answer {
            Answer::Snapshot(Some(snapshot)) => {
                let Snapshot { seq, stretches, items, .. } = snapshot;
                assert!(*seq >= self.least, "a body of {seq}, {} was told", self.least);
                let screen = items.iter().map(|comment| comment.id).collect();
                self.want.pop_front();
                self.parts.push(Part { segment, stretches: stretches.clone(), seq: *seq, screen });
            }
            // The video is not that long.
            Answer::Snapshot(None) => _ = self.want.pop_front(),
            _ => {}
        }
    }

    fn told(&mut self, push: &Push) {
        let Some(seat) = &mut self.seat else { return };
        let (through, events) = match push {
            Push::Lagged(through) => {
                if *through > *seat {
                    *seat = *through;
                    self.reload(*through);
                }
                return;
            }
            Push::Range { through, events, .. } => (*through, events),
        };
        let known = std::mem::replace(seat, through.max(*seat));
        for (seq, event) in events.iter().filter(|(seq, _)| *seq > known) {
            if matches!(event, Event::Settings(_)) {
                // Where segments end may have changed.
                self.reload(*seq);
            }
            self.parts.iter_mut().for_each(|part| part.show(*seq, event));
        }
        self.parts.iter_mut().for_each(|part| part.seq = part.seq.max(through));
    }
}

impl Part {
    /// As a player does: at or below the number of the body it is known.
    fn show(&mut self, seq: Seq, event: &Event) {
        let is_ours = |id: CommentId| self.stretches.contains(&id.stretch());
        if seq <= self.seq {
            return;
        }
        match event {
            Event::Shown(comment) if is_ours(comment.id) => {
                assert!(!self.screen.contains(&comment.id), "{} is shown twice", comment.id);
                self.screen.push(comment.id);
            }
            Event::Changed(comment) if is_ours(comment.id) => {
                assert!(self.screen.contains(&comment.id), "{} was never shown", comment.id);
            }
            Event::Hidden(id) if is_ours(*id) => {
                let there = self.screen.iter().position(|own| own == id);
                self.screen.swap_remove(there.unwrap_or_else(|| panic!("{id} was never shown")));
            }
            _ => {}
        }
    }
}

fn bodies(video: &str) -> Bodies {
    Bodies::new(KEYS, video)
}

/// A body is the one that would be built anew.
fn check_body(world: &World, key: &Key, body: &Body) {
    let (video, segment, format) = key;
    let plain = world.oracle(video).at(video, body.seq());
    let stretches = plain.stretches(*segment).expect("a body is of a segment that is there");
    let snapshot = Snapshot {
        seq: body.seq(),
        items: plain.items(&stretches),
        stretches,
        limit: plain.limit(&world.setup),
        closed: plain.settings.closed,
    };
    let anew = bodies(video).build(FORMATS[*format], &snapshot);
    assert_eq!(
        String::from_utf8_lossy(body.bytes()),
        String::from_utf8_lossy(anew.bytes()),
        "{key:?} through {}",
        body.seq()
    );
}
