//! What a viewer's player shows of a segment: a flag from 0 to 11 for each
//! comment, higher is more wanted.
//!
//! A comment that the viewer's filters reject has 0, one that they wrote or
//! like has 11; the rest have the default, and are left out. A player cuts
//! below the level that its viewer chose. The scores of a model stand beside
//! these and are not read here.

use std::sync::Arc;

use crate::comment::{Comment, Writer};
use crate::filters::Filters;
use crate::id::CommentId;
use crate::options::Keys;

/// The highest flag.
pub const FLAG_MAX: u8 = 11;
/// The flag of a comment of which nothing is known.
pub const FLAG_DEFAULT: u8 = 5;

/// What is known of a viewer.
#[derive(Clone, Debug, Default)]
pub struct Viewer {
    /// Who; `None` if they are not logged in.
    pub user: Option<tideline_types::UserId>,
    /// What they do not want to see.
    pub filters: Filters,
    /// Comments that they like, in order.
    pub likes: Vec<CommentId>,
}

/// The flags of comments of `video` that differ from [`FLAG_DEFAULT`], in the
/// order given.
pub fn flags(
    keys: &Keys,
    video: &str,
    viewer: &Viewer,
    comments: &[Arc<Comment>],
) -> Vec<(CommentId, u8)> {
    let flag = |comment: &Arc<Comment>| {
        let writer = &comment.content.writer;
        let own = matches!((writer, &viewer.user), (Writer::User(user), Some(own)) if user == own);
        if own || viewer.likes.binary_search(&comment.id).is_ok() {
            return Some((comment.id, FLAG_MAX));
        }
        let sender = match writer {
            Writer::User(user) => format!("{:x}", keys.sender(video, user.as_str())),
            Writer::Imported(sender) => sender.to_string(),
        };
        let rejected = viewer.filters.rejects(&comment.content.text, &[&sender]);
        rejected.then_some((comment.id, 0))
    };
    comments.iter().filter_map(flag).collect()
}

#[cfg(test)]
mod tests {
    use tideline_types::{Millis, UserId};
    use tideline_wire::danmaku::{Mode, Pool};

    use super::*;
    use crate::comment::{Content, Index, Rank, State};
    use crate::filters::parse;

    fn comment(n: u64, user: &str, text: &str) -> Arc<Comment> {
        let index = Index {
            state: State::Shown,
            rank: Rank::Plain,
            pool: Pool::Normal,
            mode: Mode::Scroll,
            progress_ms: 0,
            likes: 0,
            reports: 0,
            reviewed: false,
        };
        let content = Content {
            color: 0,
            size: 25,
            sent_ms: Millis(0),
            writer: Writer::User(UserId::new(user).unwrap()),
            weight: 0,
            attr: 0,
            client: None,
            text: text.into(),
        };
        Arc::new(Comment { id: CommentId::from_bits(n).unwrap(), index, content })
    }

    #[test]
    fn own_and_liked_ones_are_wanted_and_filtered_ones_are_not() {
        let keys = Keys([7; 16]);
        let eve = format!("{:x}", keys.sender("v", "eve"));
        let json = format!(r#"[{{"type":0,"filter":"boo"}},{{"type":2,"filter":"{eve}"}}]"#);
        let viewer = Viewer {
            user: Some(UserId::new("ann").unwrap()),
            filters: Filters::new(&parse(&json).unwrap()).unwrap(),
            likes: vec![CommentId::from_bits(4).unwrap()],
        };
        let comments = [
            comment(1, "ann", "boo, by me"),
            comment(2, "bob", "BOO"),
            comment(3, "eve", "hello"),
            comment(4, "bob", "boo, but I like it"),
            comment(5, "bob", "hello"),
        ];
        let of = |video| -> Vec<(u64, u8)> {
            let flags = flags(&keys, video, &viewer, &comments);
            flags.into_iter().map(|(id, flag)| (id.bits(), flag)).collect()
        };
        assert_eq!(of("v"), [(1, 11), (2, 0), (3, 0), (4, 11)]);
        assert_eq!(of("w"), [(1, 11), (2, 0), (4, 11)], "a sender is another under another video");
        assert!(super::flags(&keys, "v", &Viewer::default(), &comments).is_empty());
    }
}
