//! Comments as XML: a list of `<d p="…">text</d>` in `<i>`.
//!
//! Players and converters read these files with regular expressions and byte
//! comparisons as often as with parsers. So what is written keeps to what all
//! of them take:
//! - the file begins with the declaration, its encoding, and `<i` right behind
//!   it;
//! - `p` stands first, in double quotes, with nine fields;
//! - no element is empty or closes itself;
//! - of references there are `&amp; &lt; &gt; &quot; &apos;` alone, and no
//!   CDATA;
//! - no character that XML cannot carry is there in any form.

pub(in crate::danmaku) mod parts;
mod read;
pub(in crate::danmaku) mod scan;
mod write;

pub use read::read_list;
pub use write::{Head, put_head, put_item, put_tail};
