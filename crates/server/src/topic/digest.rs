//! `tideline topic digest`: checksums over the records of ranges, so that two hosts
//! that hold or compute a topic can be compared, line by line.
//!
//! Ranges end at multiples of a number, so that the lines of two hosts are of the same
//! ranges, also where one has freed more than the other: of the first line only those
//! that begin at the same place can be compared. With an operator, the topic is computed
//! here from its source, instead of by the server.

use std::sync::Arc;

use tideline_client::{Follower, From, Next, Options, Source};
use tideline_record::derive::{Stage, Version, frames};
use tideline_record::digest::Digest;
use tideline_record::frame::Frame;
use tideline_record::{Maker as _, OnError};
use tideline_types::{PartitionId, Seq, TopicName};

use crate::cli::{DigestArgs, Failure, Natives};

/// Bytes that are derived at a time, about.
const DERIVED_BYTES: usize = 1 << 20;

/// Prints a line for each range of each partition.
pub(super) async fn run(
    args: DigestArgs,
    token: Option<&str>,
    natives: Natives,
) -> Result<(), Failure> {
    let name = |text: &str| TopicName::new(text).map_err(|bad| Failure::Usage(bad.to_string()));
    let topic = name(&args.topic)?;
    let source = Source::new(&args.grpc, token);
    let source = source.map_err(|e| Failure::Usage(format!("--grpc: {e}")))?;
    let about = source.topic(&topic).await.map_err(|e| Failure::failed(&topic, e))?;
    let stages = match &args.operator {
        None => Vec::new(),
        Some(text) => {
            let operator = crate::serve::operators(natives).make(&topic, text);
            let operator = operator.map_err(|why| Failure::Usage(format!("--operator: {why}")))?;
            let versions = vec![Version { cuts: Vec::new(), operator }];
            vec![Arc::new(Stage { versions, on_error: OnError::Skip })]
        }
    };
    println!("{:>9} {:>14} {:>14} {:>10}  DIGEST", "PARTITION", "AFTER", "THROUGH", "RECORDS");
    for (partition, synced) in (0..about.partitions).zip(&about.synced) {
        if args.partition.is_some_and(|one| one != partition) {
            continue;
        }
        let through = args.through.map_or(*synced, Seq).min(*synced);
        let mut lines = Lines::new(partition, args.every, through);
        let mut follower = Follower::new(
            source.clone(),
            topic.clone(),
            PartitionId(partition),
            From::Earliest,
            Options::default(),
        );
        while lines.stands.is_none_or(|stands| stands < through) && through > Seq::ZERO {
            match follower.next().await.map_err(|e| Failure::failed(&topic, e))? {
                Next::Range(frame) if stages.is_empty() => lines.add(&frame),
                Next::Range(frame) => {
                    let (derived, _) = frames(&frame, &stages, DERIVED_BYTES);
                    derived.iter().for_each(|frame| lines.add(frame));
                }
                Next::Head { .. } => {}
                Next::Stopped(why) => return Err(Failure::failed(&topic, why)),
            }
        }
        lines.end();
    }
    Ok(())
}

/// The lines of a partition.
struct Lines {
    partition: u16,
    every: u64,
    /// Where it ends.
    through: Seq,
    /// Where the present range begins, and where this stands.
    after: Seq,
    stands: Option<Seq>,
    digest: Digest,
}

impl Lines {
    fn new(partition: u16, every: u64, through: Seq) -> Self {
        let (after, digest) = Default::default();
        Self { partition, every, through, after, stands: None, digest }
    }

    fn add(&mut self, frame: &Frame) {
        if self.stands.is_none() {
            self.after = frame.range().after;
        }
        let through = self.through;
        for record in frame.records().filter(|record| record.seq <= through) {
            self.move_to(record.seq.prev());
            self.digest.add(&record);
        }
        let stands = frame.range().through.min(self.through);
        self.move_to(stands);
        self.stands = Some(stands);
    }

    /// Everything up to `seq` is in: ends each range that ends there, or before.
    fn move_to(&mut self, seq: Seq) {
        while let end = Seq((self.after.0 / self.every + 1) * self.every)
            && end <= seq
        {
            self.say(end);
        }
    }

    fn say(&mut self, end: Seq) {
        let digest = std::mem::take(&mut self.digest);
        let (partition, after) = (self.partition, self.after);
        println!("{partition:>9} {after:>14} {end:>14} {:>10}  {digest}", digest.records());
        self.after = end;
    }

    fn end(&mut self) {
        if self.stands.is_some() && self.after < self.through {
            self.say(self.through);
        }
    }
}
