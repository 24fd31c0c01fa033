//! What artplayer-plugin-danmuku loads: a JSON list, or XML through
//! [`for_xml`].
//!
//! The plugin shows text as text, so nothing is escaped for HTML. A time of 0
//! is "now" to it, so the start is written as one millisecond. Comments that
//! are no plain text would be shown as their raw code, so they are left out.

mod read;
mod write;

pub use read::read_list;
pub use write::{SEPARATOR, for_xml, put_head, put_item, put_tail};
