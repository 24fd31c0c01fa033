//! The pages for browsers: files that whoever opens the gateway hands in.
//!
//! Every answer says what it is and that it may run no script but its own
//! files. A file is known by its bytes (`ETag`), so an unchanged one is sent
//! once; one with a hash in its name is kept for good. Clips are sent in
//! ranges, which players need for seeking. Knows nothing of what is shown.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use sha2::{Digest as _, Sha256};
use tideline_wire::Code;

use crate::problem::Problem;

/// What a page may load. Players put style sheets into the page and run
/// workers out of blobs; covers lie wherever the catalogue says.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data: blob: https:; media-src 'self' blob:; \
                      font-src 'self' data:; connect-src 'self'; worker-src 'self' blob:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Files below here carry a hash of their bytes in their names.
const HASHED: &str = "/assets/";

/// One file of the pages.
#[derive(Clone, Copy, Debug)]
pub struct PageFile {
    /// Its path, from `/`; `/index.html` is also what `/` shows.
    pub path: &'static str,
    /// All of it.
    pub bytes: &'static [u8],
}

/// The files, each with what its answers say.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    files: HashMap<&'static str, Page>,
}

#[derive(Debug)]
struct Page {
    bytes: &'static [u8],
    kind: &'static str,
    etag: HeaderValue,
    cache: &'static str,
}

impl Pages {
    /// Of files with distinct paths; of two with one path the later is shown.
    pub(crate) fn of(files: &[PageFile]) -> Self {
        let files = files.iter().map(|file| (file.path, Page::of(*file))).collect();
        Self { files }
    }

    /// The answer to a call of a path that is no call of the API; none if
    /// there is no such file.
    pub(crate) fn answer(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Option<Response> {
        let page = self.files.get(if path == "/" { "/index.html" } else { path })?;
        if method != Method::GET && method != Method::HEAD {
            let problem = format!("{method} is not for this path");
            return Some(Problem::new(Code::MethodNotAllowed, problem).into_response());
        }
        let mut response = page.answer(headers);
        if method == Method::HEAD {
            *response.body_mut() = Body::empty();
        }
        Some(response)
    }
}

impl Page {
    fn of(file: PageFile) -> Self {
        let kind = kind(file.path);
        let mut etag = String::with_capacity(40);
        // What is compressed on its way is the same by meaning, not by bytes.
        etag.push_str(if in_ranges(kind) { "\"" } else { "W/\"" });
        for byte in &Sha256::digest(file.bytes)[..12] {
            let _ = write!(etag, "{byte:02x}");
        }
        etag.push('"');
        let etag = HeaderValue::try_from(etag).expect("hexadecimal digits in quotes are a value");
        let cache = match file.path.starts_with(HASHED) {
            true => "public, max-age=31536000, immutable",
            false => "no-cache",
        };
        Self { bytes: file.bytes, kind, etag, cache }
    }

    fn answer(&self, asked: &HeaderMap) -> Response {
        let mut response = Response::default();
        if self.is_known(asked) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        } else {
            self.put_body(asked, &mut response);
        }
        let headers = response.headers_mut();
        headers.insert(header::ETAG, self.etag.clone());
        for (name, value) in [
            (header::CACHE_CONTROL, self.cache),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }

    /// Whether the caller has these bytes already.
    fn is_known(&self, asked: &HeaderMap) -> bool {
        let ours = self.etag.as_bytes();
        let ours = ours.strip_prefix(b"W/").unwrap_or(ours);
        let tags = asked.get_all(header::IF_NONE_MATCH);
        tags.iter().filter_map(|tags| tags.to_str().ok()).flat_map(|tags| tags.split(',')).any(
            |tag| {
                let tag = tag.trim();
                tag == "*" || tag.strip_prefix("W/").unwrap_or(tag).as_bytes() == ours
            },
        )
    }

    fn put_body(&self, asked: &HeaderMap, response: &mut Response) {
        let whole = self.bytes.len();
        let range = match in_ranges(self.kind) {
            true => self.range(asked),
            false => Asked::Whole,
        };
        let headers = response.headers_mut();
        if in_ranges(self.kind) {
            headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        }
        let part = match range {
            Asked::Whole => 0..whole,
            Asked::Part(part) => {
                let text = format!("bytes {}-{}/{whole}", part.start, part.end - 1);
                headers.insert(header::CONTENT_RANGE, number_value(text));
                *response.status_mut() = StatusCode::PARTIAL_CONTENT;
                part
            }
            Asked::Nothing => {
                headers.insert(header::CONTENT_RANGE, number_value(format!("bytes */{whole}")));
                *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
                return;
            }
        };
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(header::CONTENT_LENGTH, part.len().into());
        *response.body_mut() = Body::from(Bytes::from_static(&self.bytes[part]));
    }

    /// Which part is asked for. A range that is not understood, several at
    /// once, and one of other bytes than these: the whole.
    fn range(&self, asked: &HeaderMap) -> Asked {
        let same = asked.get(header::IF_RANGE).is_none_or(|tag| *tag == self.etag);
        let range = asked.get(header::RANGE).filter(|_| same).and_then(|range| range.to_str().ok());
        range.and_then(|range| part_of(range, self.bytes.len())).unwrap_or(Asked::Whole)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Whole,
    /// Not empty.
    Part(Range<usize>),
    /// A part that lies behind the end.
    Nothing,
}

/// `bytes=a-b`, `bytes=a-` or `bytes=-n` of so many bytes.
fn part_of(range: &str, whole: usize) -> Option<Asked> {
    let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // More digits than a number holds lie behind every end.
        digits.then(|| text.parse::<usize>().unwrap_or(usize::MAX))
    };
    let part = match (from.is_empty(), to.is_empty()) {
        (true, _) => whole.saturating_sub(number(to)?)..whole,
        (false, true) => number(from)?..whole,
        (false, false) => {
            let (from, last) = (number(from)?, number(to)?);
            if from > last {
                return None;
            }
            from..last.saturating_add(1).min(whole)
        }
    };
    Some(if part.start < part.end { Asked::Part(part) } else { Asked::Nothing })
}

/// Whether files of this kind are sent as they are, whole or in parts; others
/// may be compressed on their way.
fn in_ranges(kind: &str) -> bool {
    kind.starts_with("video/")
}

fn number_value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("digits and a few signs are a header's value")
}

fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, end)| end) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "txt" => "text/plain; charset=utf-8",
        "webm" => "video/webm",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_part_the_whole_or_behind_the_end() {
        use Asked::{Nothing, Part};
        for (range, part) in [
            ("bytes=0-0", Some(Part(0..1))),
            ("bytes=2-4", Some(Part(2..5))),
            ("bytes=8-99", Some(Part(8..10))),
            ("bytes=9-", Some(Part(9..10))),
            ("bytes=-3", Some(Part(7..10))),
            ("bytes=-99", Some(Part(0..10))),
            ("bytes=10-", Some(Nothing)),
            ("bytes=10-12", Some(Nothing)),
            ("bytes=-0", Some(Nothing)),
            ("bytes=99999999999999999999999-", Some(Nothing)),
            ("bytes=0-99999999999999999999999", Some(Part(0..10))),
            ("bytes=5-4", None),
            ("bytes=-", None),
            ("bytes=a-b", None),
            ("bytes=+1-2", None),
            ("bytes=0-1,3-4", None),
            ("lines=0-1", None),
            ("", None),
        ] {
            assert_eq!(part_of(range, 10), part, "{range}");
        }
        assert_eq!(part_of("bytes=0-", 0), Some(Nothing));
    }
}
