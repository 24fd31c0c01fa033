//! What operators cost, without a network: records a second that one core
//! passes through a filter of the product, by kind, and by an expression.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tideline_operators::Operators;
use tideline_record::batch::{BatchBuilder, BatchRef};
use tideline_record::derive::{Stage, Version, batches};
use tideline_record::{Maker, OnError};
use tideline_types::{Epoch, Millis, Seq, StreamId, TopicName};

use crate::report::{Line, Measure, Target};
use crate::stage::Output;
use crate::{BenchError, StreamsArgs};

const RECORDS: usize = 1_000;

/// One line for each kind of operator.
pub(super) fn lines(args: &StreamsArgs, out: &mut Output) -> Result<(), BenchError> {
    let declared = [
        ("by kind", r#"{"kind":"video"}"#),
        ("a sample of keys", r#"{"sample":{"one_in":10}}"#),
        ("an expression that filters", r#"{"filter":"value.kind == 'video' && value.finished"}"#),
        (
            "an expression that makes counters",
            r#"{"kind":"video","filter":"value.finished","key":"value.id","counter":{"add":"1"}}"#,
        ),
    ];
    let source = source();
    for (what, text) in declared {
        let topic = TopicName::new("bench").map_err(|e| BenchError::Ours(e.to_string()))?;
        let operator = Operators::new([]).make(&topic, text).map_err(BenchError::Ours)?;
        let versions = vec![Version { cuts: Vec::new(), operator }];
        let stages = [Arc::new(Stage { versions, on_error: OnError::Skip })];
        let parsed = BatchRef::parse(&source).map_err(|e| BenchError::Ours(e.to_string()))?;
        let mut rates: Vec<f64> = (0..args.run.rounds)
            .map(|_| {
                let (start, mut records) = (Instant::now(), 0);
                while start.elapsed() < args.run.round() {
                    std::hint::black_box(batches(&parsed, Seq(1), &stages, usize::MAX));
                    records += RECORDS;
                }
                records as f64 / start.elapsed().as_secs_f64()
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        let value = rates[rates.len() / 2];
        let measure = Measure { value, ..Measure::default() };
        out.line(Line::ours(format!("operator: {what}"), "records/s", measure, Target::Shown));
    }
    Ok(())
}

/// A batch of marks as the history topic has them, about 200 bytes each.
fn source() -> Bytes {
    let mut batch = BatchBuilder::new(StreamId::default(), Epoch(1), Seq(1));
    for n in 0..RECORDS {
        let kind = ["video", "article", "live", "audio"][n % 4];
        let value = format!(
            "{{\"kind\":\"{kind}\",\"id\":\"{}\",\"part\":\"ep{n}\",\"position_ms\":{},\
              \"duration_ms\":1440000,\"event_ms\":1796000000000,\"device\":\"tv-1\",\
              \"group\":\"season-9\",\"finished\":{},\"plays\":3}}",
            112_489_730_346_240 + n as u64 % 97,
            n * 61_500,
            n % 3 == 0
        );
        batch.push(
            Millis(1_796_000_000_000),
            format!("user-{}", n % 50).as_bytes(),
            value.as_bytes(),
        );
    }
    batch.finish()
}
