//! Reads `<packet><chat vpos="…" mail="…">text</chat></packet>`.

use std::io::BufRead;

use super::{Facts, read_facts};
use crate::danmaku::read::{Draft, Entry, Limits, ReadError, Reason, entries};
use crate::danmaku::xml::parts::{attributes, decode};
use crate::danmaku::xml::scan::{Element, Scanner};

/// Comments of a packet.
pub fn read_packet<R: BufRead>(
    input: R,
    limits: Limits,
) -> impl Iterator<Item = Result<Entry, ReadError>> {
    let mut scanner = Scanner::new(input, "packet", "chat", limits.element_bytes_max);
    entries(move |number| {
        let Some(Element { line, parts, .. }) = scanner.next()? else { return Ok(None) };
        let outcome = parts.and_then(|(tag, text)| comment(tag, text)).and_then(Draft::finish);
        Ok(Some(Entry { line, number, outcome }))
    })
}

fn comment(tag: &[u8], text: &[u8]) -> Result<Draft, Reason> {
    let mut draft = Draft::default();
    let attributes: Vec<(&[u8], String)> =
        attributes(tag).map(|(name, value)| (name, decode(value, &mut draft.changes))).collect();
    let value = |wanted: &str| {
        let found = attributes.iter().find(|(name, _)| *name == wanted.as_bytes());
        found.map(|(_, value)| value.as_str())
    };
    let facts = Facts {
        vpos: value("vpos"),
        vpos_ms: None,
        commands: value("mail").unwrap_or_default().split_whitespace().collect(),
        date: value("date"),
        date_usec: value("date_usec"),
        user: value("user_id"),
        id: value("no"),
        deleted: value("deleted").is_some_and(|deleted| deleted != "0"),
    };
    read_facts(&mut draft, &facts)?;
    let text = decode(text, &mut draft.changes);
    draft.text(text);
    Ok(draft)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::danmaku::read::{Change, Changes};
    use crate::danmaku::{Item, Mode, Sender};

    type Outcome = Result<(Item<'static>, Changes), Reason>;

    fn one(chat: &str) -> Outcome {
        let file = format!("<?xml version=\"1.0\"?><packet><thread/>{chat}</packet>");
        let mut entries = read_packet(file.as_bytes(), Limits::default());
        entries.next().unwrap().unwrap().outcome
    }

    #[test]
    fn commands_say_where_and_how() {
        let chat = "<chat thread=\"1\" no=\"7\" vpos=\"6150\" date=\"1400000000\" date_usec=\"250999\" \
                    mail=\"184 ue big RED mincho\" user_id=\"2\" premium=\"1\">a&amp;b</chat>";
        let (item, changes) = one(chat).unwrap();
        let want = Item {
            id: 7,
            progress_ms: 61_500,
            mode: Mode::Top,
            size: 36,
            color: 0xFF0000,
            sent_ms: 1_400_000_000_250,
            sender: Sender::new(0x1AD5_BE0D),
            text: "a&b".into(),
            ..Item::default()
        };
        assert_eq!(item, want);
        assert_eq!(changes.iter().collect::<Vec<_>>(), [Change::Sender, Change::Fields]);
        let (item, _) = one("<chat vpos=\"-10\" mail=\"shita #00ff00\">x</chat>").unwrap();
        assert_eq!((item.progress_ms, item.mode, item.color), (0, Mode::Bottom, 0x00FF00));
    }

    #[test]
    fn deleted_and_invisible_comments_are_dropped() {
        assert_eq!(one("<chat vpos=\"1\" deleted=\"1\"/>"), Err(Reason::Hidden));
        assert_eq!(one("<chat vpos=\"1\" mail=\"invisible\">x</chat>"), Err(Reason::Hidden));
        assert_eq!(one("<chat>x</chat>"), Err(Reason::Fields));
    }
}
