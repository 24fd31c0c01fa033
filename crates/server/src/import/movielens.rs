//! MovieLens `ratings.csv`: a rating is a film seen.

use std::collections::HashMap;
use std::io::{self, BufRead};

use super::cells::{Cells, columns};
use super::entry::{Entry, Format, Parsed};
use super::records::{Cut, Records};

/// Titles kept of a `movies.csv`, at most.
const TITLES_MAX: usize = 1_000_000;

/// Columns `userId,movieId,rating,timestamp`; the timestamp is in seconds, the
/// rating is left out.
#[derive(Debug, Default)]
pub struct Movielens {
    kind: String,
    titles: HashMap<String, String>,
    columns: [Option<usize>; 3],
    cells: Cells,
}

impl Movielens {
    /// Marks of `kind` ("video" where there is none), titles by movie id.
    pub fn new(kind: Option<String>, titles: HashMap<String, String>) -> Self {
        Self { kind: kind.unwrap_or_else(|| "video".into()), titles, ..Self::default() }
    }

    fn entry(&self) -> Result<Entry, String> {
        let [user, movie, timestamp] = self.columns;
        let text = |column, name: &str| {
            self.cells.get(column).map(str::to_owned).ok_or_else(|| format!("no {name}"))
        };
        let movie = text(movie, "movieId")?;
        let seconds: i64 =
            self.cells.number(timestamp, "timestamp")?.ok_or_else(|| "no timestamp".to_owned())?;
        let event_ms =
            seconds.checked_mul(1000).ok_or_else(|| "timestamp is too large".to_owned())?;
        Ok(Entry {
            user: text(user, "userId")?,
            kind: self.kind.clone(),
            title: self.titles.get(&movie).cloned(),
            id: movie,
            event_ms: Some(event_ms),
            ..Entry::default()
        })
    }
}

impl Format for Movielens {
    fn cut(&self) -> Cut {
        Cut::Csv
    }

    fn header(&mut self, record: &[u8]) -> Result<(), String> {
        let mut header = Cells::default();
        header.read(record)?;
        self.columns = columns(&header, ["userId", "movieId", "timestamp"]);
        if self.columns.contains(&None) {
            return Err("the first row is not `userId,movieId,rating,timestamp`".into());
        }
        Ok(())
    }

    fn parse(&mut self, record: &[u8]) -> Parsed {
        if record.is_empty() {
            return Parsed::Skip;
        }
        match self.cells.read(record).and_then(|()| self.entry()) {
            Ok(entry) => entry.fit(),
            Err(why) => Parsed::Bad(why),
        }
    }
}

/// Titles by movie id, from a `movies.csv` (`movieId,title,genres`). Rows that
/// cannot be read are left out.
pub fn read_titles(input: impl BufRead) -> io::Result<HashMap<String, String>> {
    let mut records = Records::new(input, Cut::Csv, 0, 1);
    let mut cells = Cells::default();
    let mut titles = HashMap::new();
    let mut places = [None, None];
    while let Some(record) = records.read()? {
        let Some(bytes) = record.bytes else { continue };
        if cells.read(bytes).is_err() {
            continue;
        }
        if record.line == 1 {
            places = columns(&cells, ["movieId", "title"]);
            if places.contains(&None) {
                let why = "the first row is not `movieId,title,genres`";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
        } else if let (Some(id), Some(title)) = (cells.get(places[0]), cells.get(places[1])) {
            if titles.len() == TITLES_MAX {
                break;
            }
            titles.insert(id.to_owned(), title.to_owned());
        }
    }
    Ok(titles)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOVIES: &str = "movieId,title,genres\n31,Dangerous Minds (1995),Drama\n\
                          1029,\"Old Lady Who Walked in the Sea, The (1991)\",Comedy\n";

    #[test]
    fn a_rating_is_a_film_seen_at_its_second() {
        let titles = read_titles(MOVIES.as_bytes()).unwrap();
        let mut format = Movielens::new(None, titles);
        format.header(b"userId,movieId,rating,timestamp").unwrap();
        let Parsed::Mark(entry) = format.parse(b"1,1029,3.0,1260759179") else { panic!("no mark") };
        assert_eq!(
            *entry,
            Entry {
                user: "1".into(),
                kind: "video".into(),
                id: "1029".into(),
                event_ms: Some(1_260_759_179_000),
                title: Some("Old Lady Who Walked in the Sea, The (1991)".into()),
                ..Entry::default()
            }
        );
    }

    #[test]
    fn another_file_and_a_bad_row_are_told_apart() {
        let mut format = Movielens::new(Some("course".into()), HashMap::new());
        assert!(format.header(b"movieId,title,genres").is_err());
        format.header(b"userId,movieId,rating,timestamp").unwrap();
        let mut bad = |row: &[u8]| matches!(format.parse(row), Parsed::Bad(_));
        assert!(bad(b"1,31,2.5,yesterday"));
        assert!(bad(b"1,31"));
        assert!(bad(b"1,31,2.5,9223372036854775807"));
        assert!(!bad(b"1,31,2.5,1260759144"));
    }
}
