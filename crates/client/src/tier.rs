//! A tier, asked over the network: a store that follows a topic, and says of
//! each answer up to which place it is.

use tideline_types::{PartitionId, Position, Seq};
use tideline_wire::tier_v1 as v1;
use tideline_wire::tier_v1::tier_service_client::TierServiceClient;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::cache::Filled;
use crate::follower::is_final;
use crate::source::Source;

/// Bytes of one answer, at most: a thousand large values.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// Why a tier did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TierError {
    /// It is away, or is not whole yet: try again later.
    #[error("the tier is away: {0}")]
    Away(String),
    /// It refuses: trying again does not help by itself.
    #[error("the tier refuses: {code:?}: {detail}")]
    Refused {
        /// As gRPC has it.
        code: Code,
        /// What is wrong.
        detail: String,
    },
    /// The answer makes no sense.
    #[error("the tier's answer makes no sense: {0}")]
    Odd(&'static str),
}

/// What a key has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// `None` for nothing.
    pub value: Option<Filled>,
    /// Everything of the key's partition up to here is in it, and nothing after.
    pub applied: Position,
}

/// One key of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which key.
    pub key: Vec<u8>,
    /// What it has; `None` only of a hot key that has nothing.
    pub value: Option<Filled>,
    /// The number of the last change in it.
    pub at: Seq,
}

/// A part of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// First: the tail begins after this place.
    After(Position),
    /// Keys.
    Entries(Vec<Entry>),
    /// Last: with the tail up to here, the snapshot is whole.
    Through(Position),
}

/// A tier. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tier {
    source: Source,
}

/// Pieces of a snapshot, as they come.
#[derive(Debug)]
pub struct Snapshot {
    answers: tonic::Streaming<v1::SnapshotResponse>,
    pieces: std::collections::VecDeque<Piece>,
}

impl Tier {
    /// The tier at the address of `source`.
    pub fn new(source: Source) -> Self {
        Self { source }
    }

    /// Where its hot keys are followed.
    pub fn source(&self) -> &Source {
        &self.source
    }

    fn client(&self) -> TierServiceClient<Channel> {
        TierServiceClient::new(self.source.channel()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    /// What it follows, and how far it is.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn describe(&self) -> Result<v1::DescribeResponse, TierError> {
        let request = self.source.request(v1::DescribeRequest {});
        Ok(self.client().describe(request).await.map_err(refused)?.into_inner())
    }

    /// What keys have, at most 1,000.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn get(&self, keys: &[&[u8]]) -> Result<Vec<Found>, TierError> {
        let keys_sent = keys.iter().map(|key| key.to_vec().into()).collect();
        let request = self.source.request(v1::GetRequest { keys: keys_sent });
        let answer = self.client().get(request).await.map_err(refused)?.into_inner();
        if answer.found.len() != keys.len() {
            return Err(TierError::Odd("another number of keys"));
        }
        let found = answer.found.into_iter().map(|found| {
            let value = found.has.map(|has| match has {
                v1::found::Has::Counter(n) => Filled::Counter(n),
                v1::found::Has::Value(bytes) => Filled::Bytes(bytes.to_vec()),
            });
            let applied = found.applied.ok_or(TierError::Odd("no place"))?;
            Ok(Found { value, applied: applied.into() })
        });
        found.collect()
    }

    /// Says that keys were found in a copy so many times.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn touch(&self, touched: Vec<(Vec<u8>, u32)>) -> Result<(), TierError> {
        let touched = touched
            .into_iter()
            .map(|(key, times)| v1::Touched { key: key.into(), times })
            .collect();
        let request = self.source.request(v1::TouchRequest { touched });
        self.client().touch(request).await.map_err(refused)?;
        Ok(())
    }

    /// All that a partition has, or its hot keys.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn snapshot(&self, partition: PartitionId, hot: bool) -> Result<Snapshot, TierError> {
        let asked = v1::SnapshotRequest { partition: partition.0.into(), hot };
        let answers = self.client().snapshot(self.source.request(asked)).await.map_err(refused)?;
        Ok(Snapshot { answers: answers.into_inner(), pieces: Default::default() })
    }
}

impl Snapshot {
    /// The next piece; `None` after the last. A snapshot without [`Piece::Through`]
    /// was cut off.
    ///
    /// # Errors
    /// Why nothing more comes.
    pub async fn next(&mut self) -> Result<Option<Piece>, TierError> {
        while self.pieces.is_empty() {
            let Some(chunk) = self.answers.message().await.map_err(refused)? else {
                return Ok(None);
            };
            self.pieces.extend(chunk.after.map(|after| Piece::After(after.into())));
            if !chunk.entries.is_empty() {
                let entries = chunk.entries.into_iter().map(|entry| Entry {
                    key: entry.key.to_vec(),
                    value: entry.has.map(|has| match has {
                        v1::entry::Has::Counter(n) => Filled::Counter(n),
                        v1::entry::Has::Value(bytes) => Filled::Bytes(bytes.to_vec()),
                    }),
                    at: Seq(entry.at),
                });
                self.pieces.push_back(Piece::Entries(entries.collect()));
            }
            self.pieces.extend(chunk.through.map(|through| Piece::Through(through.into())));
        }
        Ok(self.pieces.pop_front())
    }
}

fn refused(status: Status) -> TierError {
    if is_final(status.code()) {
        TierError::Refused { code: status.code(), detail: status.message().to_owned() }
    } else {
        TierError::Away(status.message().to_owned())
    }
}
