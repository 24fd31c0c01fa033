//! Answers, written straight to bytes.

/// A row of a user's history, as it is shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowJson<'a> {
    /// For point reads: whether there is such a row.
    pub found: Option<bool>,
    /// Its kind.
    pub kind: &'a str,
    /// Which object.
    pub id: &'a str,
    /// The part last named.
    pub part: Option<&'a str>,
    /// How far, in ms.
    pub position_ms: Option<u64>,
    /// Of how much, in ms.
    pub duration_ms: Option<u64>,
    /// 0 to 100.
    pub percent: Option<u8>,
    /// When, in ms since the epoch.
    pub event_ms: i64,
    /// The device last named.
    pub device: Option<&'a str>,
    /// The group last named, or the catalogue's.
    pub group: Option<&'a str>,
    /// Whether it was ever finished.
    pub finished: bool,
    /// How often.
    pub plays: u32,
    /// From the catalogue.
    pub item: Option<CatalogueJson<'a>>,
}

/// What the catalogue adds to a row.
#[derive(Clone, Copy, Debug, Default)]
pub struct CatalogueJson<'a> {
    /// Its title.
    pub title: Option<&'a str>,
    /// Address of a picture.
    pub cover: Option<&'a str>,
    /// Address of a page.
    pub url: Option<&'a str>,
    /// The work that it is of.
    pub work: Option<&'a str>,
    /// Whose it is.
    pub owner: Option<&'a str>,
    /// Its place in its group.
    pub order: Option<i64>,
    /// Its length by the catalogue, where the row says none, in ms.
    pub duration_ms: Option<u64>,
}

/// A mark that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedJson {
    /// Its place in the request, from 0.
    pub index: usize,
    /// What is wrong.
    pub fault: crate::Fault,
}

/// Adds a row as an object. `percent` stands as `null` where there is none;
/// other fields without a value are left out.
pub fn push_row(out: &mut Vec<u8>, row: &RowJson<'_>) {
    out.push(b'{');
    if let Some(found) = row.found {
        out.extend_from_slice(if found { b"\"found\":true," } else { b"\"found\":false," });
    }
    out.extend_from_slice(b"\"kind\":");
    push_string(out, row.kind);
    out.extend_from_slice(b",\"id\":");
    push_string(out, row.id);
    text(out, b",\"part\":", row.part);
    if row.found != Some(false) {
        number(out, b",\"position_ms\":", row.position_ms);
        number(out, b",\"duration_ms\":", row.duration_ms);
        out.extend_from_slice(b",\"percent\":");
        match row.percent {
            Some(percent) => push_u64(out, percent.into()),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"event_ms\":");
        push_i64(out, row.event_ms);
        text(out, b",\"device\":", row.device);
        text(out, b",\"group\":", row.group);
        out.extend_from_slice(if row.finished {
            b",\"finished\":true"
        } else {
            b",\"finished\":false"
        });
        out.extend_from_slice(b",\"plays\":");
        push_u64(out, row.plays.into());
        if let Some(item) = &row.item {
            push_item(out, item);
        }
    }
    out.push(b'}');
}

fn push_item(out: &mut Vec<u8>, item: &CatalogueJson<'_>) {
    text(out, b",\"title\":", item.title);
    text(out, b",\"cover\":", item.cover);
    text(out, b",\"url\":", item.url);
    text(out, b",\"work\":", item.work);
    text(out, b",\"owner\":", item.owner);
    if let Some(order) = item.order {
        out.extend_from_slice(b",\"order\":");
        push_i64(out, order);
    }
    number(out, b",\"item_duration_ms\":", item.duration_ms);
}

fn text(out: &mut Vec<u8>, name: &[u8], value: Option<&str>) {
    if let Some(value) = value {
        out.extend_from_slice(name);
        push_string(out, value);
    }
}

fn number(out: &mut Vec<u8>, name: &[u8], value: Option<u64>) {
    if let Some(value) = value {
        out.extend_from_slice(name);
        push_u64(out, value);
    }
}

/// Adds text as it is.
pub fn push_str(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Adds a string with its quotes and escapes.
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut plain = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let escape = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0..0x20 => b'u',
            _ => continue,
        };
        out.extend_from_slice(&bytes[plain..at]);
        out.extend_from_slice(&[b'\\', escape]);
        if escape == b'u' {
            let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
            out.extend_from_slice(&[b'0', b'0', high, low]);
        }
        plain = at + 1;
    }
    out.extend_from_slice(&bytes[plain..]);
    out.push(b'"');
}

/// Adds a number in decimal.
pub fn push_u64(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Adds a number in decimal.
pub fn push_i64(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    push_u64(out, number.unsigned_abs());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row<'a>() -> RowJson<'a> {
        RowJson { kind: "video", id: "7", event_ms: 1_796_000_000_000, ..RowJson::default() }
    }

    fn shown(row: &RowJson<'_>) -> String {
        let mut out = Vec::new();
        push_row(&mut out, row);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_row_reads_like_this() {
        let full = RowJson {
            part: Some("ep3"),
            position_ms: Some(61_500),
            duration_ms: Some(1_440_000),
            percent: Some(4),
            device: Some("tv-1"),
            group: Some("season-9"),
            plays: 2,
            finished: true,
            item: Some(CatalogueJson {
                title: Some("A \"B\""),
                order: Some(-1),
                ..Default::default()
            }),
            ..row()
        };
        let want = r#"{"kind":"video","id":"7","part":"ep3","position_ms":61500,"duration_ms":1440000,"percent":4,"event_ms":1796000000000,"device":"tv-1","group":"season-9","finished":true,"plays":2,"title":"A \"B\"","order":-1}"#;
        assert_eq!(shown(&full), want);
        assert_eq!(
            shown(&row()),
            r#"{"kind":"video","id":"7","percent":null,"event_ms":1796000000000,"finished":false,"plays":0}"#
        );
        let absent = RowJson { found: Some(false), ..row() };
        assert_eq!(shown(&absent), r#"{"found":false,"kind":"video","id":"7"}"#);
    }

    proptest! {
        #[test]
        fn strings_read_back_as_they_were(text in any::<String>()) {
            let mut out = Vec::new();
            push_string(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }

        #[test]
        fn numbers_read_as_rust_writes_them(unsigned in any::<u64>(), signed in any::<i64>()) {
            let mut out = Vec::new();
            push_u64(&mut out, unsigned);
            out.push(b' ');
            push_i64(&mut out, signed);
            prop_assert_eq!(String::from_utf8(out).unwrap(), format!("{unsigned} {signed}"));
        }
    }
}
