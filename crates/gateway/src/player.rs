//! All comments of a video in the forms that players take. Each gets only what
//! it can show.

use tideline_danmaku::Danmaku;
use tideline_danmaku::ask::Snapshot;
use tideline_wire::danmaku::dplayer::{self, Version};
use tideline_wire::danmaku::{Item, artplayer, xml};

/// Whose form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Form {
    /// DPlayer's JSON.
    DPlayer,
    /// The JSON of ArtPlayer's plugin.
    ArtPlayer,
    /// The XML that ArtPlayer's plugin parses.
    ArtPlayerXml,
}

impl Form {
    /// What `snapshot` shows, at most `max` comments of it.
    pub(crate) fn body(
        self,
        danmaku: &Danmaku,
        video: &str,
        snapshot: &Snapshot,
        max: usize,
    ) -> Vec<u8> {
        let items = snapshot.items.iter().map(|comment| danmaku.item(video, comment));
        let mut out = Vec::new();
        match self {
            Self::DPlayer => {
                dplayer::put_head(&mut out, Version::V3);
                let put =
                    |out: &mut Vec<u8>, item: &Item<'_>| dplayer::put_item(out, Version::V3, item);
                list(&mut out, items, dplayer::SEPARATOR, max, put);
                dplayer::put_tail(&mut out);
            }
            Self::ArtPlayer => {
                artplayer::put_head(&mut out);
                list(&mut out, items, artplayer::SEPARATOR, max, artplayer::put_item);
                artplayer::put_tail(&mut out);
            }
            Self::ArtPlayerXml => {
                let (limit, closed) = (snapshot.limit, snapshot.closed);
                xml::put_head(&mut out, &xml::Head { video, limit, closed });
                let put = |out: &mut Vec<u8>, item: &Item<'_>| {
                    artplayer::for_xml(item).map(|item| xml::put_item(out, &item)).is_some()
                };
                list(&mut out, items, b"", max, put);
                xml::put_tail(&mut out);
            }
        }
        out
    }
}

/// Puts the first `max` items that `put` takes, with separators between.
fn list<'a>(
    out: &mut Vec<u8>,
    items: impl Iterator<Item = Item<'a>>,
    separator: &[u8],
    max: usize,
    put: impl Fn(&mut Vec<u8>, &Item<'_>) -> bool,
) {
    let mut left = max;
    for item in items {
        if left == 0 {
            return;
        }
        let end = out.len();
        if left < max {
            out.extend_from_slice(separator);
        }
        match put(out, &item) {
            true => left -= 1,
            false => out.truncate(end),
        }
    }
}
