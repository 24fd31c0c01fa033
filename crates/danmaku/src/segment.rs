//! Ready bytes of a segment in a player's format, patched as comments come and
//! go.
//!
//! ```text
//! head | piece | separator | piece | ... | tail
//! ```
//!
//! Always: a patched body is byte for byte the one that would be built anew;
//! it holds every change of its segment through its number. A piece is one
//! comment, in the order of pool, time and id. Knows nothing of compression,
//! caches or sockets.

use std::ops::RangeInclusive;

use tideline_types::Seq;
use tideline_wire::danmaku::{Pool, ass, json, proto, xml};

use crate::ask::Snapshot;
use crate::comment::Comment;
use crate::id::CommentId;
use crate::item::item;
use crate::options::Keys;
use crate::video::Event;

/// What a player reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// A list of `<d>`.
    Xml,
    /// Elements of a protobuf message.
    Proto,
    /// Our JSON.
    Json,
}

/// Makes bodies for one video.
#[derive(Clone, Debug)]
pub struct Bodies {
    keys: Keys,
    video: Box<str>,
}

/// A segment's bytes.
#[derive(Clone, Debug)]
pub struct Body {
    format: Format,
    seq: Seq,
    stretches: RangeInclusive<u16>,
    bytes: Vec<u8>,
    head: usize,
    /// Each piece's place in the order, and its length.
    pieces: Vec<(Place, u32)>,
}

type Place = (Pool, u32, CommentId);

/// What a change did to a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patched {
    /// Nothing.
    Same,
    /// Its bytes are others now.
    Changed,
    /// It must be built anew.
    Stale,
}

impl Bodies {
    /// Of `video`, whose senders are hashed under `keys`.
    pub fn new(keys: Keys, video: &str) -> Self {
        Self { keys, video: video.into() }
    }

    /// The body of a segment.
    pub fn build(&self, format: Format, snapshot: &Snapshot) -> Body {
        let mut bytes = Vec::with_capacity(128 * (1 + snapshot.items.len()));
        match format {
            Format::Xml => xml::put_head(
                &mut bytes,
                &xml::Head { video: &self.video, limit: snapshot.limit, closed: snapshot.closed },
            ),
            Format::Proto => proto::put_state(&mut bytes, snapshot.closed),
            Format::Json => json::put_head(&mut bytes),
        }
        let head = bytes.len();
        let mut pieces = Vec::with_capacity(snapshot.items.len());
        for comment in &snapshot.items {
            if !pieces.is_empty() {
                bytes.extend_from_slice(format.separator());
            }
            let from = bytes.len();
            self.put(format, comment, &mut bytes);
            pieces.push((place(comment), (bytes.len() - from) as u32));
        }
        format.put_tail(&mut bytes);
        let (seq, stretches) = (snapshot.seq, snapshot.stretches.clone());
        Body { format, seq, stretches, bytes, head, pieces }
    }

    /// The segment as subtitles. Where each comment finds room depends on all
    /// before it, so these are always built whole.
    pub fn subtitles(&self, snapshot: &Snapshot, options: ass::Options) -> Vec<u8> {
        let mut script = ass::Script::new(options);
        let mut bytes = Vec::new();
        script.put_head(&mut bytes);
        for comment in &snapshot.items {
            script.put_item(&mut bytes, &item(&self.keys, &self.video, comment));
        }
        bytes
    }

    /// Takes into the body what happened through `through`, of which it may
    /// hold a part already: `events` are all since its own number, or more.
    pub fn patch(&self, body: &mut Body, through: Seq, events: &[(Seq, Event)]) -> Patched {
        let known = body.seq;
        let mut patched = Patched::Same;
        for (_, event) in events.iter().filter(|(seq, _)| *seq > known) {
            match self.patch_one(body, event) {
                Patched::Same => {}
                Patched::Changed => patched = Patched::Changed,
                Patched::Stale => return Patched::Stale,
            }
        }
        body.seq = known.max(through);
        patched
    }

    fn patch_one(&self, body: &mut Body, event: &Event) -> Patched {
        match event {
            Event::Settings(_) => Patched::Stale,
            Event::Hidden(id) => match body.remove(*id) {
                // The video may end before it now.
                _ if body.is_empty() => Patched::Stale,
                true => Patched::Changed,
                false => Patched::Same,
            },
            Event::Shown(comment) | Event::Changed(comment) => {
                let of_ours = body.stretches.contains(&comment.id.stretch());
                if !of_ours || comment.index.is_special() {
                    return Patched::Same;
                }
                body.remove(comment.id);
                let mut piece = Vec::new();
                self.put(body.format, comment, &mut piece);
                body.insert(place(comment), &piece);
                Patched::Changed
            }
        }
    }

    fn put(&self, format: Format, comment: &Comment, out: &mut Vec<u8>) {
        let item = item(&self.keys, &self.video, comment);
        match format {
            Format::Xml => xml::put_item(out, &item),
            Format::Proto => proto::put_item(out, &item),
            Format::Json => json::put_item(out, &item),
        }
    }
}

impl Format {
    fn separator(self) -> &'static [u8] {
        match self {
            Self::Json => json::SEPARATOR,
            Self::Xml | Self::Proto => b"",
        }
    }

    fn put_tail(self, out: &mut Vec<u8>) {
        match self {
            Self::Xml => xml::put_tail(out),
            Self::Proto => {}
            Self::Json => json::put_tail(out),
        }
    }
}

impl Body {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Every change of the segment through this number is in the bytes.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// Comments in it.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether it holds no comment.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Where piece `at` begins; after the last, where one would.
    fn offset(&self, at: usize) -> usize {
        let before: usize = self.pieces[..at].iter().map(|(_, len)| *len as usize).sum();
        self.head + before + at * self.format.separator().len()
    }

    fn insert(&mut self, place: Place, piece: &[u8]) {
        let there = self.pieces.partition_point(|(there, _)| *there < place);
        let at = if broken!(PatchedAtEnd) { self.pieces.len() } else { there };
        let separator = if self.pieces.is_empty() { b"" } else { self.format.separator() };
        // Behind the last piece the separator comes first.
        let offset = match at == self.pieces.len() && at > 0 {
            true => self.offset(at) - separator.len(),
            false => self.offset(at),
        };
        let parts = match at == self.pieces.len() {
            true => [separator, piece],
            false => [piece, separator],
        };
        self.bytes.splice(offset..offset, parts.concat());
        self.pieces.insert(at, (place, piece.len() as u32));
    }

    fn remove(&mut self, id: CommentId) -> bool {
        let Some(at) = self.pieces.iter().position(|((_, _, own), _)| *own == id) else {
            return false;
        };
        let separator = self.format.separator().len();
        let from = self.offset(at);
        let to = from + self.pieces[at].1 as usize;
        // The last piece goes with the separator before it.
        let range = match (at + 1 == self.pieces.len(), at) {
            (true, 0) => from..to,
            (true, _) => from - separator..to,
            (false, _) => from..to + separator,
        };
        self.bytes.drain(range);
        self.pieces.remove(at);
        true
    }
}

fn place(comment: &Comment) -> Place {
    (comment.index.pool, comment.index.progress_ms, comment.id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use proptest::prelude::*;
    use tideline_types::Millis;

    use super::*;
    use crate::comment::{Index, State};
    use crate::outcome::Change;
    use crate::rows::tests::{any_content, any_index};

    fn snapshot(comments: &BTreeMap<CommentId, Arc<Comment>>, seq: u64) -> Snapshot {
        let mut items: Vec<Arc<Comment>> = comments
            .values()
            .filter(|c| c.id.stretch() == 1 && !c.index.is_special())
            .cloned()
            .collect();
        items.sort_unstable_by_key(|c| place(c));
        Snapshot { seq: Seq(seq), stretches: 1..=1, limit: 3000, closed: false, items }
    }

    #[test]
    fn an_outcome_that_shows_one_and_hides_another_is_taken_whole() {
        let bodies = Bodies::new(Keys([7; 16]), "v");
        let of = |n: u64| {
            let id = CommentId::from_bits((849_315_200_000 + n) << 22 | 1 << 9).unwrap();
            let sample = crate::outcome::sample();
            let Some(Change::New { index, content, .. }) = sample.changes.first() else { panic!() };
            let index = Index { progress_ms: 360_000, ..*index };
            Arc::new(Comment { id, index, content: content.clone() })
        };
        let (old, new) = (of(1), of(2));
        let all = |comment: &Arc<Comment>| BTreeMap::from([(comment.id, Arc::clone(comment))]);
        let mut body = bodies.build(Format::Xml, &snapshot(&all(&old), 1));
        let events = [(Seq(2), Event::Shown(new.clone())), (Seq(2), Event::Hidden(old.id))];
        assert_eq!(bodies.patch(&mut body, Seq(3), &events), Patched::Changed);
        let anew = bodies.build(Format::Xml, &snapshot(&all(&new), 3));
        assert_eq!((body.bytes(), body.seq()), (anew.bytes(), anew.seq()));
    }

    proptest! {
        #[test]
        fn a_patched_body_is_the_one_built_anew(
            steps in prop::collection::vec((0_u64..12, any_index(), any_content(), 0_u8..4), 1..60),
        ) {
            let bodies = Bodies::new(Keys([7; 16]), "v");
            let mut comments = BTreeMap::new();
            let formats = [Format::Xml, Format::Proto, Format::Json];
            let mut built: Vec<Body> =
                formats.iter().map(|f| bodies.build(*f, &snapshot(&comments, 0))).collect();
            for (seq, (n, index, content, what)) in (1..).zip(steps) {
                // Every third comment is of another segment.
                let stretch = u64::from(n % 3 > 0);
                let bits = (849_315_200_000 + n) << 22 | stretch << 9;
                let id = CommentId::from_bits(bits).unwrap();
                let event = if what == 0 {
                    comments.remove(&id);
                    Event::Hidden(id)
                } else {
                    let progress_ms = index.progress_ms % 5 + stretch as u32 * 360_000;
                    let text = format!("{}x", content.text).into();
                    let content = crate::comment::Content { text, sent_ms: Millis(0), ..content };
                    let index = Index { state: State::Shown, progress_ms, ..index };
                    // A comment never becomes a script, or stops being one.
                    let index = match comments.get(&id) {
                        Some(old) if Comment::index(old).is_special() != index.is_special() => continue,
                        _ => index,
                    };
                    let comment = Arc::new(Comment { id, index, content });
                    comments.insert(id, Arc::clone(&comment));
                    Event::Changed(comment)
                };
                for (format, body) in formats.iter().zip(&mut built) {
                    let before = body.bytes().to_vec();
                    let events = [(Seq(seq), event.clone())];
                    let patched = bodies.patch(body, Seq(seq), &events);
                    if patched == Patched::Stale {
                        prop_assert!(body.is_empty(), "only an empty body may lie outside");
                        *body = bodies.build(*format, &snapshot(&comments, seq));
                    }
                    let anew = bodies.build(*format, &snapshot(&comments, seq));
                    prop_assert_eq!(body.bytes(), anew.bytes());
                    prop_assert_eq!((body.len(), body.seq()), (anew.len(), Seq(seq)));
                    prop_assert!(patched != Patched::Same || before == body.bytes());
                    prop_assert_eq!(bodies.patch(body, Seq(seq), &events), Patched::Same);
                }
            }
        }
    }

    impl Comment {
        fn index(this: &Arc<Self>) -> &Index {
            &this.index
        }
    }
}
