//! Reads the files of AcFun: `[{"c":"time,colour,mode,size,user,sent,id","m"}]`,
//! also where such lists lie in a list.
//!
//! A positioned comment is an object in `m`; it becomes an array with its
//! place, its opacity, its life and its text. What it does afterwards is left
//! away.

use std::io::BufRead;

use super::Mode;
use super::read::{Change, Draft, Entry, Limits, ReadError, Reason, Shape, Tree, read_elements};
use crate::json::push_string;

/// Thousandths of the screen, in which places are counted.
const SCREEN: f64 = 1000.0;

/// Comments of a list.
pub fn read_list<R: BufRead>(
    input: R,
    limits: Limits,
) -> impl Iterator<Item = Result<Entry, ReadError>> {
    read_elements(input, limits, Shape { lists: &["comments"], arrays: false, parse })
}

fn parse(tree: &Tree, draft: &mut Draft) -> Result<(), Reason> {
    let fields: Vec<&str> = tree.text_of("c").ok_or(Reason::Fields)?.split(',').collect();
    let &[time, color, mode, size, ..] = &*fields else { return Err(Reason::Fields) };
    let text = tree.text_of("m").ok_or(Reason::Fields)?;
    draft.progress_s(time)?;
    draft.color(color);
    draft.mode_number(mode)?;
    draft.size(size);
    draft.sender_of(fields.get(4).unwrap_or(&""));
    if let Some(sent) = fields.get(5) {
        draft.sent(sent);
    }
    if let Some(id) = fields.get(6) {
        draft.id(id);
    }
    if draft.item.mode == Mode::Positioned {
        draft.changed(Change::Positioned);
        draft.text(positioned(text).ok_or(Reason::Positioned)?);
    } else {
        draft.text(text);
    }
    Ok(())
}

/// The array of an object's place (`p`), opacity (`a`), life (`l`) and text
/// (`n`).
fn positioned(text: &str) -> Option<String> {
    let (tree, _) = Tree::parse(text).ok()?;
    let number = |tree: Option<&Tree>, usual: f64| match tree {
        None => Some(usual),
        Some(tree) => tree.text()?.parse().ok().filter(|number: &f64| number.is_finite()),
    };
    let place = tree.get("p");
    let part = |name: &str| {
        let place = number(place.and_then(|place| place.get(name)), 0.0)?;
        Some((place / SCREEN).clamp(0.0, 1.0))
    };
    let (x, y) = (part("x")?, part("y")?);
    let opacity = number(tree.get("a"), 1.0)?.clamp(0.0, 1.0);
    let life = number(tree.get("l"), 3.0)?.clamp(0.0, 3600.0);
    let mut array = format!("[{x:.4},{y:.4},\"{opacity}-{opacity}\",{life},").into_bytes();
    push_string(&mut array, tree.text_of("n")?);
    array.extend_from_slice(b",0,0]");
    String::from_utf8(array).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::danmaku::positioned::{Place, parse as parse_positioned};
    use crate::danmaku::read::Changes;
    use crate::danmaku::{Item, Sender};

    type Outcome = Result<(Item<'static>, Changes), Reason>;

    fn read(file: &str) -> Vec<Outcome> {
        let entries = read_list(file.as_bytes(), Limits::default());
        entries.map(|entry| entry.unwrap().outcome).collect()
    }

    #[test]
    fn lists_and_lists_of_lists_are_read() {
        let chat = r#"{"c":"61.5,255,5,18,2,1400000000,7","m":"a\rb"}"#;
        for file in [format!("[{chat}]"), format!("[[],[],[{chat}]]")] {
            let (item, changes) = read(&file).remove(0).unwrap();
            let want = Item {
                id: 7,
                progress_ms: 61_500,
                mode: Mode::Top,
                size: 18,
                color: 255,
                sent_ms: 1_400_000_000_000,
                sender: Sender::new(0x1AD5_BE0D),
                text: "a\nb".into(),
                ..Item::default()
            };
            assert_eq!(item, want);
            assert_eq!(changes.iter().collect::<Vec<_>>(), [Change::Text, Change::Sender]);
        }
    }

    #[test]
    fn a_positioned_object_becomes_an_array() {
        let m = r#"{\"n\":\"x\\\"y\",\"p\":{\"x\":500,\"y\":250},\"l\":4.5,\"a\":0.5,\"z\":[{}]}"#;
        let file =
            format!(r#"[{{"c":"1,255,7,25,2,0","m":"{m}"}},{{"c":"1,255,7,25,2,0","m":"x"}}]"#);
        let read = read(&file);
        let (item, changes) = read[0].as_ref().unwrap();
        assert!(changes.has(Change::Positioned));
        let array = parse_positioned(&item.text).unwrap();
        assert_eq!(array.from, (Place::Part(0.5), Place::Part(0.25)));
        assert_eq!((array.opacity, array.life_ms, &*array.text), ((0.5, 0.5), 4_500, "x\"y"));
        assert_eq!(read[1], Err(Reason::Positioned));
    }
}
