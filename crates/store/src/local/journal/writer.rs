//! The thread that takes turns: rests while nothing waits, and lets appends
//! gather for one sync (group commit).

use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use super::Shared;
use super::state::State;

/// How long the journal rests before it proves its last round.
const MARK_AFTER: Duration = Duration::from_millis(50);

/// A turn begins no sooner than this after the one before it began for each
/// batch that is to be expected, up to `TURNS_APART_MAX`, so that appends gather
/// where a sync takes less. Where few are expected, waiting gathers nothing.
/// What is appended after a rest is written at once.
const TURNS_APART_EACH: Duration = Duration::from_micros(10);
const TURNS_APART_MAX: Duration = Duration::from_micros(500);
/// Where a sync takes longer, those who were answered by the last turn may come
/// again for half of its time, but not beyond this. A turn begins at once when
/// as many batches wait as lately came in for one sync: nobody else is to be
/// expected.
const GATHER_MAX: Duration = Duration::from_millis(2);

impl Shared {
    /// The writer's thread.
    pub(super) fn write_until_stopped(&self) {
        let mut last_turn = None;
        loop {
            let state = self.gather(self.rest(self.state()), last_turn);
            if state.stopping {
                return;
            }
            drop(state);
            last_turn = Some(Instant::now());
            self.turn();
        }
    }

    /// Waits until there is something to write, or to tell.
    fn rest<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        while state.waiting.is_empty() && !state.stopping {
            if state.failed.is_some() && !state.failure_told {
                break;
            }
            state.writer_wants = 1;
            if !state.unproven || state.failed.is_some() {
                state = self.wait(&self.writer, state);
                continue;
            }
            let rested;
            (state, rested) = self.wait_for(&self.writer, state, MARK_AFTER);
            if rested {
                drop(state);
                self.mark();
                state = self.state();
            }
        }
        state.writer_wants = usize::MAX;
        state
    }

    /// Lets those come who were answered by the last turn, which began then.
    fn gather<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        last_turn: Option<Instant>,
    ) -> MutexGuard<'a, State> {
        let Some(last) = last_turn else { return state };
        let expected = u32::try_from(state.crowd).unwrap_or(u32::MAX);
        let apart = last + TURNS_APART_EACH.saturating_mul(expected).min(TURNS_APART_MAX);
        let until = last + state.sync_took + (state.sync_took / 2).min(GATHER_MAX);
        while !state.stopping && state.failed.is_none() {
            let crowded = state.waiting.len() >= state.crowd;
            let until = if crowded { apart } else { apart.max(until) };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state.writer_wants = if crowded { usize::MAX } else { state.crowd };
            (state, _) = self.wait_for(&self.writer, state, left);
        }
        state.writer_wants = usize::MAX;
        state
    }
}
