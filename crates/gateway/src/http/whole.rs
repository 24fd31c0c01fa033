//! All that a video shows, in one body that is written as it is sent.
//!
//! What a body is made of lies in memory once, for all; what is written of it
//! and not sent yet is a few pieces. The tag says which comments are in it and
//! what became of them, so that one that is held is answered without writing
//! anything.

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use tideline_danmaku::Danmaku;
use tideline_danmaku::ask::Snapshot;
use tideline_danmaku::comment::Comment;
use tideline_danmaku::segment::Format;
use tideline_wire::danmaku::{ass, json, proto, xml};

use super::door::Call;
use super::segments::{Asked, CACHE_CONTROL, names, of_accept, of_ending, type_of};
use crate::Gateway;
use crate::packing::{Packer, Packing};
use crate::problem::Problem;
use crate::shelf::Kind;

/// Comments of one piece.
const PIECE_COMMENTS: usize = 256;

/// All segments in one.
pub(super) async fn whole(gateway: Gateway, call: Call) -> Result<Response, Problem> {
    let path = call.parts.uri.path();
    let kind = match path.rsplit_once('.').filter(|(_, ending)| !ending.contains('/')) {
        Some((_, ending)) => of_ending(ending)?,
        None => of_accept(&call.parts.headers),
    };
    let Asked { video, headers } = Asked::of(&gateway, call)?;
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let packing = Packing::of(accepted.unwrap_or_default());
    let danmaku = gateway.inner.danmaku.clone();
    let snapshot = danmaku.all(&video).await?;
    let etag =
        HeaderValue::try_from(format!("\"{:016x}{}\"", hash_of(kind, &snapshot), packing.suffix()))
            .expect("hexadecimal digits are a header's value");
    let known = headers.get_all(header::IF_NONE_MATCH).iter().any(|value| names(value, &etag));
    let seq = snapshot.seq.0;
    let mut response = Response::default();
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        let writer = Writer::new(danmaku, video, snapshot, kind, packing);
        let pieces = stream::unfold(writer, async |mut writer| {
            let piece = writer.next()?;
            // Others have their turn between two pieces.
            tokio::task::yield_now().await;
            Some((Ok::<Bytes, Infallible>(piece), writer))
        });
        response = Response::new(Body::from_stream(pieces));
    }
    let headers = response.headers_mut();
    headers.insert(header::ETAG, etag);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(CACHE_CONTROL));
    headers.insert(header::VARY, HeaderValue::from_static("accept, accept-encoding"));
    headers.insert("x-cache", HeaderValue::from_static("MISS"));
    headers.insert("x-tideline-seq", HeaderValue::from(seq));
    if !known {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(type_of(kind)));
        if let Some(name) = packing.name() {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(name));
        }
    }
    Ok(response)
}

/// The same for the same bytes: contents never change, indexes are in it.
fn hash_of(kind: Kind, snapshot: &Snapshot) -> u64 {
    let mut hasher = DefaultHasher::new();
    (kind, snapshot.limit, snapshot.closed).hash(&mut hasher);
    for comment in &snapshot.items {
        let index = &comment.index;
        (comment.id, index.rank as u8, index.pool.number(), index.likes).hash(&mut hasher);
    }
    hasher.finish()
}

/// A body that is being written.
struct Writer {
    danmaku: Danmaku,
    video: String,
    snapshot: Snapshot,
    form: Form,
    packer: Option<Packer>,
    /// Comments that are written.
    at: usize,
}

/// How comments are written.
enum Form {
    Xml,
    Proto,
    Json,
    Ass(Box<ass::Script>),
}

impl Writer {
    fn new(
        danmaku: Danmaku,
        video: String,
        snapshot: Snapshot,
        kind: Kind,
        packing: Packing,
    ) -> Self {
        let form = match kind {
            Kind::Body(Format::Xml) => Form::Xml,
            Kind::Body(Format::Proto) => Form::Proto,
            Kind::Body(Format::Json) => Form::Json,
            Kind::Subtitles => Form::Ass(Box::new(ass::Script::new(ass::Options::default()))),
            Kind::Player(_) => unreachable!("no ending and no type asks for a player's form"),
        };
        Self { danmaku, video, snapshot, form, packer: Some(Packer::new(packing)), at: 0 }
    }

    /// The next piece; `None` behind the last.
    fn next(&mut self) -> Option<Bytes> {
        loop {
            let mut packer = self.packer.take()?;
            let mut out = Vec::new();
            if self.at == 0 {
                self.put_head(&mut out);
            }
            let until = self.snapshot.items.len().min(self.at + PIECE_COMMENTS);
            while self.at < until {
                let comment = Arc::clone(&self.snapshot.items[self.at]);
                self.put(&comment, &mut out);
                self.at += 1;
            }
            if self.at == self.snapshot.items.len() {
                match &self.form {
                    Form::Xml => xml::put_tail(&mut out),
                    Form::Json => json::put_tail(&mut out),
                    Form::Proto | Form::Ass(_) => {}
                }
                return Some(packer.end(&out).into()).filter(|last: &Bytes| !last.is_empty());
            }
            let piece = packer.take(&out);
            self.packer = Some(packer);
            if !piece.is_empty() {
                return Some(piece.into());
            }
        }
    }

    fn put_head(&self, out: &mut Vec<u8>) {
        let Snapshot { limit, closed, .. } = self.snapshot;
        match &self.form {
            Form::Xml => xml::put_head(out, &xml::Head { video: &self.video, limit, closed }),
            Form::Proto => proto::put_state(out, closed),
            Form::Json => json::put_head(out),
            Form::Ass(script) => script.put_head(out),
        }
    }

    fn put(&mut self, comment: &Comment, out: &mut Vec<u8>) {
        let item = self.danmaku.item(&self.video, comment);
        match &mut self.form {
            Form::Xml => xml::put_item(out, &item),
            Form::Proto => proto::put_item(out, &item),
            Form::Json => {
                if self.at > 0 {
                    out.extend_from_slice(json::SEPARATOR);
                }
                json::put_item(out, &item);
            }
            Form::Ass(script) => _ = script.put_item(out, &item),
        }
    }
}
