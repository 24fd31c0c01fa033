//! What a comment is: an index that changes apart from a content that does
//! not; and what is admitted.
//!
//! Knows nothing of how many there may be: see `top`.

use std::sync::Arc;

use tideline_types::limits::{
    CLIENT_ID_BYTES_MAX, COLOR_MAX, COMMENT_CHARS_MAX, POSITIONED_BYTES_MAX, PROGRESS_MS_MAX,
    SPECIAL_BYTES_MAX,
};
use tideline_types::{Millis, UserId};
use tideline_wire::danmaku::{self as wire, Mode, Pool};

use crate::id::CommentId;

/// What changes about a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index {
    /// Whether it is shown, and if not, why not.
    pub state: State,
    /// What the owner thinks of it.
    pub rank: Rank,
    /// Which pool it is in.
    pub pool: Pool,
    /// How it is shown. Never changes.
    pub mode: Mode,
    /// When in the video, in ms. Never changes.
    pub progress_ms: u32,
    /// Users who like it.
    pub likes: u32,
    /// Users who reported it.
    pub reports: u32,
    /// A moderator has looked at it after reports: more of them do not hide it.
    pub reviewed: bool,
}

impl Index {
    /// Whether it counts against the limit of its video. The rest has limits
    /// of its own.
    pub fn counts(&self) -> bool {
        self.pool == Pool::Normal && !matches!(self.mode, Mode::Script | Mode::Bas)
    }

    /// Whether its text lies in a row of its own and goes out in packs.
    pub fn is_special(&self) -> bool {
        self.pool == Pool::Special || matches!(self.mode, Mode::Script | Mode::Bas)
    }

    /// Whether viewers get it.
    pub fn is_shown(&self) -> bool {
        self.state == State::Shown
    }
}

/// Whether a comment is shown, or the reason why it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// To everybody.
    Shown,
    /// Over the limit; comes back when there is room.
    Overflow,
    /// Taken back by its writer.
    Recalled,
    /// By the owner or a moderator, until it is restored.
    Hidden,
    /// By the owner or a moderator, for breaking rules.
    Blocked,
    /// By reports, until somebody has looked at it.
    Reported,
    /// Until somebody has looked at it: nobody has yet.
    Waiting,
}

impl State {
    /// All of them, by number.
    pub const ALL: [Self; 7] = [
        Self::Shown,
        Self::Overflow,
        Self::Recalled,
        Self::Hidden,
        Self::Blocked,
        Self::Reported,
        Self::Waiting,
    ];

    /// Whether it is hidden until somebody has looked at it.
    pub fn is_due(self) -> bool {
        matches!(self, Self::Reported | Self::Waiting)
    }

    /// Its name for callers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shown => "shown",
            Self::Overflow => "overflow",
            Self::Recalled => "recalled",
            Self::Hidden => "hidden",
            Self::Blocked => "blocked",
            Self::Reported => "reported",
            Self::Waiting => "waiting",
        }
    }
}

/// What the owner of the video thinks of a comment; higher stays longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rank {
    /// Nothing in particular.
    #[default]
    Plain,
    /// Worth seeing.
    Recommended,
    /// To stay.
    Protected,
}

impl Rank {
    /// All of them, lowest first.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Recommended, Self::Protected];

    /// Its name for callers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Recommended => "recommended",
            Self::Protected => "protected",
        }
    }
}

/// What never changes about a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// `0xRRGGBB`.
    pub color: u32,
    /// Of its letters.
    pub size: u8,
    /// When it was sent.
    pub sent_ms: Millis,
    /// Who wrote it.
    pub writer: Writer,
    /// From a file: what a site thought of it, 0 to 11.
    pub weight: u8,
    /// From a file: bits that we carry as they came.
    pub attr: u32,
    /// The fingerprint of the post's `client_id`.
    pub client: Option<u64>,
    /// What it says. Of a special comment in memory, empty: see `rows`.
    pub text: Arc<str>,
}

/// Who wrote a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writer {
    /// A user of ours.
    User(UserId),
    /// Somebody in a file, of whom a hash is known.
    Imported(wire::Sender),
}

/// A comment whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Unique in its video.
    pub id: CommentId,
    /// What changes.
    pub index: Index,
    /// What does not.
    pub content: Content,
}

/// What a caller may do about a video. The gateway says; nothing here doubts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Anybody who is logged in.
    Viewer,
    /// The owner of this video.
    Owner,
    /// A moderator of the site.
    Moderator,
    /// Another program of the site.
    Service,
}

impl Role {
    /// All of them, by number.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Owner, Self::Moderator, Self::Service];

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Owner => "owner",
            Self::Moderator => "moderator",
            Self::Service => "service",
        }
    }
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The user; a service has a name as well.
    pub user: UserId,
    /// What they may do.
    pub role: Role,
}

/// A comment as it is posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// What it says.
    pub text: String,
    /// When in the video.
    pub progress_ms: u32,
    /// How it is shown.
    pub mode: Mode,
    /// Of its letters; 1 to 255.
    pub size: u8,
    /// `0xRRGGBB`.
    pub color: u32,
    /// Which pool it is for.
    pub pool: Pool,
    /// The caller's own name for this post: the same again is the same
    /// comment. At most 64 bytes.
    pub client_id: Option<String>,
}

/// Why a comment is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// Nothing of the text can be seen.
    #[error("the text is empty or invisible")]
    Invisible,
    /// Over its limit.
    #[error("the text has {given} {unit}, at most {max} are allowed")]
    TooLong {
        /// Given.
        given: usize,
        /// The limit.
        max: usize,
        /// Of what.
        unit: &'static str,
    },
    /// A positioned comment that is no JSON array with a text in its fifth
    /// place.
    #[error("a positioned comment is a JSON array whose fifth entry is its text")]
    NotPositioned,
    /// This pool or mode is for the owner, moderators and services.
    #[error("pool {pool} and mode {mode} are for the owner, moderators and services")]
    NotYours {
        /// Asked for.
        pool: &'static str,
        /// Asked for.
        mode: &'static str,
    },
    /// Scripts and BAS go into the special pool, and nothing else does.
    #[error("mode {mode} does not go into pool {pool}")]
    WrongPool {
        /// Asked for.
        pool: &'static str,
        /// Asked for.
        mode: &'static str,
    },
    /// Over `0xFFFFFF`.
    #[error("a colour is at most 16777215, not {0}")]
    Color(u32),
    /// Beyond the video's end, or any video's.
    #[error("{given_ms} ms is beyond the end at {end_ms} ms")]
    BeyondEnd {
        /// Asked for.
        given_ms: u32,
        /// The last time allowed.
        end_ms: u32,
    },
    /// The caller's own name for the post.
    #[error("client_id is 1 to 64 bytes")]
    ClientId,
}

impl Draft {
    /// The draft without control characters, if it is admitted from `role` for
    /// a video that ends at `end_ms` (`None`: nobody knows where).
    pub fn admit(mut self, role: Role, end_ms: Option<u32>) -> Result<Self, NotAdmitted> {
        let (pool, mode) = (self.pool.name(), self.mode.name());
        let special = matches!(self.mode, Mode::Script | Mode::Bas);
        if role == Role::Viewer && (special || self.pool != Pool::Normal) {
            return Err(NotAdmitted::NotYours { pool, mode });
        }
        if special != (self.pool == Pool::Special) {
            return Err(NotAdmitted::WrongPool { pool, mode });
        }
        if self.color > COLOR_MAX {
            return Err(NotAdmitted::Color(self.color));
        }
        let end_ms = end_ms.unwrap_or(PROGRESS_MS_MAX).min(PROGRESS_MS_MAX);
        if self.progress_ms > end_ms {
            return Err(NotAdmitted::BeyondEnd { given_ms: self.progress_ms, end_ms });
        }
        if self.client_id.as_ref().is_some_and(|id| !(1..=CLIENT_ID_BYTES_MAX).contains(&id.len()))
        {
            return Err(NotAdmitted::ClientId);
        }
        self.text = admitted_text(&self.text, self.mode)?;
        Ok(self)
    }
}

/// `given` as it is kept, in a comment of `mode`.
fn admitted_text(given: &str, mode: Mode) -> Result<String, NotAdmitted> {
    let within = |given: usize, max: usize, unit| match given <= max {
        true => Ok(()),
        false => Err(NotAdmitted::TooLong { given, max, unit }),
    };
    match mode {
        Mode::Script | Mode::Bas => within(given.len(), SPECIAL_BYTES_MAX, "bytes")?,
        Mode::Positioned => within(given.len(), POSITIONED_BYTES_MAX, "bytes")?,
        // What is cleaned away counts as well, but for what could never fit.
        _ => within(given.len(), 4 * COMMENT_CHARS_MAX * 2, "bytes")?,
    }
    let cleaned = wire::clean(given).into_owned();
    match mode {
        Mode::Script | Mode::Bas if wire::is_invisible(&cleaned) => Err(NotAdmitted::Invisible),
        Mode::Script | Mode::Bas => Ok(cleaned),
        Mode::Positioned => {
            let inner = inner_text(&cleaned).ok_or(NotAdmitted::NotPositioned)?;
            if wire::is_invisible(&inner) {
                return Err(NotAdmitted::Invisible);
            }
            within(wire::chars(&inner), COMMENT_CHARS_MAX, "characters")?;
            Ok(cleaned)
        }
        _ if wire::is_invisible(&cleaned) => Err(NotAdmitted::Invisible),
        _ => {
            within(wire::chars(&cleaned), COMMENT_CHARS_MAX, "characters")?;
            Ok(cleaned)
        }
    }
}

/// What a viewer reads of a positioned comment.
fn inner_text(json: &str) -> Option<String> {
    match serde_json::from_str(json).ok()? {
        serde_json::Value::Array(entries) => match entries.into_iter().nth(4)? {
            serde_json::Value::String(text) => Some(text),
            serde_json::Value::Number(number) => Some(number.to_string()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(text: &str) -> Draft {
        Draft {
            text: text.into(),
            progress_ms: 1000,
            mode: Mode::Scroll,
            size: 25,
            color: COLOR_MAX,
            pool: Pool::Normal,
            client_id: None,
        }
    }

    fn text_of(text: &str) -> Result<String, NotAdmitted> {
        draft(text).admit(Role::Viewer, None).map(|draft| draft.text)
    }

    #[test]
    fn a_text_has_at_most_300_scalars_and_some_of_them_can_be_seen() {
        assert_eq!(text_of("av1141873\u{16}").unwrap(), "av1141873");
        assert!(text_of(&"\u{1F415}".repeat(300)).is_ok());
        let long = NotAdmitted::TooLong { given: 301, max: 300, unit: "characters" };
        assert_eq!(text_of(&"字".repeat(301)), Err(long));
        for empty in ["", " ", "\u{200b}", "\u{3164}", "\u{202e}", "\u{7}"] {
            assert_eq!(text_of(empty), Err(NotAdmitted::Invisible), "{empty:?}");
        }
    }

    #[test]
    fn a_positioned_comment_is_bounded_by_its_inner_text_and_its_bytes() {
        let positioned = |text: String| {
            Draft { mode: Mode::Positioned, ..draft(&text) }.admit(Role::Viewer, None)
        };
        let of = |inner: &str| format!("[0,0,\"1-1\",4.5,\"{inner}\",0,0]");
        assert!(positioned(of(&"字".repeat(300))).is_ok());
        assert!(matches!(positioned(of(&"字".repeat(301))), Err(NotAdmitted::TooLong { .. })));
        assert_eq!(positioned(of(" ")), Err(NotAdmitted::Invisible));
        assert_eq!(positioned("[0,0,\"1-1\",4.5".into()), Err(NotAdmitted::NotPositioned));
        assert_eq!(positioned("hello".into()), Err(NotAdmitted::NotPositioned));
        let padded = format!("{}{}", of("a"), " ".repeat(POSITIONED_BYTES_MAX));
        assert!(matches!(positioned(padded), Err(NotAdmitted::TooLong { unit: "bytes", .. })));
    }

    #[test]
    fn special_pools_and_modes_are_not_for_viewers() {
        let script = Draft { mode: Mode::Script, pool: Pool::Special, ..draft("var a;") };
        let subtitle = Draft { pool: Pool::Subtitle, ..draft("la la") };
        for special in [script.clone(), subtitle.clone()] {
            let refused = special.clone().admit(Role::Viewer, None);
            assert!(matches!(refused, Err(NotAdmitted::NotYours { .. })));
            for role in [Role::Owner, Role::Moderator, Role::Service] {
                assert_eq!(special.clone().admit(role, None), Ok(special.clone()));
            }
        }
        let long = "x".repeat(SPECIAL_BYTES_MAX);
        assert!(Draft { text: long.clone(), ..script.clone() }.admit(Role::Owner, None).is_ok());
        let over = Draft { text: long + "x", ..script.clone() }.admit(Role::Owner, None);
        assert!(matches!(over, Err(NotAdmitted::TooLong { unit: "bytes", .. })));
        let strays =
            [Draft { pool: Pool::Normal, ..script }, Draft { pool: Pool::Special, ..draft("a") }];
        for stray in strays {
            let refused = stray.admit(Role::Owner, None);
            assert!(matches!(refused, Err(NotAdmitted::WrongPool { .. })));
        }
    }

    #[test]
    fn colours_times_and_names_are_held_to_their_range() {
        let admit = |draft: Draft, end| draft.admit(Role::Viewer, end);
        let color = Draft { color: COLOR_MAX + 1, ..draft("a") };
        assert_eq!(admit(color, None), Err(NotAdmitted::Color(16_777_216)));
        assert!(admit(draft("a"), Some(1000)).is_ok(), "the end belongs to the video");
        let beyond = NotAdmitted::BeyondEnd { given_ms: 1000, end_ms: 999 };
        assert_eq!(admit(draft("a"), Some(999)), Err(beyond));
        let far = Draft { progress_ms: PROGRESS_MS_MAX + 1, ..draft("a") };
        assert!(matches!(admit(far, None), Err(NotAdmitted::BeyondEnd { .. })));
        for bad in ["", &"c".repeat(65)] {
            let named = Draft { client_id: Some(bad.into()), ..draft("a") };
            assert_eq!(admit(named, None), Err(NotAdmitted::ClientId));
        }
    }
}
