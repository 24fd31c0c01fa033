//! A mark: one thing a user did to one object, as a caller says it.

use tideline_types::Millis;

use crate::kinds::KindId;

/// A mark whose fields have the right types and lengths; nothing about time
/// has been decided. Borrowed from a [`MarkSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark<'a> {
    /// Whose: 1 to 128 bytes.
    pub user: &'a str,
    /// A declared kind.
    pub kind: KindId,
    /// Which object: 1 to 64 bytes.
    pub id: &'a str,
    /// Which part of it: 1 to 64 bytes.
    pub part: Option<&'a str>,
    /// How far, at most `LENGTH_MS_MAX`.
    pub position_ms: Option<u64>,
    /// Of how much; a duration of 0 is none and comes as `None`.
    pub duration_ms: Option<u64>,
    /// When, as sent: not yet shifted.
    pub sent_ms: Option<Millis>,
    /// Where: 1 to 64 bytes.
    pub device: Option<&'a str>,
    /// Of which group: 1 to 64 bytes.
    pub group: Option<&'a str>,
    /// Whether the caller declares it finished.
    pub finished: bool,
    /// The caller's name for this mark, for retries: 1 to 64 bytes.
    pub event_id: Option<&'a str>,
}

/// By which way a mark came; some rules differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Live, batch, stream or gRPC: rewarded, and paused while recording is off.
    Live,
    /// Kept offline on a device: each keeps its time, no reward.
    Merge,
    /// `tideline import`: as `Merge`.
    Import,
}

/// When a write is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    /// When it survives power loss.
    Durable,
    /// When it is decided; lost if the machine stops within `fast_window_ms`.
    Fast,
}

/// What became of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It changed its row.
    Accepted {
        /// It was the first of its kind in the user's day.
        first_today: bool,
    },
    /// Something newer stands, or it is too old.
    Stale,
    /// Recording was off.
    Paused,
    /// It was taken before.
    Duplicate,
    /// The kind's cap for a day is reached.
    OverCap,
    /// `event_ms` lies more than a day ahead, once shifted.
    Ahead,
    /// `event_ms` is not after 0 once shifted.
    BeforeEpoch,
}

/// Marks of one request: fixed-size spans over one buffer, so that a batch
/// costs two allocations.
#[derive(Clone, Debug, Default)]
pub struct MarkSet {
    text: String,
    spans: Vec<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    at: u32,
    user: u8,
    id: u8,
    /// 0 stands for none in the four lengths below.
    part: u8,
    device: u8,
    group: u8,
    event_id: u8,
    kind: KindId,
    finished: bool,
    /// `u64::MAX` stands for none.
    position_ms: u64,
    /// 0 stands for none.
    duration_ms: u64,
    /// [`NO_TIME`] stands for none.
    sent_ms: i64,
}

/// No mark is taken whose time is this or the next.
const NO_TIME: i64 = i64::MIN;

impl MarkSet {
    /// An empty set with room for `marks` of them.
    pub fn with_capacity(marks: usize) -> Self {
        Self { text: String::with_capacity(marks * 48), spans: Vec::with_capacity(marks) }
    }

    /// Adds a mark; its place in the set is the number of marks before it.
    /// The fields' lengths must be within their limits.
    pub fn push(&mut self, mark: &Mark<'_>) {
        let at = u32::try_from(self.text.len()).expect("a body is at most 8 MiB");
        let fields =
            [Some(mark.user), Some(mark.id), mark.part, mark.device, mark.group, mark.event_id];
        let lengths = fields.map(|field| {
            let field = field.unwrap_or_default();
            self.text.push_str(field);
            u8::try_from(field.len()).expect("a field is at most 128 bytes")
        });
        self.spans.push(Span {
            at,
            user: lengths[0],
            id: lengths[1],
            part: lengths[2],
            device: lengths[3],
            group: lengths[4],
            event_id: lengths[5],
            kind: mark.kind,
            finished: mark.finished,
            position_ms: mark.position_ms.unwrap_or(u64::MAX),
            duration_ms: mark.duration_ms.unwrap_or(0),
            sent_ms: mark.sent_ms.map_or(NO_TIME, |ms| ms.0.max(NO_TIME + 1)),
        });
    }

    /// How many marks.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The kind of the mark at place `index`.
    pub fn kind(&self, index: usize) -> KindId {
        self.spans[index].kind
    }

    /// The user of the mark at place `index`.
    pub fn user(&self, index: usize) -> &str {
        let span = &self.spans[index];
        &self.text[span.at as usize..span.at as usize + usize::from(span.user)]
    }

    /// The mark at place `index`.
    pub fn get(&self, index: usize) -> Mark<'_> {
        let span = &self.spans[index];
        let mut at = span.at as usize;
        let mut field = |len: u8| {
            let text = &self.text[at..at + usize::from(len)];
            at += usize::from(len);
            text
        };
        let (user, id) = (field(span.user), field(span.id));
        let mut optional = |len: u8| Some(field(len)).filter(|text| !text.is_empty());
        Mark {
            user,
            id,
            part: optional(span.part),
            device: optional(span.device),
            group: optional(span.group),
            event_id: optional(span.event_id),
            kind: span.kind,
            finished: span.finished,
            position_ms: (span.position_ms != u64::MAX).then_some(span.position_ms),
            duration_ms: (span.duration_ms != 0).then_some(span.duration_ms),
            sent_ms: (span.sent_ms != NO_TIME).then_some(Millis(span.sent_ms)),
        }
    }

    /// All marks, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Mark<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }
}
