//! One comment, and the numbers and names of what it is made of.

use std::borrow::Cow;
use std::fmt;

/// One comment as files and players carry it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// Its id; 0 where a format carries none.
    pub id: i64,
    /// When in the video, in ms; at most [`Item::PROGRESS_MS_MAX`].
    pub progress_ms: u32,
    /// How it is shown.
    pub mode: Mode,
    /// Of its letters, in pixels of the player's nominal height; 25 is usual.
    pub size: u8,
    /// `0xRRGGBB`, at most `0xFFFFFF`. Black is 0, not "none".
    pub color: u32,
    /// When it was sent, in ms since the epoch. XML and protobuf carry whole
    /// seconds.
    pub sent_ms: i64,
    /// Which pool it is in.
    pub pool: Pool,
    /// Who sent it, as far as anyone may see.
    pub sender: Sender,
    /// What the site thinks of it, 0 (nothing known) to 11.
    pub weight: u8,
    /// What was done to it.
    pub attr: Attr,
    /// How many viewers like it.
    pub likes: u32,
    /// What it says; for [`Mode::Positioned`] a JSON array, for
    /// [`Mode::Script`] and [`Mode::Bas`] a program.
    pub text: Cow<'a, str>,
}

impl Item<'_> {
    /// The size that players take when none is said.
    pub const SIZE: u8 = 25;
    /// White, which players take when no colour is said.
    pub const WHITE: u32 = 0x00FF_FFFF;

    /// The latest time that protobuf can carry: an int32, 24 days.
    pub const PROGRESS_MS_MAX: u32 = i32::MAX as u32;

    /// With a text of its own.
    pub fn into_owned(self) -> Item<'static> {
        Item { text: Cow::Owned(self.text.into_owned()), ..self }
    }
}

impl Default for Item<'_> {
    fn default() -> Self {
        Self {
            id: 0,
            progress_ms: 0,
            mode: Mode::Scroll,
            size: Self::SIZE,
            color: Self::WHITE,
            sent_ms: 0,
            pool: Pool::Normal,
            sender: Sender::default(),
            weight: 0,
            attr: Attr::default(),
            likes: 0,
            text: Cow::Borrowed(""),
        }
    }
}

/// How a comment is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// From right to left.
    Scroll,
    /// Still, at the bottom.
    Bottom,
    /// Still, at the top.
    Top,
    /// From left to right.
    Reverse,
    /// Where its JSON array says.
    Positioned,
    /// As its script says, which no one here runs.
    Script,
    /// As its BAS program says, which no one here runs.
    Bas,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Scroll,
        Self::Bottom,
        Self::Top,
        Self::Reverse,
        Self::Positioned,
        Self::Script,
        Self::Bas,
    ];

    /// Its number in XML and protobuf.
    pub fn number(self) -> u8 {
        match self {
            Self::Scroll => 1,
            Self::Bottom => 4,
            Self::Top => 5,
            Self::Reverse => 6,
            Self::Positioned => 7,
            Self::Script => 8,
            Self::Bas => 9,
        }
    }

    /// The mode of a number; 2 and 3 scroll, as 1 does.
    pub fn from_number(number: i64) -> Option<Self> {
        match number {
            2 | 3 => Some(Self::Scroll),
            _ => Self::ALL.into_iter().find(|mode| i64::from(mode.number()) == number),
        }
    }

    /// Its name in our JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scroll => "scroll",
            Self::Bottom => "bottom",
            Self::Top => "top",
            Self::Reverse => "reverse",
            Self::Positioned => "positioned",
            Self::Script => "script",
            Self::Bas => "bas",
        }
    }

    /// The mode of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// Whether the text is what a viewer reads, and not data or a program.
    pub fn is_plain(self) -> bool {
        matches!(self, Self::Scroll | Self::Bottom | Self::Top | Self::Reverse)
    }
}

/// Which pool a comment is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pool {
    /// Where viewers write.
    Normal,
    /// Subtitles.
    Subtitle,
    /// Scripts and BAS.
    Special,
}

impl Pool {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Normal, Self::Subtitle, Self::Special];

    /// Its number in XML and protobuf.
    pub fn number(self) -> u8 {
        match self {
            Self::Normal => 0,
            Self::Subtitle => 1,
            Self::Special => 2,
        }
    }

    /// The pool of a number.
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|pool| i64::from(pool.number()) == number)
    }

    /// Its name in our JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Subtitle => "subtitle",
            Self::Special => "special",
        }
    }

    /// The pool of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pool| pool.name() == name)
    }
}

/// What was done to a comment, as bits. Those without a name are carried as
/// they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attr(pub u32);

impl Attr {
    /// The owner protects it.
    pub const PROTECTED: Self = Self(1);
    /// It was written while the video was live.
    pub const LIVE: Self = Self(1 << 1);
    /// Many viewers like it.
    pub const MANY_LIKES: Self = Self(1 << 2);
    /// The owner recommends it. Ours alone: a high bit, which others leave 0.
    pub const RECOMMENDED: Self = Self(1 << 30);

    /// Whether every bit of `bits` is set.
    pub fn has(self, bits: Self) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// With the bits of `bits` set, or not.
    pub fn with(self, bits: Self, set: bool) -> Self {
        if set { Self(self.0 | bits.0) } else { Self(self.0 & !bits.0) }
    }
}

/// Who sent a comment: a hash of 32 bits, as lower-case hex without leading
/// zeros. Old files mark guests, who had no account, with a `D` in front.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sender {
    /// The same for the same sender under the same video, and no more.
    pub hash: u32,
    /// From an old file: without an account.
    pub guest: bool,
}

impl Sender {
    /// A sender with an account.
    pub fn new(hash: u32) -> Self {
        Self { hash, guest: false }
    }

    /// Reads 1 to 8 hex digits, of either case, or a guest's `D` and 1 to 8
    /// lower-case ones. `Dabcdef1` is a guest, `DABCDEF1` is not.
    pub fn parse(text: &str) -> Option<Self> {
        let (guest, digits) = match text.strip_prefix('D') {
            Some(rest) if !rest.is_empty() && !rest.bytes().any(|b| b.is_ascii_uppercase()) => {
                (true, rest)
            }
            _ => (false, text),
        };
        if !(1..=8).contains(&digits.len()) || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        u32::from_str_radix(digits, 16).ok().map(|hash| Self { hash, guest })
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:x}", if self.guest { "D" } else { "" }, self.hash)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_and_names_lead_back_to_the_mode_and_the_pool() {
        for mode in Mode::ALL {
            assert_eq!(Mode::from_number(mode.number().into()), Some(mode));
            assert_eq!(Mode::from_name(mode.name()), Some(mode));
        }
        for pool in Pool::ALL {
            assert_eq!(Pool::from_number(pool.number().into()), Some(pool));
            assert_eq!(Pool::from_name(pool.name()), Some(pool));
        }
        assert_eq!([2, 3].map(Mode::from_number), [Some(Mode::Scroll); 2]);
        assert_eq!([0, 10, -1, 257].map(Mode::from_number), [None; 4]);
        assert_eq!([3, -1].map(Pool::from_number), [None; 2]);
    }

    #[test]
    fn a_sender_is_hex_without_zeros_and_a_guest_has_a_d() {
        for text in ["83dcefb7", "1ad5be0d", "a6216d9", "12d20a", "0", "D41ab925", "Dffffffff"] {
            assert_eq!(Sender::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Sender::parse("00A6216D9"), None, "nine digits");
        assert_eq!(Sender::parse("A6216D9"), Some(Sender::new(0x0A62_16D9)));
        assert_eq!(Sender::parse("DABCDEF1"), Some(Sender::new(0xDABC_DEF1)));
        assert_eq!(Sender::parse("D"), Some(Sender::new(0xD)));
        for bad in ["", "+1", "-1", "g", "D123456789", "1234567890", "0x1", "é"] {
            assert_eq!(Sender::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_sender_reads_back_from_its_text(hash in any::<u32>(), guest in any::<bool>()) {
            let sender = Sender { hash, guest };
            prop_assert_eq!(Sender::parse(&sender.to_string()), Some(sender));
        }
    }
}
