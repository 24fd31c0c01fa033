//! `tideline export danmaku`: what a video shows, in a player's format, and
//! what the format loses of it.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write, stdout};

use reqwest::Method;
use serde::{Deserialize, Serialize};
use tideline_wire::danmaku::read::{self, FileFormat, Limits};
use tideline_wire::danmaku::{Form, Item, Loss, LossReport, ass, json, losses, proto, xml};

use super::Whole;
use crate::cli::{ExportDanmakuArgs, ExportFormat, Failure};
use crate::client::{Client, segment};

/// Comments whose losses are told one by one.
const LINES_PRINTED_MAX: usize = 20;

/// What is asked of a video before it is read.
#[derive(Deserialize)]
struct View {
    limit: u32,
    state: String,
    special_packs: u32,
}

/// What became of the comments.
#[derive(Debug, Serialize)]
struct Summary {
    video: String,
    format: &'static str,
    read: u64,
    kept: u64,
    changed: u64,
    dropped: u64,
    /// Comments by what they lost; one may have lost several things.
    losses: BTreeMap<&'static str, u64>,
}

/// Writes the comments, and says what was lost.
pub(super) async fn run(client: &Client, args: &ExportDanmakuArgs) -> Result<(), Failure> {
    let path = format!("/v1/videos/{}/danmaku", segment(&args.video));
    let view = client.send_patiently(|| client.request(Method::GET, &format!("{path}/view")));
    let view: View = crate::client::read_json(view.await?).await?;
    let mut items = fetch(client, &format!("{path}.json"), FileFormat::Json).await?;
    for pack in 1..=view.special_packs {
        let path = format!("{path}/special/{pack}.pb");
        items.extend(fetch(client, &path, FileFormat::Protobuf).await?);
    }
    let form = form_of(args.format);
    let (summary, lines) = judge(&args.video, form, &items);
    let body = body(form, &args.video, &view, &items);
    match &args.out {
        Some(path) => {
            let mut out = Whole::at(path)?;
            out.file.write_all(&body).map_err(|e| Failure::failed(path.display(), e))?;
            out.keep()?;
        }
        None => {
            let mut out = BufWriter::new(stdout().lock());
            let written = out.write_all(&body).and_then(|()| out.flush());
            written.map_err(|e| Failure::failed("standard output", e))?;
        }
    }
    tell(&summary, &lines, args);
    match args.strict && summary.kept < summary.read {
        true => Err(Failure::Failed("some comments were changed or dropped".into())),
        false => Ok(()),
    }
}

async fn fetch(
    client: &Client,
    path: &str,
    format: FileFormat,
) -> Result<Vec<Item<'static>>, Failure> {
    let failed = |why: &dyn std::fmt::Display| Failure::failed(path, why);
    let response = client.send_patiently(|| client.request(Method::GET, path)).await?;
    let body = response.bytes().await.map_err(|e| failed(&e))?;
    let mut items = Vec::new();
    for entry in read::open(format, &body[..], Limits::default()) {
        let entry = entry.map_err(|e| failed(&e))?;
        let (item, _) = entry.outcome.map_err(|reason| failed(&reason))?;
        items.push(item);
    }
    Ok(items)
}

fn form_of(format: ExportFormat) -> Form {
    match format {
        ExportFormat::Xml => Form::Xml,
        ExportFormat::Protobuf => Form::Protobuf,
        ExportFormat::Json => Form::Json,
        ExportFormat::Ass => Form::Ass,
    }
}

/// What `form` loses of the comments, in sum and of the first ones by id.
fn judge(video: &str, form: Form, items: &[Item<'_>]) -> (Summary, Vec<String>) {
    let (mut report, mut lines) = (LossReport::default(), Vec::new());
    let (mut kept, mut dropped) = (0, 0);
    for item in items {
        report.note(form, item);
        let lost = losses(form, item);
        kept += u64::from(lost.is_empty());
        dropped += u64::from(lost.contains(&Loss::Comment));
        if !lost.is_empty() && lines.len() < LINES_PRINTED_MAX {
            let lost: Vec<&str> = lost.into_iter().map(Loss::as_str).collect();
            lines.push(format!("comment {}: {}", item.id, lost.join("; ")));
        }
    }
    let read = items.len() as u64;
    let count = |loss: &Loss| (loss.as_str(), report.count(*loss));
    let summary = Summary {
        video: video.to_owned(),
        format: match form {
            Form::Xml => "xml",
            Form::Protobuf => "protobuf",
            Form::Ass => "ass",
            _ => "json",
        },
        read,
        kept,
        changed: read - kept - dropped,
        dropped,
        losses: Loss::ALL.iter().map(count).filter(|(_, count)| *count > 0).collect(),
    };
    (summary, lines)
}

fn body(form: Form, video: &str, view: &View, items: &[Item<'_>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(128 * items.len());
    let closed = view.state == "closed";
    match form {
        Form::Xml => {
            xml::put_head(&mut out, &xml::Head { video, limit: view.limit, closed });
            items.iter().for_each(|item| xml::put_item(&mut out, item));
            xml::put_tail(&mut out);
        }
        Form::Protobuf => {
            proto::put_state(&mut out, closed);
            items.iter().for_each(|item| proto::put_item(&mut out, item));
        }
        Form::Ass => {
            let mut script = ass::Script::new(ass::Options::default());
            script.put_head(&mut out);
            for item in items {
                script.put_item(&mut out, item);
            }
        }
        _ => {
            json::put_head(&mut out);
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.extend_from_slice(json::SEPARATOR);
                }
                json::put_item(&mut out, item);
            }
            json::put_tail(&mut out);
        }
    }
    out
}

fn tell(summary: &Summary, lines: &[String], args: &ExportDanmakuArgs) {
    if args.json {
        let line = serde_json::to_string(summary).expect("texts and numbers alone");
        match args.out {
            Some(_) => println!("{line}"),
            None => eprintln!("{line}"),
        }
        return;
    }
    let Summary { read, kept, changed, dropped, .. } = summary;
    let video = &args.video;
    lines.iter().for_each(|line| eprintln!("{video}: {line}"));
    let more = (changed + dropped).saturating_sub(lines.len() as u64);
    if more > 0 {
        eprintln!("{video}: and {more} more");
    }
    eprintln!("{video}: {read} comments, {kept} kept, {changed} changed, {dropped} dropped");
    for (loss, count) in &summary.losses {
        eprintln!("{video}:   {count} {loss}");
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use tideline_wire::danmaku::{Mode, Pool};

    use super::*;

    fn items() -> Vec<Item<'static>> {
        let plain = Item { id: 1, sent_ms: 5000, text: "a".into(), ..Item::default() };
        vec![
            plain.clone(),
            Item { id: 2, likes: 3, sent_ms: 5001, ..plain.clone() },
            Item {
                id: 3,
                mode: Mode::Bas,
                pool: Pool::Special,
                text: Cow::Borrowed("def text a {}"),
                ..plain
            },
        ]
    }

    #[test]
    fn what_is_kept_changed_and_dropped_adds_up() {
        let of = |form| {
            let (summary, lines) = judge("v", form, &items());
            (summary.read, summary.kept, summary.changed, summary.dropped, lines.len())
        };
        assert_eq!(of(Form::Json), (3, 3, 0, 0, 0));
        assert_eq!(of(Form::Xml), (3, 2, 1, 0, 1));
        assert_eq!(of(Form::Ass), (3, 2, 0, 1, 1));
        let (summary, lines) = judge("v", Form::Xml, &items());
        assert_eq!(summary.losses["without its likes"], 1);
        assert_eq!(lines, ["comment 2: sent time in whole seconds; without its likes"]);
    }

    #[test]
    fn what_is_written_reads_back() {
        let view = View { limit: 100, state: "open".into(), special_packs: 1 };
        let formats = [
            (Form::Json, FileFormat::Json),
            (Form::Xml, FileFormat::Xml),
            (Form::Protobuf, FileFormat::Protobuf),
        ];
        for (form, format) in formats {
            let body = body(form, "v", &view, &items());
            let read = read::open(format, &body[..], Limits::default());
            let read: Vec<Item<'_>> = read.map(|e| e.unwrap().outcome.unwrap().0).collect();
            let mut want = items();
            if form != Form::Json {
                want[1].sent_ms = 5000;
            }
            if form == Form::Xml {
                want[1].likes = 0;
            }
            assert_eq!(read, want, "{form:?}");
        }
    }
}
