//! YouTube's `watch-history.json`, from Google Takeout.
//!
//! An array of activities, newest first. Kept are views of videos: those with
//! an address that names one. Advertisements, posts, searches and removed
//! videos are left out. The id is the video's; the title loses its leading
//! "Watched " (other languages put the verb elsewhere and stay whole).

use jiff::Timestamp;
use serde::Deserialize;

use super::entry::{Defaults, Entry, Format, Parsed};
use super::records::Cut;

/// The activities of one account, whose user is `--user`.
#[derive(Debug, Default)]
pub struct Youtube {
    defaults: Defaults,
}

#[derive(Deserialize)]
struct Activity {
    #[serde(default)]
    header: String,
    #[serde(default)]
    title: String,
    #[serde(rename = "titleUrl")]
    title_url: Option<String>,
    time: Option<String>,
    #[serde(default)]
    details: Vec<Detail>,
}

#[derive(Deserialize)]
struct Detail {
    #[serde(default)]
    name: String,
}

impl Youtube {
    /// Marks of `user`; of `kind`, else "audio" for YouTube Music and "video"
    /// for the rest.
    pub fn new(user: Option<String>, kind: Option<String>) -> Self {
        Self { defaults: Defaults { user, kind } }
    }

    fn entry(&self, record: &[u8]) -> Result<Option<Entry>, String> {
        let activity: Activity = serde_json::from_slice(record).map_err(|e| e.to_string())?;
        let advertisement = activity.details.iter().any(|d| d.name == "From Google Ads");
        let Some(id) = activity.title_url.as_deref().and_then(video_of) else { return Ok(None) };
        if advertisement {
            return Ok(None);
        }
        let time = activity.time.ok_or("no time")?;
        let time: Timestamp = time.parse().map_err(|_| format!("time is no time: {time:?}"))?;
        let kind = if activity.header == "YouTube Music" { "audio" } else { "video" };
        let title = activity.title.strip_prefix("Watched ").unwrap_or(&activity.title);
        // A video whose title is gone is listed under its address.
        let title = Some(title).filter(|t| !t.starts_with("https://")).map(str::to_owned);
        Ok(Some(Entry {
            user: self.defaults.user.clone().unwrap_or_default(),
            kind: self.defaults.kind.clone().unwrap_or_else(|| kind.into()),
            id: id.to_owned(),
            event_ms: Some(time.as_millisecond()),
            title,
            ..Entry::default()
        }))
    }
}

impl Format for Youtube {
    fn cut(&self) -> Cut {
        Cut::Objects
    }

    fn parse(&mut self, record: &[u8]) -> Parsed {
        if self.defaults.user.is_none() {
            return Parsed::Bad("no user: name one with --user".into());
        }
        match self.entry(record) {
            Ok(Some(entry)) => entry.fit(),
            Ok(None) => Parsed::Skip,
            Err(why) => Parsed::Bad(why),
        }
    }
}

/// The video that an address names: `…/watch?v=ID`, `…/shorts/ID`,
/// `youtu.be/ID`.
fn video_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let (host, path) = rest.split_once('/')?;
    let host = host.strip_prefix("www.").or_else(|| host.strip_prefix("m.")).unwrap_or(host);
    let id = match host {
        "youtu.be" => path,
        "youtube.com" | "music.youtube.com" | "youtube-nocookie.com" => {
            if let Some(query) = path.strip_prefix("watch?") {
                query.split('&').find_map(|pair| pair.strip_prefix("v="))?
            } else {
                path.strip_prefix("shorts/").or_else(|| path.strip_prefix("live/"))?
            }
        }
        _ => return None,
    };
    let id = id.split(['?', '&', '#', '/']).next().unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (!id.is_empty() && id.chars().all(plain)).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Parsed {
        Youtube::new(Some("ann".into()), None).parse(text.as_bytes())
    }

    #[test]
    fn a_view_is_a_mark_of_its_video() {
        let Parsed::Mark(entry) = parse(
            r#"{"header":"YouTube","title":"Watched How tides work",
                "titleUrl":"https://www.youtube.com/watch?v\u003dT1de-_w0rks&t=30s",
                "subtitles":[{"name":"Sea","url":"https://www.youtube.com/channel/UC1"}],
                "time":"2026-09-21T09:00:00.123Z","products":["YouTube"],
                "activityControls":["YouTube watch history"]}"#,
        ) else {
            panic!("no mark")
        };
        assert_eq!(
            *entry,
            Entry {
                user: "ann".into(),
                kind: "video".into(),
                id: "T1de-_w0rks".into(),
                event_ms: Some(1_789_981_200_123),
                title: Some("How tides work".into()),
                ..Entry::default()
            }
        );
    }

    #[test]
    fn advertisements_posts_and_removed_videos_are_left_out() {
        for text in [
            r#"{"header":"YouTube","title":"Watched Buy!","titleUrl":"https://www.youtube.com/watch?v=ad1",
                "time":"2026-09-17T00:00:00Z","details":[{"name":"From Google Ads"}]}"#,
            r#"{"header":"YouTube","title":"Watched a video that has been removed","time":"2026-09-19T00:00:00Z"}"#,
            r#"{"header":"YouTube","title":"Viewed a post","titleUrl":"https://www.youtube.com/post/x","time":"2026-09-13T00:00:00Z"}"#,
            r#"{"header":"YouTube","title":"Searched for tides","titleUrl":"https://www.youtube.com/results?search_query=tides","time":"2026-09-13T00:00:00Z"}"#,
        ] {
            assert_eq!(parse(text), Parsed::Skip, "{text}");
        }
    }

    #[test]
    fn music_is_audio_and_shorts_are_videos() {
        let mark = |text: &str| match parse(text) {
            Parsed::Mark(entry) => (entry.kind, entry.id, entry.title),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            mark(
                r#"{"header":"YouTube Music","title":"Watched La Mer","titleUrl":"https://music.youtube.com/watch?v=mus","time":"2026-09-16T00:00:00Z"}"#
            ),
            ("audio".into(), "mus".into(), Some("La Mer".into()))
        );
        assert_eq!(
            mark(
                r#"{"header":"YouTube","title":"„Ebbe“ angesehen","titleUrl":"https://www.youtube.com/shorts/sh0rt?x=1","time":"2026-09-16T00:00:00Z"}"#
            ),
            ("video".into(), "sh0rt".into(), Some("„Ebbe“ angesehen".into()))
        );
        assert_eq!(
            mark(r#"{"header":"YouTube","title":"Watched https://www.youtube.com/watch?v=g0ne","titleUrl":"https://www.youtube.com/watch?v=g0ne","time":"2026-09-16T00:00:00Z"}"#).2,
            None
        );
    }

    #[test]
    fn a_bad_activity_says_why() {
        let why = |text: &str| match parse(text) {
            Parsed::Bad(why) => why,
            other => panic!("{other:?}"),
        };
        let url = r#""titleUrl":"https://www.youtube.com/watch?v=a""#;
        assert_eq!(why(&format!("{{{url}}}")), "no time");
        assert!(why(&format!("{{{url},\"time\":\"monday\"}}")).contains("time is no time"));
        assert!(why("{\"header\":7}").contains("invalid type"));
        let nobody = Youtube::default().parse(b"{}");
        assert_eq!(nobody, Parsed::Bad("no user: name one with --user".into()));
    }
}
