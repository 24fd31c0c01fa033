//! JSON bodies: read by field, with errors that name it; written straight to
//! bytes.
//!
//! Read strictly: unknown fields and fields that come twice are refused by
//! name, `null` counts as absent, ids sent as numbers are kept digit by digit,
//! and a string with half a surrogate pair is refused. Nesting is bounded.

mod body;
mod comments;
mod live;
mod marks;
mod reader;
mod write;

pub use body::{ItemJson, KeyJson, PutItem, read_item, read_items, read_keys, read_recording};
pub use comments::{
    PatchJson, PostJson, RankJson, StateJson, VideoSettingsJson, read_patch, read_post,
    read_report, read_video_settings,
};
pub use live::{ProgressJson, SayJson, UpJson, read_up};
pub use marks::{Shape, read_batch, read_lines, read_marks};
pub use reader::{Fields, Reader, Syntax, Text, Value};
pub use write::{
    CatalogueJson, RejectedJson, RowJson, push_i64, push_row, push_str, push_string, push_u64,
};
