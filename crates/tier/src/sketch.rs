//! Which keys are asked for most: counts of a bounded number of keys.
//!
//! Space-saving: a key that is not counted takes the place of the one that was
//! counted least, and its count as what it may have had. So for `n` places and
//! counts that sum up to `s`: a key that was asked for more than `s / n` times is
//! among them, and a count is too high by at most that much, never too low.
//! Counts are halved now and then, so that what was hot cools.
//!
//! The same calls give the same answers: no clock, no chance.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

/// Counts of keys.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    places: usize,
    counts: BTreeMap<Bytes, u64>,
    /// The same by count.
    order: BTreeSet<(u64, Bytes)>,
}

impl Sketch {
    /// One of so many places, at least 1.
    pub(crate) fn new(places: usize) -> Self {
        Self { places: places.max(1), counts: BTreeMap::new(), order: BTreeSet::new() }
    }

    /// A key was asked for so many times.
    pub(crate) fn add(&mut self, key: &[u8], times: u64) {
        if let Some((key, count)) = self.counts.get_key_value(key) {
            let (key, count) = (key.clone(), *count);
            self.order.remove(&(count, key.clone()));
            return self.put(key, count.saturating_add(times));
        }
        let mut count = 0;
        if self.counts.len() == self.places
            && let Some((least, other)) = self.order.pop_first()
        {
            self.counts.remove(&other);
            count = least;
        }
        self.put(Bytes::copy_from_slice(key), count.saturating_add(times));
    }

    fn put(&mut self, key: Bytes, count: u64) {
        self.order.insert((count, key.clone()));
        self.counts.insert(key, count);
    }

    /// Halves every count; a key that is left with nothing goes.
    pub(crate) fn halve(&mut self) {
        let counts = std::mem::take(&mut self.counts);
        self.order.clear();
        for (key, count) in counts.into_iter().filter(|(_, count)| *count > 1) {
            self.put(key, count / 2);
        }
    }

    /// Keys that were asked for at least `least` times, most often first, with
    /// their counts.
    pub(crate) fn top(&self, least: u64) -> impl Iterator<Item = (&Bytes, u64)> {
        self.order.iter().rev().map(|(count, key)| (key, *count)).take_while(move |t| t.1 >= least)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_hot_key_is_found_among_many_that_are_asked_for_once() {
        let mut sketch = Sketch::new(10);
        for n in 0..10_000_u32 {
            sketch.add(&n.to_be_bytes(), 1);
            if n % 5 == 0 {
                sketch.add(b"hot", 1);
            }
        }
        assert_eq!(sketch.top(1).next().map(|(key, _)| &key[..]), Some(&b"hot"[..]));
        assert_eq!(sketch.counts.len(), 10);
        for _ in 0..20 {
            sketch.halve();
        }
        assert_eq!(sketch.top(1).count(), 0, "what nobody asks for cools");
    }

    proptest! {
        #[test]
        fn a_count_is_never_too_low_and_too_high_by_a_bounded_part(
            keys in prop::collection::vec((0_u8..40, 1_u64..4), 1..300), places in 1_usize..12,
        ) {
            let mut sketch = Sketch::new(places);
            let mut exact = BTreeMap::<u8, u64>::new();
            for (key, times) in &keys {
                sketch.add(&[*key], *times);
                *exact.entry(*key).or_default() += times;
            }
            let sum: u64 = exact.values().sum();
            let slack = sum / places as u64;
            for (key, times) in exact {
                let count = sketch.counts.get(&[key][..]).copied().unwrap_or(0);
                prop_assert!(count == 0 || (times..=times + slack).contains(&count));
                prop_assert!(count > 0 || times <= slack, "{key} of {times} is not counted");
            }
            prop_assert!(sketch.counts.len() <= places);
            prop_assert_eq!(sketch.counts.len(), sketch.order.len());
        }
    }
}
