//! Reads videos, and rows that decisions ask for.

use std::sync::Arc;

use tideline_queue::view;
use tideline_store::StoreError;

use super::Videos;
use crate::cold;
use crate::reads::Read;

/// Rows that are wanted: what a video is opened with, or those of `reads`.
pub(super) struct Wanted {
    pub(super) video: Arc<str>,
    pub(super) generation: u32,
    pub(super) reads: Option<Vec<Read>>,
}

/// Reads what is wanted and gives it to the owner.
pub(super) fn load(
    driver: &view::Driver<Videos>,
    at: usize,
    Wanted { video, generation, reads }: Wanted,
) {
    let table = &**driver.table();
    match reads {
        None => {
            let rows = guarded(&video, || cold::read(table, &video));
            let now = driver.now();
            driver.step(at, |partition, effects| {
                partition.owner.loaded(now, &video, generation, rows, effects);
            });
        }
        Some(reads) => {
            let found = guarded(&video, || cold::read_rows(table, &video, &reads));
            let now = driver.now();
            driver.step(at, |partition, effects| {
                partition.owner.read(now, &video, generation, found, effects);
            });
        }
    }
}

fn guarded<T>(video: &str, read: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let read = view::guarded("danmaku", read);
    if let Err(error) = &read {
        tracing::error!(video, %error, "cannot read a video's rows");
    }
    read
}
