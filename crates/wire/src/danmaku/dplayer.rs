//! The lists that DPlayer loads, of its third and second interface.
//!
//! An item is `[seconds, type, colour, author, text]`. The player puts author
//! and text into the page as HTML, so both are written escaped: whatever was
//! typed stays text. It also takes colour 0 for "no colour" (white); the third
//! interface, where colours are numbers, therefore writes black as 1, the
//! darkest blue. Comments that are no plain text are left out, and what runs
//! backwards runs forwards.

mod post;
mod read;
mod write;

pub use post::{Post, read_post};
pub use read::read_list;
pub use write::{SEPARATOR, Version, put_head, put_item, put_tail};
