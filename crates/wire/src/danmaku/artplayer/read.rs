//! Reads lists of this plugin.

use std::io::BufRead;

use crate::danmaku::Mode;
use crate::danmaku::read::{
    Change, Draft, Entry, Limits, ReadError, Reason, Shape, Tree, read_elements,
};

/// Comments of `[{"text","time","mode","color"}]`.
pub fn read_list<R: BufRead>(
    input: R,
    limits: Limits,
) -> impl Iterator<Item = Result<Entry, ReadError>> {
    read_elements(input, limits, Shape { lists: &["danmuku", "data"], arrays: false, parse })
}

fn parse(tree: &Tree, draft: &mut Draft) -> Result<(), Reason> {
    draft.text(tree.text_of("text").ok_or(Reason::Fields)?);
    draft.progress_s(tree.text_of("time").ok_or(Reason::Fields)?)?;
    draft.item.mode = match tree.text_of("mode").unwrap_or("0") {
        "0" => Mode::Scroll,
        "1" => Mode::Top,
        "2" => Mode::Bottom,
        _ => return Err(Reason::Mode),
    };
    if let Some(color) = tree.text_of("color") {
        draft.color(color);
    }
    if let Some(id) = tree.text_of("id") {
        draft.id(id);
    }
    if tree.names().any(|name| !["text", "time", "mode", "color", "id"].contains(&name)) {
        draft.changed(Change::Fields);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::danmaku::Item;
    use crate::danmaku::artplayer::{SEPARATOR, for_xml, put_head, put_item, put_tail};
    use crate::danmaku::read::Changes;
    use crate::danmaku::samples::an_item;
    use crate::danmaku::xml;

    type Outcome = Result<(Item<'static>, Changes), Reason>;

    fn read(file: &str) -> Vec<Outcome> {
        let entries = read_list(file.as_bytes(), Limits::default());
        entries.map(|entry| entry.unwrap().outcome).collect()
    }

    #[test]
    fn items_are_read_and_styles_left_away() {
        let file = r##"[{"text":"<b>","time":1.5,"mode":2,"color":"#FFF","border":true},
            {"text":"x","time":0},{"text":"x","time":1,"mode":3},{"text":"x"},{"time":1}]"##;
        let read = read(file);
        let (item, changes) = read[0].as_ref().unwrap();
        assert_eq!((&*item.text, item.progress_ms, item.mode), ("<b>", 1_500, Mode::Bottom));
        assert_eq!(changes.iter().collect::<Vec<_>>(), [Change::Fields]);
        assert!(read[1].as_ref().is_ok_and(|(_, changes)| changes.is_empty()));
        assert_eq!(read[2..], [Err(Reason::Mode), Err(Reason::Fields), Err(Reason::Fields)]);
    }

    proptest! {
        #[test]
        fn what_this_player_shows_comes_back(items in prop::collection::vec(an_item(), 0..6)) {
            let mut file = Vec::new();
            put_head(&mut file);
            let mut want: Vec<Outcome> = Vec::new();
            for item in items {
                let mut bytes = Vec::new();
                prop_assert_eq!(for_xml(&item).is_some(), put_item(&mut bytes, &item));
                if bytes.is_empty() {
                    continue;
                }
                if !want.is_empty() {
                    file.extend_from_slice(SEPARATOR);
                }
                file.extend_from_slice(&bytes);
                let mode = if item.mode == Mode::Reverse { Mode::Scroll } else { item.mode };
                let Item { id, color, text, .. } = item;
                let progress_ms = item.progress_ms.max(1);
                let item = Item { id, progress_ms, mode, color, text, ..Item::default() };
                want.push(Ok((item, Changes::default())));
            }
            put_tail(&mut file);
            prop_assert_eq!(read(std::str::from_utf8(&file).unwrap()), want);
        }

        #[test]
        fn xml_for_this_player_shows_every_colour_with_six_digits(item in an_item()) {
            if let Some(item) = for_xml(&item) {
                let mut file = b"<i>".to_vec();
                xml::put_item(&mut file, &item);
                let entry = xml::read_list(&file[..], Limits::default()).next();
                let read = entry.unwrap().unwrap().outcome.unwrap().0;
                prop_assert_eq!(format!("{:x}", read.color).len(), 6);
                prop_assert!(read.progress_ms > 0 && read.mode.is_plain());
            }
        }
    }
}
