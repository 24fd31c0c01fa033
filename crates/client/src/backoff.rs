//! How long to wait before the next try.
//!
//! Always: `0 < wait <= longest`. The wait doubles with each failure, and a random
//! part of it is taken, so that readers that lost the same source do not come
//! back together. Knows no clock and draws nothing.

use std::time::Duration;

/// Waits that grow.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    /// Waits from `first` to `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first: first.min(longest), longest, failures: 0 }
    }

    /// There was an answer: begin anew.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Another failure: how long to wait. `chance` is 32 random bits.
    pub fn wait(&mut self, chance: u32) -> Duration {
        let whole = self.first.saturating_mul(1 << self.failures.min(16)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        // Half for sure, the other half by chance.
        whole / 2 + (whole / 2).mul_f64(f64::from(chance) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_begin_anew() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        let waits: Vec<_> = (0..6).map(|_| backoff.wait(u32::MAX).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!(backoff.wait(0).as_millis(), 500);
        backoff.reset();
        assert_eq!(backoff.wait(0).as_millis(), 50);
        (0..100).for_each(|_| assert!(backoff.wait(7) <= Duration::from_secs(1)));
    }
}
