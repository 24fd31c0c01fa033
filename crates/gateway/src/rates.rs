//! Limits of rate: a token bucket for each method, caller and user, and for
//! each sender of comments.
//!
//! A bucket that rested as long as it takes to fill is as good as a new one,
//! so forgetting one that rested long changes nothing; the number of buckets
//! is bounded, and the one that was idle longest goes first.

use std::num::NonZeroU32;
use std::sync::Arc;

use governor::clock::{Clock as _, QuantaClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tideline_wire::Code;

use crate::op::{Need, Op};
use crate::options::{LimitOptions, RateOptions};
use crate::problem::Problem;

type Bucket = DefaultDirectRateLimiter;

/// All buckets.
pub(crate) struct Rates {
    clock: QuantaClock,
    methods: Vec<MethodRates>,
    senders: Option<Quota>,
    buckets: quick_cache::sync::Cache<Key, Arc<Bucket>>,
}

struct MethodRates {
    every: Option<Bucket>,
    caller: Option<Quota>,
    user: Option<Quota>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    op: Op,
    whose: Whose,
    name: Box<str>,
}

/// What a name is the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Whose {
    Caller,
    User,
    Sender,
}

/// A key that is looked up without being made.
#[derive(Hash)]
struct KeyRef<'a> {
    op: Op,
    whose: Whose,
    name: &'a str,
}

impl quick_cache::Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.op == key.op && self.whose == key.whose && *self.name == *key.name
    }
}

impl Rates {
    /// With the limits of `options`, and of comments in a minute by one sender
    /// (0 = none). Errs with the name of a method that there is not.
    pub(crate) fn new(options: &LimitOptions, senders: u32) -> Result<Self, String> {
        for name in options.methods.keys() {
            if !Op::ALL.iter().any(|op| op.name() == name) {
                return Err(name.clone());
            }
        }
        let clock = QuantaClock::default();
        let methods = Op::ALL.iter().map(|op| {
            let writes = !matches!(op.need(), Need::ReadUser | Need::Read | Need::Nothing);
            MethodRates::new(&options.of(op.name(), writes), options.burst_seconds.max(1), &clock)
        });
        Ok(Self {
            methods: methods.collect(),
            senders: NonZeroU32::new(senders).map(Quota::per_minute),
            buckets: quick_cache::sync::Cache::new(options.buckets_max.max(1)),
            clock,
        })
    }

    /// Takes one call from each bucket that it falls under.
    pub(crate) fn check(&self, op: Op, caller: &str, user: Option<&str>) -> Result<(), Problem> {
        let rates = &self.methods[op as usize];
        if let Some(bucket) = &rates.every {
            self.take(bucket, "method", METHOD)?;
        }
        if let Some(quota) = rates.caller {
            let key = KeyRef { op, whose: Whose::Caller, name: caller };
            self.take(&self.bucket(key, quota), "caller", METHOD)?;
        }
        if let (Some(quota), Some(name)) = (rates.user, user) {
            let key = KeyRef { op, whose: Whose::User, name };
            self.take(&self.bucket(key, quota), "user", METHOD)?;
        }
        Ok(())
    }

    /// Takes one comment from the bucket of its sender.
    pub(crate) fn check_sender(&self, user: &str) -> Result<(), Problem> {
        let Some(quota) = self.senders else { return Ok(()) };
        let key = KeyRef { op: Op::PostComment, whose: Whose::Sender, name: user };
        self.take(&self.bucket(key, quota), "sender", "comments")
    }

    fn bucket(&self, key: KeyRef<'_>, quota: Quota) -> Arc<Bucket> {
        if let Some(bucket) = self.buckets.get(&key) {
            return bucket;
        }
        // A clock of its own would ask the processor what it can do, which a
        // virtual machine answers slowly, for each new user.
        let bucket = Arc::new(RateLimiter::direct_with_clock(quota, self.clock.clone()));
        let key = Key { op: key.op, whose: key.whose, name: key.name.into() };
        self.buckets.insert(key, bucket.clone());
        bucket
    }

    fn take(&self, bucket: &Bucket, limit: &'static str, of: &str) -> Result<(), Problem> {
        bucket.check().map_err(|until| {
            let wait = until.wait_time_from(self.clock.now());
            let detail = format!(
                "the limit of {of} per {limit} is met; come back in {} ms",
                wait.as_millis().max(1)
            );
            let problem = Problem::new(Code::RateLimited, detail);
            Problem { retry_after: Some(wait), limit: Some(limit), ..problem }
        })
    }
}

/// What most limits are of.
const METHOD: &str = "this method";

impl MethodRates {
    fn new(rates: &RateOptions, burst_seconds: u32, clock: &QuantaClock) -> Self {
        let quota = |per_second: u32| {
            let rate = NonZeroU32::new(per_second)?;
            let burst = NonZeroU32::new(per_second.saturating_mul(burst_seconds))?;
            Some(Quota::per_second(rate).allow_burst(burst))
        };
        Self {
            every: quota(rates.method_per_second)
                .map(|quota| RateLimiter::direct_with_clock(quota, clock.clone())),
            caller: quota(rates.caller_per_second),
            user: quota(rates.user_per_second),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(method: u32, caller: u32, user: u32) -> Rates {
        let options = LimitOptions {
            method_requests_per_second: method,
            caller_requests_per_second: caller,
            user_reads_per_second: user,
            ..LimitOptions::default()
        };
        Rates::new(&options, 0).unwrap()
    }

    #[test]
    fn the_answer_says_which_limit_is_met_and_when_to_come_back() {
        for (rates, limit) in
            [(rates(1, 0, 0), "method"), (rates(0, 1, 0), "caller"), (rates(0, 0, 1), "user")]
        {
            rates.check(Op::List, "c", Some("u")).unwrap();
            rates.check(Op::List, "c", Some("u")).unwrap();
            let problem = rates.check(Op::List, "c", Some("u")).unwrap_err();
            assert_eq!((problem.code, problem.limit), (Code::RateLimited, Some(limit)));
            assert!(problem.retry_after.unwrap().as_millis() <= 1000);
            rates.check(Op::Count, "c", Some("u")).unwrap();
        }
    }

    #[test]
    fn one_caller_or_user_does_not_use_up_anothers_bucket() {
        let rates = rates(0, 1, 1);
        for caller in ["a", "b"] {
            rates.check(Op::List, caller, Some(caller)).unwrap();
            rates.check(Op::List, caller, Some(caller)).unwrap();
            assert!(rates.check(Op::List, caller, Some(caller)).is_err());
        }
    }

    #[test]
    fn a_caller_and_a_user_of_one_name_have_buckets_of_their_own() {
        let rates = rates(0, 1, 1);
        for _ in 0..2 {
            rates.check(Op::List, "x", None).unwrap();
        }
        assert!(rates.check(Op::List, "x", None).is_err());
        for _ in 0..2 {
            rates.check(Op::List, "y", Some("x")).unwrap();
        }
    }

    #[test]
    fn a_sender_has_a_bucket_beside_those_of_methods() {
        let rates = Rates::new(&LimitOptions::default(), 2).unwrap();
        for sender in ["ann", "bob"] {
            rates.check_sender(sender).unwrap();
            rates.check_sender(sender).unwrap();
            let problem = rates.check_sender(sender).unwrap_err();
            assert_eq!((problem.code, problem.limit), (Code::RateLimited, Some("sender")));
            assert!(problem.retry_after.unwrap().as_secs() <= 30);
            rates.check(Op::PostComment, sender, Some(sender)).unwrap();
        }
        let none = Rates::new(&LimitOptions::default(), 0).unwrap();
        (0..1000).for_each(|_| none.check_sender("ann").unwrap());
    }

    #[test]
    fn a_method_that_there_is_not_is_named() {
        let methods = [("history_lost".to_owned(), RateOptions::default())].into();
        let options = LimitOptions { methods, ..LimitOptions::default() };
        assert_eq!(Rates::new(&options, 0).err(), Some("history_lost".into()));
    }

    #[test]
    fn buckets_are_bounded() {
        let options = LimitOptions { buckets_max: 100, ..LimitOptions::default() };
        let rates = Rates::new(&options, 0).unwrap();
        for n in 0..10_000 {
            rates.check(Op::List, &n.to_string(), None).unwrap();
        }
        assert!(rates.buckets.len() <= 200, "{}", rates.buckets.len());
    }
}
