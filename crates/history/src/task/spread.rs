//! The marks of a write, by partition: a counting sort, so that a batch costs
//! three allocations however many partitions it touches.

use tideline_types::partition_of;

use crate::mark::MarkSet;

/// The places of marks, partition by partition.
pub(super) struct Spread {
    places: Vec<u32>,
    /// Where each partition's places end.
    ends: Vec<u32>,
}

impl Spread {
    pub(super) fn of(marks: &MarkSet, partitions: u16) -> Self {
        let of = |place| partition_of(marks.user(place).as_bytes(), partitions).0;
        let of: Vec<u16> = (0..marks.len()).map(of).collect();
        let mut ends = vec![0; usize::from(partitions)];
        of.iter().for_each(|at| ends[usize::from(*at)] += 1);
        let mut sum = 0;
        for end in &mut ends {
            sum += std::mem::replace(end, sum);
        }
        let mut places = vec![0; of.len()];
        for (place, at) in of.iter().enumerate() {
            let end = &mut ends[usize::from(*at)];
            places[*end as usize] = place as u32;
            *end += 1;
        }
        Self { places, ends }
    }

    /// The partitions that have any, with theirs, in order.
    pub(super) fn parts(&self) -> impl Iterator<Item = (usize, &[u32])> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let parts = starts.zip(&self.ends).enumerate();
        parts
            .map(|(at, (start, end))| (at, &self.places[*start as usize..*end as usize]))
            .filter(|(_, places)| !places.is_empty())
    }
}
