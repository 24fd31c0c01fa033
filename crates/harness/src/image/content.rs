//! A file's bytes, where long runs of zeroes cost nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;

/// Bytes and a length. What was never written reads as zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    len: u64,
    pages: BTreeMap<u64, Box<[u8]>>,
}

impl Content {
    /// The length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts `bytes` at `offset`; the length grows where needed.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let inner = (at % PAGE) as usize;
            let take = rest.len().min(PAGE as usize - inner);
            let zeroes = || vec![0; PAGE as usize].into_boxed_slice();
            let page = self.pages.entry(at / PAGE).or_insert_with(zeroes);
            page[inner..inner + take].copy_from_slice(&rest[..take]);
            at += take as u64;
            rest = &rest[take..];
        }
        self.len = self.len.max(at);
    }

    /// Cuts, or extends with zeroes.
    pub fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.pages.retain(|&page, _| page * PAGE < len);
            if let Some(page) = self.pages.get_mut(&(len / PAGE)) {
                page[(len % PAGE) as usize..].fill(0);
            }
        }
        self.len = len;
    }

    /// All bytes. For small files.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len as usize];
        for (&page, held) in &self.pages {
            let from = (page * PAGE) as usize;
            let take = held.len().min(bytes.len().saturating_sub(from));
            bytes[from..from + take].copy_from_slice(&held[..take]);
        }
        bytes
    }

    /// Writes the file, with holes where nothing was written.
    pub fn write_to(&self, file: &File) -> io::Result<()> {
        file.set_len(self.len)?;
        for (&page, held) in &self.pages {
            let take = PAGE.min(self.len.saturating_sub(page * PAGE));
            file.write_all_at(&held[..take as usize], page * PAGE)?;
        }
        Ok(())
    }

    /// The first byte at which `file` differs, if any; its length where one
    /// ends before the other.
    pub fn first_difference(&self, file: &File) -> io::Result<Option<u64>> {
        let len = file.metadata()?.len();
        let shared = len.min(self.len);
        let zeroes = [0; PAGE as usize];
        let mut buffer = [0; PAGE as usize];
        for page in 0..shared.div_ceil(PAGE) {
            let take = PAGE.min(shared - page * PAGE) as usize;
            file.read_exact_at(&mut buffer[..take], page * PAGE)?;
            let held = self.pages.get(&page).map_or(&zeroes[..], |held| held);
            if let Some(at) = (0..take).find(|&at| held[at] != buffer[at]) {
                return Ok(Some(page * PAGE + at as u64));
            }
        }
        Ok((len != self.len).then_some(shared))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn content_is_what_a_plain_vector_would_be(
            ops in prop::collection::vec((0u64..20_000, 0usize..9_000, any::<u8>(), any::<bool>()), 0..12)
        ) {
            let (mut content, mut plain) = (Content::default(), Vec::new());
            for (at, len, fill, cut) in ops {
                if cut {
                    content.set_len(at);
                    plain.resize(at as usize, 0);
                } else if len > 0 {
                    content.write(at, &vec![fill; len]);
                    let end = at as usize + len;
                    plain.resize(plain.len().max(end), 0);
                    plain[at as usize..end].fill(fill);
                }
            }
            prop_assert_eq!(content.to_vec(), plain);
        }
    }

    #[test]
    fn a_file_that_was_written_out_does_not_differ_until_a_byte_does() {
        let mut content = Content::default();
        content.write(5_000, b"tide");
        content.set_len(100_000);
        let file = tempfile::tempfile().unwrap();
        content.write_to(&file).unwrap();
        assert_eq!(content.first_difference(&file).unwrap(), None);
        file.write_all_at(b"x", 70_000).unwrap();
        assert_eq!(content.first_difference(&file).unwrap(), Some(70_000));
        file.set_len(60_000).unwrap();
        assert_eq!(content.first_difference(&file).unwrap(), Some(60_000));
    }
}
