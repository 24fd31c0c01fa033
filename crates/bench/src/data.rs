//! The data set: who watched what, and when.
//!
//! 200,000 users whose activity falls off as rank^-0.8, 50 marks each in the
//! mean and at most 1,000, over the 90 days of UTC that end now; half of the
//! user-days have one mark; a million objects, each drawn at most once by a
//! user. 30% of the objects have a UUID as text for an id and the rest a
//! decimal of 15 digits (all of them, in the second variant); 30% of the marks
//! name a part, 20% a device, and every one an event id.
//!
//! What the numbers above leave open is chosen as follows: a user id is a
//! decimal of 10 digits; a user-day with more than one mark has 7 in the mean,
//! spread evenly over the day; objects are drawn evenly; all marks are of kind
//! `video`, with a duration in whole seconds that belongs to the object and a
//! position to the millisecond; parts are `ep1` to `ep24`; a user has two
//! devices, named as `tv-1f3a`; an event id is 16 hexadecimal digits.
//!
//! Every field of a mark is a pure function of (seed, user, place), so marks
//! need no memory but 8 bytes each for their order in time. Knows nothing of
//! protocols.

use std::fmt::Write as _;

/// Milliseconds in a day.
const DAY_MS: u64 = 86_400_000;
/// Marks of a user-day, in the mean.
const MARKS_PER_USER_DAY: u64 = 4;
/// Devices of one user.
const DEVICES: u64 = 2;

/// How large, and of which variant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Users, at most 2^20.
    pub(crate) users: u32,
    /// Marks of a user in the mean; `users * mean` marks in all.
    pub(crate) mean: u32,
    /// Marks of a user at most, up to 1,024.
    pub(crate) max: u32,
    /// Days of UTC up to and with today, up to 90.
    pub(crate) days: u32,
    /// Objects that can be watched.
    pub(crate) objects: u32,
    /// Whether no id is a UUID.
    pub(crate) decimal_only: bool,
    /// Whether positions and event times are in whole seconds, as many players
    /// send them; the targets are held against milliseconds.
    pub(crate) whole_seconds: bool,
    /// Everything follows from it.
    pub(crate) seed: u64,
    /// The newest moment, in ms since the epoch; no event is later.
    pub(crate) now_ms: u64,
}

impl Options {
    /// The data set as the targets name it, ending at `now_ms`.
    pub(crate) fn whole(now_ms: u64) -> Self {
        Self {
            users: 200_000,
            mean: 50,
            max: 1_000,
            days: 90,
            objects: 1_000_000,
            decimal_only: false,
            whole_seconds: false,
            seed: 20_261_130,
            now_ms,
        }
    }

    /// The same shape with about `marks` marks: fewer users, each as active.
    #[must_use]
    pub(crate) fn shrunk_to(mut self, marks: u64) -> Self {
        self.users = (marks / u64::from(self.mean)).clamp(10, u64::from(self.users)) as u32;
        self
    }
}

/// One mark, small: texts are made from it by [`DataSet::fields`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    /// The user's rank, 0 the most active.
    pub(crate) user: u32,
    /// The object's number.
    pub(crate) object: u32,
    /// When, in ms since the epoch.
    pub(crate) event_ms: u64,
    /// How far, in ms.
    pub(crate) position_ms: u64,
    /// Of how much, in ms.
    pub(crate) duration_ms: u64,
    /// Which part, from 1.
    pub(crate) part: Option<u8>,
    /// Which of the user's devices.
    pub(crate) device: Option<u8>,
    /// What the event id is made of.
    pub(crate) event: u64,
}

/// A mark with its texts, as a caller would send it. Reused: no allocation
/// per mark once the strings have grown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    /// The user's id.
    pub(crate) user: String,
    /// The object's id.
    pub(crate) id: String,
    /// The part, if `has_part`.
    pub(crate) part: String,
    /// The device, if not empty.
    pub(crate) device: String,
    /// The event id.
    pub(crate) event_id: String,
    /// When, in ms since the epoch.
    pub(crate) event_ms: u64,
    /// How far, in ms.
    pub(crate) position_ms: u64,
    /// Of how much, in ms.
    pub(crate) duration_ms: u64,
}

/// The kind of every mark.
pub(crate) const KIND: &str = "video";

/// The users, how many marks each has, and where each one's marks begin.
#[derive(Debug)]
pub(crate) struct DataSet {
    options: Options,
    /// Marks of the users before a rank; one longer than the users.
    before: Vec<u64>,
}

impl DataSet {
    /// Lays the users out. Costs milliseconds; makes no mark yet.
    pub(crate) fn new(options: Options) -> Self {
        assert!(options.users <= 1 << USER_BITS, "a user's rank has {USER_BITS} bits");
        assert!(options.max <= 1 << PLACE_BITS, "a mark's place has {PLACE_BITS} bits");
        let mut before = Vec::with_capacity(options.users as usize + 1);
        let mut sum = 0;
        before.push(0);
        for count in counts(&options) {
            sum += u64::from(count);
            before.push(sum);
        }
        Self { options, before }
    }

    /// How it was made.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// All marks of all users.
    pub(crate) fn len(&self) -> u64 {
        self.before[self.before.len() - 1]
    }

    /// Marks of the user at `rank`.
    pub(crate) fn count_of(&self, rank: u32) -> u32 {
        (self.before[rank as usize + 1] - self.before[rank as usize]) as u32
    }

    /// A user as likely as it is active, from any 64 random bits.
    pub(crate) fn active_user(&self, random: u64) -> u32 {
        let at = random % self.len();
        (self.before.partition_point(|&before| before <= at) - 1) as u32
    }

    /// Keys of the marks of the user at `rank`, oldest first.
    pub(crate) fn keys_of(&self, rank: u32, into: &mut Vec<Key>) {
        let count = u64::from(self.count_of(rank));
        let start = into.len();
        let mut random = Random::new(self.options.seed ^ mix(u64::from(rank)));
        let days = u64::from(self.options.days);
        // Half of the user-days hold one mark, the rest share what is left.
        let active = (count / MARKS_PER_USER_DAY).max(1).min(days);
        let single = (active + (random.draw() & 1)) / 2;
        let single = if active == 1 { 0 } else { single.min(count) };
        let mut chosen = pick_days(active, days, &mut random);
        for day in chosen.drain(..single as usize) {
            into.push(self.key(rank, day, &mut random));
        }
        let rest = count - single;
        let full: Vec<u64> = chosen;
        for n in 0..rest {
            // Each of them gets one, then a second, so that it is not a single.
            let at = if n < 2 * full.len() as u64 { n } else { random.draw() };
            into.push(self.key(rank, full[(at % full.len() as u64) as usize], &mut random));
        }
        let marks = &mut into[start..];
        marks.sort_unstable();
        for (place, key) in marks.iter_mut().enumerate() {
            key.0 |= place as u64;
        }
    }

    /// Keys of all marks in the order in which they happened: 8 bytes a mark.
    pub(crate) fn in_order_of_time(&self) -> Vec<Key> {
        let mut keys = Vec::with_capacity(self.len() as usize);
        for rank in 0..self.options.users {
            self.keys_of(rank, &mut keys);
        }
        keys.sort_unstable();
        keys
    }

    /// The mark that `key` stands for.
    pub(crate) fn spec(&self, key: Key) -> Spec {
        let (offset, rank, place) = key.split();
        let user = mix(self.options.seed ^ (u64::from(rank) << 1 | 1));
        let objects = u64::from(self.options.objects);
        // A walk over all objects from a place and with a stride of the
        // user's own meets none twice.
        let stride = coprime_stride(user >> 32, objects);
        let object = ((user & 0xffff_ffff) + u64::from(place) * stride) % objects;
        let dice = mix(self.options.seed ^ (u64::from(rank) << PLACE_BITS | u64::from(place)));
        self.mark(rank, object as u32, self.first_ms() + offset, dice)
    }

    /// A mark of `user` on `object` at `event_ms`; `dice` decides the rest.
    fn mark(&self, user: u32, object: u32, event_ms: u64, dice: u64) -> Spec {
        let duration_ms = (60 + mix(u64::from(object) ^ 0x5eed) % 5_340) * 1_000;
        let share = |shift: u32, percent: u64| (dice >> shift) & 0xfff < percent * 4096 / 100;
        let grain = if self.options.whole_seconds { 1_000 } else { 1 };
        Spec {
            user,
            object,
            event_ms: event_ms / grain * grain,
            position_ms: (dice >> 32).wrapping_mul(2_654_435_761) % duration_ms / grain * grain,
            duration_ms,
            part: share(0, 30).then_some((dice >> 24) as u8 % 24 + 1),
            device: share(12, 20).then_some(((dice >> 60) % DEVICES) as u8),
            event: mix(dice),
        }
    }

    /// Writes the texts of `spec` into `fields`.
    pub(crate) fn fields(&self, spec: &Spec, fields: &mut Fields) {
        fields.user.clear();
        push_user(spec.user, &mut fields.user);
        fields.id.clear();
        self.push_id(spec.object, &mut fields.id);
        fields.part.clear();
        if let Some(part) = spec.part {
            let _ = write!(fields.part, "ep{part}");
        }
        fields.device.clear();
        if let Some(device) = spec.device {
            let name = ["tv", "phone"][usize::from(device) % 2];
            let _ = write!(fields.device, "{name}-{:04x}", mix(u64::from(spec.user)) as u16);
        }
        fields.event_id.clear();
        push_hex(spec.event, 16, &mut fields.event_id);
        fields.event_ms = spec.event_ms;
        fields.position_ms = spec.position_ms;
        fields.duration_ms = spec.duration_ms;
    }

    /// Appends the id of `object`.
    fn push_id(&self, object: u32, into: &mut String) {
        let bits = mix(u64::from(object) ^ 0x0b1e_c700);
        if !self.options.decimal_only && mix(bits) % 100 < 30 {
            let low = mix(bits ^ 1);
            push_hex(bits >> 32, 8, into);
            into.push('-');
            push_hex(bits >> 16 & 0xffff, 4, into);
            into.push_str("-4");
            push_hex(bits & 0xfff, 3, into);
            into.push_str("-a");
            push_hex(low >> 48 & 0xfff, 3, into);
            into.push('-');
            push_hex(low & 0xffff_ffff_ffff, 12, into);
        } else {
            push_decimal(100_000_000_000_000 + bits % 900_000_000_000_000, into);
        }
    }

    /// The first moment of the first day.
    fn first_ms(&self) -> u64 {
        let today = self.options.now_ms / DAY_MS * DAY_MS;
        today - u64::from(self.options.days - 1) * DAY_MS
    }

    fn key(&self, rank: u32, day: u64, random: &mut Random) -> Key {
        let start = day * DAY_MS;
        let last = (self.options.now_ms - self.first_ms()).min(start + DAY_MS);
        let within = (last.saturating_sub(start)).max(1);
        Key((start + random.draw() % within) << (USER_BITS + PLACE_BITS)
            | u64::from(rank) << PLACE_BITS)
    }
}

/// Bits of a key for the user's rank.
const USER_BITS: u32 = 20;
/// Bits of a key for the place among the user's marks.
const PLACE_BITS: u32 = 10;

/// Stands for one mark of a [`DataSet`]; orders by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u64);

impl Key {
    /// (ms since the first day began, user's rank, place).
    fn split(self) -> (u64, u32, u32) {
        (
            self.0 >> (USER_BITS + PLACE_BITS),
            (self.0 >> PLACE_BITS) as u32 & ((1 << USER_BITS) - 1),
            self.0 as u32 & ((1 << PLACE_BITS) - 1),
        )
    }
}

/// Players that send where they are, over and over: the same rows again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heartbeats<'a> {
    data: &'a DataSet,
    /// Players at work at a time.
    sessions: u64,
    /// When the first heartbeat happened, in ms since the epoch.
    first_ms: u64,
}

/// Heartbeats of one play, 10 s of film apart: then the player takes another
/// object.
const HEARTBEATS_PER_PLAY: u64 = 120;
/// Event time between two heartbeats of a player, in ms. Less than the 10 s of
/// film between them, so that a long run never comes near the present.
const HEARTBEAT_STEP_MS: u64 = 500;

impl<'a> Heartbeats<'a> {
    /// `sessions` players of users as likely as they are active, whose first
    /// heartbeat was six hours before the data set's `now`.
    pub(crate) fn new(data: &'a DataSet, sessions: u32) -> Self {
        let first_ms = data.options.now_ms - 6 * 3_600_000;
        Self { data, sessions: u64::from(sessions), first_ms }
    }

    /// The `n`th heartbeat over all players, who take turns.
    pub(crate) fn spec(&self, n: u64) -> Spec {
        let (session, round) = (n % self.sessions, n / self.sessions);
        let (play, beat) = (round / HEARTBEATS_PER_PLAY, round % HEARTBEATS_PER_PLAY);
        let seed = self.data.options.seed;
        let user = self.data.active_user(mix(seed ^ session << 20));
        let dice = mix(seed ^ 0xbea7 ^ session << 32 ^ play);
        // Of objects that no mark of the set is on: one that is older than a
        // heartbeat on the same object would rightly be refused.
        let objects = self.data.options.objects;
        let object = objects + (dice % u64::from(objects)) as u32;
        let event_ms = self.first_ms + round * HEARTBEAT_STEP_MS;
        let mut spec = self.data.mark(user, object, event_ms, dice);
        spec.position_ms = (beat * 10_000 + 137) % spec.duration_ms;
        spec.event = mix(dice ^ n << 8);
        spec
    }
}

/// Appends the id of the user at `rank`: ten digits that are no row of ranks.
pub(crate) fn push_user(rank: u32, into: &mut String) {
    push_decimal(1_000_000_000 + u64::from(rank.wrapping_mul(0x9e37_79b1)), into);
}

/// How many marks each rank has: as rank^-0.8, cut at the largest, with the
/// sum as near to `users * mean` as whole numbers come.
fn counts(options: &Options) -> Vec<u32> {
    let weights: Vec<f64> = (1..=options.users).map(|rank| f64::from(rank).powf(-0.8)).collect();
    let wanted = f64::from(options.users) * f64::from(options.mean);
    let max = f64::from(options.max);
    let sum = |scale: f64| weights.iter().map(|w| (w * scale).clamp(1.0, max)).sum::<f64>();
    let (mut low, mut high) = (0.0, wanted * max);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if sum(middle) < wanted { low = middle } else { high = middle }
    }
    // Rounding carries over, so that the sum stays.
    let mut carry = 0.0;
    let count = |w: &f64| {
        let exact = (w * low).clamp(1.0, max) + carry;
        let whole = exact.round().clamp(1.0, max);
        carry = exact - whole;
        whole as u32
    };
    weights.iter().map(count).collect()
}

/// `active` of `days` days, in random order.
fn pick_days(active: u64, days: u64, random: &mut Random) -> Vec<u64> {
    let mut all: Vec<u64> = (0..days).collect();
    for at in 0..active {
        let other = at + random.draw() % (days - at);
        all.swap(at as usize, other as usize);
    }
    all.truncate(active as usize);
    all
}

/// A stride near `wish % objects` that shares no factor with `objects`.
fn coprime_stride(wish: u64, objects: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let mut stride = (wish % objects) | 1;
    while gcd(stride, objects) != 1 {
        stride += 2;
    }
    stride
}

/// SplitMix64's finalizer: spreads every bit over all.
pub(crate) fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// SplitMix64: random numbers that are the same for the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// All numbers follow from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(crate) fn draw(&mut self) -> u64 {
        let now = self.0;
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(now)
    }
}

/// Appends `n` in decimal, quicker than `write!`.
pub(crate) fn push_decimal(mut n: u64, into: &mut String) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    into.push_str(std::str::from_utf8(&digits[at..]).expect("digits are ASCII"));
}

/// Appends the lowest `digits` hexadecimal digits of `n`.
fn push_hex(n: u64, digits: u32, into: &mut String) {
    for place in (0..digits).rev() {
        let digit = (n >> (4 * place) & 15) as u32;
        into.push(char::from_digit(digit, 16).expect("below 16"));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    const NOW: u64 = 1_796_000_000_000;

    fn small() -> DataSet {
        DataSet::new(Options::whole(NOW).shrunk_to(500_000))
    }

    #[test]
    fn the_whole_set_has_ten_million_marks_and_the_stated_activity() {
        let data = DataSet::new(Options::whole(NOW));
        assert!(data.len().abs_diff(10_000_000) < 100, "{}", data.len());
        assert_eq!(data.count_of(0), 1_000);
        assert!((0..200_000).all(|rank| (1..=1_000).contains(&data.count_of(rank))));
        // Zipf 0.8: a tenth of the rank has 10^0.8 = 6.3 times the marks.
        let ratio = f64::from(data.count_of(10_000)) / f64::from(data.count_of(100_000));
        assert!((5.9..6.7).contains(&ratio), "{ratio}");
    }

    #[test]
    fn half_of_the_user_days_have_one_mark_and_no_user_draws_an_object_twice() {
        let data = small();
        let mut days: HashMap<(u32, u64), u32> = HashMap::new();
        let mut rows = HashSet::new();
        let keys = data.in_order_of_time();
        for &key in &keys {
            let spec = data.spec(key);
            *days.entry((spec.user, spec.event_ms / DAY_MS)).or_default() += 1;
            assert!(rows.insert((spec.user, spec.object)), "drawn twice");
            assert!(spec.event_ms <= NOW && spec.event_ms > NOW - 90 * DAY_MS);
        }
        assert_eq!(keys.len() as u64, data.len());
        let single = days.values().filter(|&&count| count == 1).count() as f64;
        let share = single / days.len() as f64;
        assert!((0.46..0.54).contains(&share), "{share}");
    }

    #[test]
    fn ids_parts_and_devices_come_in_their_shares() {
        let data = small();
        let mut fields = Fields::default();
        let (mut uuids, mut parts, mut devices) = (0, 0, 0);
        let keys = data.in_order_of_time();
        for &key in &keys {
            data.fields(&data.spec(key), &mut fields);
            assert!(matches!(fields.id.len(), 15 | 36), "{}", fields.id);
            assert_eq!((fields.event_id.len(), fields.user.len()), (16, 10));
            assert!(fields.position_ms < fields.duration_ms);
            uuids += u32::from(fields.id.len() == 36);
            parts += u32::from(!fields.part.is_empty());
            devices += u32::from(!fields.device.is_empty());
        }
        let percent = |n: u32| n * 100 / keys.len() as u32;
        assert!((28..=31).contains(&percent(uuids)), "{uuids}");
        assert!((28..=31).contains(&percent(parts)), "{parts}");
        assert!((18..=21).contains(&percent(devices)), "{devices}");
    }

    #[test]
    fn the_same_seed_gives_the_same_marks() {
        let (one, two) = (small(), small());
        assert_eq!(one.in_order_of_time(), two.in_order_of_time());
        let key = one.in_order_of_time()[4_711];
        assert_eq!(one.spec(key), two.spec(key));
    }

    #[test]
    fn a_heartbeat_moves_its_row_forward_and_another_play_takes_another_row() {
        let data = small();
        let beats = Heartbeats::new(&data, 100);
        let (first, second) = (beats.spec(7), beats.spec(107));
        assert_eq!((first.user, first.object), (second.user, second.object));
        assert!(first.event_ms < second.event_ms && first.event != second.event);
        let later = beats.spec(7 + 100 * HEARTBEATS_PER_PLAY);
        assert_ne!((first.user, first.object), (later.user, later.object));
        assert!(beats.spec(1_000_000).event_ms < NOW);
    }
}
