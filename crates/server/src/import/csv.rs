//! CSV in our own terms: the header names the fields of a mark.

use super::cells::{Cells, columns};
use super::entry::{Defaults, Entry, Format, Parsed};
use super::records::Cut;

const COLUMNS: [&str; 12] = [
    "user",
    "kind",
    "id",
    "part",
    "position_ms",
    "duration_ms",
    "event_ms",
    "device",
    "group",
    "finished",
    "event_id",
    "title",
];

/// Columns in any order, named as the fields of a mark, with `user` and
/// `title`; only `id` is required (`user` and `kind` may come from the command
/// line). An empty cell is a field that is not there.
#[derive(Debug, Default)]
pub struct Csv {
    defaults: Defaults,
    columns: [Option<usize>; 12],
    cells: Cells,
}

impl Csv {
    /// `user` and `kind` stand in for cells that are empty.
    pub fn new(user: Option<String>, kind: Option<String>) -> Self {
        Self { defaults: Defaults { user, kind }, ..Self::default() }
    }

    fn entry(&self) -> Result<Entry, String> {
        let [
            user,
            kind,
            id,
            part,
            position,
            duration,
            event,
            device,
            group,
            finished,
            event_id,
            title,
        ] = self.columns;
        let text = |column| self.cells.get(column).map(str::to_owned);
        let finished = match self.cells.get(finished) {
            None | Some("false" | "0") => false,
            Some("true" | "1") => true,
            Some(other) => return Err(format!("finished is neither true nor false: {other:?}")),
        };
        Ok(Entry {
            user: text(user).or_else(|| self.defaults.user.clone()).unwrap_or_default(),
            kind: text(kind).or_else(|| self.defaults.kind.clone()).unwrap_or_default(),
            id: text(id).unwrap_or_default(),
            part: text(part),
            position_ms: self.cells.number(position, "position_ms")?,
            duration_ms: self.cells.number(duration, "duration_ms")?,
            event_ms: self.cells.number(event, "event_ms")?,
            device: text(device),
            group: text(group),
            finished,
            event_id: text(event_id),
            title: text(title),
        })
    }
}

impl Format for Csv {
    fn cut(&self) -> Cut {
        Cut::Csv
    }

    fn header(&mut self, record: &[u8]) -> Result<(), String> {
        let mut header = Cells::default();
        header.read(record)?;
        if let Some(unknown) = header.iter().find(|name| !COLUMNS.contains(name)) {
            return Err(format!("unknown column {unknown:?}; known: {}", COLUMNS.join(", ")));
        }
        self.columns = columns(&header, COLUMNS);
        if self.columns[2].is_none() {
            return Err("no column `id`".into());
        }
        Ok(())
    }

    fn parse(&mut self, record: &[u8]) -> Parsed {
        if record.is_empty() {
            return Parsed::Skip;
        }
        if let Err(why) = self.cells.read(record) {
            return Parsed::Bad(why);
        }
        match self.entry() {
            Ok(entry) => entry.fit(),
            Err(why) => Parsed::Bad(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_names_the_columns_in_any_order() {
        let mut csv = Csv::new(None, Some("video".into()));
        csv.header(b"event_ms,user,id,title,finished").unwrap();
        let Parsed::Mark(entry) = csv.parse(b"1796000000000,ann,7,\"Tides, and waves\",true")
        else {
            panic!("no mark")
        };
        assert_eq!(
            *entry,
            Entry {
                user: "ann".into(),
                kind: "video".into(),
                id: "7".into(),
                event_ms: Some(1_796_000_000_000),
                finished: true,
                title: Some("Tides, and waves".into()),
                ..Entry::default()
            }
        );
    }

    #[test]
    fn a_bad_row_says_why() {
        let mut csv = Csv::new(Some("ann".into()), None);
        csv.header(b"id,kind,position_ms").unwrap();
        let mut bad = |row: &str| match csv.parse(row.as_bytes()) {
            Parsed::Bad(why) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(bad("7,video,soon"), "position_ms is no whole number: \"soon\"");
        assert_eq!(bad(",video,1"), "no id");
        assert_eq!(bad("7,,1"), "no kind: name one with --kind");
        assert_eq!(bad("7,\"video,1"), "a quote is not closed");
        assert_eq!(csv.parse(b""), Parsed::Skip);
    }

    #[test]
    fn an_unknown_column_or_none_for_the_id_is_refused_at_once() {
        let mut csv = Csv::default();
        assert!(csv.header(b"user,movie").unwrap_err().contains("unknown column \"movie\""));
        assert_eq!(csv.header(b"user").unwrap_err(), "no column `id`");
    }
}
