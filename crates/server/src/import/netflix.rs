//! Netflix `ViewingActivity.csv`, from the account's "download your personal
//! information".
//!
//! A row is one sitting. Its mark is dated at the end of the sitting (start
//! plus duration), where the bookmark stands. Clips, trailers and the like
//! (whatever has a supplemental video type) are left out. Netflix gives no
//! ids: the title is the id, and a title such as `Show: Season 2: The Tide` has
//! the show as its group, so that a list can show one row per show.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use tideline_types::Millis;

use super::cells::{Cells, columns};
use super::entry::{Defaults, Entry, Format, Parsed};
use super::records::Cut;

/// The whole marks of where a show's name ends, in the languages of which
/// samples were seen.
const SEASON_WORDS: [&str; 14] = [
    "Season ",
    "Series ",
    "Limited Series",
    "Mini-Series",
    "Miniseries",
    "Part ",
    "Volume ",
    "Book ",
    "Chapter ",
    "Episode ",
    "Staffel ",
    "Saison ",
    "Temporada ",
    "Stagione ",
];

/// The export's rows. The user is `--user`, else the profile's name.
#[derive(Debug, Default)]
pub struct Netflix {
    defaults: Defaults,
    profile: Option<String>,
    columns: [Option<usize>; 7],
    cells: Cells,
}

impl Netflix {
    /// Marks of `kind` ("video" where there is none), of `user` (each profile
    /// its own user where there is none), and of `profile` alone, if given.
    pub fn new(user: Option<String>, kind: Option<String>, profile: Option<String>) -> Self {
        Self { defaults: Defaults { user, kind }, profile, ..Self::default() }
    }

    fn entry(&self) -> Result<Option<Entry>, String> {
        let [profile, start, duration, title, supplemental, device, bookmark] = self.columns;
        let profile = self.cells.get(profile).ok_or("no Profile Name")?;
        if self.profile.as_deref().is_some_and(|wanted| wanted != profile)
            || self.cells.get(supplemental).is_some()
        {
            return Ok(None);
        }
        let title = self.cells.get(title).ok_or("no Title")?;
        let start = instant(self.cells.get(start).ok_or("no Start Time")?)?;
        let watched = self.cells.get(duration).map(length).transpose()?.unwrap_or(0);
        // "Not latest view" and the like stand where there is no bookmark.
        let position = self.cells.get(bookmark).and_then(|cell| length(cell).ok());
        let (group, _) = show_of(title).unzip();
        Ok(Some(Entry {
            user: self.defaults.user.clone().unwrap_or_else(|| profile.to_owned()),
            kind: self.defaults.kind.clone().unwrap_or_else(|| "video".into()),
            id: title.to_owned(),
            position_ms: position,
            event_ms: Some(start.plus(watched as i64).0),
            device: self.cells.get(device).map(str::to_owned),
            group: group.map(str::to_owned),
            title: Some(title.to_owned()),
            ..Entry::default()
        }))
    }
}

impl Format for Netflix {
    fn cut(&self) -> Cut {
        Cut::Csv
    }

    fn header(&mut self, record: &[u8]) -> Result<(), String> {
        let mut header = Cells::default();
        header.read(record)?;
        // Newer exports carry the unit: "Start Time (UTC)".
        let place = |name: &str| {
            header.iter().position(|cell| {
                cell.strip_prefix(name)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
            })
        };
        self.columns = [
            "Profile Name",
            "Start Time",
            "Duration",
            "Title",
            "Supplemental Video Type",
            "Device Type",
            "Bookmark",
        ]
        .map(place);
        let needed = [0, 1, 3];
        if needed.iter().any(|at| self.columns[*at].is_none()) {
            let short = columns(&header, ["Title", "Date"]);
            return Err(if short.contains(&None) {
                "the first row is not that of a ViewingActivity.csv".into()
            } else {
                "this is the short list of the web page (Title,Date), which has days only; \
                 ask Netflix for your personal information to get ViewingActivity.csv"
                    .into()
            });
        }
        Ok(())
    }

    fn parse(&mut self, record: &[u8]) -> Parsed {
        if record.is_empty() {
            return Parsed::Skip;
        }
        match self.cells.read(record).and_then(|()| self.entry()) {
            Ok(Some(entry)) => entry.fit(),
            Ok(None) => Parsed::Skip,
            Err(why) => Parsed::Bad(why),
        }
    }
}

/// `2021-07-11 18:04:01`, in UTC.
fn instant(text: &str) -> Result<Millis, String> {
    let time: DateTime = text.parse().map_err(|_| format!("Start Time is no time: {text:?}"))?;
    let instant = TimeZone::UTC.to_timestamp(time).map_err(|e| format!("Start Time: {e}"))?;
    Ok(Millis(instant.as_millisecond()))
}

/// `H:MM:SS` in milliseconds.
fn length(text: &str) -> Result<u64, String> {
    let bad = || format!("no length of time: {text:?}");
    let mut seconds = 0_u64;
    let mut parts = 0;
    for part in text.split(':') {
        let number: u32 = part.parse().map_err(|_| bad())?;
        seconds = seconds.checked_mul(60).ok_or_else(bad)? + u64::from(number);
        parts += 1;
    }
    if parts != 3 || seconds > u64::from(u32::MAX) { Err(bad()) } else { Ok(seconds * 1000) }
}

/// The show and the rest of `Show: Season 2: The Tide`.
fn show_of(title: &str) -> Option<(&str, &str)> {
    title.match_indices(':').find_map(|(at, _)| {
        let rest = title[at + 1..].trim_start();
        let starts = SEASON_WORDS.iter().any(|word| rest.starts_with(word));
        // "John Wick: Chapter 2" is a film; a show goes on after the season.
        let goes_on = rest.contains(':') || rest.starts_with("Episode ");
        (starts && goes_on && at > 0).then(|| (title[..at].trim_end(), rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &[u8] = b"Profile Name,Start Time,Duration,Attributes,Title,\
        Supplemental Video Type,Device Type,Bookmark,Latest Bookmark,Country";

    fn netflix() -> Netflix {
        let mut format = Netflix::new(None, None, None);
        format.header(HEADER).unwrap();
        format
    }

    #[test]
    fn a_sitting_is_a_mark_at_its_end_with_the_show_as_group() {
        let Parsed::Mark(entry) = netflix().parse(
            b"Ruby,2021-07-11 18:04:01,00:40:10,Autoplayed: user action: None; ,\
              \"Tidewater: Season 1: Ebb, and Flow\",,Chrome PC (Cadmium),00:41:00,00:41:00,\
              FR (France)",
        ) else {
            panic!("no mark")
        };
        assert_eq!(
            *entry,
            Entry {
                user: "Ruby".into(),
                kind: "video".into(),
                id: "Tidewater: Season 1: Ebb, and Flow".into(),
                position_ms: Some(2_460_000),
                event_ms: Some(1_626_029_051_000),
                device: Some("Chrome PC (Cadmium)".into()),
                group: Some("Tidewater".into()),
                title: Some("Tidewater: Season 1: Ebb, and Flow".into()),
                ..Entry::default()
            }
        );
    }

    #[test]
    fn trailers_are_left_out_and_other_profiles_where_one_is_wanted() {
        let trailer = b"Ruby,2021-07-11 18:04:01,0:00:06,,Waves,TRAILER,TV,0:00:06,0:00:06,FR";
        assert_eq!(netflix().parse(trailer), Parsed::Skip);
        let film = b"Ruby,2021-07-11 18:04:01,1:00:06,,Waves,,TV,1:00:06,Not latest view,FR";
        let mut one = Netflix::new(Some("u7".into()), None, Some("Ruby".into()));
        one.header(HEADER).unwrap();
        let Parsed::Mark(entry) = one.parse(film) else { panic!("no mark") };
        assert_eq!((&*entry.user, entry.group), ("u7", None));
        let mut other = Netflix::new(None, None, Some("Garrath".into()));
        other.header(HEADER).unwrap();
        assert_eq!(other.parse(film), Parsed::Skip);
    }

    #[test]
    fn headers_with_units_are_read_and_the_short_list_is_named() {
        let mut format = Netflix::new(None, None, None);
        format
            .header(
                b"Profile Name,Start Time (UTC),Duration (H:MM:SS),Attributes,Title,\
                  Supplemental Video Type,Device Type,Bookmark,Latest Bookmark,Country",
            )
            .unwrap();
        let row =
            b"\"Main\",\"2024-01-15 20:14:03\",\"0:42:10\",\"\",\"The Crown\",\"\",\"TV\",,,\"US\"";
        assert!(matches!(format.parse(row), Parsed::Mark(_)));
        assert!(format.header(b"Title,Date").unwrap_err().contains("short list"));
    }

    #[test]
    fn a_show_is_told_from_a_film_with_a_colon() {
        let show = |title| show_of(title).map(|(show, _)| show);
        assert_eq!(show("Prison Break: Season 1: Allen (Episode 2)"), Some("Prison Break"));
        assert_eq!(
            show("The Queen's Gambit: Limited Series: Openings"),
            Some("The Queen's Gambit")
        );
        assert_eq!(show("Some Show: Episode 4"), Some("Some Show"));
        assert_eq!(show("Tide: Again: Staffel 2: Ebbe"), Some("Tide: Again"));
        assert_eq!(show("John Wick: Chapter 2"), None);
        assert_eq!(show("Spider-Man: Into the Spider-Verse"), None);
        assert_eq!(show("Moana"), None);
    }

    #[test]
    fn a_bad_row_says_why() {
        let mut format = netflix();
        let mut why = |row: &str| match format.parse(row.as_bytes()) {
            Parsed::Bad(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(why("Ruby,18/3/2021,0:26:38,,Waves,,TV,,,").contains("Start Time is no time"));
        assert!(why("Ruby,2021-07-11 18:04:01,long,,Waves,,TV,,,").contains("no length of time"));
        assert_eq!(why("Ruby,2021-07-11 18:04:01,0:26:38,,,,TV,,,"), "no Title");
        assert_eq!(why(",2021-07-11 18:04:01,0:26:38,,Waves,,TV,,,"), "no Profile Name");
    }
}
