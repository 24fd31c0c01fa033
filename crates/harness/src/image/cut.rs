//! What was durable at a moment, and what may have been.
//!
//! The rules, as strict as POSIX lets a disk be where it matters:
//! - A change of a file is durable once a sync of that file that began after
//!   it has come back. Until then each 512-byte sector may hold any state that
//!   it had since, independently of every other; the length may be any that
//!   it had, or for a file that grew, anything between. What was never
//!   written back reads as zero. Cutting a file is ordered: a disk that knows
//!   of bytes written after a cut knows of the cut.
//! - A change of an entry is durable once a sync of its folder has come back.
//!   Until then each name may be as it was at any moment since. A rename is
//!   one step, for both its names, and durable with either folder.
//! - A folder that is not durable is lost with all that is in it.

use std::collections::{BTreeMap, BTreeSet};

use super::content::Content;
use super::{Image, Inside};
use crate::rng::Rng;
use crate::trail::{Entry, Event, Node, ROOT, Trail};

const SECTOR: u64 = 512;

/// How much of what may be lost is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// All arrived: what a killed process leaves.
    Everything,
    /// Nothing arrived that was not synced.
    Nothing,
    /// Each sector and each entry arrived so many times of a thousand.
    Scattered(u64),
    /// Each file and each folder whole or not at all: orders between files.
    ByFile,
}

impl Mood {
    /// A mood to try, every kind in its turn.
    pub fn draw(rng: &mut Rng) -> Self {
        match rng.below(8) {
            0 => Self::Everything,
            1 => Self::Nothing,
            2 | 3 => Self::ByFile,
            4 => Self::Scattered(100),
            5 => Self::Scattered(900),
            _ => Self::Scattered(500),
        }
    }
}

/// The folder as a disk may hold it when the power goes after the first `at`
/// events of `trail`.
pub fn image(trail: &Trail, at: usize, mood: Mood, rng: &mut Rng) -> Image {
    let events = &trail.events()[..at];
    let covered = covered(events);
    let entries = entries(events, &covered, mood, rng);
    let mut inside = BTreeMap::new();
    let changes = changes_by_file(events);
    for (node, is_folder) in makes(events) {
        let what = if is_folder {
            Inside::Folder
        } else {
            let changes = changes.get(&node).map_or(&[][..], |changes| changes);
            let durable = covered.get(&node).copied().unwrap_or(0);
            Inside::File(content(trail, changes, durable, mood, rng))
        };
        inside.insert(node, what);
    }
    Image::assemble(&entries, &inside)
}

/// For each node the place before which every change of it is durable.
fn covered(events: &[Event]) -> BTreeMap<Node, usize> {
    let mut begun = BTreeMap::new();
    let mut covered = BTreeMap::new();
    for (place, event) in events.iter().enumerate() {
        match event {
            Event::SyncBegin { node, call } => {
                begun.insert(*call, (*node, place));
            }
            Event::SyncEnd { call } => {
                if let Some((node, place)) = begun.remove(call) {
                    let known = covered.entry(node).or_insert(0);
                    *known = place.max(*known);
                }
            }
            _ => (),
        }
    }
    covered
}

fn makes(events: &[Event]) -> impl Iterator<Item = (Node, bool)> {
    events.iter().filter_map(|event| match event {
        Event::Make { node, folder, .. } => Some((*node, *folder)),
        _ => None,
    })
}

/// The names that an event changes.
fn names(event: &Event) -> [Option<&Entry>; 2] {
    match event {
        Event::Make { at, .. } | Event::Drop { at } => [Some(at), None],
        Event::Move { from, to } => [Some(from), Some(to)],
        _ => [None, None],
    }
}

/// Which node stands under which name, in one state that is allowed.
fn entries(
    events: &[Event],
    covered: &BTreeMap<Node, usize>,
    mood: Mood,
    rng: &mut Rng,
) -> BTreeMap<Entry, Node> {
    // Backwards: what is durable takes with it all that came before under the
    // same names.
    let mut needed = BTreeSet::new();
    let mut durable = BTreeSet::new();
    for (place, event) in events.iter().enumerate().rev() {
        let names = || names(event).into_iter().flatten();
        let synced = |name: &Entry| covered.get(&name.folder).is_some_and(|&upto| place < upto);
        if names().any(|name| synced(name) || needed.contains(name)) {
            durable.insert(place);
            needed.extend(names());
        }
    }
    // Forwards: a change that did not arrive holds back all later ones of its
    // names.
    let mut held_back: BTreeSet<&Entry> = BTreeSet::new();
    let mut whole_folders = BTreeMap::new();
    let mut entries = BTreeMap::new();
    for (place, event) in events.iter().enumerate() {
        let Some(first) = names(event)[0] else { continue };
        let names = names(event).into_iter().flatten();
        let arrived = durable.contains(&place) || {
            let by_luck = match mood {
                Mood::Everything => true,
                Mood::Nothing => false,
                Mood::Scattered(per_mille) => rng.chance(per_mille),
                Mood::ByFile => {
                    *whole_folders.entry(first.folder).or_insert_with(|| rng.chance(500))
                }
            };
            by_luck && !names.clone().any(|name| held_back.contains(name))
        };
        if !arrived {
            held_back.extend(names);
            continue;
        }
        match event {
            Event::Make { at, node, .. } => {
                entries.insert(at.clone(), *node);
            }
            Event::Move { from, to } => {
                if let Some(node) = entries.remove(from) {
                    entries.insert(to.clone(), node);
                }
            }
            Event::Drop { at } => {
                entries.remove(at);
            }
            _ => (),
        }
    }
    entries
}

/// A change of one file.
#[derive(Clone, Copy)]
enum Change<'a> {
    Write { offset: u64, bytes: &'a std::ops::Range<usize> },
    Length(u64),
}

fn changes_by_file(events: &[Event]) -> BTreeMap<Node, Vec<(usize, Change<'_>)>> {
    let mut changes: BTreeMap<Node, Vec<_>> = BTreeMap::new();
    for (place, event) in events.iter().enumerate() {
        let (node, change) = match event {
            Event::Write { node, offset, bytes } => {
                (node, Change::Write { offset: *offset, bytes })
            }
            Event::Length { node, len } => (node, Change::Length(*len)),
            _ => continue,
        };
        changes.entry(*node).or_default().push((place, change));
    }
    changes
}

/// One file, in one state that is allowed.
fn content(
    trail: &Trail,
    changes: &[(usize, Change<'_>)],
    durable: usize,
    mood: Mood,
    rng: &mut Rng,
) -> Content {
    let split = changes.partition_point(|(place, _)| *place < durable);
    let (kept, open) = changes.split_at(split);
    let mut content = Content::default();
    for (_, change) in kept {
        apply(trail, &mut content, change);
    }
    let mood = match mood {
        Mood::ByFile if rng.chance(500) => Mood::Everything,
        Mood::ByFile => Mood::Nothing,
        mood => mood,
    };
    match mood {
        Mood::Nothing => return content,
        Mood::Everything => {
            for (_, change) in open {
                apply(trail, &mut content, change);
            }
            return content;
        }
        Mood::Scattered(_) | Mood::ByFile => (),
    }
    scattered(trail, content, open, mood, rng)
}

fn apply(trail: &Trail, content: &mut Content, change: &Change<'_>) {
    match change {
        Change::Write { offset, bytes } => content.write(*offset, trail.bytes(bytes)),
        Change::Length(len) => content.set_len(*len),
    }
}

/// Each sector in a state of its own.
fn scattered(
    trail: &Trail,
    mut content: Content,
    open: &[(usize, Change<'_>)],
    mood: Mood,
    rng: &mut Rng,
) -> Content {
    let Mood::Scattered(per_mille) = mood else { unreachable!("only a scattered mood comes here") };
    // Cuts are ordered: of those that are open, the first few arrived, and
    // nothing that came after the next one did.
    let cuts = cuts(content.len(), open);
    let arrived =
        if rng.chance(per_mille) { cuts.len() } else { rng.below(cuts.len() as u64 + 1) as usize };
    let open = &open[..cuts.get(arrived).copied().unwrap_or(open.len())];
    let last_cut = arrived.checked_sub(1).map(|index| cuts[index]);

    // How many of its writes each sector has seen.
    let mut touched: BTreeMap<u64, u64> = BTreeMap::new();
    for (_, change) in open {
        for (sector, _) in pieces(change) {
            *touched.entry(sector).or_default() += 1;
        }
    }
    let mut left: BTreeMap<u64, u64> = touched
        .into_iter()
        .map(|(sector, count)| {
            (sector, if rng.chance(per_mille) { count } else { rng.below(count + 1) })
        })
        .collect();

    let mut len = content.len();
    let mut lengths = vec![len];
    for (index, (_, change)) in open.iter().enumerate() {
        for (sector, part) in pieces(change) {
            let left = left.entry(sector).or_default();
            if *left > 0 {
                *left -= 1;
                let Change::Write { offset, bytes } = change else { continue };
                let from = (part.start - offset) as usize;
                let to = (part.end - offset) as usize;
                content.write(part.start, &trail.bytes(bytes)[from..to]);
            }
        }
        len = after(len, change);
        if last_cut.is_some_and(|cut| index <= cut) {
            // The cut arrived: no length before it is left.
            lengths.clear();
            if matches!(change, Change::Length(_)) {
                content.set_len(len.min(content.len()));
            }
        }
        lengths.push(len);
    }
    content.set_len(pick_length(&lengths, per_mille, rng));
    content
}

/// The length after `change`.
fn after(len: u64, change: &Change<'_>) -> u64 {
    match change {
        Change::Write { bytes, .. } if bytes.is_empty() => len,
        Change::Write { offset, bytes } => len.max(offset + bytes.len() as u64),
        Change::Length(len) => *len,
    }
}

/// Which of the open changes make the file shorter.
fn cuts(mut len: u64, open: &[(usize, Change<'_>)]) -> Vec<usize> {
    let mut cuts = Vec::new();
    for (index, (_, change)) in open.iter().enumerate() {
        let next = after(len, change);
        if next < len {
            cuts.push(index);
        }
        len = next;
    }
    cuts
}

/// A write, cut at the borders of sectors.
fn pieces(change: &Change<'_>) -> impl Iterator<Item = (u64, std::ops::Range<u64>)> {
    let (mut at, end) = match change {
        Change::Write { offset, bytes } => (*offset, offset + bytes.len() as u64),
        Change::Length(_) => (0, 0),
    };
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let from = at;
            at = end.min((at / SECTOR + 1) * SECTOR);
            (from / SECTOR, from..at)
        })
    })
}

/// One of the lengths, or something on the way from one to the next.
fn pick_length(lengths: &[u64], per_mille: u64, rng: &mut Rng) -> u64 {
    let last = lengths.len() - 1;
    let index = if rng.chance(per_mille) { last } else { rng.below(last as u64 + 1) as usize };
    let upto = lengths[index];
    match index.checked_sub(1).map(|before| lengths[before]) {
        Some(before) if before < upto && rng.chance(400) => before + rng.below(upto - before),
        _ => upto,
    }
}

/// Moments to try, `count` of them: half anywhere, half where a wrong order
/// would show: right after a mark, around syncs, after entries changed.
pub fn moments(trail: &Trail, count: usize, rng: &mut Rng) -> Vec<usize> {
    let first = trail.start();
    let all = trail.events().len();
    let telling: Vec<usize> = (first..all)
        .filter(|&place| {
            use Event::{Drop, Make, Mark, Move, SyncBegin, SyncEnd};
            matches!(
                trail.events()[place],
                Make { .. }
                    | Drop { .. }
                    | Move { .. }
                    | Mark(_)
                    | SyncBegin { .. }
                    | SyncEnd { .. }
            )
        })
        .collect();
    (0..count)
        .map(|index| {
            if index % 2 == 0 || telling.is_empty() {
                first + rng.below((all - first) as u64 + 1) as usize
            } else {
                // Right before it or right after it.
                rng.pick(&telling) + rng.below(2) as usize
            }
        })
        .collect()
}

impl Image {
    fn assemble(entries: &BTreeMap<Entry, Node>, inside: &BTreeMap<Node, Inside>) -> Self {
        let mut image = Self::default();
        let mut folders = vec![(ROOT, std::path::PathBuf::new())];
        while let Some((folder, path)) = folders.pop() {
            let from = Entry { folder, name: std::ffi::OsString::new() };
            for (entry, node) in entries.range(from..).take_while(|(at, _)| at.folder == folder) {
                let path = path.join(&entry.name);
                let Some(what) = inside.get(node) else { continue };
                if matches!(what, Inside::Folder) {
                    folders.push((*node, path.clone()));
                }
                image.entries.insert(path, what.clone());
            }
        }
        image
    }
}
