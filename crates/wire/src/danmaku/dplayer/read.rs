//! Reads lists of both interfaces.

use std::io::BufRead;

use crate::danmaku::Mode;
use crate::danmaku::read::{
    Change, Draft, Entry, Limits, ReadError, Reason, Shape, Tree, read_elements,
};

/// Comments of a list: arrays of time, type, colour, author and text, or the
/// objects that some servers send in their place.
pub fn read_list<R: BufRead>(
    input: R,
    limits: Limits,
) -> impl Iterator<Item = Result<Entry, ReadError>> {
    read_elements(input, limits, Shape { lists: &["data", "danmaku"], arrays: true, parse })
}

fn parse(tree: &Tree, draft: &mut Draft) -> Result<(), Reason> {
    let values = tree.values();
    let field = |at: usize, name: &str| match tree {
        Tree::Array(_) => values.get(at).and_then(Tree::text),
        _ => tree.text_of(name),
    };
    draft.progress_s(field(0, "time").ok_or(Reason::Fields)?)?;
    let text = field(4, "text").ok_or(Reason::Fields)?;
    draft.text(unescape(text));
    draft.item.mode = mode(field(1, "type").unwrap_or("0")).unwrap_or_else(|| {
        draft.changes.add(Change::Mode);
        Mode::Scroll
    });
    if let Some(color) = field(2, "color") {
        draft.color(color);
    }
    if let Some(author) = field(3, "author") {
        draft.sender(&unescape(author));
    }
    if values.len() > 5 || matches!(tree, Tree::Object(_)) {
        draft.changed(Change::Fields);
    }
    Ok(())
}

/// A type, as a number or by its name.
pub(super) fn mode(text: &str) -> Option<Mode> {
    match text {
        "0" | "right" => Some(Mode::Scroll),
        "1" | "top" => Some(Mode::Top),
        "2" | "bottom" => Some(Mode::Bottom),
        _ => None,
    }
}

/// `text` without the references that servers put in for the player, which
/// shows it as HTML.
fn unescape(text: &str) -> String {
    const REFERENCES: [(&str, char); 9] = [
        ("&lt;", '<'),
        ("&gt;", '>'),
        ("&quot;", '"'),
        ("&#x27;", '\''),
        ("&#39;", '\''),
        ("&apos;", '\''),
        ("&#x2F;", '/'),
        ("&#x2f;", '/'),
        ("&amp;", '&'),
    ];
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        match REFERENCES.iter().find(|(reference, _)| rest.starts_with(reference)) {
            Some((reference, c)) => {
                plain.push(*c);
                rest = &rest[reference.len()..];
            }
            None => {
                plain.push('&');
                rest = &rest[1..];
            }
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::danmaku::dplayer::{SEPARATOR, Version, put_head, put_item, put_tail};
    use crate::danmaku::read::Changes;
    use crate::danmaku::samples::an_item;
    use crate::danmaku::{Item, Sender};

    type Outcome = Result<(Item<'static>, Changes), Reason>;

    fn read(file: &str) -> Vec<Outcome> {
        let entries = read_list(file.as_bytes(), Limits::default());
        entries.map(|entry| entry.unwrap().outcome).collect()
    }

    #[test]
    fn arrays_and_objects_of_both_interfaces_are_read() {
        for file in [
            r##"{"code":0,"data":[[61.5,2,255,"a6216d9","&lt;b&gt; &amp;lt; a&b"]]}"##,
            r##"{"code":0,"version":2,"danmaku":[[61.5,"bottom","#0000ff","a6216d9","<b> &amp;lt; a&b"]]}"##,
            r##"{"code":0,"data":[{"time":"61.5","type":2,"color":"#00f","author":"A6216D9","text":"<b> &amp;lt; a&b"}]}"##,
        ] {
            let (item, changes) = read(file).remove(0).unwrap();
            let want = Item {
                progress_ms: 61_500,
                mode: Mode::Bottom,
                color: 255,
                sender: Sender::new(0x0A62_16D9),
                text: "<b> &lt; a&b".into(),
                ..Item::default()
            };
            assert_eq!(item, want, "{file}");
            assert_eq!(changes.is_empty(), !file.contains("author"));
        }
    }

    #[test]
    fn what_is_missing_or_unknown_is_said() {
        let read = read(
            r#"{"code":0,"data":[[1,7,1,"DIYgod","x"],["inf",0,1,"a","x"],[1,0,1,"a"],[1,0,1,"a",""]]}"#,
        );
        let (item, changes) = read[0].as_ref().unwrap();
        assert_eq!((item.mode, item.id), (Mode::Scroll, 0));
        assert_eq!(changes.iter().collect::<Vec<_>>(), [Change::Mode, Change::Sender]);
        assert!(matches!(read[1], Err(Reason::Progress(_))));
        assert_eq!(read[2..], [Err(Reason::Fields), Err(Reason::NoText)]);
    }

    proptest! {
        #[test]
        fn what_this_player_shows_comes_back(
            items in prop::collection::vec(an_item(), 0..6), v2 in any::<bool>(),
        ) {
            let version = if v2 { Version::V2 } else { Version::V3 };
            let mut file = Vec::new();
            put_head(&mut file, version);
            let mut want: Vec<Outcome> = Vec::new();
            for item in items {
                let mut bytes = Vec::new();
                if !put_item(&mut bytes, version, &item) {
                    continue;
                }
                if !want.is_empty() {
                    file.extend_from_slice(SEPARATOR);
                }
                file.extend_from_slice(&bytes);
                let mode = if item.mode == Mode::Reverse { Mode::Scroll } else { item.mode };
                let color = if v2 { item.color } else { item.color.max(1) };
                let Item { progress_ms, sender, text, .. } = item;
                let item = Item { progress_ms, mode, color, sender, text, ..Item::default() };
                want.push(Ok((item, Changes::default())));
            }
            put_tail(&mut file);
            prop_assert_eq!(read(std::str::from_utf8(&file).unwrap()), want);
        }
    }
}
