//! `tideline check`: reads every byte of a data folder that no server has
//! open, and says what is wrong with it.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use jiff::tz::TimeZone;
use serde::Serialize;
use tideline_danmaku::check::{Applied, Checker};
use tideline_history::kinds::Kinds;
use tideline_history::rows::{self, Owner};
use tideline_history::{TOPIC, cold, prepare};
use tideline_queue::topics_at_rest;
use tideline_store::disk::RealDisk;
use tideline_store::local::{LsmOptions, LsmTable, verify_journal};
use tideline_store::{Place, StoreError, Table, TableName};
use tideline_types::{Epoch, PartitionId, Seq, StreamId, partition_of};

use crate::cli::{CheckArgs, Failure};
use crate::folder::DataFolder;

/// Findings that are printed; the rest is counted.
const PRINTED_MAX: usize = 100;

#[derive(Default, Serialize)]
struct Report {
    ok: bool,
    streams: u64,
    batches: u64,
    records: u64,
    log_bytes: u64,
    /// The unfinished end of a log that was not closed; the next start cuts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    torn: Option<String>,
    table_rows: u64,
    users: u64,
    history_rows: u64,
    videos: u64,
    comments: u64,
    subtrees: u64,
    nodes: u64,
    findings: Vec<String>,
}

/// Checks the folder, prints the report, and fails if anything is wrong.
pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    let root = &args.data;
    let folder = DataFolder::open(root).map_err(|e| Failure::Failed(e.to_string()))?;
    let mut report = Report::default();
    let checked = crate::cli::here(|| check(&folder, &mut report));
    if let Err(error) = checked {
        report.findings.push(error.to_string());
    }
    report.ok = report.findings.is_empty();
    print(&report, args.json, root);
    match report.findings.len() {
        0 => Ok(()),
        count => Err(Failure::Failed(format!("{}: {count} findings", root.display()))),
    }
}

fn print(report: &Report, json: bool, root: &Path) {
    if json {
        println!("{}", serde_json::json!(report));
        return;
    }
    println!(
        "log     {} streams, {} batches, {} records, {} bytes",
        report.streams, report.batches, report.records, report.log_bytes
    );
    if let Some(torn) = &report.torn {
        println!("        an unfinished end, which the next start cuts: {torn}");
    }
    println!("tables  {} rows", report.table_rows);
    println!("history {} users, {} rows at rest", report.users, report.history_rows);
    println!("danmaku {} videos, {} comments at rest", report.videos, report.comments);
    println!("meta    {} subtrees, {} nodes at rest", report.subtrees, report.nodes);
    for finding in report.findings.iter().take(PRINTED_MAX) {
        println!("WRONG   {finding}");
    }
    if report.findings.len() > PRINTED_MAX {
        println!("WRONG   and {} more", report.findings.len() - PRINTED_MAX);
    }
    if report.ok {
        println!("{} is sound", root.display());
    }
}

fn check(folder: &DataFolder, report: &mut Report) -> Result<(), StoreError> {
    let log = verify_journal(&RealDisk, &folder.log())?;
    report.streams = log.streams;
    report.batches = log.batches;
    report.records = log.records;
    report.log_bytes = log.bytes;
    report.torn = log.torn.map(|torn| place(&torn));
    report.findings.extend(log.findings.iter().map(place));

    let table = LsmTable::open(&folder.tables(), &LsmOptions::default())?;
    report.table_rows = table.verify()?;
    let ends = log.ends.into_iter().map(|(stream, epoch, last)| (stream, (epoch, last)));
    let topics = match topics_at_rest(&table) {
        Ok(topics) => topics,
        Err(error) => {
            report.findings.push(format!("tables/meta: {error}"));
            return Ok(());
        }
    };
    let ends: BTreeMap<StreamId, (Epoch, Seq)> = ends.collect();
    for (name, incarnation, partitions) in &topics {
        let stream = |partition| StreamId { incarnation: *incarnation, partition };
        let gone = (0..*partitions).filter(|p| !ends.contains_key(&stream(PartitionId(*p))));
        for partition in gone {
            report.findings.push(format!("topic {name}: the log has no partition {partition}"));
        }
    }
    let find = |topic: &str| topics.iter().find(|(name, ..)| name.as_str() == topic).cloned();
    if let Some((_, incarnation, partitions)) = find(tideline_danmaku::TOPIC) {
        let end =
            |partition| ends.get(&StreamId { incarnation, partition }).copied().unwrap_or_default();
        check_comments(&table, partitions, &end, report)?;
    }
    if let Some((_, incarnation, partitions)) = find(tideline_meta::TOPIC) {
        let end =
            |partition| ends.get(&StreamId { incarnation, partition }).copied().unwrap_or_default();
        check_tree(&table, partitions, &end, report);
    }
    let Some((_, incarnation, partitions)) = find(TOPIC) else { return Ok(()) };
    let kinds = prepare(&table, Vec::new(), TimeZone::UTC)?.kinds;
    let users = Users {
        kinds: &kinds,
        partitions,
        end: &|partition| {
            ends.get(&StreamId { incarnation, partition }).copied().unwrap_or_default()
        },
    };
    users.check_places(&table, report)?;
    users.check_rows(&table, report)
}

/// Subtrees at rest, each by itself and against the log that it follows.
fn check_tree(
    table: &dyn Table,
    partitions: u16,
    end: &dyn Fn(PartitionId) -> (Epoch, Seq),
    report: &mut Report,
) {
    for partition in (0..partitions).map(PartitionId) {
        let (epoch, last) = end(partition);
        match tideline_meta::check::partition(table, partition, epoch, last) {
            Ok(found) => {
                report.subtrees += found.subtrees;
                report.nodes += found.nodes;
                report.findings.extend(found.findings);
            }
            Err(error) => report.findings.push(format!("meta/{partition}: {error}")),
        }
    }
}

/// Videos at rest, each by itself and against the log that it follows.
fn check_comments(
    table: &dyn Table,
    partitions: u16,
    end: &dyn Fn(PartitionId) -> (Epoch, Seq),
    report: &mut Report,
) -> Result<(), StoreError> {
    let mut findings = Vec::new();
    for partition in (0..partitions).map(PartitionId) {
        let at = Place::read(table, tideline_danmaku::TOPIC, partition)?;
        let (epoch, last) = end(partition);
        if at.seq > last || at.epoch > epoch {
            findings.push(format!(
                "danmaku/{partition} is at rest up to {} of epoch {}, and its log ends with \
                 {last} of epoch {epoch}",
                at.seq, at.epoch
            ));
        }
    }
    tideline_danmaku::erase::erasing(table)?;
    let mut checker = Checker::default();
    let mut ahead = |applied: Option<Applied>| {
        let Some(Applied { video, place: (at_epoch, seq) }) = applied else { return };
        let partition = partition_of(video.as_bytes(), partitions);
        let (epoch, last) = end(partition);
        if seq > last || at_epoch > epoch {
            findings.push(format!(
                "video {video:?} has applied {seq} of epoch {at_epoch}, and the log of \
                 danmaku/{partition} ends with {last} of epoch {epoch}"
            ));
        }
    };
    table.walk(TableName::Danmaku, &[], &mut |row| {
        ahead(checker.row(&row.partition_key, &row.sort_key, &row.value));
        true
    })?;
    ahead(checker.end());
    (report.videos, report.comments) = (checker.videos, checker.comments);
    report.findings.extend(findings);
    report.findings.extend(checker.findings);
    Ok(())
}

fn place(finding: &tideline_store::local::Finding) -> String {
    format!("{} at byte {}: {}", finding.file.display(), finding.offset, finding.what)
}

/// Users at rest, against the log that they follow.
struct Users<'a> {
    kinds: &'a Kinds,
    partitions: u16,
    /// The epoch and the last number of a partition's log.
    end: &'a dyn Fn(PartitionId) -> (Epoch, Seq),
}

impl Users<'_> {
    fn check_places(&self, table: &dyn Table, report: &mut Report) -> Result<(), StoreError> {
        for partition in (0..self.partitions).map(PartitionId) {
            let at = Place::read(table, TOPIC, partition)?;
            let (epoch, last) = (self.end)(partition);
            if at.seq > last || at.epoch > epoch {
                report.findings.push(format!(
                    "history/{partition} is at rest up to {} of epoch {}, and its log ends with \
                     {last} of epoch {epoch}",
                    at.seq, at.epoch
                ));
            }
        }
        cold::erasing(table)?;
        Ok(())
    }

    fn check_rows(&self, table: &dyn Table, report: &mut Report) -> Result<(), StoreError> {
        let mut key = Bytes::new();
        let mut rows: Vec<(Bytes, Bytes)> = Vec::new();
        table.walk(TableName::History, &[], &mut |row| {
            if row.partition_key != key {
                self.check_user(&key, &rows, report);
                rows.clear();
                key = row.partition_key;
            }
            rows.push((row.sort_key, row.value));
            true
        })?;
        self.check_user(&key, &rows, report);
        Ok(())
    }

    fn check_user(&self, key: &[u8], rows: &[(Bytes, Bytes)], report: &mut Report) {
        if rows.is_empty() {
            return;
        }
        let owner = match rows::owner_of(key) {
            Ok(owner) => owner,
            Err(error) => {
                report.findings.push(format!("tables/history: a key does not read: {error}"));
                return;
            }
        };
        let (timeline, applied) = match rows::load(rows, self.kinds) {
            Ok(loaded) => loaded,
            Err(error) => {
                report.findings.push(format!("tables/history: {error} ({owner:?})"));
                return;
            }
        };
        let Owner::User(user) = owner else { return };
        report.users += 1;
        report.history_rows += timeline.len() as u64;
        let partition = partition_of(user.as_bytes(), self.partitions);
        let (epoch, last) = (self.end)(partition);
        if applied.seq > last || applied.epoch > epoch {
            report.findings.push(format!(
                "user {user:?} has applied {} of epoch {}, and the log of history/{partition} \
                 ends with {last} of epoch {epoch}",
                applied.seq, applied.epoch
            ));
        }
    }
}
