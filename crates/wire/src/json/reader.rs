//! A pull reader of JSON that keeps numbers as they were written.
//!
//! Values come one at a time and borrow from the text; only a string with
//! escapes is copied. At most `DEPTH_MAX` arrays and objects deep.

use std::borrow::Cow;
use std::fmt;

use crate::Fault;

/// Arrays and objects within each other, at most.
const DEPTH_MAX: u32 = 32;

/// A body that is no JSON: where, and what is wrong there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syntax {
    /// In bytes from the start of the text.
    pub at: usize,
    /// What is wrong there.
    pub what: &'static str,
}

impl fmt::Display for Syntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no JSON: {} at byte {}", self.what, self.at)
    }
}

impl From<Syntax> for Fault {
    fn from(syntax: Syntax) -> Self {
        Self::invalid(format!("body: {syntax}"))
    }
}

/// A string of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// With its escapes resolved.
    pub text: Cow<'a, str>,
    /// Half a surrogate pair stood in it, and stands as U+FFFD in `text`.
    pub broken: bool,
}

/// A value of the text. Of arrays and objects only that they were there: they
/// have been passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it is written.
    Number(&'a str),
    /// A string.
    String(Text<'a>),
    /// An array.
    Array,
    /// An object.
    Object,
}

/// Reads one JSON text from front to back.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl<'a> Reader<'a> {
    /// At the front of `body`, which must be UTF-8.
    pub fn new(body: &'a [u8]) -> Result<Self, Syntax> {
        let text = std::str::from_utf8(body)
            .map_err(|bad| Syntax { at: bad.valid_up_to(), what: "bytes that are not UTF-8" })?;
        Ok(Self { text, at: 0, depth: 0 })
    }

    /// The first byte of the next value, `,`, `:`, `]` or `}`; `None` at the
    /// end.
    pub fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                _ => return Some(*byte),
            }
        }
        None
    }

    /// Nothing but white space may follow.
    pub fn end(&mut self) -> Result<(), Syntax> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.fail("something after the value"),
        }
    }

    /// The next value, whatever it is.
    pub fn value(&mut self) -> Result<Value<'a>, Syntax> {
        match self.peek() {
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => Ok(Value::Number(self.number()?)),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'[') => {
                self.array(|reader| reader.value().map(drop))?;
                Ok(Value::Array)
            }
            Some(b'{') => {
                self.object(|_, reader| reader.value().map(drop))?;
                Ok(Value::Object)
            }
            Some(_) => self.fail("no value"),
            None => self.fail("the end"),
        }
    }

    /// An array: `each` must read exactly one value.
    pub fn array(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), Syntax>,
    ) -> Result<(), Syntax> {
        self.open(b'[')?;
        if !self.take(b']') {
            loop {
                each(self)?;
                if self.take(b']') {
                    break;
                }
                self.expect(b',', "no ',' or ']'")?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// An object: `each` gets a name and must read exactly one value.
    pub fn object(
        &mut self,
        mut each: impl FnMut(Text<'a>, &mut Self) -> Result<(), Syntax>,
    ) -> Result<(), Syntax> {
        self.open(b'{')?;
        if !self.take(b'}') {
            loop {
                if self.peek() != Some(b'"') {
                    return self.fail("no field name");
                }
                let name = self.string()?;
                self.expect(b':', "no ':'")?;
                each(name, self)?;
                if self.take(b'}') {
                    break;
                }
                self.expect(b',', "no ',' or '}'")?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn open(&mut self, bracket: u8) -> Result<(), Syntax> {
        self.expect(bracket, if bracket == b'[' { "no array" } else { "no object" })?;
        self.depth += 1;
        if self.depth > DEPTH_MAX { self.fail("nested too deep") } else { Ok(()) }
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Syntax> {
        if self.take(byte) { Ok(()) } else { self.fail(what) }
    }

    fn fail<T>(&self, what: &'static str) -> Result<T, Syntax> {
        Err(Syntax { at: self.at, what })
    }

    fn word(&mut self, word: &str, value: Value<'a>) -> Result<Value<'a>, Syntax> {
        if !self.text[self.at..].starts_with(word) {
            return self.fail("no value");
        }
        self.at += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Result<&'a str, Syntax> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let digits = |at: &mut usize| {
            let from = *at;
            while bytes.get(*at).is_some_and(u8::is_ascii_digit) {
                *at += 1;
            }
            *at - from
        };
        if bytes[self.at] == b'-' {
            self.at += 1;
        }
        let zero = bytes.get(self.at) == Some(&b'0');
        let whole = digits(&mut self.at);
        if whole == 0 || (zero && whole > 1) {
            return self.fail("no number");
        }
        if bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            if digits(&mut self.at) == 0 {
                return self.fail("no number");
            }
        }
        if matches!(bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if digits(&mut self.at) == 0 {
                return self.fail("no number");
            }
        }
        Ok(&self.text[start..self.at])
    }

    fn string(&mut self) -> Result<Text<'a>, Syntax> {
        self.at += 1;
        let start = self.at;
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b'"' => {
                    let text = Cow::Borrowed(&self.text[start..self.at]);
                    self.at += 1;
                    return Ok(Text { text, broken: false });
                }
                b'\\' => return self.escaped(start),
                0..0x20 => return self.fail("a control character in a string"),
                _ => self.at += 1,
            }
        }
        self.fail("a string without an end")
    }

    /// The rest of a string that began at `start` and has its first escape
    /// here.
    #[cold]
    fn escaped(&mut self, start: usize) -> Result<Text<'a>, Syntax> {
        let bytes = self.text.as_bytes();
        let mut text = String::from(&self.text[start..self.at]);
        let mut broken = false;
        loop {
            let plain = self.at;
            while bytes.get(self.at).is_some_and(|b| !matches!(b, b'"' | b'\\' | 0..0x20)) {
                self.at += 1;
            }
            text.push_str(&self.text[plain..self.at]);
            match bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => self.escape(&mut text, &mut broken)?,
                Some(_) => return self.fail("a control character in a string"),
                None => return self.fail("a string without an end"),
            }
        }
        self.at += 1;
        Ok(Text { text: Cow::Owned(text), broken })
    }

    fn escape(&mut self, text: &mut String, broken: &mut bool) -> Result<(), Syntax> {
        let plain = match self.text.as_bytes().get(self.at + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(text, broken),
            _ => return self.fail("an unknown escape"),
        };
        text.push(plain);
        self.at += 2;
        Ok(())
    }

    fn unicode(&mut self, text: &mut String, broken: &mut bool) -> Result<(), Syntax> {
        let Some(first) = self.hex(self.at) else {
            return self.fail("an unknown escape");
        };
        self.at += 6;
        let both = match first {
            0xd800..0xdc00 => match self.hex(self.at) {
                Some(second @ 0xdc00..0xe000) => {
                    self.at += 6;
                    char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
                }
                _ => None,
            },
            other => char::from_u32(other),
        };
        *broken |= both.is_none();
        text.push(both.unwrap_or(char::REPLACEMENT_CHARACTER));
        Ok(())
    }

    /// The number in an escape `\uXXXX` at `at`.
    fn hex(&self, at: usize) -> Option<u32> {
        let escape = self.text.as_bytes().get(at..at + 6)?;
        let digits = escape.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |sum, digit| Some(sum * 16 + char::from(*digit).to_digit(16)?))
    }
}

/// Fields of one object as they are read: finds what is wrong first, and goes
/// on reading, so that what follows the object can be read too.
#[derive(Debug, Default)]
pub struct Fields {
    seen: u32,
    fault: Option<Fault>,
}

impl Fields {
    /// Notes that field `number` (below 32) came; a second time is a fault.
    pub fn once(&mut self, number: u32, name: &str) {
        if self.seen & (1 << number) != 0 {
            self.fault(|| format!("{name}: comes twice"));
        }
        self.seen |= 1 << number;
    }

    /// Notes what is wrong, if it is the first.
    pub fn fault(&mut self, detail: impl FnOnce() -> String) {
        if self.fault.is_none() {
            self.fault = Some(Fault::invalid(detail()));
        }
    }

    /// A field that no one knows.
    pub fn unknown(&mut self, name: &str) {
        self.fault(|| format!("{}: unknown field", crate::fault::shortened(name)));
    }

    /// A string.
    pub fn text<'a>(&mut self, name: &str, value: Value<'a>) -> Option<Cow<'a, str>> {
        match value {
            Value::Null => None,
            Value::String(Text { text, broken: false }) => Some(text),
            Value::String(_) => {
                self.fault(|| format!("{name}: holds half a surrogate pair"));
                None
            }
            _ => {
                self.fault(|| format!("{name}: must be a string"));
                None
            }
        }
    }

    /// A string, or an integer of any size, kept as it is written.
    pub fn id<'a>(&mut self, name: &str, value: Value<'a>) -> Option<Cow<'a, str>> {
        match value {
            Value::Number(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                Some(Cow::Borrowed(digits))
            }
            Value::Number(_) => {
                self.fault(|| format!("{name}: a number must be an integer, 0 or greater"));
                None
            }
            other => self.text(name, other),
        }
    }

    /// An integer, 0 or greater.
    pub fn unsigned(&mut self, name: &str, value: Value<'_>) -> Option<u64> {
        match value {
            Value::Null => None,
            Value::Number(digits) => {
                let number = digits.parse().ok();
                if number.is_none() {
                    self.fault(|| format!("{name}: must be an integer, 0 or greater"));
                }
                number
            }
            _ => {
                self.fault(|| format!("{name}: must be an integer"));
                None
            }
        }
    }

    /// An integer.
    pub fn signed(&mut self, name: &str, value: Value<'_>) -> Option<i64> {
        match value {
            Value::Null => None,
            Value::Number(digits) if digits.parse::<i64>().is_ok() => digits.parse().ok(),
            _ => {
                self.fault(|| format!("{name}: must be an integer"));
                None
            }
        }
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, name: &str, value: Value<'_>) -> Option<bool> {
        match value {
            Value::Null => None,
            Value::Bool(value) => Some(value),
            _ => {
                self.fault(|| format!("{name}: must be true or false"));
                None
            }
        }
    }

    /// `value`, if nothing was wrong.
    pub fn finish<T>(self, value: T) -> Result<T, Fault> {
        self.fault.map_or(Ok(value), Err)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Value<'_>, Syntax> {
        let mut reader = Reader::new(text.as_bytes())?;
        let value = reader.value()?;
        reader.end()?;
        Ok(value)
    }

    fn broken(text: &str) -> bool {
        matches!(read(text), Ok(Value::String(Text { broken: true, .. })))
    }

    #[test]
    fn escapes_are_resolved_and_half_pairs_are_told() {
        let text = read(r#""a\"\\\/\b\f\n\r\té\ud83d\ude00z""#).unwrap();
        let Value::String(text) = text else { panic!("no string") };
        assert_eq!(text.text, "a\"\\/\u{8}\u{c}\n\r\té😀z");
        assert!(!text.broken);
        for half in [r#""\ud83d""#, r#""\ude00""#, r#""\ud83dx""#, r#""\ud83dA""#] {
            assert!(broken(half), "{half}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert_eq!(read(&deep(32)), Ok(Value::Array));
        assert_eq!(read(&deep(33)).unwrap_err().what, "nested too deep");
        assert!(read(&"[".repeat(1_000_000)).is_err());
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            ".{0,6}".prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(4, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::hash_map(".{0,3}", inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn agrees(text: &str) {
        // serde_json refuses what has half a pair, and no number is too large for us.
        let theirs = serde_json::from_str::<&serde_json::value::RawValue>(text);
        let ours = read(text);
        match (&theirs, &ours) {
            (Ok(_), Ok(_)) | (Err(_), Err(_)) => (),
            _ => assert!(
                text.contains("\\u") || text.contains(['e', 'E']),
                "{text:?}: {theirs:?} {ours:?}"
            ),
        }
    }

    proptest! {
        #[test]
        fn it_takes_what_serde_json_writes(value in value()) {
            let text = value.to_string();
            let ours = read(&text).unwrap();
            if let (serde_json::Value::String(theirs), Value::String(ours)) = (&value, &ours) {
                assert_eq!(theirs.as_str(), ours.text);
            }
        }

        #[test]
        fn it_takes_and_refuses_texts_as_serde_json_does(
            text in r#"[\[\]{},:"\\tfn0-9.eE+ a-]{0,12}"#,
        ) {
            agrees(&text);
        }

        #[test]
        fn it_takes_and_refuses_damaged_texts_as_serde_json_does(
            value in value(), at in any::<prop::sample::Index>(), with in r#"[\[\]{},:"\\u0-9.e+ -]"#,
        ) {
            let mut chars: Vec<char> = value.to_string().chars().collect();
            let at = at.index(chars.len());
            chars[at] = with.chars().next().unwrap();
            agrees(&chars.into_iter().collect::<String>());
        }
    }
}
