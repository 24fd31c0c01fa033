//! Random streams that depend on a seed and a concern, and on nothing else.

/// What happens next, drawn from the harness's numbers.
#[derive(Clone, Debug)]
pub(crate) struct Rng(tideline_harness::rng::Rng);

impl Rng {
    /// The stream of one concern of one seed.
    pub(crate) fn new(seed: u64, concern: &str) -> Self {
        let name = concern.bytes().fold(0, |name: u64, byte| (name << 8) ^ u64::from(byte));
        Self(tideline_harness::rng::Rng::new(seed).fork(name))
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// Evenly in `0..below`; `below` must not be 0.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.0.below(below)
    }

    /// True once in `n` times.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `from`.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        self.0.pick(from)
    }

    /// One of `from`, or nothing once in `n` times.
    pub(crate) fn maybe<T: Clone>(&mut self, n: u64, from: &[T]) -> Option<T> {
        if self.once_in(n) { None } else { Some(self.pick(from).clone()) }
    }
}
