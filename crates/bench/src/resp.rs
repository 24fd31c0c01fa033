//! Redis's protocol with as little client as there can be.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::BenchError;
use crate::drive::{Codec, Done};
use crate::encode::{put_bulk, put_command};

/// Writes: a request is `marks` times three commands, answered by as many
/// replies.
#[derive(Debug)]
pub(crate) struct Writes {
    replies_each: usize,
    replies: usize,
    errors: usize,
    answered: u64,
}

impl Writes {
    /// Requests of `marks` marks each.
    pub(crate) fn of(marks: usize) -> Self {
        Self { replies_each: marks * 3, replies: 0, errors: 0, answered: 0 }
    }
}

impl Codec for Writes {
    fn receive(
        &mut self,
        input: &[u8],
        _: &mut Vec<u8>,
        done: &mut Vec<Done>,
    ) -> Result<usize, BenchError> {
        let mut used = 0;
        while let Some(length) = reply_len(&input[used..])? {
            self.errors += usize::from(input[used] == b'-');
            used += length;
            self.replies += 1;
            if self.replies == self.replies_each {
                let good = self.errors == 0;
                let counted = self.replies_each as u64 / 3;
                done.push(Done { number: self.answered, counted, good });
                (self.replies, self.errors) = (0, 0);
                self.answered += 1;
            }
        }
        Ok(used)
    }
}

/// Lists: ZREVRANGE for the newest members, then MGET for what they hold.
/// Counts the values that came.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    awaited: VecDeque<Awaited>,
    sent: u64,
}

#[derive(Debug)]
enum Awaited {
    /// The members; the set's name, which also begins the keys.
    Members {
        number: u64,
        set: Vec<u8>,
    },
    Values {
        number: u64,
    },
}

impl Codec for Lists {
    fn send(&mut self, payload: &Bytes, out: &mut Vec<u8>) {
        out.extend_from_slice(payload);
        let set = bulks(payload).nth(1).unwrap_or_default().to_vec();
        self.awaited.push_back(Awaited::Members { number: self.sent, set });
        self.sent += 1;
    }

    fn receive(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        done: &mut Vec<Done>,
    ) -> Result<usize, BenchError> {
        let mut used = 0;
        while let Some(length) = reply_len(&input[used..])? {
            let reply = &input[used..used + length];
            let awaited =
                self.awaited.pop_front().ok_or(BenchError::Protocol("a reply to nothing"))?;
            match awaited {
                Awaited::Members { number, set } => {
                    let members: Vec<&[u8]> = bulks(reply).collect();
                    if members.is_empty() {
                        done.push(Done { number, counted: 0, good: reply[0] == b'*' });
                    } else {
                        out.extend_from_slice(format!("*{}\r\n", members.len() + 1).as_bytes());
                        put_bulk(b"MGET", out);
                        for member in members {
                            put_bulk(&[&set, &b":"[..], member].concat(), out);
                        }
                        self.awaited.push_back(Awaited::Values { number });
                    }
                }
                Awaited::Values { number } => {
                    let counted = bulks(reply).count() as u64;
                    done.push(Done { number, counted, good: reply[0] == b'*' });
                }
            }
            used += length;
        }
        Ok(used)
    }
}

/// Bytes of the first whole reply (or command) in `input`; `None` if more must
/// come.
fn reply_len(input: &[u8]) -> Result<Option<usize>, BenchError> {
    let Some(line) = memchr::memchr(b'\n', input) else { return Ok(None) };
    let mut used = line + 1;
    match input[0] {
        b'+' | b'-' | b':' => Ok(Some(used)),
        b'$' => {
            let length = number(&input[1..line])?;
            used += usize::try_from(length).map_or(0, |length| length + 2);
            Ok((input.len() >= used).then_some(used))
        }
        b'*' => {
            for _ in 0..number(&input[1..line])?.max(0) {
                match reply_len(&input[used..])? {
                    Some(length) => used += length,
                    None => return Ok(None),
                }
            }
            Ok(Some(used))
        }
        _ => Err(BenchError::Protocol("no RESP reply")),
    }
}

/// A decimal with its `\r`.
fn number(text: &[u8]) -> Result<i64, BenchError> {
    let text = std::str::from_utf8(text).ok().and_then(|text| text.trim_end().parse().ok());
    text.ok_or(BenchError::Protocol("no number in RESP"))
}

/// The bulk strings of a whole array, nulls left out.
fn bulks(mut array: &[u8]) -> impl Iterator<Item = &[u8]> {
    let start = memchr::memchr(b'\n', array).map_or(array.len(), |line| line + 1);
    array = &array[start..];
    std::iter::from_fn(move || {
        loop {
            let line = memchr::memchr(b'\n', array)?;
            let length = number(&array[1..line]).ok()?;
            array = &array[line + 1..];
            if let Ok(length) = usize::try_from(length) {
                let bulk = array.get(..length)?;
                array = array.get(length + 2..)?;
                return Some(bulk);
            }
        }
    })
}

/// One command and its whole reply over a blocking connection, for set-up and
/// figures such as `INFO`.
pub(crate) fn ask(address: std::net::SocketAddr, words: &[&str]) -> Result<String, BenchError> {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address)
        .map_err(|e| BenchError::io(format!("connect to {address}"), &e))?;
    let mut out = Vec::new();
    put_command(words, &mut out);
    stream.write_all(&out).map_err(|e| BenchError::io("write", &e))?;
    let (mut input, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut buffer).map_err(|e| BenchError::io("read", &e))?;
        if count == 0 {
            return Err(BenchError::Closed);
        }
        input.extend_from_slice(&buffer[..count]);
        if let Some(length) = reply_len(&input)? {
            return Ok(String::from_utf8_lossy(&input[..length]).into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_answered_by_the_last_of_its_replies() {
        let mut writes = Writes::of(2);
        let mut done = Vec::new();
        let replies = b":1\r\n+OK\r\n:0\r\n:1\r\n+OK\r\n:0\r\n:1\r\n-ERR no\r\n:0\r\n:1";
        let used = writes.receive(replies, &mut Vec::new(), &mut done).unwrap();
        assert_eq!(used, replies.len() - 2);
        assert_eq!(done, [Done { number: 0, counted: 2, good: true }]);
        assert_eq!(writes.errors, 1);
    }

    #[test]
    fn a_list_asks_for_the_values_of_the_members_that_came() {
        let (mut lists, mut out, mut done) = (Lists::default(), Vec::new(), Vec::new());
        let mut ask = Vec::new();
        put_command(&["ZREVRANGE", "h:7", "0", "19"], &mut ask);
        lists.send(&ask.into(), &mut out);
        out.clear();
        let members = b"*2\r\n$1\r\na\r\n$1\r\nb\r\n";
        assert_eq!(lists.receive(members, &mut out, &mut done).unwrap(), members.len());
        let mut wanted = Vec::new();
        put_command(&["MGET", "h:7:a", "h:7:b"], &mut wanted);
        assert_eq!(out, wanted);
        let values = b"*2\r\n$2\r\n\r\n\r\n$-1\r\n";
        assert_eq!(lists.receive(values, &mut out, &mut done).unwrap(), values.len());
        assert_eq!(done, [Done { number: 0, counted: 1, good: true }]);
    }

    #[test]
    fn a_reply_that_is_not_whole_waits() {
        let whole = b"*2\r\n$1\r\na\r\n:7\r\n";
        for cut in 0..whole.len() {
            assert_eq!(reply_len(&whole[..cut]).unwrap(), None, "{cut}");
        }
        assert_eq!(reply_len(whole).unwrap(), Some(whole.len()));
    }
}
