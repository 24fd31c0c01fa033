//! Comments of a file, in: as owners upload them.

use std::collections::HashMap;

use axum::response::Response;
use tideline_danmaku::ask::{ImportItem, Tally};
use tideline_danmaku::comment::{Actor, Role};
use tideline_types::limits::{IMPORT_BYTES_MAX, IMPORT_ITEMS_MAX};
use tideline_wire::Code;
use tideline_wire::danmaku::Item;
use tideline_wire::danmaku::read::{self, FileFormat, Limits, ReadError, Report};

use super::door::{self, Call};
use super::players::tally_json;
use crate::Gateway;
use crate::problem::Problem;

pub(super) async fn import(gateway: Gateway, mut call: Call) -> Result<Response, Problem> {
    call.query.only(&["format"])?;
    let named = call.query.one("format")?.map(|name| {
        let names = FileFormat::ALL.map(FileFormat::name).join(", ");
        let unknown = || Problem::invalid(format!("format: must be one of {names}"));
        FileFormat::from_name(name).ok_or_else(unknown)
    });
    let named = named.transpose()?;
    let body = call.body(&gateway).await?;
    let video = call.param("video").unwrap_or_default().to_owned();
    let user = gateway.acting_user(&call.caller)?;
    let caller = call.caller.clone();
    drop(call);
    let role = gateway.role_of(&caller, &video).await;
    if role == Role::Viewer {
        let detail = "for the owner of the video, moderators and services";
        return Err(Problem::new(Code::PermissionDenied, detail));
    }
    let actor = Actor { user, role };
    let (items, report) = read(&body, named)?;
    let mut sum = Tally::default();
    for part in parts(items) {
        let tally = gateway.inner.danmaku.import(&video, part, actor.clone()).await?;
        sum.taken += tally.taken;
        sum.overflow += tally.overflow;
        sum.duplicates += tally.duplicates;
        sum.refused.extend(tally.refused);
    }
    let refused = sum.refused.iter().map(|(_, refusal)| format!("refused: {refusal}"));
    let lines: Vec<String> = report.lines().iter().cloned().chain(refused).take(1_000).collect();
    let counts = [
        ("read", report.total()),
        ("kept", report.kept),
        ("changed", report.changed),
        ("dropped", report.dropped),
        ("taken", sum.taken.into()),
        ("overflow", sum.overflow.into()),
        ("duplicates", sum.duplicates.into()),
        ("refused", sum.refused.len() as u64),
    ];
    Ok(door::json(tally_json(&counts, &lines)))
}

/// Every comment of a file, each with how many of the same came before it.
fn read(body: &[u8], named: Option<FileFormat>) -> Result<(Vec<ImportItem>, Report), Problem> {
    let bad = |error: ReadError| Problem::invalid(format!("body: {error}"));
    let io = |error: std::io::Error| Problem::invalid(format!("body: {error}"));
    let mut input = read::inflated(body).map_err(io)?;
    let format = match named {
        Some(format) => format,
        None => {
            let head = std::io::BufRead::fill_buf(&mut input).map_err(io)?;
            let unknown = "format: the file is of none that is known; say which";
            read::sniff(head).ok_or_else(|| Problem::invalid(unknown))?
        }
    };
    // A packed file may be much larger than its body.
    let input = std::io::Read::take(input, 8 * tideline_types::limits::BODY_BYTES_MAX as u64);
    let (mut items, mut report) = (Vec::new(), Report::default());
    let mut seen: HashMap<Vec<u8>, u32> = HashMap::new();
    for entry in read::open(format, std::io::BufReader::new(input), Limits::default()) {
        let entry = entry.map_err(bad)?;
        report.note(&entry);
        if let Ok((item, _)) = entry.outcome {
            let count = seen.entry(fingerprint(&item)).or_default();
            items.push(ImportItem { item, nth: *count });
            *count += 1;
        }
    }
    Ok((items, report))
}

/// What two comments that are meant to be the same have in common: everything.
fn fingerprint(item: &Item<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    tideline_wire::danmaku::json::put_item(&mut out, item);
    out
}

/// As many as one call takes.
fn parts(items: Vec<ImportItem>) -> Vec<Vec<ImportItem>> {
    let (mut parts, mut part, mut bytes) = (Vec::new(), Vec::new(), 0);
    for item in items {
        let size = item.item.text.len();
        if part.len() == IMPORT_ITEMS_MAX || (bytes + size > IMPORT_BYTES_MAX && !part.is_empty()) {
            parts.push(std::mem::take(&mut part));
            bytes = 0;
        }
        bytes += size;
        part.push(item);
    }
    parts.push(part);
    parts
}
