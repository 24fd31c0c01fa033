//! What happened in a room, as frames: written once, sent to all.

use std::sync::{Arc, OnceLock};

use axum::extract::ws::{Message, Utf8Bytes};
use bytes::Bytes;
use tideline_danmaku::comment::Comment;
use tideline_danmaku::video::Event;
use tideline_danmaku::{CommentId, stretch_of};
use tideline_types::Seq;
use tideline_wire::danmaku::{json, proto};
use tideline_wire::json::{push_i64, push_str, push_string, push_u64};
use tideline_wire::{live, live_v1 as v1};

use super::follow::Range;
use super::frames::Encoding;
use crate::Gateway;

/// What happened after one number and through another.
pub(super) struct Push {
    pub(super) range: Range,
    viewers: usize,
    /// The last segment, where that is known.
    end: Option<u32>,
    events: Vec<(Seq, Event)>,
    video: Arc<str>,
    /// The events, each with its number and segment.
    told: Vec<Told>,
    json: OnceLock<Utf8Bytes>,
    protobuf: OnceLock<Bytes>,
}

struct Told {
    seq: Seq,
    segment: u32,
    what: What,
}

enum What {
    /// In JSON, and as a segment of one element.
    Comment(Vec<u8>, Vec<u8>),
    Gone(CommentId),
}

impl Push {
    pub(super) fn new(
        gateway: &Gateway,
        video: &Arc<str>,
        range: Range,
        viewers: usize,
        end: Option<u32>,
        events: Vec<(Seq, Event)>,
    ) -> Self {
        let options = gateway.inner.danmaku.options();
        let told = events.iter().filter_map(|(seq, event)| {
            let (stretch, what) = match event {
                Event::Shown(comment) | Event::Changed(comment) => {
                    // Scripts and BAS come in packs of their own.
                    if comment.index.is_special() {
                        return None;
                    }
                    (stretch_of(comment.index.progress_ms), comment_of(gateway, video, comment))
                }
                Event::Hidden(id) => (id.stretch(), What::Gone(*id)),
                Event::Settings(_) => return None,
            };
            // The last one shows what lies behind its end, too.
            let segment = options.segment_at(stretch).min(end.unwrap_or(u32::MAX));
            Some(Told { seq: *seq, segment, what })
        });
        let told = told.collect();
        Self {
            range,
            viewers,
            end,
            video: video.clone(),
            told,
            events,
            json: OnceLock::new(),
            protobuf: OnceLock::new(),
        }
    }

    /// What of it comes after `seq`.
    pub(super) fn after(&self, gateway: &Gateway, seq: Seq) -> Self {
        let new = self.events.iter().filter(|(at, _)| *at > seq).cloned().collect();
        let range = Range { after: seq, through: self.range.through };
        Self::new(gateway, &self.video, range, self.viewers, self.end, new)
    }

    pub(super) fn frame(&self, encoding: Encoding) -> Message {
        match encoding {
            Encoding::Json => Message::Text(self.json.get_or_init(|| self.write_json()).clone()),
            Encoding::Protobuf => {
                Message::Binary(self.protobuf.get_or_init(|| self.write_protobuf()).clone())
            }
        }
    }

    fn write_json(&self) -> Utf8Bytes {
        let mut out = head("danmaku", &self.video, self.range.through);
        push_str(&mut out, ",\"viewers\":");
        push_u64(&mut out, self.viewers as u64);
        push_str(&mut out, ",\"items\":[");
        for (at, told) in self.told.iter().enumerate() {
            push_str(&mut out, if at == 0 { "{\"seq\":" } else { ",{\"seq\":" });
            push_u64(&mut out, told.seq.0);
            push_str(&mut out, ",\"segment\":");
            push_u64(&mut out, told.segment.into());
            match &told.what {
                What::Comment(json, _) => {
                    push_str(&mut out, ",\"comment\":");
                    out.extend_from_slice(json);
                }
                What::Gone(id) => {
                    push_str(&mut out, ",\"gone\":\"");
                    push_i64(&mut out, id.number());
                    out.push(b'"');
                }
            }
            out.push(b'}');
        }
        push_str(&mut out, "]}");
        text(out)
    }

    fn write_protobuf(&self) -> Bytes {
        let event = |told: &Told| v1::Event {
            seq: told.seq.0,
            segment: told.segment,
            comment: match &told.what {
                What::Comment(_, element) => live::segment_of(element),
                What::Gone(_) => None,
            },
            gone: match &told.what {
                What::Comment(..) => 0,
                What::Gone(id) => id.number(),
            },
        };
        live::write_down(v1::down::What::Danmaku(v1::Danmaku {
            room: format!("video:{}", self.video),
            seq: self.range.through.0,
            viewers: u32::try_from(self.viewers).unwrap_or(u32::MAX),
            events: self.told.iter().map(event).collect(),
        }))
        .into()
    }
}

/// The frame that tells from where pushes go on.
pub(super) fn lagged(encoding: Encoding, video: &str, seq: Seq) -> Message {
    match encoding {
        Encoding::Json => {
            let mut out = head("lagged", video, seq);
            out.push(b'}');
            Message::Text(text(out))
        }
        Encoding::Protobuf => {
            let lagged = v1::Lagged { room: format!("video:{video}"), seq: seq.0 };
            Message::Binary(live::write_down(v1::down::What::Lagged(lagged)).into())
        }
    }
}

fn comment_of(gateway: &Gateway, video: &str, comment: &Comment) -> What {
    let item = gateway.inner.danmaku.item(video, comment);
    let (mut as_json, mut element) = (Vec::with_capacity(256), Vec::with_capacity(128));
    json::put_item(&mut as_json, &item);
    proto::put_item(&mut element, &item);
    What::Comment(as_json, element)
}

fn head(kind: &str, video: &str, seq: Seq) -> Vec<u8> {
    let mut out = b"{\"type\":\"".to_vec();
    push_str(&mut out, kind);
    push_str(&mut out, "\",\"room\":");
    push_string(&mut out, &format!("video:{video}"));
    push_str(&mut out, ",\"seq\":");
    push_u64(&mut out, seq.0);
    out
}

fn text(json: Vec<u8>) -> Utf8Bytes {
    let text = String::from_utf8(json).expect("JSON is written from texts and numbers alone");
    text.into()
}
