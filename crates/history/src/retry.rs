//! Keyed hashes: how a mark that comes again is told, and an erased user.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;
use siphasher::sip128::{Hasher128, SipHasher24 as SipHasher128};
use tideline_types::Millis;
use tideline_types::limits::RETRIES_PER_ROW;

use crate::codec::{BadBytes, Out, Reader, put_signed};
use crate::query::Retry;

/// The keyed fingerprint of (`event_id`, sent `event_ms`): stable for the life
/// of a data folder, and of no use to one who lacks the key.
pub fn fingerprint(key: &[u8; 16], event_id: &str, sent_ms: Option<Millis>) -> u64 {
    let mut hasher = SipHasher24::new_with_key(key);
    // 0 stands for no time; the time 0, of a clock that was never set, for one
    // that no mark is taken with.
    let sent = sent_ms.map_or(0, |ms| if ms.0 == 0 { i64::MIN } else { ms.0 });
    hasher.write_u64(sent as u64);
    hasher.write(event_id.as_bytes());
    hasher.finish()
}

/// The keyed hash under which an erased user is remembered.
pub(crate) fn user_hash(key: &[u8; 16], user: &str) -> [u8; 16] {
    let mut hasher = SipHasher128::new_with_key(key);
    hasher.write(user.as_bytes());
    hasher.finish128().as_bytes()
}

/// The retries of a row, oldest first, at most [`RETRIES_PER_ROW`]: borrowed,
/// and read only when they are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Retries<'a> {
    source: Source<'a>,
    /// Bit n says that the nth of the source is remembered.
    kept: u8,
    /// One more, newer than the source's.
    newest: Option<Retry>,
}

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Slice(&'a [Retry]),
    Coded { bytes: &'a [u8], base: i64, made: u8 },
}

const _: () = assert!(RETRIES_PER_ROW == u8::BITS as usize);

/// The lowest `count` bits.
fn lowest(count: usize) -> u8 {
    u8::MAX.checked_shr(8 - count as u32).unwrap_or(0)
}

impl<'a> Retries<'a> {
    /// None remembered.
    pub const EMPTY: Self = Self { source: Source::Slice(&[]), kept: 0, newest: None };

    /// The newest of `retries`, which are sorted, oldest first.
    pub fn of(retries: &'a [Retry]) -> Self {
        let over = retries.len().saturating_sub(RETRIES_PER_ROW);
        let newest = &retries[over..];
        Self { source: Source::Slice(newest), kept: lowest(newest.len()), newest: None }
    }

    /// Whether none is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.kept.count_ones() as usize + usize::from(self.newest.is_some())
    }

    /// Oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Retry> + use<'a> {
        let (kept, source) = (self.kept, self.source);
        let mut coded = match source {
            Source::Coded { bytes, .. } => Reader::new(bytes),
            Source::Slice(_) => Reader::new(&[]),
        };
        let count = 8 - kept.leading_zeros() as usize;
        let all = (0..count).map_while(move |at| match source {
            Source::Slice(retries) => retries.get(at).copied().map(|retry| (at, retry)),
            Source::Coded { base, made, .. } => {
                let fingerprint = coded.u64_le().ok()?;
                let taken_ms = Millis(base.wrapping_add(coded.signed().ok()?));
                Some((at, Retry { fingerprint, taken_ms, made: made >> at & 1 == 1 }))
            }
        });
        all.filter(move |(at, _)| kept >> at & 1 == 1).map(|(_, retry)| retry).chain(self.newest)
    }

    /// Adds the newest; the oldest goes if there is no room. At most one can
    /// be added.
    pub(crate) fn push(&mut self, retry: Retry) {
        debug_assert!(self.newest.is_none());
        if self.len() == RETRIES_PER_ROW {
            self.kept &= self.kept - 1;
        }
        self.newest = Some(retry);
    }

    /// Forgets those for which `keep` does not say so.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Retry) -> bool) {
        let places = (0..8).filter(|at| self.kept >> at & 1 == 1);
        let kept = places.zip(self.iter()).filter(|(_, retry)| keep(retry));
        self.kept = kept.fold(0, |kept, (at, _)| kept | 1 << at);
        self.newest = self.newest.filter(|retry| keep(retry));
    }

    /// Which of them have a time that the server made: bit n for the nth.
    pub(crate) fn made(&self) -> u8 {
        let bit = |at: u32| match self.source {
            Source::Slice(retries) => retries[at as usize].made,
            Source::Coded { made, .. } => made >> at & 1 == 1,
        };
        let kept = (0..8).filter(|at| self.kept >> at & 1 == 1).map(bit);
        let all = kept.chain(self.newest.map(|retry| retry.made));
        all.enumerate().fold(0, |made, (at, is)| made | u8::from(is) << at)
    }

    /// Appends fingerprints and times; count and `made` are for the caller.
    pub(crate) fn write(&self, base: i64, out: &mut impl Out) {
        for retry in self.iter() {
            out.put_all(&retry.fingerprint.to_le_bytes());
            put_signed(out, retry.taken_ms.0.wrapping_sub(base));
        }
    }

    /// Reads what [`Self::write`] wrote.
    pub(crate) fn read(
        count: usize,
        made: u8,
        base: i64,
        reader: &mut Reader<'a>,
    ) -> Result<Self, BadBytes> {
        if count > RETRIES_PER_ROW || made & !lowest(count) != 0 {
            return Err(BadBytes("a row remembers too many retries"));
        }
        let bytes = reader.left();
        for _ in 0..count {
            reader.u64_le()?;
            reader.signed()?;
        }
        let bytes = &bytes[..bytes.len() - reader.left().len()];
        Ok(Self { source: Source::Coded { bytes, base, made }, kept: lowest(count), newest: None })
    }

    /// Retries of bytes that this process wrote, and that end with them.
    pub(crate) fn trusted(count: usize, made: u8, base: i64, bytes: &'a [u8]) -> Self {
        Self { source: Source::Coded { bytes, base, made }, kept: lowest(count), newest: None }
    }
}

impl PartialEq for Retries<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Retries<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ninth_retry_pushes_the_first_out() {
        let retry =
            |at: i64| Retry { fingerprint: at as u64, taken_ms: Millis(at), made: at % 2 == 0 };
        let eight: Vec<Retry> = (1..=8).map(retry).collect();
        let mut retries = Retries::of(&eight);
        retries.push(retry(9));
        let mut bytes = Vec::new();
        retries.write(5, &mut bytes);
        let mut back = Retries::read(8, retries.made(), 5, &mut Reader::new(&bytes)).unwrap();
        assert_eq!(back, retries);
        assert!(back.iter().eq((2..=9).map(retry)));
        back.retain(|retry| retry.made);
        assert!(back.iter().eq([2, 4, 6, 8].map(retry)));
        assert_eq!((back.len(), back.made()), (4, 0b1111));
    }

    #[test]
    fn a_fingerprint_tells_id_time_and_key_apart_and_never_changes() {
        let key = [7; 16];
        let base = fingerprint(&key, "a", Some(Millis(5)));
        assert_eq!(base, fingerprint(&key, "a", Some(Millis(5))));
        assert_ne!(base, fingerprint(&key, "b", Some(Millis(5))));
        assert_ne!(base, fingerprint(&key, "a", Some(Millis(6))));
        assert_ne!(base, fingerprint(&key, "a", None));
        assert_ne!(fingerprint(&key, "a", Some(Millis(0))), fingerprint(&key, "a", None));
        assert_ne!(base, fingerprint(&[8; 16], "a", Some(Millis(5))));
    }
}
