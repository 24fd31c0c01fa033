//! HTTP/1.1 with as little client as there can be: one request under way on a
//! kept-alive connection, a status, a length and a body read back.

use memchr::memmem::Finder;

use crate::BenchError;
use crate::drive::{Codec, Done};

/// One connection.
#[derive(Debug)]
pub(crate) struct Http {
    /// Counted in each body.
    needle: Finder<'static>,
    answered: u64,
}

impl Http {
    /// Counts how often `needle` stands in the bodies.
    pub(crate) fn counting(needle: &'static str) -> Self {
        Self { needle: Finder::new(needle), answered: 0 }
    }
}

impl Codec for Http {
    fn receive(
        &mut self,
        input: &[u8],
        _: &mut Vec<u8>,
        done: &mut Vec<Done>,
    ) -> Result<usize, BenchError> {
        let mut used = 0;
        while let Some(end) = memchr::memmem::find(&input[used..], b"\r\n\r\n") {
            let head = &input[used..used + end];
            let length = content_length(head).ok_or(BenchError::Protocol("no content-length"))?;
            let start = used + end + 4;
            let Some(body) = input.get(start..start + length) else { break };
            let good = matches!(head.get(9..12), Some([b'2', ..] | b"304"));
            let counted = self.needle.find_iter(body).count() as u64;
            done.push(Done { number: self.answered, counted, good });
            self.answered += 1;
            used = start + length;
        }
        Ok(used)
    }
}

/// The body's length, as the head says it; 204 and 304 have no body.
fn content_length(head: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    if matches!(head.get(9..12), Some(b"204" | b"304")) {
        return Some(0);
    }
    let line = head
        .split(|&c| c == b'\n')
        .find(|line| line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME)))?;
    std::str::from_utf8(&line[NAME.len()..]).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart_and_what_they_hold_is_counted() {
        let two = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\naba\
                    HTTP/1.1 503 Busy\r\ncontent-length: 1\r\nx: y\r\n\r\na\
                    HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nnot all";
        let mut http = Http::counting("a");
        let mut done = Vec::new();
        let used = http.receive(two, &mut Vec::new(), &mut done).unwrap();
        assert_eq!(&two[used..used + 8], b"HTTP/1.1");
        assert_eq!(
            done,
            [
                Done { number: 0, counted: 2, good: true },
                Done { number: 1, counted: 1, good: false }
            ]
        );
    }
}
