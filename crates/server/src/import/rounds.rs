//! A file, read in rounds of bounded size.
//!
//! A round holds marks in lanes: a user's marks are all in one lane, in the
//! order of the file, so that lanes may travel side by side. A round is
//! answered whole before the next one is sent; that makes its end a place from
//! where an import can go on.

use std::collections::HashSet;
use std::io::{self, BufRead};

use tideline_types::limits::TITLE_CHARS_MAX;
use tideline_types::partition_of;

use super::entry::{Entry, Format, Parsed};
use super::ids::{cut_text, hash_id};
use super::records::Records;

/// Lanes of a round: requests under way at the same time.
pub(super) const LANES: u16 = 4;
/// Marks of a round, at most: what one request may carry, for all may be one
/// user's.
const ROUND_MARKS_MAX: usize = 8_000;
/// Bytes of the marks of a round, at most: half a request's body.
const ROUND_BYTES_MAX: usize = 4 << 20;
/// Objects whose titles are remembered as sent, at most.
const TITLED_MAX: usize = 100_000;

/// Marks that travel in one request.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// `{"marks":[…]}`; empty without marks.
    pub body: Vec<u8>,
    /// The line of each mark.
    pub lines: Vec<u64>,
}

/// What was read between two places of a file.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// By user.
    pub lanes: Vec<Lane>,
    /// `{"items":[…]}`: titles not sent before; empty without any.
    pub items: Vec<u8>,
    /// How many titles.
    pub titles: u64,
    /// Lines that could not be read, and why.
    pub bad: Vec<(u64, String)>,
    /// Records that are no marks, on purpose.
    pub left_out: u64,
    /// Where the next round starts: offset and line.
    pub place: (u64, u64),
    /// Nothing comes after it.
    pub last: bool,
}

/// Reads rounds.
pub(super) struct Rounds<R> {
    records: Records<R>,
    format: Box<dyn Format>,
    titled: HashSet<(String, String)>,
    place: (u64, u64),
}

impl<R: BufRead> Rounds<R> {
    /// `records` stand at `place`, after the header if there is one.
    pub(super) fn new(records: Records<R>, format: Box<dyn Format>, place: (u64, u64)) -> Self {
        Self { records, format, titled: HashSet::new(), place }
    }

    /// The next round. Never fails on what the file holds, only on reading it.
    pub(super) fn read(&mut self) -> io::Result<Round> {
        let mut round = Round::default();
        round.lanes.resize_with(usize::from(LANES), Lane::default);
        let (mut marks, mut bytes) = (0, 0);
        while marks < ROUND_MARKS_MAX && bytes < ROUND_BYTES_MAX {
            let Some(record) = self.records.read()? else {
                round.last = true;
                break;
            };
            self.place = (record.end, record.next_line);
            let mut parsed = match record.bytes {
                Some(bytes) => self.format.parse(bytes),
                None => Parsed::Bad("longer than 64 KiB".into()),
            };
            if let (Parsed::Mark(entry), Some(bytes)) = (&mut parsed, record.bytes) {
                name_timeless(entry, bytes);
            }
            match parsed {
                Parsed::Skip => round.left_out += 1,
                Parsed::Bad(why) => round.bad.push((record.line, why)),
                Parsed::Mark(entry) => {
                    let number = usize::from(partition_of(entry.user.as_bytes(), LANES).0);
                    let line = record.line;
                    self.titles(&entry, &mut round)?;
                    bytes += push(&mut round.lanes[number].body, b"{\"marks\":[", &entry)?;
                    round.lanes[number].lines.push(line);
                    marks += 1;
                }
            }
        }
        for body in round.lanes.iter_mut().map(|lane| &mut lane.body).chain([&mut round.items]) {
            if !body.is_empty() {
                body.extend_from_slice(b"]}");
            }
        }
        round.place = self.place;
        Ok(round)
    }

    /// Adds the title of `entry` to what goes to the catalogue, once per object.
    fn titles(&mut self, entry: &Entry, round: &mut Round) -> io::Result<()> {
        let Some(title) = &entry.title else { return Ok(()) };
        if self.titled.len() == TITLED_MAX {
            self.titled.clear();
        }
        if self.titled.insert((entry.kind.clone(), entry.id.clone())) {
            let item = serde_json::json!({
                "kind": entry.kind,
                "id": entry.id,
                "title": cut_text(title, TITLE_CHARS_MAX),
            });
            push(&mut round.items, b"{\"items\":[", &item)?;
            round.titles += 1;
        }
        Ok(())
    }
}

/// A mark without a time is dated when it arrives; a name made of its record
/// lets the server know it again when the file is imported once more.
fn name_timeless(entry: &mut Entry, record: &[u8]) {
    if entry.event_ms.is_none() && entry.event_id.is_none() {
        entry.event_id = Some(hash_id(record));
    }
}

/// Appends `value` to the list that `body` is, begun with `start`; returns the
/// bytes that it took.
fn push(body: &mut Vec<u8>, start: &[u8], value: &impl serde::Serialize) -> io::Result<usize> {
    let before = body.len();
    body.extend_from_slice(if before == 0 { start } else { b"," });
    serde_json::to_writer(&mut *body, value)?;
    Ok(body.len() - before)
}

#[cfg(test)]
mod tests {
    use super::super::{Cut, Ndjson};
    use super::*;

    fn rounds(text: &str) -> Rounds<&[u8]> {
        let format = Box::new(Ndjson::new(None, Some("video".into())));
        Rounds::new(Records::new(text.as_bytes(), Cut::Lines, 0, 1), format, (0, 1))
    }

    fn marks(round: &Round) -> usize {
        round.lanes.iter().map(|lane| lane.lines.len()).sum()
    }

    #[test]
    fn a_user_keeps_to_one_lane_in_the_order_of_the_file() {
        let text: String =
            (0..500).map(|n| format!("{{\"user\":\"u{}\",\"id\":{n}}}\n", n % 7)).collect();
        let round = rounds(&text).read().unwrap();
        assert!(round.last && marks(&round) == 500 && round.place == (text.len() as u64, 501));
        let mut seen = std::collections::HashMap::new();
        for (number, lane) in round.lanes.iter().enumerate() {
            assert!(lane.lines.is_sorted());
            let body: serde_json::Value = serde_json::from_slice(&lane.body).unwrap();
            for mark in body["marks"].as_array().unwrap() {
                let user = mark["user"].as_str().unwrap().to_owned();
                assert_eq!(*seen.entry(user).or_insert(number), number);
            }
        }
        assert_eq!(seen.len(), 7);
    }

    #[test]
    fn a_round_is_bounded_and_the_next_one_starts_at_its_place() {
        let text: String = (0..9_000).map(|n| format!("{{\"user\":\"u\",\"id\":{n}}}\n")).collect();
        let mut rounds = rounds(&text);
        let first = rounds.read().unwrap();
        assert!(!first.last && marks(&first) == 8_000 && first.place.1 == 8_001);
        let second = rounds.read().unwrap();
        assert!(second.last && marks(&second) == 1_000);
    }

    #[test]
    fn a_mark_without_a_time_has_the_same_name_in_every_import() {
        let text = "{\"user\":\"u\",\"id\":1}\n{\"user\":\"u\",\"id\":1,\"event_ms\":7}\n";
        let bodies =
            |round: Round| round.lanes.into_iter().map(|lane| lane.body).collect::<Vec<_>>();
        let (first, again) = (rounds(text).read().unwrap(), rounds(text).read().unwrap());
        let body = String::from_utf8(first.lanes.iter().flat_map(|l| l.body.clone()).collect());
        assert_eq!(body.unwrap().matches("event_id").count(), 1);
        assert_eq!(bodies(first), bodies(again));
    }

    #[test]
    fn bad_lines_have_their_numbers_and_titles_go_once() {
        let text = "{\"user\":\"u\",\"id\":1,\"title\":\"Ebb\"}\nnonsense\n\n\
                    {\"user\":\"v\",\"id\":1,\"title\":\"Ebb\"}\n";
        let round = rounds(text).read().unwrap();
        assert_eq!((marks(&round), round.left_out, round.titles), (2, 1, 1));
        assert_eq!(round.bad.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2]);
        assert_eq!(
            String::from_utf8(round.items).unwrap(),
            r#"{"items":[{"id":"1","kind":"video","title":"Ebb"}]}"#
        );
    }
}
