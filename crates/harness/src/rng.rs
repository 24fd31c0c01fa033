//! Numbers that look random and are the same for the same seed (SplitMix64).

/// A stream of numbers. Two streams of different seeds share nothing.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A stream of its own for the concern `name` of this seed.
    pub fn fork(&self, name: u64) -> Self {
        let mut child = Self(self.0 ^ name.wrapping_mul(0xd605_0bb5_3527_8d7f));
        child.next();
        child
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "a stream that never ends is no iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..below`; `below` must be at least 1.
    pub fn below(&mut self, below: u64) -> u64 {
        assert!(below > 0, "nothing lies below 0");
        ((u128::from(self.next()) * u128::from(below)) >> 64) as u64
    }

    /// True `per_mille` times of a thousand.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// One of `choices`, which must not be empty.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_forks_differ() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        assert!((0..100).all(|_| a.next() == b.next()));
        assert_ne!(Rng::new(7).fork(1).next(), Rng::new(7).fork(2).next());
        assert!((0..1000).all(|_| a.below(3) < 3));
    }
}
