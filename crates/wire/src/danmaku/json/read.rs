//! Reads our own JSON: a list, or a comment a line.

use std::io::BufRead;

use crate::danmaku::read::{
    Change, Draft, Entry, Limits, ReadError, Reason, Shape, Source, Tree, entries, parse_color,
    read_element, read_elements,
};
use crate::danmaku::{Mode, Pool};

const FIELDS: [&str; 12] = [
    "id",
    "progress_ms",
    "mode",
    "size",
    "color",
    "sent_ms",
    "pool",
    "sender",
    "weight",
    "attr",
    "likes",
    "text",
];

/// Comments of `{"items":[…]}` or `[…]`.
pub fn read_list<R: BufRead>(
    input: R,
    limits: Limits,
) -> impl Iterator<Item = Result<Entry, ReadError>> {
    read_elements(input, limits, Shape { lists: &["items"], arrays: false, parse })
}

/// Comments of a file that has one a line. Empty lines are passed over.
pub fn read_lines<R: BufRead>(
    input: R,
    limits: Limits,
) -> impl Iterator<Item = Result<Entry, ReadError>> {
    let mut source = Source::new(input);
    let mut bytes = Vec::new();
    entries(move |number| {
        source.skip_blank()?;
        let line = source.line();
        if source.peek()?.is_none() {
            return Ok(None);
        }
        bytes.clear();
        let (_, fits) = source.take_through(b'\n', &mut bytes, limits.element_bytes_max)?;
        let outcome = if fits { read_element(&bytes, parse) } else { Err(Reason::TooLong) };
        Ok(Some(Entry { line, number, outcome }))
    })
}

/// A comment; only its text and its time have to be there.
fn parse(tree: &Tree, draft: &mut Draft) -> Result<(), Reason> {
    draft.text(tree.text_of("text").ok_or(Reason::Fields)?);
    draft.progress_in(tree.text_of("progress_ms").ok_or(Reason::Fields)?, 1)?;
    if let Some(mode) = tree.text_of("mode") {
        match Mode::from_name(mode) {
            Some(mode) => draft.item.mode = mode,
            None => draft.mode_number(mode)?,
        }
    }
    if let Some(pool) = tree.text_of("pool") {
        match Pool::from_name(pool) {
            Some(pool) => draft.item.pool = pool,
            None => draft.pool_number(pool),
        }
    }
    if let Some(color) = tree.text_of("color") {
        match parse_color(color) {
            Some(color) => draft.item.color = color,
            None => draft.color(color),
        }
    }
    if let Some(id) = tree.text_of("id") {
        draft.id(id);
    }
    if let Some(size) = tree.text_of("size") {
        draft.size(size);
    }
    if let Some(sender) = tree.text_of("sender") {
        draft.sender(sender);
    }
    if let Some(weight) = tree.text_of("weight") {
        draft.weight(weight);
    }
    match tree.text_of("sent_ms").map(str::parse) {
        None => {}
        Some(Ok(sent_ms)) => draft.item.sent_ms = sent_ms,
        Some(Err(_)) => draft.changed(Change::Sent),
    }
    let number = |name: &str| tree.text_of(name).map(|text| text.parse::<u32>().ok());
    for (name, field) in [("attr", &mut draft.item.attr.0), ("likes", &mut draft.item.likes)] {
        match number(name) {
            None => {}
            Some(Some(number)) => *field = number,
            Some(None) => draft.changes.add(Change::Fields),
        }
    }
    if tree.names().any(|name| !FIELDS.contains(&name)) {
        draft.changed(Change::Fields);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::danmaku::json::{SEPARATOR, put_head, put_item, put_tail};
    use crate::danmaku::samples::an_item;
    use crate::danmaku::{Item, read::Changes};

    type Outcome = Result<(Item<'static>, Changes), Reason>;

    fn lines(file: &str) -> Vec<Outcome> {
        let read = read_lines(file.as_bytes(), Limits::default());
        read.map(|entry| entry.unwrap().outcome).collect()
    }

    #[test]
    fn a_text_and_a_time_are_enough() {
        let read = lines("\n{\"text\":\"a\",\"progress_ms\":5}\n\n{\"text\":\"b\"}\nno\n");
        let (item, changes) = read[0].as_ref().unwrap();
        let want = Item { progress_ms: 5, text: "a".into(), ..Item::default() };
        assert_eq!((item, changes.is_empty()), (&want, true));
        assert_eq!(read[1..], [Err(Reason::Fields), Err(Reason::Syntax)]);
    }

    #[test]
    fn names_may_be_numbers_and_what_is_unknown_is_said() {
        let line = r#"{"text":"a","progress_ms":"5","mode":2,"pool":1,"color":255,"id":"9007199254740993","likes":-1,"more":1}"#;
        let (item, changes) = lines(line).remove(0).unwrap();
        assert_eq!((item.mode, item.pool, item.color), (Mode::Scroll, Pool::Subtitle, 255));
        assert_eq!(item.id, 9_007_199_254_740_993);
        assert_eq!(changes.iter().collect::<Vec<_>>(), [Change::Mode, Change::Fields]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(items in prop::collection::vec(an_item(), 0..6)) {
            let mut list = Vec::new();
            let mut file = Vec::new();
            put_head(&mut list);
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    list.extend_from_slice(SEPARATOR);
                }
                put_item(&mut list, item);
                put_item(&mut file, item);
                file.push(b'\n');
            }
            put_tail(&mut list);
            let want: Vec<Outcome> =
                items.into_iter().map(|item| Ok((item, Changes::default()))).collect();
            prop_assert_eq!(&lines(std::str::from_utf8(&file).unwrap()), &want);
            let read = read_list(&list[..], Limits::default());
            prop_assert_eq!(read.map(|entry| entry.unwrap().outcome).collect::<Vec<_>>(), want);
        }
    }
}
