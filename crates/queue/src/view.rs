//! A view of a topic: state that is folded from its records, at rest in a
//! table, with one owner for each partition.
//!
//! An [`Owner`] is the pure part: it decides in order and says what is to be
//! done. A [`View`] tells what its effects mean. The [`Driver`] has what is the
//! same for every view: locks, threads and waits.
//!
//! ```text
//!                        ┌─▶ log ─▶ synced ─▶ Owner
//!  callers ─▶ Owner ─────┼─▶ loaders ───────▶ Owner
//!  (a lock, one step)    ├─▶ flusher: table, sync, places; the log is freed
//!                        └─▶ the view's own: answers
//! ```
//!
//! Always: a step holds the partition's lock and waits for nothing; a place is
//! written after the rows it speaks of are durable, and the log is freed behind
//! a place that is durable itself; what a start holds in memory is bounded by
//! what owners let come about.
//!
//! Knows nothing of what is folded, nor of who asks.

mod driver;
mod flush;
mod keep;
mod lag;
mod load;
mod outbox;
mod replay;
mod setup;

use tideline_store::{Place, StoreError, Table};
use tideline_types::{Millis, Seq};

pub use driver::{Driver, Hands, Order, Partition};
pub use keep::Duty;
pub use lag::Lag;
pub use load::guarded;
pub use replay::{Read, Replayed, replay};
pub use setup::{ensure_topic, folder_key};

/// One partition's state machine. Inputs come one at a time, and what it pushes
/// is carried out in order.
pub trait Owner: Send + Sized + 'static {
    /// What is to be done.
    type Effect: Send;
    /// Says which image it was when a flush comes back.
    type Landing: Send;

    /// An owner of the same partition that knows nothing yet: to be recovered,
    /// and then put in the place of this one.
    fn successor(&self) -> Self;

    /// The last number that is safe.
    fn synced_through(&self) -> Seq;

    /// Everything at or below this is in a durable row; `None` while the owner
    /// does not know.
    fn place(&self) -> Option<Place>;

    /// Everything decided is in a durable row.
    fn is_at_rest(&self) -> bool;

    /// As [`Owner::is_at_rest`], and calls are taken.
    fn is_settled(&self) -> bool;

    /// From now on changes are flushed at once; for a stop.
    fn drain(&mut self);

    /// Time has passed: `now` is the wall clock, `ticks` never jumps.
    fn tick(&mut self, now: Millis, ticks: u64, effects: &mut Vec<Self::Effect>);

    /// The log is safe up to `through`.
    fn synced(&mut self, through: Seq, effects: &mut Vec<Self::Effect>);

    /// The log could not take the batches from `from` on, and they are
    /// nowhere. A successor is recovered next.
    fn dropped(&mut self, from: Seq, error: &StoreError, effects: &mut Vec<Self::Effect>);

    /// The log took a fault: nothing is taken until the server starts again.
    fn failed(&mut self, error: &StoreError, effects: &mut Vec<Self::Effect>);

    /// An image is at rest, or is not.
    fn flushed(&mut self, landing: Self::Landing, done: Result<(), StoreError>);
}

/// What the owners of one topic are, and what their effects mean.
pub trait View: Send + Sync + Sized + 'static {
    /// The name of the topic of outcomes, and of what belongs to it: places,
    /// threads, what is said in the log file.
    const NAME: &'static str;
    /// The owner of a partition.
    type Owner: Owner;
    /// What a loader is to read.
    type Wanted: Send;

    /// Carries out one effect, with the partition's lock held.
    fn carry_out(&self, effect: <Self::Owner as Owner>::Effect, hands: &mut Hands<'_, Self>);

    /// Reads what owner `at` wants and gives it to it. Blocks.
    fn load(&self, driver: &Driver<Self>, at: usize, wanted: Vec<Self::Wanted>);

    /// Replays what the log holds above the partition's place into a fresh
    /// owner, which takes calls from then on. With `alone` nobody else writes
    /// the partition's rows: what is more than an owner lets come about is
    /// brought to rest on the way.
    fn recover(
        owner: &mut Self::Owner,
        table: &dyn Table,
        read: &mut Read<'_>,
        alone: bool,
    ) -> Result<(), StoreError>;
}

/// The effect of a view's owner.
type EffectOf<V> = <<V as View>::Owner as Owner>::Effect;
/// What comes back to a view's owner.
type LandingOf<V> = <<V as View>::Owner as Owner>::Landing;

/// A refusal of the log that an owner cannot do anything about.
fn log_error(view: &str, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Io { what: format!("the log of {view}"), cause: error.to_string() }
}
