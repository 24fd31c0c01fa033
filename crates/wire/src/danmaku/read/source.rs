//! Bytes of a file, taken up to a mark, with the line they are on.

use std::io::{self, BufRead};

/// Bytes from `input`, and bytes that were given back.
#[derive(Debug)]
pub(in crate::danmaku) struct Source<R> {
    input: R,
    /// Given back: read again before `input`, from `returned_at` on.
    returned: Vec<u8>,
    returned_at: usize,
    line: u64,
}

impl<R: BufRead> Source<R> {
    pub(in crate::danmaku) fn new(input: R) -> Self {
        Self { input, returned: Vec::new(), returned_at: 0, line: 1 }
    }

    /// The line of the next byte, from 1.
    pub(in crate::danmaku) fn line(&self) -> u64 {
        self.line
    }

    /// What can be read at once; empty at the end only.
    fn chunk(&mut self) -> io::Result<&[u8]> {
        if self.returned_at < self.returned.len() {
            return Ok(&self.returned[self.returned_at..]);
        }
        loop {
            // Asked twice because the borrow checker cannot see that only one
            // of the answers is used.
            match self.input.fill_buf() {
                Ok(_) => return self.input.fill_buf(),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn consume(&mut self, count: usize, lines: usize) {
        self.line += lines as u64;
        if self.returned_at < self.returned.len() {
            self.returned_at += count;
        } else {
            self.input.consume(count);
        }
    }

    /// The next byte, which stays.
    pub(in crate::danmaku) fn peek(&mut self) -> io::Result<Option<u8>> {
        Ok(self.chunk()?.first().copied())
    }

    /// The next byte.
    pub(in crate::danmaku) fn next(&mut self) -> io::Result<Option<u8>> {
        let byte = self.peek()?;
        if let Some(byte) = byte {
            self.consume(1, usize::from(byte == b'\n'));
        }
        Ok(byte)
    }

    /// Takes all up to `mark` and the mark; adds it to `taken`. Adds no more
    /// than fits into `room` bytes, but takes it all the same. Returns whether
    /// the mark came, and whether all fitted.
    pub(in crate::danmaku) fn take_through(
        &mut self,
        mark: u8,
        taken: &mut Vec<u8>,
        mut room: usize,
    ) -> io::Result<(bool, bool)> {
        let mut fits = true;
        loop {
            let chunk = self.chunk()?;
            if chunk.is_empty() {
                return Ok((false, fits));
            }
            let found = memchr::memchr(mark, chunk);
            let part = &chunk[..found.map_or(chunk.len(), |at| at + 1)];
            let kept = part.len().min(room);
            taken.extend_from_slice(&part[..kept]);
            fits &= kept == part.len();
            room -= kept;
            let (count, lines) = (part.len(), memchr::memchr_iter(b'\n', part).count());
            self.consume(count, lines);
            if found.is_some() {
                return Ok((true, fits));
            }
        }
    }

    /// Gives back bytes that were the last to be taken; they come again.
    pub(in crate::danmaku) fn give_back(&mut self, bytes: &[u8]) {
        self.line -= memchr::memchr_iter(b'\n', bytes).count() as u64;
        let mut returned = bytes.to_vec();
        returned.extend_from_slice(&self.returned[self.returned_at..]);
        (self.returned, self.returned_at) = (returned, 0);
    }

    /// Takes white space and a byte order mark at the front.
    pub(in crate::danmaku) fn skip_blank(&mut self) -> io::Result<()> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n' | 0xEF | 0xBB | 0xBF) = self.peek()? {
            self.next()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn bytes_come_up_to_a_mark_wherever_chunks_end() {
        for capacity in 1..9 {
            let input = BufReader::with_capacity(capacity, &b"ab\nc>d\n\n>e"[..]);
            let mut source = Source::new(input);
            let mut taken = Vec::new();
            assert_eq!(source.take_through(b'>', &mut taken, 99).unwrap(), (true, true));
            assert_eq!((&taken[..], source.line()), (&b"ab\nc>"[..], 2));
            source.give_back(b"\nc>");
            assert_eq!(source.line(), 1);
            assert_eq!(source.next().unwrap(), Some(b'\n'));
            taken.clear();
            assert_eq!(source.take_through(b'>', &mut taken, 99).unwrap(), (true, true));
            assert_eq!(taken, b"c>");
            taken.clear();
            assert_eq!(source.take_through(b'>', &mut taken, 2).unwrap(), (true, false));
            assert_eq!(taken, b"d\n");
            assert_eq!(source.line(), 4);
            taken.clear();
            assert_eq!(source.take_through(b'>', &mut taken, 99).unwrap(), (false, true));
            assert_eq!((&taken[..], source.peek().unwrap()), (&b"e"[..], None));
        }
    }
}
