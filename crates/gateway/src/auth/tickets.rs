//! Tickets: a caller's name for 60 s and one call, for browsers that cannot
//! set a header.
//!
//! Kept in memory alone, at most `TICKETS_MAX`; a restart forgets them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tideline_store::Clock;

use super::{Caller, unauthenticated};
use crate::problem::Problem;

/// How long a ticket is good, in ms.
const GOOD_MS: u64 = 60_000;
/// Tickets at once.
const TICKETS_MAX: usize = 100_000;

type Secret = [u8; 24];

/// The tickets that were given and not yet taken.
pub(crate) struct Tickets {
    clock: Arc<dyn Clock>,
    /// Held for a look-up and nothing else.
    given: Mutex<Given>,
}

#[derive(Default)]
struct Given {
    callers: HashMap<Secret, Arc<Caller>>,
    /// By the tick at which they end; those that were taken are passed over.
    ends: VecDeque<(u64, Secret)>,
}

impl Tickets {
    /// None yet.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, given: Mutex::default() }
    }

    /// A new ticket, and how long it is good, in ms.
    pub(crate) fn give(&self, caller: Arc<Caller>) -> Result<(String, u64), Problem> {
        let mut secret: Secret = [0; 24];
        getrandom::fill(&mut secret).map_err(|_| Problem::internal())?;
        let now = self.clock.ticks();
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.forget(now);
        if given.ends.len() >= TICKETS_MAX {
            return Err(Problem::overloaded("too many tickets at once", Duration::from_secs(5)));
        }
        given.callers.insert(secret, caller);
        given.ends.push_back((now + GOOD_MS, secret));
        Ok((URL_SAFE_NO_PAD.encode(secret), GOOD_MS))
    }

    /// The caller of a ticket, which is used up by this.
    pub(crate) fn take(&self, ticket: &str) -> Result<Arc<Caller>, Problem> {
        let bad = || unauthenticated("ticket: was never given, is used up, or older than 60 s");
        let bytes = URL_SAFE_NO_PAD.decode(ticket).map_err(|_| bad())?;
        let secret: Secret = bytes.try_into().map_err(|_| bad())?;
        let now = self.clock.ticks();
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.forget(now);
        given.callers.remove(&secret).ok_or_else(bad)
    }
}

impl Given {
    fn forget(&mut self, now: u64) {
        while let Some((end, secret)) = self.ends.front() {
            if *end > now {
                break;
            }
            self.callers.remove(secret);
            self.ends.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use tideline_store::ManualClock;

    use super::*;

    #[test]
    fn a_ticket_is_good_once_and_for_a_minute() {
        let clock = Arc::new(ManualClock::default());
        let tickets = Tickets::new(clock.clone());
        let caller = Arc::new(Caller::anyone());
        let (ticket, _) = tickets.give(caller.clone()).unwrap();
        assert_eq!(tickets.take(&ticket).unwrap(), caller);
        assert!(tickets.take(&ticket).is_err());
        let (late, _) = tickets.give(caller).unwrap();
        clock.advance(60_000);
        assert!(tickets.take(&late).is_err());
        assert!(tickets.given.lock().unwrap().ends.is_empty());
        for bad in ["", "x", "!!", &"A".repeat(32), &"A".repeat(10_000)] {
            assert!(tickets.take(bad).is_err());
        }
    }
}
