//! Names of what is no video and is decided like one: by one owner, logged,
//! at rest under a key of its own.
//!
//! Always: longer than any id of a video, so that no caller can mean one.

use tideline_types::limits::VIDEO_BYTES_MAX;

/// What stands before each of these names.
const PREFIX: &str = "/////////////////////////////////////////////////////////////////";

/// What holds for every video of the site: its filters.
pub(crate) const SITE: &str =
    "/////////////////////////////////////////////////////////////////site";

/// Where it is counted what a user, as a keyed hash, posts under all videos.
pub(crate) fn sender(user: u64) -> String {
    format!("{PREFIX}sender/{user:016x}")
}

const _: () = assert!(PREFIX.len() > VIDEO_BYTES_MAX);
