//! What the faces count: calls, errors and latencies of each method.
//!
//! Fixed buckets of atomic numbers, so that counting costs a few ns, never
//! allocates, and holds the same memory whether anyone reads it or not.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tideline_wire::Code;

use crate::op::Op;

/// Upper bounds of the latency buckets, in microseconds: 1, 2, 5, 10, … 10 s.
const BOUNDS_US: [u64; 17] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// The counters of all methods.
pub(crate) struct Meters {
    methods: Vec<Meter>,
    /// What names of requests begin from, and how many were given.
    seed: u64,
    named: AtomicU64,
    /// Calls under way.
    pub under_way: AtomicU64,
    /// Live connections.
    live: Arc<AtomicU64>,
    /// Marks that came in, over all faces.
    pub marks: AtomicU64,
    /// Of these, those that were refused.
    pub marks_rejected: AtomicU64,
}

#[derive(Default)]
struct Meter {
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
    errors: [AtomicU64; Code::ALL.len()],
}

impl Default for Meters {
    fn default() -> Self {
        Self {
            methods: Op::ALL.iter().map(|_| Meter::default()).collect(),
            seed: seed(),
            named: AtomicU64::new(0),
            under_way: AtomicU64::new(0),
            live: Arc::default(),
            marks: AtomicU64::new(0),
            marks_rejected: AtomicU64::new(0),
        }
    }
}

impl Meters {
    /// Counts one call that took `took`, and its error if it ended in one.
    pub(crate) fn count(&self, op: Op, took: Duration, error: Option<Code>) {
        let meter = &self.methods[op as usize];
        let us = took.as_micros() as u64;
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        meter.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        meter.sum_us.fetch_add(us, Ordering::Relaxed);
        if let Some(code) = error {
            let at = Code::ALL.iter().position(|c| *c == code).unwrap_or(Code::ALL.len() - 1);
            meter.errors[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts one live connection until the guard is dropped; `None` if there
    /// are `most` already.
    pub(crate) fn connected(&self, most: usize) -> Option<Connected> {
        let one_more = |open: u64| (open < most as u64).then(|| open + 1);
        self.live.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Connected(Arc::clone(&self.live)))
    }

    /// A name for a request: no two of this process are the same, and those of
    /// two processes hardly ever.
    pub(crate) fn name_request(&self) -> u64 {
        let count = self.named.fetch_add(1, Ordering::Relaxed);
        // An odd factor and shifts of half the width map one to one.
        let mixed = (self.seed ^ count).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 32)
    }

    /// Counts the marks of one write.
    pub(crate) fn count_marks(&self, marks: usize, rejected: usize) {
        self.marks.fetch_add(marks as u64, Ordering::Relaxed);
        self.marks_rejected.fetch_add(rejected as u64, Ordering::Relaxed);
    }

    /// Writes all of it in the text format of Prometheus.
    pub(crate) fn write(&self, out: &mut String) {
        let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
        gauge(out, "tideline_calls_under_way", "Calls under way.", load(&self.under_way) as f64);
        gauge(out, "tideline_live_connections", "Live connections.", load(&self.live) as f64);
        counter(out, "tideline_marks_total", "Marks that came in.", load(&self.marks));
        let rejected = load(&self.marks_rejected);
        counter(out, "tideline_marks_rejected_total", "Marks that were refused.", rejected);

        head(out, "tideline_call_seconds", "histogram", "How long calls took.");
        for op in Op::ALL {
            let meter = &self.methods[*op as usize];
            let name = op.name();
            let mut sum = 0;
            for (at, bucket) in meter.buckets.iter().enumerate() {
                sum += load(bucket);
                let bound = BOUNDS_US.get(at).map(|us| (*us as f64 / 1e6).to_string());
                let bound = bound.as_deref().unwrap_or("+Inf");
                line(
                    out,
                    format_args!(
                        "tideline_call_seconds_bucket{{method=\"{name}\",le=\"{bound}\"}} {sum}"
                    ),
                );
            }
            let seconds = load(&meter.sum_us) as f64 / 1e6;
            line(out, format_args!("tideline_call_seconds_sum{{method=\"{name}\"}} {seconds}"));
            line(out, format_args!("tideline_call_seconds_count{{method=\"{name}\"}} {sum}"));
        }
        head(out, "tideline_call_errors_total", "counter", "Calls that ended in an error.");
        for op in Op::ALL {
            let errors = &self.methods[*op as usize].errors;
            for (code, count) in Code::ALL.iter().zip(errors).filter(|(_, n)| load(n) > 0) {
                let (name, code, count) = (op.name(), code.as_str(), load(count));
                line(
                    out,
                    format_args!(
                        "tideline_call_errors_total{{method=\"{name}\",code=\"{code}\"}} {count}"
                    ),
                );
            }
        }
    }
}

/// One live connection, counted.
pub(crate) struct Connected(Arc<AtomicU64>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn seed() -> u64 {
    let mut random = [0; 8];
    // Without randomness names still differ within this process.
    let _ = getrandom::fill(&mut random);
    u64::from_ne_bytes(random)
}

/// One number that goes up and down.
pub(crate) fn gauge(out: &mut String, name: &str, help: &str, value: f64) {
    head(out, name, "gauge", help);
    line(out, format_args!("{name} {value}"));
}

/// One number that only goes up.
pub(crate) fn counter(out: &mut String, name: &str, help: &str, value: u64) {
    head(out, name, "counter", help);
    line(out, format_args!("{name} {value}"));
}

/// The lines before the values of one name.
pub(crate) fn head(out: &mut String, name: &str, sort: &str, help: &str) {
    line(out, format_args!("# HELP {name} {help}"));
    line(out, format_args!("# TYPE {name} {sort}"));
}

/// One line.
pub(crate) fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes all that is written to it");
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_stands_in_its_bucket_and_in_all_above() {
        let meters = Meters::default();
        meters.count(Op::List, Duration::from_micros(700), None);
        meters.count(Op::List, Duration::from_secs(60), Some(Code::Overloaded));
        let mut text = String::new();
        meters.write(&mut text);
        for line in [
            "tideline_call_seconds_bucket{method=\"history_list\",le=\"0.0005\"} 0",
            "tideline_call_seconds_bucket{method=\"history_list\",le=\"0.001\"} 1",
            "tideline_call_seconds_bucket{method=\"history_list\",le=\"10\"} 1",
            "tideline_call_seconds_bucket{method=\"history_list\",le=\"+Inf\"} 2",
            "tideline_call_seconds_count{method=\"history_list\"} 2",
            "tideline_call_errors_total{method=\"history_list\",code=\"overloaded\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
    }
}
