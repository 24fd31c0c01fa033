//! Streams beside NATS JetStream, one partition beside one stream.
//!
//! How many records of 200 bytes does one core make durable, with so many under
//! way; how soon does a follower have them, alone and beside others who catch up;
//! how stale is a cache that follows 100,000 updates a second, and what does an entry
//! take; and what does an operator cost?
//!
//! Sketch: a sync takes 0.1 to 1 ms here, so with one record under way its rate
//! is that of syncs, for us and for a peer that syncs always. With 500 under
//! way a sync carries hundreds of records, and the cost of a message is what
//! counts: 5 us a record give 200,000 a second.

mod cache;
mod follow;
mod nats;
mod operators;
mod produce;

use crate::stage::Output;
use crate::{BenchError, StreamsArgs, StreamsPart};

/// All lines.
pub(crate) fn lines(args: &StreamsArgs, out: &mut Output) -> Result<(), BenchError> {
    if args.wants(StreamsPart::Produce) {
        produce::lines(args, out)?;
    }
    if args.wants(StreamsPart::Follow) {
        follow::lines(args, out)?;
    }
    if args.wants(StreamsPart::Cache) {
        cache::lines(args, out)?;
    }
    if args.wants(StreamsPart::Operators) {
        operators::lines(args, out)?;
    }
    Ok(())
}
