//! Reads what DPlayer sends for one comment.

use std::borrow::Cow;

use super::read::mode;
use crate::danmaku::read::{Tree, parse_color};
use crate::danmaku::{Item, parse_seconds_ms};
use crate::fault::Fault;

/// A comment as DPlayer sends it. What it says of its author is not taken: the
/// token says who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// The video; the second interface calls it the player.
    pub video: String,
    /// The sender's token; empty where there is none.
    pub token: String,
    /// Time, mode, colour and text; everything else has its usual value.
    pub item: Item<'static>,
}

/// Reads the body of a request of either interface. Fields that are unknown
/// are passed over: players add their own.
pub fn read_post(body: &[u8]) -> Result<Post, Fault> {
    let text = std::str::from_utf8(body).map_err(|_| Fault::invalid("body: not UTF-8"))?;
    let (tree, broken) = Tree::parse(text)?;
    if broken {
        return Err(Fault::invalid("body: holds half a surrogate pair"));
    }
    let needed = |name: &'static str| {
        tree.text_of(name).ok_or_else(|| Fault::invalid(format!("{name}: is missing")))
    };
    let video = tree.text_of("id").or_else(|| tree.text_of("player"));
    let video = video.ok_or_else(|| Fault::invalid("id: is missing"))?.to_owned();
    let progress_ms =
        parse_seconds_ms(needed("time")?).map_err(|bad| Fault::invalid(format!("time: {bad}")))?;
    let color = match tree.text_of("color") {
        None => Item::WHITE,
        Some(color) => color
            .parse()
            .ok()
            .filter(|color| *color <= Item::WHITE)
            .or_else(|| parse_color(color))
            .ok_or_else(|| Fault::invalid("color: must be 0 to 16777215, or #rrggbb"))?,
    };
    let kind = tree.text_of("type").unwrap_or("0");
    let mode = mode(kind)
        .ok_or_else(|| Fault::invalid("type: must be 0 (right), 1 (top) or 2 (bottom)"))?;
    let text = Cow::Owned(needed("text")?.to_owned());
    let token = tree.text_of("token").unwrap_or_default().to_owned();
    Ok(Post { video, token, item: Item { progress_ms, mode, color, text, ..Item::default() } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::danmaku::Mode;

    #[test]
    fn both_interfaces_are_read() {
        for body in [
            r##"{"token":"t","id":"v","author":"me","time":1.005,"text":"<b>","color":255,"type":1}"##,
            r##"{"token":"t","player":"v","author":"me","time":"1.005","text":"<b>","color":"#00f","type":"top"}"##,
        ] {
            let post = read_post(body.as_bytes()).unwrap();
            assert_eq!((&*post.video, &*post.token), ("v", "t"));
            let want = Item {
                progress_ms: 1_005,
                mode: Mode::Top,
                color: 255,
                text: "<b>".into(),
                ..Item::default()
            };
            assert_eq!(post.item, want);
        }
        let bare = read_post(br#"{"id":7,"time":0,"text":"x"}"#).unwrap();
        assert_eq!(
            (&*bare.video, bare.item.color, bare.item.mode),
            ("7", Item::WHITE, Mode::Scroll)
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, field) in [
            (r#"{"time":0,"text":"x"}"#, "id"),
            (r#"{"id":"v","text":"x"}"#, "time"),
            (r#"{"id":"v","time":-1,"text":"x"}"#, "time"),
            (r#"{"id":"v","time":1}"#, "text"),
            (r#"{"id":"v","time":1,"text":"x","color":16777216}"#, "color"),
            (r#"{"id":"v","time":1,"text":"x","type":3}"#, "type"),
            (r#"{"id":"v","time":1,"text":"\ud83d"}"#, "body"),
            ("[", "body"),
        ] {
            let fault = read_post(body.as_bytes()).unwrap_err();
            assert!(fault.detail.starts_with(field), "{body}: {fault}");
        }
    }
}
