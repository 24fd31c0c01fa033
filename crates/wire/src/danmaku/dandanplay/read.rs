//! Reads lists of these clients.

use std::io::BufRead;

use crate::danmaku::read::{
    Change, Draft, Entry, Limits, ReadError, Reason, Shape, Tree, read_elements,
};

/// Comments of `{"count","comments":[{"cid","p","m"}]}`.
pub fn read_list<R: BufRead>(
    input: R,
    limits: Limits,
) -> impl Iterator<Item = Result<Entry, ReadError>> {
    read_elements(input, limits, Shape { lists: &["comments"], arrays: false, parse })
}

/// `p` is time, mode, colour, sender.
fn parse(tree: &Tree, draft: &mut Draft) -> Result<(), Reason> {
    let fields: Vec<&str> = tree.text_of("p").ok_or(Reason::Fields)?.split(',').collect();
    let &[time, mode, color, ..] = &*fields else { return Err(Reason::Fields) };
    draft.progress_s(time)?;
    draft.mode_number(mode)?;
    draft.color(color);
    if let Some(sender) = fields.get(3) {
        draft.sender(sender);
    }
    if let Some(id) = tree.text_of("cid") {
        draft.id(id);
    }
    if fields.len() > 4 || tree.names().any(|name| !["cid", "p", "m"].contains(&name)) {
        draft.changed(Change::Fields);
    }
    draft.text(tree.text_of("m").ok_or(Reason::Fields)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::danmaku::dandanplay::{SEPARATOR, put_head, put_item, put_tail};
    use crate::danmaku::read::Changes;
    use crate::danmaku::samples::an_item;
    use crate::danmaku::{Item, Mode};

    type Outcome = Result<(Item<'static>, Changes), Reason>;

    fn read(file: &str) -> Vec<Outcome> {
        let entries = read_list(file.as_bytes(), Limits::default());
        entries.map(|entry| entry.unwrap().outcome).collect()
    }

    #[test]
    fn four_is_below_and_five_is_above() {
        let file = r#"{"count":3,"comments":[{"cid":7,"p":"1.25,4,255,[x]1","m":"a"},
            {"cid":8,"p":"1.25,5,255,a6216d9","m":"b"},{"p":"1,1","m":"c"}]}"#;
        let read = read(file);
        let (item, changes) = read[0].as_ref().unwrap();
        assert_eq!((item.mode, item.progress_ms, item.id), (Mode::Bottom, 1_250, 7));
        assert_eq!(changes.iter().collect::<Vec<_>>(), [Change::Sender]);
        assert_eq!(read[1].as_ref().unwrap().0.mode, Mode::Top);
        assert_eq!(read[2], Err(Reason::Fields));
    }

    proptest! {
        #[test]
        fn what_these_clients_show_comes_back(items in prop::collection::vec(an_item(), 0..6)) {
            let mut file = Vec::new();
            let mut want: Vec<Outcome> = Vec::new();
            put_head(&mut file, items.len() as u64);
            for item in items {
                let mut bytes = Vec::new();
                if !put_item(&mut bytes, &item) {
                    continue;
                }
                if !want.is_empty() {
                    file.extend_from_slice(SEPARATOR);
                }
                file.extend_from_slice(&bytes);
                let mode = if item.mode == Mode::Reverse { Mode::Scroll } else { item.mode };
                let Item { id, color, sender, text, .. } = item;
                let progress_ms = item.progress_ms / 10 * 10;
                let item = Item { id, progress_ms, mode, color, sender, text, ..Item::default() };
                want.push(Ok((item, Changes::default())));
            }
            put_tail(&mut file);
            prop_assert_eq!(read(std::str::from_utf8(&file).unwrap()), want);
        }
    }
}
