//! Readers of comments: whatever they take out of a file is written and read
//! back as it is.

use crate::danmaku::read::{Entry, FileFormat, Limits, ReadError, inflated, open, sniff};
use crate::danmaku::{Attr, Form, Item, ass, dplayer, json, losses, positioned, proto, smart, xml};

/// A list in XML.
pub fn xml(bytes: &[u8]) {
    read_all(FileFormat::Xml, bytes);
}

/// A segment in protobuf.
pub fn protobuf(bytes: &[u8]) {
    read_all(FileFormat::Protobuf, bytes);
}

/// Our own JSON, as a list and as lines.
pub fn json(bytes: &[u8]) {
    read_all(FileFormat::Json, bytes);
    read_all(FileFormat::Ndjson, bytes);
}

/// A list of DPlayer, and one comment that it sends.
pub fn dplayer(bytes: &[u8]) {
    read_all(FileFormat::Dplayer, bytes);
    let _ = dplayer::read_post(bytes);
}

/// A list of artplayer-plugin-danmuku.
pub fn artplayer(bytes: &[u8]) {
    read_all(FileFormat::Artplayer, bytes);
}

/// A list of dandanplay's clients.
pub fn dandanplay(bytes: &[u8]) {
    read_all(FileFormat::Dandanplay, bytes);
}

/// A packet of Niconico in XML.
pub fn niconico_xml(bytes: &[u8]) {
    read_all(FileFormat::NiconicoXml, bytes);
}

/// A list of Niconico in JSON.
pub fn niconico_json(bytes: &[u8]) {
    read_all(FileFormat::NiconicoJson, bytes);
}

/// A list of AcFun.
pub fn acfun(bytes: &[u8]) {
    read_all(FileFormat::Acfun, bytes);
}

/// Any file, packed or not.
pub fn packed(bytes: &[u8]) {
    let Ok(mut input) = inflated(bytes) else { return };
    let Ok(head) = input.fill_buf() else { return };
    if let Some(format) = sniff(head) {
        // What a few bytes unpack to may be long.
        let entries = open(format, input, Limits { element_bytes_max: 1 << 16 });
        let _ = entries.take(1_000).count();
    }
}

/// The text of a positioned comment.
pub fn positioned(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(repaired) = positioned::repair(text) {
        assert!(positioned::parse(&repaired).is_some(), "what was repaired is not read");
        assert_eq!(positioned::repair(&repaired).as_deref(), Some(&*repaired));
    }
}

/// A viewer's flags, as JSON and in a frame.
pub fn flags(bytes: &[u8]) {
    if let Ok(flags) = smart::Flags::from_json(bytes, 100) {
        let mut out = Vec::new();
        flags.put_json(&mut out);
        assert_eq!(smart::Flags::from_json(&out, 100), Ok(flags));
    }
    if let Ok((flags, rest)) = smart::read_frame(bytes) {
        let mut out = Vec::new();
        smart::put_frame_head(&mut out, flags);
        out.extend_from_slice(rest);
        assert_eq!(out, bytes);
    }
}

fn read_all(format: FileFormat, bytes: &[u8]) {
    let mut script = ass::Script::new(ass::Options::default());
    for entry in open(format, bytes, Limits::default()) {
        let Ok(Entry { outcome: Ok((item, _)), .. }) = entry else { continue };
        let whole_seconds = item.sent_ms.div_euclid(1000) * 1000;
        let carried = Item { sent_ms: whole_seconds, ..item.clone() };
        let bare = Item { attr: Attr::default(), likes: 0, ..carried.clone() };
        let mut out = b"<i>".to_vec();
        xml::put_item(&mut out, &item);
        xml::put_tail(&mut out);
        comes_back(FileFormat::Xml, &out, &bare);
        out.clear();
        proto::put_item(&mut out, &item);
        comes_back(FileFormat::Protobuf, &out, &carried);
        out.clear();
        json::put_item(&mut out, &item);
        comes_back(FileFormat::Ndjson, &out, &item);
        out.clear();
        let shown = script.put_item(&mut out, &item);
        assert_eq!(shown, losses(Form::Ass, &item).first() != Some(&crate::danmaku::Loss::Comment));
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), usize::from(shown));
    }
}

fn comes_back(format: FileFormat, bytes: &[u8], item: &Item<'_>) {
    let read: Result<Vec<Entry>, ReadError> = open(format, bytes, Limits::default()).collect();
    let read = read.expect("what is written is of its format");
    let [Entry { outcome: Ok((back, changes)), .. }] = &*read else {
        panic!("{item:?} is read as {read:?}");
    };
    assert_eq!(back, item);
    assert!(changes.is_empty(), "{item:?} is changed: {changes:?}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    fn all(bytes: &[u8]) {
        super::xml(bytes);
        super::protobuf(bytes);
        super::json(bytes);
        super::dplayer(bytes);
        super::artplayer(bytes);
        super::dandanplay(bytes);
        super::niconico_xml(bytes);
        super::niconico_json(bytes);
        super::acfun(bytes);
        super::packed(bytes);
        super::positioned(bytes);
        super::flags(bytes);
    }

    proptest! {
        #[test]
        fn no_reader_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            all(&bytes);
        }

        #[test]
        fn no_text_near_the_formats_makes_a_reader_panic(
            text in r#"(<i>|<packet>|\[|\{)(<d p="|<chat vpos="|">|</d>|</i>|<!\[CDATA\[|\]\]>|&#x?|;|\{|\}|\[|\]|"(text|time|p|m|c|cid|comments|data|chat|vpos|content|progress_ms)":|"[a-z0-9,.\\u/-]{0,16}"|[0-9.,e-]{1,9}|,|null|哈){0,24}"#,
        ) {
            all(text.as_bytes());
        }
    }
}
