//! What a sender posted in a day, under all videos: a count, and which posts
//! were counted last, so that a post that is sent again is not counted again.
//!
//! A day begins with a comment and ends 24 hours later; the next comment begins
//! the next one. So no time zone is asked, and a sender at the limit knows when
//! they may go on.

use tideline_record::codec::{BadBytes, Reader, put_varint};
use tideline_types::{DAY_MS, Millis};

/// Posts that are known by their fingerprint, at most.
pub const RECENT_MAX: usize = 8;

/// The count of one sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// When the day began.
    pub since: Millis,
    /// Posts since then.
    pub count: u32,
    /// Fingerprints of the latest of them that have one, oldest first.
    pub recent: Vec<u64>,
}

impl Sent {
    /// With one more post at `now`; `None` if this one is counted already.
    ///
    /// # Errors
    /// Over `max` a day: the ms until the next one.
    pub fn count(&self, now: Millis, max: u32, post: Option<u64>) -> Result<Option<Self>, i64> {
        if post.is_some_and(|post| self.recent.contains(&post)) {
            return Ok(None);
        }
        let mut next = match now < self.since.plus(DAY_MS) {
            true => self.clone(),
            false => Self { since: now, ..Self::default() },
        };
        if next.count >= max {
            return Err(next.since.plus(DAY_MS).0 - now.0);
        }
        next.count += 1;
        if next.recent.len() == RECENT_MAX {
            next.recent.remove(0);
        }
        next.recent.extend(post);
        Ok(Some(next))
    }

    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        put_varint(&mut out, self.since.0.max(0) as u64);
        put_varint(&mut out, u64::from(self.count));
        self.recent.iter().for_each(|post| out.extend(post.to_le_bytes()));
        out
    }

    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadBytes> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != VERSION {
            return Err(BadBytes("another version"));
        }
        let since = i64::try_from(reader.varint()?).map_err(|_| BadBytes("a time is too late"))?;
        let count = reader.varint32()?;
        let mut recent = Vec::new();
        while !reader.is_empty() {
            if recent.len() == RECENT_MAX {
                return Err(BadBytes("too many posts"));
            }
            recent.push(reader.u64_le()?);
        }
        Ok(Self { since: Millis(since), count, recent })
    }
}

const VERSION: u8 = 1;

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn any_sent() -> impl Strategy<Value = Sent> {
        let recent = prop::collection::vec(any::<u64>(), 0..=RECENT_MAX);
        (0_i64.., any::<u32>(), recent).prop_map(|(since, count, recent)| Sent {
            since: Millis(since),
            count,
            recent,
        })
    }

    proptest! {
        #[test]
        fn a_count_reads_back(sent in any_sent()) {
            prop_assert_eq!(Sent::decode(&sent.encode()), Ok(sent));
        }
    }

    #[test]
    fn the_bytes_of_a_count_never_change() {
        let sent = Sent { since: Millis(300), count: 2, recent: vec![1] };
        assert_eq!(sent.encode(), [1, 0xac, 2, 2, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert!(Sent::decode(&[2, 0, 0]).is_err());
    }

    #[test]
    fn a_day_begins_with_a_post_and_a_retry_is_counted_once() {
        let start = Millis(1_000_000_000_000);
        let one = Sent::default().count(start, 2, Some(7)).unwrap().unwrap();
        assert_eq!(one.count(start.plus(5), 2, Some(7)), Ok(None));
        let two = one.count(start.plus(5), 2, None).unwrap().unwrap();
        assert_eq!(two.count(start.plus(10), 2, Some(8)), Err(DAY_MS - 10));
        assert_eq!(two.count(start.plus(10), 2, Some(7)), Ok(None), "also at the limit");
        let next = two.count(start.plus(DAY_MS), 2, None).unwrap().unwrap();
        assert_eq!((next.since, next.count), (start.plus(DAY_MS), 1));
        assert_eq!(Sent::default().count(start, 0, None), Err(DAY_MS));
    }
}
