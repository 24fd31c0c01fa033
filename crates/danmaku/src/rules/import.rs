//! Comments of files: taken whatever the limit, each once.

use std::sync::Arc;

use tideline_types::Millis;
use tideline_types::limits::{COLOR_MAX, PROGRESS_MS_MAX, SPECIAL_BYTES_MAX};
use tideline_wire::danmaku::{Attr, Pool, is_invisible};

use super::post::{has_room, place};
use super::{Decision, Desk, Progress, Rules, outcome};
use crate::ask::{Answer, ImportItem, Refusal};
use crate::comment::{Actor, Content, Index, NotAdmitted, Rank, Role, State, Writer};
use crate::id::{CommentId, imported, stretch_of};
use crate::outcome::{Act, Change};
use crate::rows;

/// Where an imported comment goes.
enum Place {
    Free(CommentId),
    There,
    Crowded,
}

impl Rules {
    pub(super) fn import(
        &self,
        desk: &mut Desk<'_>,
        items: &[ImportItem],
        actor: &Actor,
        progress: &mut Progress,
    ) -> Decision {
        if actor.role == Role::Viewer {
            return Decision::refused(Refusal::NotYours);
        }
        while let Some(ImportItem { item, nth }) = items.get(progress.done) {
            let mut index = Index {
                state: State::Shown,
                rank: match item.attr {
                    attr if attr.has(Attr::PROTECTED) => Rank::Protected,
                    attr if attr.has(Attr::RECOMMENDED) => Rank::Recommended,
                    _ => Rank::Plain,
                },
                pool: item.pool,
                mode: item.mode,
                progress_ms: item.progress_ms,
                likes: item.likes,
                reports: 0,
                reviewed: false,
            };
            // A script is special wherever its file has it.
            if index.is_special() {
                index.pool = Pool::Special;
            }
            let content = Content {
                color: item.color,
                size: item.size,
                sent_ms: Millis(item.sent_ms.max(0)),
                writer: Writer::Imported(item.sender),
                weight: item.weight,
                attr: item.attr.with(OURS, false).0,
                client: None,
                text: Arc::from(&*item.text),
            };
            if let Err(refusal) = admit(&index, &content).and_then(|()| has_room(desk, &index)) {
                progress.tally.refused.push((progress.done as u32, refusal));
                progress.done += 1;
                continue;
            }
            let key = self.key_of(item, *nth);
            let id = match find_place(desk, &index, &content, key) {
                None => {
                    // The first places of all that follow are read at once.
                    for later in &items[progress.done + 1..] {
                        let (key, item) = (self.key_of(&later.item, later.nth), &later.item);
                        let stretch = stretch_of(item.progress_ms.min(PROGRESS_MS_MAX));
                        let first = imported(Millis(item.sent_ms.max(0)), stretch, key).next();
                        _ = first.map(|id| desk.reads.row(rows::content_key(id)));
                    }
                    return Decision::Wait;
                }
                Some(Place::There) => {
                    progress.tally.duplicates += 1;
                    progress.done += 1;
                    continue;
                }
                Some(Place::Crowded) => {
                    let crowded = Refusal::Conflict("too many comments of one second");
                    progress.tally.refused.push((progress.done as u32, crowded));
                    progress.done += 1;
                    continue;
                }
                Some(Place::Free(id)) => id,
            };
            let evicted = place(desk, id, &mut index);
            progress.done += 1;
            progress.tally.taken += 1;
            progress.tally.overflow += u32::from(index.state == State::Overflow);
            let changes = [Change::New { id, index, content }].into_iter().chain(evicted).collect();
            return Decision::Again(outcome(desk, Act::Import, None, changes));
        }
        Decision::Done(Answer::Imported(std::mem::take(&mut progress.tally)), None)
    }

    fn key_of(&self, item: &tideline_wire::danmaku::Item<'_>, nth: u32) -> u64 {
        self.keys.imported(&[
            &item.id.to_le_bytes(),
            &item.progress_ms.to_le_bytes(),
            &[item.mode.number(), item.size, item.pool.number(), u8::from(item.sender.guest)],
            &item.color.to_le_bytes(),
            &item.sent_ms.to_le_bytes(),
            &item.sender.hash.to_le_bytes(),
            &nth.to_le_bytes(),
            item.text.as_bytes(),
        ])
    }
}

/// Bits that our own state says.
const OURS: Attr = Attr(Attr::PROTECTED.0 | Attr::RECOMMENDED.0);

/// Files may hold what nobody may post, but nothing that cannot be kept.
fn admit(index: &Index, content: &Content) -> Result<(), Refusal> {
    if index.progress_ms > PROGRESS_MS_MAX {
        let (given_ms, end_ms) = (index.progress_ms, PROGRESS_MS_MAX);
        return Err(NotAdmitted::BeyondEnd { given_ms, end_ms }.into());
    }
    if content.color > COLOR_MAX {
        return Err(NotAdmitted::Color(content.color).into());
    }
    let (given, max) =
        (content.text.len(), if index.is_special() { SPECIAL_BYTES_MAX } else { TEXT_BYTES_MAX });
    if given > max {
        return Err(NotAdmitted::TooLong { given, max, unit: "bytes" }.into());
    }
    if is_invisible(&content.text) {
        return Err(NotAdmitted::Invisible.into());
    }
    Ok(())
}

/// Bytes of a comment of a file that is no script.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// The first place of a comment that is free, or has it; `None` while rows are
/// being read.
fn find_place(desk: &mut Desk<'_>, index: &Index, content: &Content, key: u64) -> Option<Place> {
    for id in imported(content.sent_ms, stretch_of(index.progress_ms), key) {
        let text = if index.is_special() { "" } else { &content.text };
        let same = |there: &Content| {
            (there.color, there.size, there.sent_ms, there.weight, there.attr, &*there.text)
                == (
                    content.color,
                    content.size,
                    content.sent_ms,
                    content.weight,
                    content.attr,
                    text,
                )
                && there.writer == content.writer
        };
        let there = match desk.video.get(id) {
            Some(comment) => Some(comment.content.clone()),
            None => {
                let row = desk.reads.row(rows::content_key(id))?;
                row.and_then(|row| rows::decode_content(id, &row).ok())
            }
        };
        match there {
            None => return Some(Place::Free(id)),
            Some(there) if same(&there) => return Some(Place::There),
            Some(_) => {}
        }
    }
    Some(Place::Crowded)
}
