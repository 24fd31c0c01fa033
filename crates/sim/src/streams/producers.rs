//! Producers that number their records, and the network between them and the
//! owner: requests and answers come late, in another order, twice, or never.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tideline_queue::{ProduceError, StampError};
use tideline_record::batch::Stamp;
use tideline_types::Position;

use super::oracle::{Oracle, PARTITIONS, keys};
use crate::rng::Rng;

/// A key and a value.
pub(super) type Pair = (Vec<u8>, Vec<u8>);
type Answer = Result<Vec<Position>, ProduceError>;

const PRODUCERS: usize = 4;
/// Batches of a producer under way.
const UNDER_WAY_MAX: usize = 4;
/// Requests on their way; beyond, the network loses them.
const WIRE_MAX: usize = 24;

/// A batch as it was sent.
#[derive(Clone, Debug)]
pub(super) struct Request {
    who: usize,
    pub(super) stamp: Stamp,
    pub(super) records: Vec<Pair>,
}

impl Request {
    /// Where its producer writes.
    pub(super) fn partition(&self) -> usize {
        self.who % usize::from(PARTITIONS)
    }
}

#[derive(Default)]
struct Producer {
    life: u32,
    /// The number of the next record.
    next: u64,
    under_way: VecDeque<Request>,
}

/// A request that the owner took, and when it is synced answers.
struct Waiting {
    request: Request,
    owner: u64,
    answer: Pin<Box<dyn Future<Output = Answer>>>,
}

/// All of them.
pub(super) struct Producers {
    all: Vec<Producer>,
    wire: VecDeque<Request>,
    waiting: Vec<Waiting>,
    rng: Rng,
}

impl Producers {
    pub(super) fn new(seed: u64) -> Self {
        let all = (0..PRODUCERS).map(|_| Producer { next: 1, ..Producer::default() });
        let rng = Rng::new(seed, "producers");
        Self { all: all.collect(), wire: VecDeque::new(), waiting: Vec::new(), rng }
    }

    /// A producer has something to say.
    pub(super) fn say(&mut self) {
        let who = self.rng.below(PRODUCERS as u64) as usize;
        let keys = keys(who % usize::from(PARTITIONS));
        let producer = &mut self.all[who];
        if producer.under_way.len() == UNDER_WAY_MAX {
            return;
        }
        let stamp = Stamp { producer: who as u64, epoch: producer.life, number: producer.next };
        let count = 1 + self.rng.below(4);
        let records = (0..count).map(|_| {
            let number = producer.next;
            producer.next += 1;
            let word = *self.rng.pick(&["s1", "s2", "s3", "d", "d", "a", "a", "a", "2", "-", "!"]);
            let key = self.rng.pick(&keys[..3]).as_bytes().to_vec();
            (key, format!("{who}.{}.{number} {word}", producer.life).into_bytes())
        });
        let request = Request { who, stamp, records: records.collect() };
        producer.under_way.push_back(request.clone());
        self.send(request);
    }

    /// A producer is impatient, and sends again what was not answered.
    pub(super) fn retry(&mut self) {
        let who = self.rng.below(PRODUCERS as u64) as usize;
        let again: Vec<Request> = self.all[who].under_way.iter().cloned().collect();
        again.into_iter().for_each(|request| self.send(request));
    }

    /// A producer stops and starts again; what was under way it forgets.
    pub(super) fn restart(&mut self) {
        let who = self.rng.below(PRODUCERS as u64) as usize;
        let producer = &mut self.all[who];
        *producer = Producer { life: producer.life + 1, next: 1, under_way: VecDeque::new() };
    }

    fn send(&mut self, request: Request) {
        if self.wire.len() < WIRE_MAX {
            self.wire.push_back(request);
        }
    }

    /// The next request that reaches an owner.
    pub(super) fn arrives(&mut self) -> Option<Request> {
        if self.wire.is_empty() {
            return None;
        }
        let at = if self.rng.once_in(6) { self.rng.below(self.wire.len() as u64) } else { 0 };
        let request = self.wire.remove(at as usize)?;
        match self.rng.below(16) {
            0 => None,
            1 => {
                self.wire.push_back(request.clone());
                Some(request)
            }
            _ => Some(request),
        }
    }

    /// An owner took a request.
    pub(super) fn taken(
        &mut self,
        request: Request,
        owner: u64,
        answer: impl Future<Output = Answer> + 'static,
    ) {
        self.waiting.push(Waiting { request, owner, answer: Box::pin(answer) });
    }

    /// Answers that are due go out; some are lost on the way.
    pub(super) fn answer(&mut self, oracle: &mut Oracle) -> Vec<String> {
        let mut told = Vec::new();
        let mut at = 0;
        while at < self.waiting.len() {
            let waiting = &mut self.waiting[at];
            let polled = waiting.answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let Poll::Ready(answer) = polled else {
                at += 1;
                continue;
            };
            let Waiting { request, owner, .. } = self.waiting.remove(at);
            told.push(format!("{request:?} of {owner}: {answer:?}"));
            // What is said must be true, whether it arrives or not.
            if let Ok(positions) = &answer {
                assert_eq!(positions.len(), request.records.len());
                for (position, record) in positions.iter().zip(&request.records) {
                    oracle.acknowledged(request.partition(), owner, *position, record);
                }
            }
            if !self.rng.once_in(5) {
                self.told(&request, &answer);
            }
        }
        told
    }

    /// A producer hears what became of a request.
    pub(super) fn told(&mut self, request: &Request, answer: &Answer) {
        let producer = &mut self.all[request.who];
        let same = |other: &Request| other.stamp == request.stamp;
        let under_way = producer.under_way.iter().position(same);
        match answer {
            Ok(_) => _ = under_way.and_then(|at| producer.under_way.remove(at)),
            Err(ProduceError::Stamp(StampError::Fenced { .. })) => {
                assert!(request.stamp.epoch < producer.life, "nobody followed {request:?}");
            }
            Err(ProduceError::Stamp(error @ (StampError::Taken(_) | StampError::Range))) => {
                assert!(under_way.is_none(), "{request:?} is under way: {error}");
            }
            // Asked again, in order.
            Err(_) => {}
        }
    }

    /// The owner has stopped: nobody is answered.
    pub(super) fn cut(&mut self) {
        self.waiting.clear();
    }

    /// Faults have stopped; everything not answered is sent again. Whether all
    /// is answered.
    pub(super) fn rest(&mut self) -> bool {
        self.wire.clear();
        for producer in &self.all {
            self.wire.extend(producer.under_way.iter().cloned());
        }
        self.wire.is_empty() && self.waiting.is_empty()
    }

    /// As [`Producers::arrives`], where nothing goes wrong.
    pub(super) fn next(&mut self) -> Option<Request> {
        self.wire.pop_front()
    }
}
