//! What may be freed: by age first, then, while there is too much, the oldest
//! of all; never what a durable view has not applied.

use std::sync::atomic::Ordering;

use tideline_store::{Extent, StoreError};
use tideline_types::{Millis, Seq};

use crate::Queue;

/// The last number that is too old at `now`; times never fall, so that
/// everything before it is, too.
fn too_old(extents: &[Extent], retention_ms: i64, now: Millis) -> Option<Seq> {
    let old = extents.iter().take_while(|e| e.newest.plus(retention_ms) < now);
    old.last().map(|e| e.range.through)
}

/// What to free, oldest first, until `over` bytes are: for each lane by its
/// place, through which number.
fn oldest(lanes: &[Vec<Extent>], mut over: u64) -> Vec<Option<Seq>> {
    let mut all: Vec<_> = lanes
        .iter()
        .enumerate()
        .flat_map(|(lane, extents)| extents.iter().map(move |e| (e.newest, lane, e)))
        .collect();
    all.sort_by_key(|(newest, lane, e)| (*newest, *lane, e.range.through));
    let mut through = vec![None; lanes.len()];
    for (_, lane, extent) in all {
        if over == 0 {
            break;
        }
        over = over.saturating_sub(extent.bytes);
        through[lane] = through[lane].max(Some(extent.range.through));
    }
    through
}

impl Queue {
    /// Frees what is too old or too much at `now`, unless someone holds still.
    /// For a job that runs every minute or so. Blocks.
    pub fn run_retention(&self, now: Millis) -> Result<(), StoreError> {
        self.keep_producers()?;
        let Some(_leave) = self.may_free() else { return Ok(()) };
        let journal = &self.inner.journal;
        let (mut lanes, mut extents_of) = (Vec::new(), Vec::new());
        let topics: Vec<_> = self.inner.topics().values().cloned().collect();
        for topic in topics {
            let retention_ms = topic.config.retention.as_millis().min(i64::MAX as u128) as i64;
            for lane in &topic.lanes {
                let allowed = Seq(lane.trim_allowed.load(Ordering::Acquire));
                let mut extents = journal.extents(lane.stream);
                if let Some(through) = too_old(&extents, retention_ms, now) {
                    let start = self.inner.free(&topic, lane, through.min(allowed))?;
                    extents.retain(|e| e.range.through >= start);
                }
                extents.retain(|e| e.range.through <= allowed);
                lanes.push((topic.clone(), lane.clone()));
                extents_of.push(extents);
            }
        }
        let over = journal.usage().total_bytes.saturating_sub(self.inner.options.log_bytes_target);
        for ((topic, lane), through) in lanes.iter().zip(oldest(&extents_of, over)) {
            if let Some(through) = through {
                self.inner.free(topic, lane, through)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tideline_types::SeqRange;

    use super::*;

    fn extents(times: &[i64]) -> Vec<Extent> {
        let extent = |(n, time): (usize, &i64)| Extent {
            range: SeqRange::new(Seq(n as u64 * 10), Seq(n as u64 * 10 + 10)),
            bytes: 100,
            newest: Millis(*time),
        };
        times.iter().enumerate().map(extent).collect()
    }

    #[test]
    fn what_is_older_than_its_retention_goes_and_nothing_after_it() {
        let extents = extents(&[5, 10, 20]);
        assert_eq!(too_old(&extents, 100, Millis(111)), Some(Seq(20)));
        assert_eq!(too_old(&extents, 100, Millis(105)), None);
        assert_eq!(too_old(&extents, i64::MAX, Millis(105)), None);
    }

    #[test]
    fn the_oldest_of_all_lanes_goes_first_and_no_more_than_needed() {
        let lanes = [extents(&[1, 9]), extents(&[3, 4])];
        assert_eq!(oldest(&lanes, 0), [None, None]);
        assert_eq!(oldest(&lanes, 150), [Some(Seq(10)), Some(Seq(10))]);
        assert_eq!(oldest(&lanes, 201), [Some(Seq(10)), Some(Seq(20))]);
    }
}
