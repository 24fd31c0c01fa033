//! The core without a network: what one mark costs in time, in memory and at
//! rest.
//!
//! Each figure is taken in a process of its own, so that memory freed by one
//! does not flatter another.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::Arc;

use clap::{Args as ClapArgs, ValueEnum};
use serde::{Deserialize, Serialize};
use tideline_history::kinds::{Kind, KindId, Kinds};
use tideline_history::mark::{Mark, Path};
use tideline_history::outcome::OutcomeRef;
use tideline_history::query::{Filter, ListQuery, PageAt};
use tideline_history::rules::Rules;
use tideline_history::timeline::{Timeline, Touched};
use tideline_types::Millis;

use crate::data::{DataSet, Fields, KIND, Options, Random};
use crate::process::{own_cpu_ns, used};
use crate::report::{Line, Measure, Target};
use crate::stage::{BATCH, Output, now_ms};
use crate::{BenchError, HistoryArgs, cold_size, engine};

/// What a child of `history` measures.
#[derive(Debug, ClapArgs)]
pub(crate) struct CoreArgs {
    /// Which figures
    what: Figure,
    /// Marks of the data set
    #[arg(long)]
    marks: u64,
    /// No id is a UUID
    #[arg(long)]
    decimal: bool,
    /// Positions and times in whole seconds
    #[arg(long)]
    seconds: bool,
    /// A folder to use
    #[arg(long)]
    dir: std::path::PathBuf,
}

/// Figures taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Figure {
    /// Users in memory: bytes a mark, nanoseconds a mark and a list
    Hot,
    /// Users at rest: bytes a mark
    Cold,
    /// The handle over the default engines: durable marks a second
    Engine,
}

/// What a child found.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) marks: u64,
    /// Growth of resident memory.
    pub(crate) resident: u64,
    /// What the timelines say of themselves.
    pub(crate) heap: u64,
    /// Deciding, encoding and applying one mark, in ns.
    pub(crate) write_ns: f64,
    /// Listing the newest 20 of an active user, in ns.
    pub(crate) list_ns: f64,
    /// Bytes of the table's folder, flushed and compacted.
    pub(crate) disk: u64,
    /// Bytes of the rows' values alone.
    pub(crate) values: u64,
}

/// The rules under which all figures are taken: `video` as by default.
pub(crate) fn rules() -> Rules {
    let video = Kind {
        name: KIND.into(),
        declared: true,
        retention_days: 90,
        max_records: 1_000,
        max_per_day: 0,
        daily_first: true,
    };
    let kinds = Arc::new(Kinds::new(vec![video]));
    Rules { kinds, zone: jiff::tz::TimeZone::UTC, key: *b"a bench's key is" }
}

/// Borrows a mark from its texts.
pub(crate) fn mark_of(fields: &Fields) -> Mark<'_> {
    let optional = |text: &'_ String| !text.is_empty();
    Mark {
        user: &fields.user,
        kind: KindId(0),
        id: &fields.id,
        part: optional(&fields.part).then_some(&fields.part),
        position_ms: Some(fields.position_ms),
        duration_ms: Some(fields.duration_ms),
        sent_ms: Some(Millis(fields.event_ms as i64)),
        device: optional(&fields.device).then_some(&fields.device),
        group: None,
        finished: false,
        event_id: Some(&fields.event_id),
    }
}

/// Decides and applies marks of one user after the other.
pub(crate) struct Writer<'a> {
    rules: &'a Rules,
    outcome: Vec<u8>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(rules: &'a Rules) -> Self {
        Self { rules, outcome: Vec::new() }
    }

    /// One mark, as the owner would take it; whether it was accepted.
    pub(crate) fn write(
        &mut self,
        user: &mut Timeline,
        fields: &Fields,
        now: Millis,
        touched: &mut Touched,
    ) -> bool {
        self.outcome.clear();
        self.rules.mark(user, &mark_of(fields), 0, now, Path::Live, &mut self.outcome);
        if self.outcome.is_empty() {
            return false;
        }
        let outcome = OutcomeRef::decode(&self.outcome).expect("decided a moment ago");
        let applied = user.apply(&outcome, &self.rules.kinds, touched);
        applied.expect("the kind is declared");
        true
    }
}

/// All users in memory.
fn hot(data: &DataSet) -> Found {
    let rules = rules();
    let now = Millis(data.options().now_ms as i64);
    let keys = data.in_order_of_time();
    let before = used(std::process::id()).map_or(0, |used| used.resident);
    let mut users: HashMap<Box<str>, Timeline> = HashMap::new();
    let (mut writer, mut fields) = (Writer::new(&rules), Fields::default());
    let (mut accepted, mut spent) = (0, 0);
    for some in keys.chunks(4096) {
        // The texts are made before the clock starts.
        let texts: Vec<Fields> = some
            .iter()
            .map(|&key| {
                data.fields(&data.spec(key), &mut fields);
                fields.clone()
            })
            .collect();
        let start = own_cpu_ns();
        for fields in &texts {
            let user = match users.get_mut(&*fields.user) {
                Some(user) => user,
                None => users.entry(fields.user.as_str().into()).or_default(),
            };
            accepted += u64::from(writer.write(user, fields, now, &mut Touched::default()));
        }
        spent += own_cpu_ns() - start;
    }
    let resident = used(std::process::id()).map_or(0, |used| used.resident) - before;
    let heap = users.values().map(|user| user.bytes() as u64).sum();
    let lists = 1_000_000.min(accepted);
    let mut random = Random::new(1);
    let names: Vec<String> = (0..lists)
        .map(|_| {
            let mut name = String::new();
            crate::data::push_user(data.active_user(random.draw()), &mut name);
            name
        })
        .collect();
    let query = ListQuery { filter: Filter::default(), page: PageAt::Below(None), limit: 20 };
    let start = own_cpu_ns();
    let rows: usize =
        names.iter().map(|name| users[&**name].list(&query, &rules, now).rows.len()).sum();
    let list_ns = (own_cpu_ns() - start) as f64 / lists.max(1) as f64;
    assert!(rows > 0, "lists are not empty");
    Found {
        marks: accepted,
        resident,
        heap,
        write_ns: spent as f64 / keys.len().max(1) as f64,
        list_ns,
        ..Found::default()
    }
}

/// Runs in a child: prints what it found as JSON.
pub(crate) fn child(args: &CoreArgs) -> Result<(), BenchError> {
    let options = Options {
        decimal_only: args.decimal,
        whole_seconds: args.seconds,
        ..Options::whole(now_ms())
    };
    let data = DataSet::new(options.shrunk_to(args.marks));
    let found = match args.what {
        Figure::Hot => hot(&data),
        Figure::Cold => cold_size::cold(&data, &args.dir)?,
        Figure::Engine => engine::history(&data, &args.dir)?,
    };
    println!("{}", serde_json::to_string(&found).expect("numbers"));
    Ok(())
}

fn ask(args: &HistoryArgs, what: &str, flags: &[&str]) -> Result<Found, BenchError> {
    let own = std::env::current_exe().map_err(|e| BenchError::io("own path", &e))?;
    let folder = crate::stage::Folder::new(&args.run, what)?;
    let mut command = Command::new("taskset");
    command.args(["-c", &args.run.server_core.to_string()]).arg(own);
    command.args(["core", what, "--marks", &args.marks().to_string()]);
    command.arg("--dir").arg(folder.path()).args(flags).stderr(Stdio::inherit());
    let output = command.output().map_err(|e| BenchError::io("child", &e))?;
    serde_json::from_slice(&output.stdout)
        .map_err(|_| BenchError::Protocol("a child that printed no figures"))
}

/// The lines of the core.
pub(crate) fn lines(args: &HistoryArgs, out: &mut Output) -> Result<(), BenchError> {
    let figure = |value| Measure { value, ..Measure::default() };
    for (decimal, variant, hot_most, cold_most) in
        [(false, "mixed ids", 48.0, 24.0), (true, "decimal ids", 40.0, 16.0)]
    {
        out.say(&format!("the core, {variant}"));
        let flags: &[&str] = if decimal { &["--decimal"] } else { &[] };
        let seconds = [flags, &["--seconds"]].concat();
        let mut hots = Vec::new();
        for _ in 0..if decimal { 1 } else { args.run.rounds } {
            hots.push(ask(args, "hot", flags)?);
        }
        let median = |of: &dyn Fn(&Found) -> f64| {
            let mut all: Vec<f64> = hots.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        let each = |bytes: u64, found: &Found| bytes as f64 / found.marks.max(1) as f64;
        let what = format!("a hot mark with its fingerprint, {variant}, all told");
        let note = format!(
            "growth of resident memory, allocator and index of users included; the timelines count \
             {:.1}; with times in whole seconds {:.1}",
            median(&|found| each(found.heap, found)),
            {
                let found = ask(args, "hot", &seconds)?;
                each(found.resident, &found)
            }
        );
        let hot = figure(median(&|found| each(found.resident, found)));
        out.line(Line::ours(what, "bytes", hot, Target::AtMost(hot_most)).note(note));

        let cold = ask(args, "cold", flags)?;
        let what = format!("a cold mark, {variant}, after 25 h, flushed and compacted");
        let note = format!(
            "all files of the table; the values alone {:.1}; with times in whole seconds {:.1}",
            each(cold.values, &cold),
            {
                let found = ask(args, "cold", &seconds)?;
                each(found.disk, &found)
            }
        );
        let line =
            Line::ours(what, "bytes", figure(each(cold.disk, &cold)), Target::AtMost(cold_most));
        out.line(line.note(note));

        if !decimal {
            let write = figure(median(&|found| found.write_ns));
            let what = "the core alone: decide, encode and apply one mark, distinct keys";
            out.line(Line::ours(what, "ns", write, Target::Shown));
            let list = figure(median(&|found| found.list_ns));
            let what = "the core alone: newest 20 of an active user";
            out.line(Line::ours(what, "ns", list, Target::Shown));
            let whole = ask(args, "engine", flags)?;
            let note = format!(
                "{:.0} ns a mark; {} MiB on disk; the handle over journal and table on one core",
                whole.write_ns,
                whole.disk >> 20
            );
            let write = Measure { value: 1e9 / whole.write_ns.max(1.0), ..Measure::default() };
            let what = format!("history without a network: durable writes of {} marks", BATCH);
            out.line(Line::ours(what, "marks/s", write, Target::Shown).note(note));
            let what = "history without a network: newest 20 of an active user";
            out.line(Line::ours(what, "ns", figure(whole.list_ns), Target::Shown));
        }
    }
    Ok(())
}
