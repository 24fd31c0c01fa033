//! `TierService`: what keys have.

use std::pin::Pin;

use bytes::Bytes;
use futures_util::{Stream, stream};
use tideline_tier::{GetError, Has, Tier, Whole};
use tideline_types::limits::{TIER_CALL_KEYS_MAX, TIER_PIECE_BYTES};
use tideline_types::{PartitionId, Seq};
use tideline_wire::tier_v1 as v1;
use tideline_wire::tier_v1::tier_service_server::TierService;
use tonic::{Request, Response, Status};

use super::{Face, partition_of};
use crate::problem::Problem;

/// Keys that are read at once for a snapshot.
const PAGE_KEYS: usize = 500;

type Pieces = Pin<Box<dyn Stream<Item = Result<v1::SnapshotResponse, Status>> + Send>>;

#[tonic::async_trait]
impl TierService for Face {
    async fn describe(
        &self,
        request: Request<v1::DescribeRequest>,
    ) -> Result<Response<v1::DescribeResponse>, Status> {
        self.admit_call(request.metadata())?;
        let part = |standing: tideline_tier::Standing| v1::Part {
            applied: Some(standing.applied.into()),
            head: standing.head.0,
            hot_keys: standing.hot_keys as u32,
            stopped: match (standing.stopped, standing.whole) {
                (Some(why), _) => why,
                (None, false) => "a snapshot is on its way".into(),
                (None, true) => String::new(),
            },
            skipped: standing.skipped,
        };
        let standing = self.run(|tier| tier.standing()).await?;
        Ok(Response::new(v1::DescribeResponse {
            topic: self.tier.topic().as_str().to_owned(),
            parts: standing.into_iter().map(part).collect(),
        }))
    }

    async fn get(
        &self,
        request: Request<v1::GetRequest>,
    ) -> Result<Response<v1::GetResponse>, Status> {
        self.admit_call(request.metadata())?;
        let keys = request.into_inner().keys;
        if keys.len() > TIER_CALL_KEYS_MAX {
            return Err(Problem::invalid("keys: at most 1,000").into());
        }
        let found = self
            .run(move |tier| keys.iter().map(|key| tier.get(key)).collect::<Result<Vec<_>, _>>());
        let found =
            found.await?.map_err(Problem::from)?.into_iter().map(|(has, applied)| v1::Found {
                has: has.map(|has| match has {
                    Has::Counter(n) => v1::found::Has::Counter(n),
                    Has::Value(bytes) => v1::found::Has::Value(bytes),
                }),
                applied: Some(applied.into()),
            });
        Ok(Response::new(v1::GetResponse { found: found.collect() }))
    }

    type SnapshotStream = Pieces;

    async fn snapshot(
        &self,
        request: Request<v1::SnapshotRequest>,
    ) -> Result<Response<Pieces>, Status> {
        self.admit_call(request.metadata())?;
        let asked = request.into_inner();
        let partition = partition_of(asked.partition)?;
        if asked.hot {
            let (position, hot) =
                self.run(move |tier| tier.hot_snapshot(partition)).await?.map_err(Problem::from)?;
            let entries = hot.into_iter().map(|hot| entry(hot.key, hot.has, hot.at));
            let place = Some(position.into());
            let whole =
                v1::SnapshotResponse { after: place, entries: entries.collect(), through: place };
            return Ok(Response::new(Box::pin(stream::iter([Ok(whole)]))));
        }
        let walk = Walk { face: self.clone(), partition, last: None, begun: false };
        let pieces = stream::unfold(Some(walk), async |walk| {
            let mut walk = walk?;
            match walk.next().await {
                Ok(piece) => {
                    let more = piece.through.is_none().then_some(walk);
                    Some((Ok(piece), more))
                }
                Err(problem) => Some((Err(Status::from(problem)), None)),
            }
        });
        Ok(Response::new(Box::pin(pieces)))
    }

    async fn touch(
        &self,
        request: Request<v1::TouchRequest>,
    ) -> Result<Response<v1::TouchResponse>, Status> {
        self.admit_call(request.metadata())?;
        let touched = request.into_inner().touched;
        if touched.len() > TIER_CALL_KEYS_MAX {
            return Err(Problem::invalid("touched: at most 1,000").into());
        }
        for touched in touched {
            self.tier.touch(&touched.key, touched.times);
        }
        Ok(Response::new(v1::TouchResponse {}))
    }
}

/// A walk over the rows of a partition, page by page.
struct Walk {
    face: Face,
    partition: PartitionId,
    last: Option<Bytes>,
    begun: bool,
}

impl Walk {
    async fn next(&mut self) -> Result<v1::SnapshotResponse, Problem> {
        let (partition, last) = (self.partition, self.last.clone());
        let page = self.face.run(move |tier| piece(&tier, partition, last)).await?;
        let (position, entries) = page.map_err(Problem::from)?;
        let after = (!self.begun).then(|| position.into());
        self.begun = true;
        let through = entries.is_empty().then(|| position.into());
        self.last = entries.last().map(|whole| whole.key.clone());
        let entries = entries.into_iter().map(|whole| entry(whole.key, Some(whole.has), whole.at));
        Ok(v1::SnapshotResponse { after, entries: entries.collect(), through })
    }
}

/// Some pages, until there are bytes enough. The place is of the first.
fn piece(
    tier: &Tier,
    partition: PartitionId,
    mut last: Option<Bytes>,
) -> Result<(tideline_types::Position, Vec<Whole>), GetError> {
    let mut all: Vec<Whole> = Vec::new();
    let (position, mut page) = tier.page(partition, last.as_deref(), PAGE_KEYS)?;
    let mut bytes = 0;
    while !page.is_empty() {
        let weight = |whole: &Whole| whole.key.len() + value_len(&whole.has);
        bytes += page.iter().map(weight).sum::<usize>();
        last = page.last().map(|whole| whole.key.clone());
        all.append(&mut page);
        if bytes < TIER_PIECE_BYTES {
            page = tier.page(partition, last.as_deref(), PAGE_KEYS)?.1;
        }
    }
    Ok((position, all))
}

fn value_len(has: &Has) -> usize {
    match has {
        Has::Counter(_) => 8,
        Has::Value(bytes) => bytes.len(),
    }
}

fn entry(key: Bytes, has: Option<Has>, at: Seq) -> v1::Entry {
    let has = has.map(|has| match has {
        Has::Counter(n) => v1::entry::Has::Counter(n),
        Has::Value(bytes) => v1::entry::Has::Value(bytes),
    });
    v1::Entry { key, has, at: at.0 }
}
