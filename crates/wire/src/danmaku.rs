//! Comments across a video, as files and players carry them.
//!
//! One [`Item`] is one comment. Each format has a writer that emits one item
//! at a time, with a head and a tail, so that bytes in the middle of a body
//! can be exchanged; each format has a reader that yields one item at a time
//! in bounded memory and says of each whether it was kept, changed or dropped.
//!
//! Conversions only: knows nothing of limits by duration, of who may write
//! what, of segments or of sockets. What each format keeps and loses is
//! written in `docs/danmaku-formats.md`.

pub mod acfun;
pub mod artplayer;
pub mod ass;
pub mod dandanplay;
pub mod dplayer;
mod item;
pub mod json;
mod loss;
pub mod niconico;
pub mod positioned;
pub mod proto;
pub mod read;
#[cfg(test)]
mod samples;
pub mod smart;
mod text;
mod time;
pub mod xml;

pub use item::{Attr, Item, Mode, Pool, Sender};
pub use loss::{Form, Loss, LossReport, losses};
pub use text::{chars, clean, is_invisible};
pub use time::{BadSeconds, parse_seconds_ms, push_seconds, push_seconds_5};
