//! A comment as files and players carry it.

use std::borrow::Cow;

use tideline_wire::danmaku::{Attr, Item, Sender};

use crate::comment::{Comment, Rank, Writer};
use crate::options::Keys;

/// Likes from which on a comment counts as liked by many.
pub const MANY_LIKES: u32 = 10;

/// The comment, with its sender as a keyed hash of the video.
pub fn item<'a>(keys: &Keys, video: &str, comment: &'a Comment) -> Item<'a> {
    let Comment { id, index, content } = comment;
    let attr = Attr(content.attr)
        .with(Attr::PROTECTED, index.rank == Rank::Protected)
        .with(Attr::RECOMMENDED, index.rank == Rank::Recommended);
    let many = attr.has(Attr::MANY_LIKES) || index.likes >= MANY_LIKES;
    Item {
        id: id.number(),
        progress_ms: index.progress_ms,
        mode: index.mode,
        size: content.size,
        color: content.color,
        sent_ms: content.sent_ms.0,
        pool: index.pool,
        sender: match &content.writer {
            Writer::User(user) => Sender::new(keys.sender(video, user.as_str())),
            Writer::Imported(sender) => *sender,
        },
        weight: content.weight,
        attr: attr.with(Attr::MANY_LIKES, many),
        likes: index.likes,
        text: Cow::Borrowed(&content.text),
    }
}
