//! Reads `[{"chat":{…}}]`, flat lists of the same, and the newer shape, with
//! `body`, `commands`, `vposMs` and `postedAt`, wherever its lists lie.

use std::io::BufRead;

use super::{Facts, read_facts};
use crate::danmaku::read::{
    Change, Draft, Entry, Limits, ReadError, Reason, Shape, Tree, read_elements,
};

/// Comments of a list.
pub fn read_list<R: BufRead>(
    input: R,
    limits: Limits,
) -> impl Iterator<Item = Result<Entry, ReadError>> {
    read_elements(input, limits, Shape { lists: &["comments"], arrays: false, parse })
}

fn parse(tree: &Tree, draft: &mut Draft) -> Result<(), Reason> {
    // Threads and other facts stand in the same list as comments.
    let chat = match (tree.get("chat"), tree.names().count()) {
        (Some(chat), _) => chat,
        (None, 1) => return Err(Reason::Fields),
        (None, _) => tree,
    };
    let text = |names: [&str; 2]| names.into_iter().find_map(|name| chat.text_of(name));
    let mut commands: Vec<&str> = Vec::new();
    for list in ["mail", "commands"].into_iter().filter_map(|name| chat.get(name)) {
        commands.extend(list.text().unwrap_or_default().split_whitespace());
        commands.extend(list.values().iter().filter_map(Tree::text));
    }
    let facts = Facts {
        vpos: chat.text_of("vpos"),
        vpos_ms: chat.text_of("vposMs"),
        commands,
        date: chat.text_of("date"),
        date_usec: chat.text_of("date_usec"),
        user: text(["user_id", "userId"]),
        id: text(["id", "no"]).filter(|id| id.parse::<i64>().is_ok()).or(chat.text_of("no")),
        deleted: chat.text_of("deleted").is_some_and(|deleted| deleted != "0"),
    };
    read_facts(draft, &facts)?;
    if let Some(posted) = chat.text_of("postedAt") {
        match posted.parse::<jiff::Timestamp>() {
            Ok(posted) => draft.item.sent_ms = posted.as_millisecond(),
            Err(_) => draft.changed(Change::Sent),
        }
    }
    draft.text(chat.text_of("body").or_else(|| text(["content", "text"])).ok_or(Reason::Fields)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::danmaku::read::Changes;
    use crate::danmaku::{Item, Mode};

    type Outcome = Result<(Item<'static>, Changes), Reason>;

    fn read(file: &str) -> Vec<Outcome> {
        let entries = read_list(file.as_bytes(), Limits::default());
        entries.map(|entry| entry.unwrap().outcome).collect()
    }

    #[test]
    fn every_generation_is_read() {
        for file in [
            r##"[{"ping":{"content":"rs:0"}},{"chat":{"no":7,"vpos":6150,"date":1400000000,"date_usec":250000,"mail":"ue #0000ff","content":"a"}}]"##,
            r##"[{"id":7,"vpos":6150,"content":"a","date":1400000000,"date_usec":250000,"owner":false,"mail":["ue","blue"]}]"##,
            r##"{"meta":{"status":200},"data":{"threads":[{"id":"1","fork":"main","comments":[{"id":"7","no":1,"vposMs":61500,"body":"a","commands":["ue","blue"],"postedAt":"2014-05-13T16:53:20.25Z"}]}]}}"##,
        ] {
            let read = read(file);
            let (item, _) = read.last().unwrap().as_ref().unwrap();
            let want = Item {
                id: 7,
                progress_ms: 61_500,
                mode: Mode::Top,
                color: 255,
                sent_ms: 1_400_000_000_250,
                text: "a".into(),
                ..Item::default()
            };
            assert_eq!(*item, want, "{file}");
        }
    }

    #[test]
    fn what_is_no_comment_or_deleted_is_dropped() {
        let file = r#"[{"thread":{"x":1}},{"chat":{"vpos":1,"deleted":1}},{"chat":{"vpos":1}},{"id":"x","no":3,"vposMs":1,"body":"b","postedAt":"?"}]"#;
        let read = read(file);
        assert_eq!(read[..3], [Err(Reason::Fields), Err(Reason::Hidden), Err(Reason::Fields)]);
        let (item, changes) = read[3].as_ref().unwrap();
        assert_eq!((item.id, item.sent_ms), (3, 0));
        assert_eq!(changes.iter().collect::<Vec<_>>(), [Change::Sent]);
    }
}
