//! Cuts a JSON file into the values that hold comments, one at a time.
//!
//! Files nest their lists differently: at the root, under `data` or
//! `comments`, some levels down. So brackets are followed down to arrays under
//! the names of a [`Shape`], and each object (or array) in them is one comment.
//! Only that comment is held, bounded. Characters that JSON forbids inside
//! strings are put right before it is parsed.

use std::io::BufRead;

use super::{Change, Draft, Entry, Limits, ReadError, Reason, Source, Tree, entries};

/// Brackets within each other outside of comments, at most.
const DEPTH_MAX: usize = 64;
/// Bytes of a name that is kept to be compared.
const NAME_BYTES_MAX: usize = 64;

/// Where comments are in a file, and what they are.
#[derive(Clone, Copy, Debug)]
pub(in crate::danmaku) struct Shape {
    /// Names of arrays that hold comments, besides one at the root.
    pub(in crate::danmaku) lists: &'static [&'static str],
    /// A comment may be an array.
    pub(in crate::danmaku) arrays: bool,
    /// Reads one comment.
    pub(in crate::danmaku) parse: fn(&Tree, &mut Draft) -> Result<(), Reason>,
}

/// Comments of a JSON file.
pub(in crate::danmaku) fn read_elements<R: BufRead>(
    input: R,
    limits: Limits,
    shape: Shape,
) -> impl Iterator<Item = Result<Entry, ReadError>> {
    let mut elements = Elements {
        source: Source::new(input),
        limit: limits.element_bytes_max,
        shape,
        open: Vec::new(),
        name: Vec::new(),
        state: State::Before,
    };
    entries(move |number| {
        let Some((line, element)) = elements.next()? else { return Ok(None) };
        let outcome = element.and_then(|element| read_element(&element, shape.parse));
        Ok(Some(Entry { line, number, outcome }))
    })
}

/// Reads one comment of JSON text that may hold forbidden characters.
pub(in crate::danmaku) fn read_element(
    element: &[u8],
    parse: fn(&Tree, &mut Draft) -> Result<(), Reason>,
) -> Result<(crate::danmaku::Item<'static>, super::Changes), Reason> {
    let mut draft = Draft::default();
    let element = put_right(element, &mut draft);
    let text = String::from_utf8_lossy(&element);
    if matches!(text, std::borrow::Cow::Owned(_)) {
        draft.changed(Change::Encoding);
    }
    let (tree, broken) = Tree::parse(&text).map_err(|_| Reason::Syntax)?;
    if broken {
        draft.changed(Change::Encoding);
    }
    parse(&tree, &mut draft)?;
    draft.finish()
}

/// `element` with line ends and tabs inside strings escaped, and other control
/// characters gone.
fn put_right(element: &[u8], draft: &mut Draft) -> Vec<u8> {
    let mut right = Vec::with_capacity(element.len());
    let (mut quoted, mut escaped) = (false, false);
    for byte in element {
        match byte {
            0..0x20 if !quoted => right.push(b' '),
            0..0x20 => {
                draft.changed(Change::Text);
                match byte {
                    b'\n' => right.extend_from_slice(b"\\n"),
                    b'\t' => right.extend_from_slice(b"\\t"),
                    _ => {}
                }
            }
            _ => right.push(*byte),
        }
        (quoted, escaped) = match byte {
            b'"' if !escaped => (!quoted, false),
            b'\\' if quoted => (quoted, !escaped),
            _ => (quoted, false),
        };
    }
    right
}

#[derive(Debug)]
struct Elements<R> {
    source: Source<R>,
    limit: usize,
    shape: Shape,
    open: Vec<Open>,
    /// The string that was read last: in an object, the name of what follows.
    name: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    array: bool,
    /// Its values are comments, or lists of them.
    holds: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Before,
    Inside,
    After,
    Ended,
}

type Found = (u64, Result<Vec<u8>, Reason>);

impl<R: BufRead> Elements<R> {
    fn next(&mut self) -> Result<Option<Found>, ReadError> {
        loop {
            self.source.skip_blank()?;
            let line = self.source.line();
            let error = |what| Err(ReadError::Format { line, what });
            let Some(byte) = self.source.peek()? else {
                let state = std::mem::replace(&mut self.state, State::Ended);
                return match state {
                    State::Before => error("no JSON"),
                    State::Inside => Ok(Some((line, Err(Reason::Unfinished)))),
                    State::After | State::Ended => Ok(None),
                };
            };
            match (self.state, byte) {
                (State::Before, b'{' | b'[') => self.state = State::Inside,
                (State::Before, _) => return error("no JSON"),
                (State::After, _) => return error("something after the list"),
                _ => {}
            }
            match byte {
                b'{' | b'[' => {
                    let top = self.open.last();
                    let held = top.is_some_and(|top| top.array && top.holds);
                    if held && (byte == b'{' || self.shape.arrays) {
                        return Ok(Some((line, self.take_element()?)));
                    }
                    let named = || self.shape.lists.iter().any(|name| name.as_bytes() == self.name);
                    let array = byte == b'[';
                    let holds = array && (held || top.is_none_or(|top| !top.array && named()));
                    if self.open.len() == DEPTH_MAX {
                        return error("nested too deep");
                    }
                    self.open.push(Open { array, holds });
                    self.source.next()?;
                }
                b'}' | b']' => {
                    let array = byte == b']';
                    if self.open.pop().is_none_or(|open| open.array != array) {
                        return error("brackets that do not match");
                    }
                    self.source.next()?;
                    if self.open.is_empty() {
                        self.state = State::After;
                    }
                }
                b'"' => self.take_name()?,
                _ => {
                    self.source.next()?;
                }
            }
        }
    }

    /// Takes a string outside of comments; keeps the beginning of it.
    fn take_name(&mut self) -> Result<(), ReadError> {
        self.source.next()?;
        self.name.clear();
        while let Some(byte) = self.source.next()? {
            match byte {
                b'"' => break,
                b'\\' => {
                    self.source.next()?;
                }
                byte if self.name.len() < NAME_BYTES_MAX => self.name.push(byte),
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes a value up to the bracket that closes it.
    fn take_element(&mut self) -> Result<Result<Vec<u8>, Reason>, ReadError> {
        let mut element = Vec::new();
        let mut fits = true;
        let (mut depth, mut quoted, mut escaped) = (0_u64, false, false);
        while let Some(byte) = self.source.next()? {
            if element.len() < self.limit {
                element.push(byte);
            } else {
                fits = false;
            }
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ if quoted => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(if fits { Ok(element) } else { Err(Reason::TooLong) });
                    }
                }
                _ => {}
            }
        }
        Ok(Err(Reason::CutOff))
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn read(file: &str, arrays: bool) -> Result<Vec<String>, String> {
        fn parse(tree: &Tree, draft: &mut Draft) -> Result<(), Reason> {
            let text = match tree {
                Tree::Array(values) => values.iter().filter_map(Tree::text).collect(),
                _ => tree.text_of("t").ok_or(Reason::Fields)?.to_owned(),
            };
            draft.text(text);
            Ok(())
        }
        let shape = Shape { lists: &["comments", "data"], arrays, parse };
        let limits = Limits { element_bytes_max: 40 };
        let input = BufReader::with_capacity(3, file.as_bytes());
        let told = |entry: Result<Entry, ReadError>| match entry {
            Ok(Entry { line, outcome: Ok((item, changes)), .. }) => Ok(format!(
                "{line} {}{}",
                item.text,
                changes.iter().map(|change| format!(" {change:?}")).collect::<String>()
            )),
            Ok(Entry { line, outcome: Err(reason), .. }) => Ok(format!("{line} {reason:?}")),
            Err(error) => Err(error.to_string()),
        };
        read_elements(input, limits, shape).map(told).collect()
    }

    #[test]
    fn comments_are_found_at_the_root_and_under_their_names() {
        for file in [
            r#"[{"t":"a"},{"t":"b"}]"#,
            r#"{"x":[{"t":"no"}],"comments":[{"t":"a"},{"t":"b"}],"n":1}"#,
            r#"{"code":0,"data":{"threads":[{"id":{"t":1},"comments":[{"t":"a"}]},{"comments":[{"t":"b"}]}]}}"#,
            r#"[[],[1,2],[{"t":"a"},{"t":"b"}]]"#,
        ] {
            assert_eq!(read(file, false).unwrap(), ["1 a", "1 b"], "{file}");
        }
        assert_eq!(
            read(r#"{"code":0,"data":[[1,"a"],[2,"]\"["]]}"#, true).unwrap(),
            ["1 1a", "1 2]\"["]
        );
        assert_eq!(read(r#"{"msg":"data","code":-1}"#, true).unwrap(), [""; 0]);
    }

    #[test]
    fn what_json_forbids_inside_strings_is_put_right() {
        let file = "[{\"t\":\"a\u{16}b\"},\n{\"t\":\"c\nd\"},{\"t\":\"\\ud83d!\"},{\u{1}\"t\":\"\\\"\u{2}\\\\\"}]";
        let want = ["1 ab Text", "2 c\nd Text", "3 \u{fffd}! Encoding", "3 \"\\ Text"];
        assert_eq!(read(file, false).unwrap(), want);
    }

    #[test]
    fn a_broken_comment_costs_itself() {
        let long = "x".repeat(50);
        let file = format!("[{{\"t\":}},{{\"t\":\"{long}\"}},{{\"u\":1}},7,\"s\",{{\"t\":\"a\"}}]");
        assert_eq!(read(&file, false).unwrap(), ["1 Syntax", "1 TooLong", "1 Fields", "1 a"]);
        assert_eq!(
            read("[{\"t\":\"a\"},{\"t\":\"b", false).unwrap(),
            ["1 a", "1 CutOff", "1 Unfinished"]
        );
        assert_eq!(read("[{\"t\":\"a\"},", false).unwrap(), ["1 a", "1 Unfinished"]);
    }

    #[test]
    fn what_is_no_list_is_an_error() {
        for (file, what) in [
            ("", "no JSON"),
            ("<i>", "no JSON"),
            ("[}", "brackets that do not match"),
            ("[][]", "something after the list"),
            (&"[".repeat(70), "nested too deep"),
        ] {
            assert_eq!(read(file, false), Err(format!("line 1: {what}")), "{file}");
        }
    }
}
