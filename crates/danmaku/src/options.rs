//! What an operator may set, and the keys of a data folder.

use std::hash::Hasher as _;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use siphasher::sip::SipHasher13;

use crate::id::STRETCH_MS;
use crate::top::Scope;

/// Rules and bounds of danmaku, all partitions together.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the limit of a video is shared out over. Default: each segment.
    pub limit_scope: Scope,
    /// The limit of every video whose owner set none; one of
    /// [`crate::top::LIMITS`]. Default: by the duration.
    pub limit: Option<u32>,
    /// How many stretches of six minutes a segment has, at least 1. Default 1.
    pub segment_stretches: u16,
    /// How long a writer may take a comment back. Default 2 minutes.
    pub recall_within: Duration,
    /// Users whose reports hide a comment until somebody has looked. Default 5.
    pub report_threshold: u32,
    /// Comments of one viewer in a day, under all videos together; 0 = no
    /// limit, which is the default.
    pub sender_per_day: u32,
    /// Whether what a viewer posts is hidden until somebody has looked at it:
    /// see [`crate::Danmaku::judge`]. Default: no.
    pub look_first: bool,
    /// Bytes of videos in memory. Default 1 GiB.
    pub hot_budget_bytes: usize,
    /// How long a change may wait to be written to rows. Default 5 min, at
    /// most 10.
    pub flush_after: Duration,
    /// Within this time after an erase no file holds a byte of the user's
    /// comments. Default 24 h.
    pub erase_within: Duration,
    /// Calls that may wait for rows being read, in each partition. Default
    /// 65,536.
    pub parked_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limit_scope: Scope::Segment,
            limit: None,
            segment_stretches: 1,
            recall_within: Duration::from_secs(120),
            report_threshold: 5,
            sender_per_day: 0,
            look_first: false,
            hot_budget_bytes: 1 << 30,
            flush_after: Duration::from_secs(300),
            erase_within: Duration::from_hours(24),
            parked_max: 1 << 16,
        }
    }
}

impl Options {
    /// How long a segment is, in ms.
    pub fn segment_ms(&self) -> u32 {
        STRETCH_MS.saturating_mul(self.segment_stretches.max(1).into())
    }

    /// The segment, from 1, that a stretch lies in.
    pub fn segment_at(&self, stretch: u16) -> u32 {
        u32::from(stretch / self.segment_stretches.max(1)) + 1
    }
}

/// The key of a data folder's hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys(pub [u8; 16]);

impl Keys {
    /// A user in keys of rows.
    pub fn user(&self, user: &str) -> u64 {
        self.sip(&[user.as_bytes()])
    }

    /// What a retry of a post has in common with it.
    pub fn client(&self, user: &str, client_id: &str) -> u64 {
        self.sip(&[user.as_bytes(), &[0xff], client_id.as_bytes()])
    }

    /// A comment of a file: the same for the same fields.
    pub(crate) fn imported(&self, fields: &[&[u8]]) -> u64 {
        self.sip(fields)
    }

    fn sip(&self, parts: &[&[u8]]) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        for part in parts {
            hasher.write_u64(part.len() as u64);
            hasher.write(part);
        }
        hasher.finish()
    }

    /// A sender as others may see them: HMAC-SHA256 of video and user, cut to
    /// 32 bits. The same under one video, unlinkable across two.
    pub fn sender(&self, video: &str, user: &str) -> u32 {
        let hash = hmac(&self.0, &[video.as_bytes(), &[0xff], user.as_bytes()]);
        u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
    }
}

/// HMAC-SHA256 (RFC 2104) under a key of at most 64 bytes.
fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    let mut inner = Sha256::new_with_prefix(block.map(|byte| byte ^ 0x36));
    parts.iter().for_each(|part| inner.update(part));
    let outer = Sha256::new_with_prefix(block.map(|byte| byte ^ 0x5c));
    outer.chain_update(inner.finalize()).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hmac_is_that_of_the_rfc() {
        let hash = hmac(b"Jefe", &[b"what do ya want ", b"for nothing?"]);
        assert_eq!(hash[..8], [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e]);
    }

    #[test]
    fn a_sender_is_the_same_under_one_video_alone() {
        let keys = Keys([7; 16]);
        assert_eq!(keys.sender("v1", "ann"), keys.sender("v1", "ann"));
        assert_ne!(keys.sender("v1", "ann"), keys.sender("v2", "ann"));
        assert_ne!(keys.sender("v1", "ann"), keys.sender("v1", "bob"));
        assert_ne!(keys.sender("v1", "ann"), Keys([8; 16]).sender("v1", "ann"));
    }
}
