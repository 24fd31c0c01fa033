//! What a format cannot carry of a comment, said before it is written.

use std::fmt;

use super::{Attr, Item, Mode, Pool, positioned};

/// The formats that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// A list in XML.
    Xml,
    /// Segments in protobuf.
    Protobuf,
    /// JSON of our own.
    Json,
    /// Subtitles.
    Ass,
    /// What DPlayer loads.
    Dplayer,
    /// What artplayer-plugin-danmuku loads as JSON.
    Artplayer,
    /// What dandanplay's clients load.
    Dandanplay,
}

/// One thing that is lost or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loss {
    /// The whole comment is left out.
    Comment,
    /// It runs the other way.
    Direction,
    /// It is as large as all others.
    Size,
    /// Its colour is changed a little: the player would take it for another.
    Color,
    /// It is not told from normal comments.
    Pool,
    /// It moves straight, not along its path.
    Path,
    /// Its time loses digits or is moved by a millisecond.
    Progress,
    /// When it was sent loses its milliseconds.
    SentFraction,
    /// What was done to it (protected, recommended and the like).
    Attr,
    /// How many like it.
    Likes,
    /// It holds `/n`, which many programs show as the end of a line.
    SlashN,
}

impl Loss {
    /// All of them, in the order in which a report tells them.
    pub const ALL: [Self; 11] = [
        Self::Comment,
        Self::Direction,
        Self::Size,
        Self::Color,
        Self::Pool,
        Self::Path,
        Self::Progress,
        Self::SentFraction,
        Self::Attr,
        Self::Likes,
        Self::SlashN,
    ];

    /// What happens, for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Comment => "left out: this format cannot show it",
            Self::Direction => "runs from right to left",
            Self::Size => "without its size",
            Self::Color => "with a neighbouring colour",
            Self::Pool => "not told from normal comments",
            Self::Path => "without its path",
            Self::Progress => "at a time rounded to what the format has",
            Self::SentFraction => "sent time in whole seconds",
            Self::Attr => "without its attributes",
            Self::Likes => "without its likes",
            Self::SlashN => "\"/n\" in it may be shown as a line end",
        }
    }
}

/// What `form` loses of `item`, in the order of [`Loss::ALL`]. Of a comment
/// that is left out nothing else is told. What a format never carries of any
/// comment (a subtitle's sender, say) is in its document, not here.
pub fn losses(form: Form, item: &Item<'_>) -> Vec<Loss> {
    if !carries(form, item) {
        return vec![Loss::Comment];
    }
    let player = matches!(form, Form::Dplayer | Form::Artplayer | Form::Dandanplay);
    let lost = |loss: &Loss| match loss {
        Loss::Comment => false,
        Loss::Direction => player && item.mode == Mode::Reverse,
        Loss::Size => player && item.size != Item::SIZE,
        Loss::Color => form == Form::Dplayer && item.color == 0,
        Loss::Pool => player && item.pool != Pool::Normal,
        Loss::Path => {
            form == Form::Ass
                && item.mode == Mode::Positioned
                && positioned::parse(&item.text).is_some_and(|at| at.path)
        }
        Loss::Progress => match form {
            Form::Artplayer => item.progress_ms == 0,
            Form::Ass | Form::Dandanplay => !item.progress_ms.is_multiple_of(10),
            _ => false,
        },
        Loss::SentFraction => {
            matches!(form, Form::Xml | Form::Protobuf) && item.sent_ms.rem_euclid(1000) != 0
        }
        Loss::Attr => form == Form::Xml && item.attr != Attr::default(),
        Loss::Likes => form == Form::Xml && item.likes != 0,
        Loss::SlashN => {
            matches!(form, Form::Xml | Form::Protobuf)
                && item.mode.is_plain()
                && item.text.contains("/n")
        }
    };
    Loss::ALL.into_iter().filter(|loss| lost(loss)).collect()
}

/// Whether `form` can show `item` at all.
fn carries(form: Form, item: &Item<'_>) -> bool {
    match form {
        Form::Xml => !item.text.is_empty(),
        Form::Protobuf | Form::Json => true,
        Form::Ass => match item.mode {
            Mode::Script | Mode::Bas => false,
            Mode::Positioned => positioned::parse(&item.text).is_some(),
            _ => true,
        },
        Form::Dplayer | Form::Artplayer | Form::Dandanplay => item.mode.is_plain(),
    }
}

/// Losses of a whole export, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossReport {
    /// Comments that were written.
    pub written: u64,
    counts: [u64; Loss::ALL.len()],
}

impl LossReport {
    /// Counts one comment.
    pub fn note(&mut self, form: Form, item: &Item<'_>) {
        let losses = losses(form, item);
        self.written += u64::from(!losses.contains(&Loss::Comment));
        for loss in losses {
            self.counts[loss as usize] += 1;
        }
    }

    /// How many comments had this loss.
    pub fn count(&self, loss: Loss) -> u64 {
        self.counts[loss as usize]
    }

    /// Whether everything was written whole.
    pub fn is_whole(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }
}

impl fmt::Display for LossReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} written", self.written)?;
        for loss in Loss::ALL {
            if self.count(loss) > 0 {
                write!(f, "\n{} {}", self.count(loss), loss.as_str())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::danmaku::samples::{an_item, full_item};
    use crate::danmaku::{artplayer, ass, dandanplay, dplayer, xml};

    #[test]
    fn the_places_of_losses_are_their_numbers() {
        for (at, loss) in Loss::ALL.into_iter().enumerate() {
            assert_eq!(loss as usize, at);
        }
    }

    #[test]
    fn each_format_loses_what_it_lacks() {
        let item = Item {
            mode: Mode::Reverse,
            size: 18,
            color: 0,
            pool: crate::danmaku::Pool::Subtitle,
            progress_ms: 1,
            sent_ms: 1_796_000_000_001,
            text: "a/nb".into(),
            ..full_item()
        };
        use Loss::{Attr, Color, Direction, Likes, Pool, Progress, SentFraction, Size, SlashN};
        let want: [(Form, &[Loss]); 7] = [
            (Form::Xml, &[SentFraction, Attr, Likes, SlashN]),
            (Form::Protobuf, &[SentFraction, SlashN]),
            (Form::Json, &[]),
            (Form::Ass, &[Progress]),
            (Form::Dplayer, &[Direction, Size, Color, Pool]),
            (Form::Artplayer, &[Direction, Size, Pool]),
            (Form::Dandanplay, &[Direction, Size, Pool, Progress]),
        ];
        for (form, lost) in want {
            assert_eq!(losses(form, &item), lost, "{form:?}");
        }
        let mut report = LossReport::default();
        report.note(Form::Xml, &item);
        report.note(Form::Xml, &Item::default());
        assert_eq!((report.written, report.count(Loss::Comment)), (1, 1));
        assert!(!report.is_whole());
        assert!(report.to_string().starts_with("1 written\n1 left out: "));
    }

    proptest! {
        #[test]
        fn what_a_writer_leaves_out_is_said(item in an_item()) {
            let mut script = ass::Script::new(ass::Options::default());
            let mut out = Vec::new();
            let left_out = |form| losses(form, &item) == [Loss::Comment];
            prop_assert_eq!(script.put_item(&mut out, &item), !left_out(Form::Ass));
            let version = dplayer::Version::V3;
            prop_assert_eq!(dplayer::put_item(&mut out, version, &item), !left_out(Form::Dplayer));
            prop_assert_eq!(artplayer::put_item(&mut out, &item), !left_out(Form::Artplayer));
            prop_assert_eq!(dandanplay::put_item(&mut out, &item), !left_out(Form::Dandanplay));
            out.clear();
            xml::put_item(&mut out, &item);
            prop_assert_eq!(!out.is_empty(), !left_out(Form::Xml));
        }
    }
}
