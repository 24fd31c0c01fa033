//! Comments for tests.

use proptest::prelude::*;

use super::{Attr, Item, Mode, Pool, Sender, clean, is_invisible};

/// One with every field set.
pub(crate) fn full_item() -> Item<'static> {
    Item {
        id: 1_886_117_449_095_932_416,
        progress_ms: 490_191,
        mode: Mode::Scroll,
        size: 25,
        color: 0x00FF_FFFF,
        sent_ms: 1_796_000_000_000,
        pool: Pool::Normal,
        sender: Sender::new(0x0A62_16D9),
        weight: 11,
        attr: Attr::PROTECTED.with(Attr::MANY_LIKES, true),
        likes: 7,
        text: "#include<stdio.h> & \"'".into(),
    }
}

/// What a comment may say: clean, and not invisible.
pub(crate) fn a_text() -> impl Strategy<Value = String> {
    let words = prop_oneof![
        any::<String>(),
        "[a-z<>&\"'/\\\\;,#{}\\[\\]]{1,12}",
        Just("哈哈哈\u{1F415}👨‍👩‍👧‍👦".to_owned()),
        Just(" &amp;#7; ]]> </d> ".to_owned()),
    ];
    words.prop_filter_map("clean and visible", |text| {
        let text = clean(&text).into_owned();
        (!is_invisible(&text)).then_some(text)
    })
}

/// Any comment that every format can carry, but for what XML lacks.
pub(crate) fn an_item() -> impl Strategy<Value = Item<'static>> {
    let kind = prop_oneof![
        4 => (prop::sample::select(&Mode::ALL[..4]), 0..2_usize, a_text()),
        1 => (Just(Mode::Positioned), 0..2_usize, a_text().prop_map(|text| positioned(&text))),
        1 => (prop::sample::select(&Mode::ALL[5..]), Just(2), a_text()),
    ];
    let numbers = (any::<i64>(), any::<u32>(), 1..=255_u8, 0..=0x00FF_FFFF_u32);
    let facts = (-1_000_000_000..9_000_000_000_i64, any::<u32>(), any::<bool>(), 0..=11_u8);
    (kind, numbers, facts, any::<u32>(), any::<u32>()).prop_map(
        |(
            (mode, pool, text),
            (id, progress, size, color),
            (sent, hash, guest, weight),
            attr,
            likes,
        )| {
            Item {
                id,
                progress_ms: progress >> 1,
                mode,
                size,
                color,
                sent_ms: sent * 1000,
                pool: Pool::ALL[pool],
                sender: Sender { hash, guest },
                weight,
                attr: Attr(attr),
                likes,
                text: text.into(),
            }
        },
    )
}

/// A positioned text that says `text`.
pub(crate) fn positioned(text: &str) -> String {
    format!("[0.5,0.25,\"1-0.8\",4.5,{},0,0]", serde_json::Value::from(text))
}
