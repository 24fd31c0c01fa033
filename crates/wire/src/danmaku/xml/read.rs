//! Reads lists of comments, old and new, and those of recorders.
//!
//! `p` holds time, mode, size, colour, time of sending, pool, sender, id and,
//! in new files, weight; the shape that calls itself 2.0 has another order.
//! Recorders write times of sending in ms, and the sender's own number in
//! place of the hash.

use std::io::BufRead;

use super::parts::{attributes, decode};
use super::scan::{Element, Scanner};
use crate::danmaku::read::{Change, Draft, Entry, Limits, ReadError, Reason, entries};

/// Fields without which a comment cannot be shown: time, mode, size, colour.
const FIELDS_MIN: usize = 4;

/// Comments of a list in XML.
pub fn read_list<R: BufRead>(
    input: R,
    limits: Limits,
) -> impl Iterator<Item = Result<Entry, ReadError>> {
    let mut scanner = Scanner::new(input, "i", "d", limits.element_bytes_max);
    entries(move |number| {
        let Some(Element { line, version_2, parts }) = scanner.next()? else { return Ok(None) };
        let comment = parts.and_then(|(tag, text)| comment(tag, text, version_2));
        Ok(Some(Entry { line, number, outcome: comment.and_then(Draft::finish) }))
    })
}

fn comment(tag: &[u8], text: &[u8], version_2: bool) -> Result<Draft, Reason> {
    let mut draft = Draft::default();
    let mut p = None;
    let mut recorded = false;
    for (name, value) in attributes(tag) {
        match name {
            b"p" if p.is_none() => p = Some(decode(value, &mut draft.changes)),
            _ => {
                recorded |= name == b"user";
                draft.changed(Change::Fields);
            }
        }
    }
    let p = p.ok_or(Reason::Fields)?;
    let fields: Vec<&str> = p.split(',').collect();
    if version_2 && fields.len() >= 9 {
        read_version_2(&mut draft, &fields)?;
    } else {
        read_fields(&mut draft, &fields, recorded)?;
    }
    let text = decode(text, &mut draft.changes);
    draft.text(text);
    Ok(draft)
}

fn read_fields(draft: &mut Draft, fields: &[&str], recorded: bool) -> Result<(), Reason> {
    if fields.len() < FIELDS_MIN {
        return Err(Reason::Fields);
    }
    draft.progress_s(fields[0])?;
    draft.mode_number(fields[1])?;
    draft.size(fields[2]);
    draft.color(fields[3]);
    let field = |at: usize| fields.get(at).copied().unwrap_or("");
    let in_ms = draft.sent(field(4));
    draft.pool_number(field(5));
    match field(6) {
        // Recorders write 0 where the site hides the sender.
        "0" => {}
        number if recorded || in_ms => draft.sender_of(number),
        hash => draft.sender(hash),
    }
    draft.id(field(7));
    if let Some(weight) = fields.get(8) {
        draft.weight(weight);
    }
    if fields.len() > 9 {
        draft.changed(Change::Fields);
    }
    Ok(())
}

/// Id, a 0, time in ms, mode, size, colour, time of sending, pool, sender.
fn read_version_2(draft: &mut Draft, fields: &[&str]) -> Result<(), Reason> {
    draft.id(fields[0]);
    draft.progress_in(fields[2], 1)?;
    draft.mode_number(fields[3])?;
    draft.size(fields[4]);
    draft.color(fields[5]);
    draft.sent(fields[6]);
    draft.pool_number(fields[7]);
    draft.sender(fields[8]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::danmaku::read::{Changes, Report};
    use crate::danmaku::samples::an_item;
    use crate::danmaku::xml::{Head, put_head, put_item, put_tail};
    use crate::danmaku::{Attr, BadSeconds, Item, Mode, Pool, Sender};

    type Outcome = Result<(Item<'static>, Vec<Change>), Reason>;

    fn read(file: &str) -> Vec<Outcome> {
        let entries = read_list(file.as_bytes(), Limits::default());
        let told = |(item, changes): (Item<'static>, Changes)| (item, changes.iter().collect());
        entries.map(|entry| entry.unwrap().outcome.map(told)).collect()
    }

    /// The one comment of a list with this `<d>`.
    fn one(d: &str) -> Outcome {
        let mut all = read(&format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><i>{d}</i>"));
        assert_eq!(all.len(), 1, "{d}");
        all.remove(0)
    }

    fn saying(text: &str) -> Outcome {
        one(&format!("<d p=\"9,1,25,16777215,1420018447,0,0,7\">{text}</d>"))
    }

    #[test]
    fn new_and_old_rows_are_read() {
        let new =
            one("<d p=\"481.89400,5,18,255,1653692078,1,41ab9259,1031356419899013653,11\">a</d>");
        let want = Item {
            id: 1_031_356_419_899_013_653,
            progress_ms: 481_894,
            mode: Mode::Top,
            size: 18,
            color: 255,
            sent_ms: 1_653_692_078_000,
            pool: Pool::Subtitle,
            sender: Sender::new(0x41AB_9259),
            weight: 11,
            text: "a".into(),
            ..Item::default()
        };
        assert_eq!(new, Ok((want, vec![])));
        let old =
            one("<d p=\"8.2299995422363,2,25,0,1307940958,0,D41ab925,34031356\">a</d>").unwrap();
        assert_eq!((old.0.progress_ms, old.0.mode, old.0.color), (8_230, Mode::Scroll, 0));
        assert!(old.0.sender.guest);
        assert_eq!(old.1, [Change::Rounded, Change::Mode]);
    }

    #[test]
    fn the_shape_that_calls_itself_2_0_is_read() {
        let d = "<d p=\"34656419668557827,0,61486,1,25,16777215,1593244049,0,3dbb2ac3\">x</d>";
        for head in ["<?xml version=\"2.0\"?><i>", "<i><oid>5</oid>"] {
            let (item, changes) = read(&format!("{head}{d}</i>")).remove(0).unwrap();
            assert_eq!(item.id, 34_656_419_668_557_827);
            assert_eq!((item.progress_ms, item.sent_ms), (61_486, 1_593_244_049_000));
            assert_eq!((item.sender, changes), (Sender::new(0x3DBB_2AC3), vec![]));
        }
    }

    #[test]
    fn a_recorders_row_is_read_and_its_sender_hashed() {
        let d = "<d p=\"1.5,1,25,16777215,1484219280123,0,558830935,0\" user=\"a>b\" \
                 raw=\"[[0,1,25,&quot;x&quot;,&quot;&lt;&gt;&quot;>]]\">hi</d>";
        let (item, changes) = one(d).unwrap();
        assert_eq!((item.sent_ms, item.sender), (1_484_219_280_123, Sender::new(0xA3EF_E724)));
        assert_eq!(changes, [Change::Sender, Change::Fields]);
        assert_eq!(item.text, "hi");
        let hidden = "<d p=\"1.5,1,25,0,1484219280123,0,0,0\" user=\"a***\">hi</d>";
        assert_eq!(one(hidden).unwrap().0.sender, Sender::default());
    }

    #[test]
    fn a_control_character_costs_itself_and_nothing_behind_it() {
        let (item, changes) = saying("av1141873\u{16}").unwrap();
        assert_eq!((&*item.text, changes), ("av1141873", vec![Change::Text]));
        let (item, changes) = saying("\u{13}\u{1F415}").unwrap();
        assert_eq!((&*item.text, changes), ("\u{1F415}", vec![Change::Text]));
        assert_eq!(saying("a&#x16;b").unwrap().0.text, "ab");
        let d = "<d p=\"1,1,25,0,0,0,0,1\">";
        let all = read(&format!("<i>{d}a</d>{d}b\u{0}\u{b}</d>{d}c</d></i>"));
        let texts: Vec<_> = all.into_iter().map(|one| one.unwrap().0.text).collect();
        assert_eq!(texts, ["a", "b", "c"]);
    }

    #[test]
    fn markup_that_was_not_escaped_is_text() {
        for bare in ["……&……", "<唯亿一张>", "#include<stdio.h>"] {
            let (item, changes) = saying(bare).unwrap();
            assert_eq!((&*item.text, changes), (bare, vec![Change::Markup]));
        }
        assert_eq!(saying("<![CDATA[a<b]]>").unwrap().0.text, "a<b");
        assert_eq!(saying("&lt;&amp;amp;").unwrap(), saying("<![CDATA[<&amp;]]>").unwrap());
    }

    #[test]
    fn what_shows_nothing_is_dropped() {
        for text in ["", " ", "\u{200b}", "\u{3164}", "\u{202e}", "\u{301}", "\u{7}", "&#32;"] {
            assert_eq!(saying(text), Err(Reason::NoText), "{text:?}");
        }
        assert_eq!(one("<d p=\"9,1,25,16777215,1420018447,0,0,7\"/>"), Err(Reason::NoText));
        assert_eq!(saying("👨‍👩‍👧‍👦").unwrap().0.text, "👨‍👩‍👧‍👦");
    }

    #[test]
    fn an_unknown_pool_is_the_normal_one_and_an_unknown_mode_is_dropped() {
        let (item, changes) = one("<d p=\"1,1,25,0,0,3,0,1,1\">x</d>").unwrap();
        assert_eq!((item.pool, changes), (Pool::Normal, vec![Change::Pool]));
        assert_eq!(one("<d p=\"1,10,25,0,0,0,0,1\">x</d>"), Err(Reason::Mode));
    }

    #[test]
    fn rows_with_missing_fields_are_filled_or_dropped() {
        let (item, changes) = one("<d p=\"1.5,5,25,255\">x</d>").unwrap();
        assert_eq!((item.progress_ms, item.mode, item.id), (1_500, Mode::Top, 0));
        assert_eq!(changes, [Change::Pool, Change::Sent, Change::Id]);
        for d in ["<d p=\"1,1,25\">x</d>", "<d p=\"\">x</d>", "<d>x</d>", "<d q=\"1,1,25,0\">x</d>"]
        {
            assert!(matches!(one(d), Err(Reason::Fields)), "{d}");
        }
        assert_eq!(
            one("<d p=\"NaN,1,25,0,0,0,0,1\">x</d>"),
            Err(Reason::Progress(BadSeconds::NotANumber))
        );
        assert_eq!(one("<d p=\"-1,1,25,0,0,0,0,1\">x</d>").unwrap().1, [Change::Start]);
    }

    #[test]
    fn a_positioned_array_that_was_cut_is_closed() {
        let d = "<d p=\"1,7,25,0,0,0,0,1\">[0,0,\"1-1\",4.5,\"hi\",0,0,0,0,500,0,true,\"f\",1,\"M10,20L30,4</d>";
        let (item, changes) = one(d).unwrap();
        assert_eq!(changes, [Change::Positioned]);
        assert_eq!(crate::danmaku::positioned::inner_text(&item.text).unwrap(), "hi");
        assert_eq!(one("<d p=\"1,7,25,0,0,0,0,1\">[0,0,\"1-1\"</d>"), Err(Reason::Positioned));
    }

    #[test]
    fn rows_that_come_twice_are_both_read_alike() {
        let d = "<d p=\"9,1,25,16777215,1420018447,0,0,0\">qwe</d>";
        let both = read(&format!("<i>{d}{d}</i>"));
        assert_eq!(both.len(), 2);
        assert_eq!(both[0], both[1]);
    }

    #[test]
    fn ids_beyond_2_53_are_exact() {
        for id in [9_007_199_254_740_993, 1_886_117_449_095_932_416, i64::MIN] {
            let (item, _) = one(&format!("<d p=\"1,1,25,0,0,0,0,{id}\">x</d>")).unwrap();
            assert_eq!(item.id, id);
        }
    }

    #[test]
    fn a_second_root_ends_it_with_an_error() {
        let file = "<i><d p=\"1,1,25,0,0,0,0,1\">x</d></i><danuni/></i>";
        let entries: Vec<_> = read_list(file.as_bytes(), Limits::default()).collect();
        assert_eq!(entries.len(), 2);
        assert!(matches!(entries[1], Err(ReadError::Format { line: 1, .. })));
    }

    #[test]
    fn a_script_of_two_megabytes_is_one_comment_and_a_longer_one_is_dropped() {
        let script = "x".repeat(2_145_406);
        let d = format!("<d p=\"0,8,25,0,0,2,0,1\">{script}</d>");
        assert_eq!(one(&d).unwrap().0.text.len(), script.len());
        let limits = Limits { element_bytes_max: 1 << 20 };
        let file = format!("<i>{d}<d p=\"0,1,25,0,0,0,0,2\">after</d></i>");
        let mut report = Report::default();
        read_list(file.as_bytes(), limits).for_each(|entry| report.note(&entry.unwrap()));
        assert_eq!((report.kept, report.reasons()), (1, &[(Reason::TooLong, 1)][..]));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(items in prop::collection::vec(an_item(), 0..6)) {
            let mut file = Vec::new();
            put_head(&mut file, &Head { video: "v<1>", limit: 1000, closed: false });
            items.iter().for_each(|item| put_item(&mut file, item));
            put_tail(&mut file);
            let bare = |item: Item<'static>| Item { attr: Attr::default(), likes: 0, ..item };
            let want: Vec<Outcome> =
                items.into_iter().map(|item| Ok((bare(item), vec![]))).collect();
            prop_assert_eq!(read(std::str::from_utf8(&file).unwrap()), want);
        }

        #[test]
        fn what_is_read_is_written_as_it_was(text in r"(&|<|>|d|/|p=|\]|!\[CDATA\[|[a-c\x00-\x20哈]){0,20}") {
            let d = format!("<i><d p=\"1,1,25,0,0,0,0,1\">{text}</d></i>");
            for (item, _) in read(&d).into_iter().flatten() {
                let mut file = b"<i>".to_vec();
                put_item(&mut file, &item);
                put_tail(&mut file);
                prop_assert_eq!(read(std::str::from_utf8(&file).unwrap()), [Ok((item, vec![]))]);
            }
        }
    }
}
