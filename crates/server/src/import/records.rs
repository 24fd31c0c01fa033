//! A file cut into records of bounded length, each with its place.
//!
//! Always: a record's `start` is the `end` of the one before it, so reading
//! can go on from any `end`; memory is bounded by [`RECORD_BYTES_MAX`],
//! unless another bound is set, whatever the file holds. Knows nothing of what a record means.

use std::io::{self, BufRead};

/// Bytes of one record, at most. A longer one is skipped whole.
pub const RECORD_BYTES_MAX: usize = 64 << 10;

/// How a file is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// At line ends.
    Lines,
    /// At line ends outside double quotes.
    Csv,
    /// Into the objects of one JSON array.
    Objects,
}

/// One record and where it stands.
#[derive(Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The line that it starts on, from 1.
    pub line: u64,
    /// The offset in the file right after it.
    pub end: u64,
    /// The line that the next record starts on.
    pub next_line: u64,
    /// Without the line end; or nothing, where it is too long.
    pub bytes: Option<&'a [u8]>,
}

/// Cuts what `input` holds.
#[derive(Debug)]
pub struct Records<R> {
    input: R,
    cut: Cut,
    offset: u64,
    line: u64,
    limit: usize,
    buffer: Vec<u8>,
    too_long: bool,
}

impl<R: BufRead> Records<R> {
    /// `input` stands at `offset` of its file, on `line` (from 1).
    pub fn new(input: R, cut: Cut, offset: u64, line: u64) -> Self {
        let limit = RECORD_BYTES_MAX;
        Self { input, cut, offset, line, limit, buffer: Vec::new(), too_long: false }
    }

    /// With another bound for one record than [`RECORD_BYTES_MAX`].
    pub fn with_limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// The next record, or `None` at the end of the file.
    pub fn read(&mut self) -> io::Result<Option<Record<'_>>> {
        self.buffer.clear();
        self.too_long = false;
        let started = match self.cut {
            Cut::Lines => self.line_into(false)?,
            Cut::Csv => self.line_into(true)?,
            Cut::Objects => self.object_into()?,
        };
        let Some(line) = started else { return Ok(None) };
        if matches!(self.cut, Cut::Lines | Cut::Csv) {
            let blanks = self.buffer.iter().rev().take_while(|b| matches!(b, b'\n' | b'\r'));
            self.buffer.truncate(self.buffer.len() - blanks.count());
        }
        let start = if line == 1 && self.buffer.starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
        let bytes = (!self.too_long).then_some(&self.buffer[start..]);
        Ok(Some(Record { line, end: self.offset, next_line: self.line, bytes }))
    }

    /// Takes bytes up to a line end; with `quotes`, up to one that lies outside
    /// double quotes.
    fn line_into(&mut self, quotes: bool) -> io::Result<Option<u64>> {
        let line = self.line;
        let mut open = false;
        let mut any = false;
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return Ok(any.then_some(line));
            }
            any = true;
            let mut taken = chunk.len();
            let mut done = false;
            for (at, byte) in chunk.iter().enumerate() {
                match byte {
                    b'"' if quotes => open = !open,
                    b'\n' => {
                        self.line += 1;
                        if !open {
                            (taken, done) = (at + 1, true);
                            break;
                        }
                    }
                    _ => {}
                }
            }
            keep(&mut self.buffer, self.limit, &mut self.too_long, &chunk[..taken]);
            self.input.consume(taken);
            self.offset += taken as u64;
            if done {
                return Ok(Some(line));
            }
        }
    }

    /// Takes one object; what lies between objects is passed over.
    fn object_into(&mut self) -> io::Result<Option<u64>> {
        let mut line = self.line;
        let (mut depth, mut text, mut escaped) = (0_u32, false, false);
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                // An object that the file cuts off is a record all the same.
                return Ok((depth > 0).then_some(line));
            }
            let mut from = if depth > 0 { 0 } else { chunk.len() };
            let mut taken = chunk.len();
            let mut done = false;
            for (at, byte) in chunk.iter().enumerate() {
                self.line += u64::from(*byte == b'\n');
                if text {
                    match (escaped, byte) {
                        (true, _) => escaped = false,
                        (false, b'\\') => escaped = true,
                        (false, b'"') => text = false,
                        _ => {}
                    }
                    continue;
                }
                match byte {
                    b'"' if depth > 0 => text = true,
                    b'{' => {
                        if depth == 0 {
                            (from, line) = (at, self.line);
                        }
                        depth += 1;
                    }
                    b'}' if depth > 0 => {
                        depth -= 1;
                        if depth == 0 {
                            (taken, done) = (at + 1, true);
                            break;
                        }
                    }
                    _ => {}
                }
            }
            if from < taken {
                keep(&mut self.buffer, self.limit, &mut self.too_long, &chunk[from..taken]);
            }
            self.input.consume(taken);
            self.offset += taken as u64;
            if done {
                return Ok(Some(line));
            }
        }
    }
}

fn keep(buffer: &mut Vec<u8>, limit: usize, too_long: &mut bool, bytes: &[u8]) {
    if *too_long || buffer.len() + bytes.len() > limit {
        *too_long = true;
        buffer.clear();
    } else {
        buffer.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    fn cut(text: &[u8], cut: Cut, chunk: usize) -> Vec<(u64, u64, Option<String>)> {
        let mut records = Records::new(BufReader::with_capacity(chunk, text), cut, 0, 1);
        let mut out = Vec::new();
        while let Some(r) = records.read().unwrap() {
            let text = r.bytes.map(|b| String::from_utf8_lossy(b).into_owned());
            out.push((r.line, r.end, text));
        }
        out
    }

    fn texts(text: &str, how: Cut) -> Vec<(u64, String)> {
        let whole = cut(text.as_bytes(), how, 1 << 16);
        assert_eq!(whole, cut(text.as_bytes(), how, 1), "chunks do not matter");
        whole.into_iter().map(|(line, _, text)| (line, text.unwrap())).collect()
    }

    #[test]
    fn lines_end_at_line_ends_of_both_kinds_and_at_the_end_of_the_file() {
        assert_eq!(
            texts("\u{feff}a\r\nb\n\nc", Cut::Lines),
            [(1, "a".into()), (2, "b".into()), (3, String::new()), (4, "c".into())]
        );
        assert!(texts("", Cut::Lines).is_empty());
    }

    #[test]
    fn a_line_end_in_quotes_does_not_end_a_row() {
        assert_eq!(
            texts("a,\"b\nb\"\"\n\",c\nd", Cut::Csv),
            [(1, "a,\"b\nb\"\"\n\",c".into()), (4, "d".into())]
        );
    }

    #[test]
    fn objects_end_where_their_own_brace_closes() {
        assert_eq!(
            texts("[\n {\"a\":{\"b\":\"}\\\"{\"}},\n{} ]\n", Cut::Objects),
            [(2, "{\"a\":{\"b\":\"}\\\"{\"}}".into()), (3, "{}".into())]
        );
        assert_eq!(texts("[{\"a\":1", Cut::Objects), [(1, "{\"a\":1".into())]);
        assert!(texts("[]", Cut::Objects).is_empty());
    }

    #[test]
    fn a_record_that_is_too_long_is_passed_over_and_the_next_one_read() {
        let text = format!("{}\nb\n", "a".repeat(RECORD_BYTES_MAX + 1));
        let read = cut(text.as_bytes(), Cut::Lines, 4096);
        assert_eq!(read[0].2, None);
        assert_eq!(read[1], (2, text.len() as u64, Some("b".into())));
    }

    proptest! {
        #[test]
        fn reading_goes_on_from_the_end_of_any_record(
            text in "[ab\",{}\\[\\]\\\\\n]{0,60}", which in 0..3_usize, skip in 0..8_usize,
        ) {
            let how = [Cut::Lines, Cut::Csv, Cut::Objects][which];
            let mut records = Records::new(text.as_bytes(), how, 0, 1);
            let mut place = (0, 1);
            for _ in 0..skip {
                if let Some(record) = records.read().unwrap() {
                    place = (record.end, record.next_line);
                }
            }
            let rest = &text.as_bytes()[place.0 as usize..];
            let mut again = Records::new(rest, how, place.0, place.1);
            loop {
                let (a, b) = (records.read().unwrap(), again.read().unwrap());
                prop_assert_eq!(&a, &b);
                if a.is_none() {
                    break;
                }
            }
        }
    }
}
