//! Random streams that depend on a seed and a concern, and on nothing else.

/// SplitMix64 (Steele, Lea, Flood 2014): small, and good enough to choose
/// what happens next.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// The stream of one concern of one seed.
    pub(crate) fn new(seed: u64, concern: &str) -> Self {
        let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
        for byte in concern.bytes() {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mut rng = Self(state);
        rng.next();
        rng
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Evenly in `0..below`; `below` must not be 0.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.next() % below
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `from`.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    /// One of `from`, or nothing once in `n` times.
    pub(crate) fn maybe<T: Clone>(&mut self, n: u64, from: &[T]) -> Option<T> {
        if self.once_in(n) { None } else { Some(self.pick(from).clone()) }
    }
}
