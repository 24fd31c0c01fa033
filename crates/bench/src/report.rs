//! What was measured, as a table for people and as JSON.

use std::fmt::Write as _;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::process::Cost;

/// One side of one line.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Measure {
    /// Marks, lists or whatever the line counts, a second; else the figure
    /// itself, in the line's unit.
    pub(crate) value: f64,
    /// Milliseconds from sent (or due) to answered.
    pub p50_ms: Option<f64>,
    /// The same.
    pub p99_ms: Option<f64>,
    /// The same.
    pub p999_ms: Option<f64>,
    /// The longest.
    pub(crate) max_ms: Option<f64>,
    /// `fsync` calls a second.
    pub(crate) syncs_per_s: Option<f64>,
    /// Share of the server's core in use, 0..=1.
    pub(crate) server_core: Option<f64>,
    /// Share of the client's core in use: near 1, the client was the limit.
    pub(crate) client_core: Option<f64>,
    /// Resident memory of the server (and what it stands on), in MiB.
    pub(crate) resident_mib: Option<f64>,
    /// Requests that were answered badly.
    pub(crate) failed: u64,
}

impl Measure {
    /// `value`, with what was seen of latencies in ns.
    pub(crate) fn timed(value: f64, latency: &Histogram<u64>) -> Self {
        let ms = |quantile| Some(latency.value_at_quantile(quantile) as f64 / 1e6);
        Self {
            value,
            p50_ms: ms(0.5),
            p99_ms: ms(0.99),
            p999_ms: ms(0.999),
            max_ms: Some(latency.max() as f64 / 1e6),
            ..Self::default()
        }
    }

    /// The 99th percentile of latencies in ns is what is measured, in ms.
    pub(crate) fn p99(latency: &Histogram<u64>) -> Self {
        Self::timed(latency.value_at_quantile(0.99) as f64 / 1e6, latency)
    }

    /// With what it cost.
    pub(crate) fn at(self, cost: &Cost) -> Self {
        Self {
            server_core: Some(cost.server_core),
            client_core: Some(cost.client_core),
            resident_mib: Some(cost.resident as f64 / f64::from(1 << 20)),
            ..self
        }
    }

    /// The value by second of CPU that the server used.
    fn per_cpu_second(&self) -> Option<f64> {
        Some(self.value / self.server_core.filter(|&share| share > 0.0)?)
    }
}

/// Which way is better, and how far it has to be.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    /// Our value at least this many times the peer's.
    Ratio(f64),
    /// Our value at most this.
    AtMost(f64),
    /// Shown, not held to anything.
    Shown,
}

/// One question and its answer.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    /// What was measured, with batch sizes and concurrency.
    pub(crate) what: String,
    /// What the values are: `marks/s`, `bytes`, `ms`.
    pub(crate) unit: &'static str,
    /// Ours.
    pub(crate) ours: Measure,
    /// The peer's name and its measure.
    pub(crate) peer: Option<(String, Measure)>,
    /// Ours over the peer's: the median of the rounds.
    pub(crate) ratio: Option<f64>,
    /// The ratio of each round.
    pub(crate) rounds: Vec<f64>,
    /// The same by second of CPU that the server used, the median: what stays
    /// true when others are at work on the machine.
    pub(crate) cpu_ratio: Option<f64>,
    /// What it is held to.
    pub(crate) target: Target,
    /// Whatever else a reader must know.
    pub(crate) note: String,
}

impl Line {
    /// Whether the target is met; `None` where there is none.
    pub(crate) fn met(&self) -> Option<bool> {
        match self.target {
            Target::Ratio(least) => Some(self.ratio? >= least),
            Target::AtMost(most) => Some(self.ours.value <= most),
            Target::Shown => None,
        }
    }

    /// From rounds of (ours, theirs): both sides of the round whose ratio is
    /// the median. There must be at least one round.
    pub(crate) fn from_rounds(
        what: impl Into<String>,
        unit: &'static str,
        peer: &str,
        rounds: Vec<(Measure, Measure)>,
        target: Target,
    ) -> Self {
        let ratio = |round: &(Measure, Measure)| round.0.value / round.1.value.max(1e-9);
        let ratios: Vec<f64> = rounds.iter().map(ratio).collect();
        let by_cpu = |round: &(Measure, Measure)| {
            Some(round.0.per_cpu_second()? / round.1.per_cpu_second()?.max(1e-9))
        };
        let mut cpu: Vec<f64> = rounds.iter().filter_map(by_cpu).collect();
        cpu.sort_by(f64::total_cmp);
        let mut sorted = rounds;
        sorted.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        let (ours, theirs) = sorted.swap_remove(sorted.len() / 2);
        Self {
            what: what.into(),
            unit,
            ratio: Some(ours.value / theirs.value.max(1e-9)),
            ours,
            peer: Some((peer.to_string(), theirs)),
            rounds: ratios,
            cpu_ratio: cpu.get(cpu.len() / 2).copied(),
            target,
            note: String::new(),
        }
    }

    /// A figure of ours alone.
    pub(crate) fn ours(
        what: impl Into<String>,
        unit: &'static str,
        ours: Measure,
        target: Target,
    ) -> Self {
        let (what, note) = (what.into(), String::new());
        Self {
            what,
            unit,
            ours,
            peer: None,
            ratio: None,
            rounds: Vec::new(),
            cpu_ratio: None,
            target,
            note,
        }
    }

    /// With a note.
    #[must_use]
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// All lines, and where they were measured.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Report {
    /// Processor, cores, memory, kernel, peer's version.
    pub(crate) machine: String,
    /// What holds for all lines.
    pub(crate) setting: String,
    /// In the order of measuring.
    pub(crate) lines: Vec<Line>,
}

/// A number with as many digits as it deserves.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 10_000.0 => {
            let whole = format!("{value:.0}");
            let mut out = String::new();
            for (at, digit) in whole.chars().enumerate() {
                if at > 0 && (whole.len() - at) % 3 == 0 {
                    out.push(',');
                }
                out.push(digit);
            }
            out
        }
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

impl Report {
    /// The table.
    pub(crate) fn text(&self) -> String {
        let mut out = format!("{}\n{}\n", self.machine, self.setting);
        for line in &self.lines {
            out.push('\n');
            line.write(&mut out);
        }
        let missed = self.lines.iter().filter(|line| line.met() == Some(false)).count();
        let held = self.lines.iter().filter(|line| line.met().is_some()).count();
        let _ = writeln!(out, "\n{} of {held} targets met", held - missed);
        out
    }
}

impl Line {
    /// Appends the line as text.
    pub(crate) fn write(&self, out: &mut String) {
        let _ = writeln!(out, "{}", self.what);
        write_side("tideline", self.unit, &self.ours, out);
        if let Some((name, theirs)) = &self.peer {
            write_side(name, self.unit, theirs, out);
        }
        if let Some(ratio) = self.ratio {
            let rounds: Vec<String> = self.rounds.iter().map(|r| format!("{r:.2}")).collect();
            let _ = write!(out, "  ratio {ratio:.2}x (rounds {})", rounds.join(", "));
        } else {
            out.push(' ');
        }
        if let Some(ratio) = self.cpu_ratio {
            let _ = write!(out, "  by CPU second {ratio:.2}x");
        }
        let verdict = match self.met() {
            Some(true) => "MET",
            Some(false) => "MISSED",
            None => "",
        };
        match self.target {
            Target::Ratio(least) => {
                let _ = writeln!(out, "  target >= {least}x  {verdict}");
            }
            Target::AtMost(most) => {
                let _ = writeln!(out, " target <= {most} {}  {verdict}", self.unit);
            }
            Target::Shown => {
                let _ = writeln!(out, " no target");
            }
        }
        if !self.note.is_empty() {
            let _ = writeln!(out, "  note: {}", self.note);
        }
    }
}

fn write_side(name: &str, unit: &str, side: &Measure, out: &mut String) {
    let _ = write!(out, "  {name:<22} {:>10} {unit}", short(side.value));
    let times = [("p50", side.p50_ms), ("p99", side.p99_ms), ("p99.9", side.p999_ms)];
    for (name, ms) in times.into_iter().chain([("max", side.max_ms)]) {
        if let Some(ms) = ms {
            let _ = write!(out, "  {name} {} ms", short(ms));
        }
    }
    if let Some(syncs) = side.syncs_per_s {
        let _ = write!(out, "  fsync/s {}", short(syncs));
    }
    if let Some(mib) = side.resident_mib {
        let _ = write!(out, "  RSS {} MiB", short(mib));
    }
    if let (Some(server), Some(client)) = (side.server_core, side.client_core) {
        let _ =
            write!(out, "  cores: server {:.0}%, client {:.0}%", server * 100.0, client * 100.0);
        if client > 0.9 && server < 0.9 {
            out.push_str(" (THE CLIENT IS THE LIMIT)");
        }
    }
    if side.failed > 0 {
        let _ = write!(out, "  FAILED {}", side.failed);
    }
    out.push('\n');
}

/// Processor, cores, memory and kernel, as `/proc` names them.
pub(crate) fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let (cpu, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':')).map_or("?".into(), |(_, v)| v.trim().to_string())
    };
    let cores = cpu.lines().filter(|line| line.starts_with("processor")).count();
    let kib: u64 =
        field(&memory, "MemTotal").split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let kernel = read("/proc/sys/kernel/osrelease");
    format!(
        "{cores} cores ({}), {} GiB, Linux {}",
        field(&cpu, "model name"),
        kib >> 20,
        kernel.trim()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: f64) -> Measure {
        Measure { value, ..Measure::default() }
    }

    #[test]
    fn the_line_shows_the_round_with_the_median_ratio() {
        let rounds = vec![(of(10.0), of(1.0)), (of(30.0), of(10.0)), (of(8.0), of(2.0))];
        let line = Line::from_rounds("w", "marks/s", "redis", rounds, Target::Ratio(5.0));
        assert_eq!(line.ratio, Some(4.0));
        assert_eq!(line.rounds, [10.0, 3.0, 4.0]);
        assert_eq!(line.met(), Some(false));
        let mut text = String::new();
        line.write(&mut text);
        assert!(text.contains("MISSED") && text.contains("ratio 4.00x"), "{text}");
    }

    #[test]
    fn a_figure_at_its_bound_meets_it() {
        let line = Line::ours("hot mark", "bytes", of(48.0), Target::AtMost(48.0));
        assert_eq!(line.met(), Some(true));
        assert_eq!(Line::ours("x", "ms", of(1.0), Target::Shown).met(), None);
    }

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!(short(1_234_567.0), "1,234,567");
        assert_eq!(
            (short(123.4), short(12.34), short(1.234)),
            ("123".into(), "12.3".into(), "1.23".into())
        );
    }
}
