//! Cuts a broken or whole XML file into the elements that hold comments.
//!
//! No XML parser: files of comments are written by hand and by programs that
//! escape nothing, and a parser would end at the first of their faults. Here
//! a text is what stands before its `</d>`, whatever it holds; an attribute is
//! what stands between its quotes. One element is held at a time, bounded;
//! entities of a DTD are never expanded. What has another root, or two of
//! them, is an error.

use std::io::BufRead;

use crate::danmaku::read::{ReadError, Reason, Source};

/// Elements within each other that are remembered; deeper ones are passed
/// over.
const DEPTH_MAX: usize = 64;
/// Bytes of a tag that holds no comment, at most.
const OTHER_TAG_BYTES_MAX: usize = 64 << 10;

/// Cuts what `source` holds.
#[derive(Debug)]
pub(in crate::danmaku) struct Scanner<R> {
    source: Source<R>,
    root: &'static str,
    child: &'static str,
    limit: usize,
    state: State,
    /// Elements that are open, the root first.
    open: Vec<Vec<u8>>,
    version_2: bool,
    tag: Vec<u8>,
    text: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Before,
    Inside,
    After,
    Ended,
}

/// An element that holds a comment.
#[derive(Debug)]
pub(in crate::danmaku) struct Element<'a> {
    /// The line that it starts on.
    pub(in crate::danmaku) line: u64,
    /// The file is of the shape that calls itself 2.0.
    pub(in crate::danmaku) version_2: bool,
    /// What stands behind its name, and its text, both as they are in the
    /// file; or why they cannot be had.
    pub(in crate::danmaku) parts: Result<(&'a [u8], &'a [u8]), Reason>,
}

impl<R: BufRead> Scanner<R> {
    /// For files whose `root` element holds comments in `child` elements of at
    /// most `limit` bytes.
    pub(in crate::danmaku) fn new(
        input: R,
        root: &'static str,
        child: &'static str,
        limit: usize,
    ) -> Self {
        Self {
            source: Source::new(input),
            root,
            child,
            limit,
            state: State::Before,
            open: Vec::new(),
            version_2: false,
            tag: Vec::new(),
            text: Vec::new(),
        }
    }

    /// The next element that holds a comment.
    pub(in crate::danmaku) fn next(&mut self) -> Result<Option<Element<'_>>, ReadError> {
        if self.state == State::Before {
            self.source.skip_blank()?;
            if self.source.peek()? != Some(b'<') {
                return Err(self.error("no XML"));
            }
        }
        loop {
            if self.state == State::Ended {
                return Ok(None);
            }
            if !self.source.take_through(b'<', &mut Vec::new(), 0)?.0 {
                return self.end();
            }
            let line = self.source.line();
            match self.source.peek()? {
                Some(b'?') => self.instruction()?,
                Some(b'!') => self.declaration()?,
                Some(b'/') => self.close()?,
                Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                    if let Some(parts) = self.start()? {
                        let parts = match parts {
                            Ok(()) => Ok((self.tag.as_slice(), self.text.as_slice())),
                            Err(reason) => Err(reason),
                        };
                        let version_2 = self.version_2;
                        return Ok(Some(Element { line, version_2, parts }));
                    }
                }
                _ => {}
            }
        }
    }

    fn error(&self, what: &'static str) -> ReadError {
        ReadError::Format { line: self.source.line(), what }
    }

    fn end(&mut self) -> Result<Option<Element<'_>>, ReadError> {
        let state = std::mem::replace(&mut self.state, State::Ended);
        match state {
            State::Before => Err(self.error("no root element")),
            State::Inside => {
                let (line, version_2) = (self.source.line(), self.version_2);
                Ok(Some(Element { line, version_2, parts: Err(Reason::Unfinished) }))
            }
            State::After | State::Ended => Ok(None),
        }
    }

    /// `<?…?>`; of the declaration, which encoding and which shape.
    fn instruction(&mut self) -> Result<(), ReadError> {
        self.take_until(b"?>")?;
        if self.state == State::Before && self.tag.starts_with(b"?xml") {
            let text = String::from_utf8_lossy(&self.tag).to_ascii_lowercase();
            let value = |name: &str| {
                let rest = text.split_once(name)?.1.trim_start().strip_prefix('=')?.trim_start();
                Some(rest.get(1..)?.split(['"', '\'']).next()?.to_owned())
            };
            let encoding = value("encoding");
            if encoding.is_some_and(|name| !matches!(&*name, "utf-8" | "utf8" | "us-ascii")) {
                return Err(self.error("not in UTF-8"));
            }
            self.version_2 = value("version").is_some_and(|version| version == "2.0");
        }
        Ok(())
    }

    /// `<!…>`: a comment, a text that holds no markup, or a DTD.
    fn declaration(&mut self) -> Result<(), ReadError> {
        self.tag.clear();
        for expected in *b"!--" {
            if self.source.peek()? != Some(expected) {
                return Ok(());
            }
            self.source.next()?;
        }
        self.take_until(b"-->")
    }

    /// Takes all up to `mark`; keeps the beginning of it.
    fn take_until(&mut self, mark: &[u8]) -> Result<(), ReadError> {
        self.tag.clear();
        loop {
            let room = OTHER_TAG_BYTES_MAX.saturating_sub(self.tag.len());
            let found = self.source.take_through(mark[0], &mut self.tag, room)?.0;
            if !found || self.comes(&mark[1..])? {
                return Ok(());
            }
        }
    }

    fn close(&mut self) -> Result<(), ReadError> {
        self.tag.clear();
        self.source.next()?;
        self.source.take_through(b'>', &mut self.tag, OTHER_TAG_BYTES_MAX)?;
        let name = name_of(&self.tag);
        if let Some(at) = self.open.iter().rposition(|open| open == name) {
            self.open.truncate(at);
            if self.open.is_empty() && self.state == State::Inside {
                self.state = State::After;
            }
        }
        Ok(())
    }

    /// A start tag. `Some` where it holds a comment.
    fn start(&mut self) -> Result<Option<Result<(), Reason>>, ReadError> {
        let whole = self.take_tag()?;
        let closed = self.tag.last() == Some(&b'/');
        let name = name_of(&self.tag);
        match self.state {
            State::Before if name != self.root.as_bytes() => {
                return Err(self.error("another root element than a list of comments has"));
            }
            State::Before if closed => self.state = State::After,
            State::Before => {
                self.state = State::Inside;
                self.open.push(name.to_vec());
            }
            State::After | State::Ended => return Err(self.error("a second root element")),
            State::Inside if name == self.child.as_bytes() => {
                let name = name.len();
                self.tag.drain(..name);
                self.text.clear();
                return Ok(Some(match whole {
                    Ok(()) if closed => Ok(()),
                    Ok(()) => self.take_text()?,
                    Err(reason) => Err(reason),
                }));
            }
            State::Inside => {
                self.version_2 |= name == b"oid";
                if !closed && self.open.len() < DEPTH_MAX {
                    self.open.push(name.to_vec());
                }
            }
        }
        Ok(None)
    }

    /// Takes a tag without its brackets. A `<` in it, within quotes or not,
    /// begins another one: this one is broken.
    fn take_tag(&mut self) -> Result<Result<(), Reason>, ReadError> {
        self.tag.clear();
        let mut quote = None;
        loop {
            let from = self.tag.len();
            let room = self.limit.saturating_sub(from);
            let (found, fits) = self.source.take_through(b'>', &mut self.tag, room)?;
            if !fits {
                return Ok(Err(Reason::TooLong));
            }
            if let Some(at) = memchr::memchr(b'<', &self.tag[from..]) {
                let next = self.tag.split_off(from + at);
                self.source.give_back(&next);
                return Ok(Err(Reason::Syntax));
            }
            if !found {
                return Ok(Err(Reason::CutOff));
            }
            for byte in &self.tag[from..] {
                match quote {
                    Some(open) if open == *byte => quote = None,
                    None if matches!(byte, b'"' | b'\'') => quote = Some(*byte),
                    _ => {}
                }
            }
            if quote.is_none() {
                self.tag.pop();
                return Ok(Ok(()));
            }
        }
    }

    /// Takes the text up to the end tag of a comment, or up to where the next
    /// comment begins without one.
    fn take_text(&mut self) -> Result<Result<(), Reason>, ReadError> {
        let child = self.child.as_bytes();
        let mut fits = true;
        loop {
            let room = self.limit.saturating_sub(self.tag.len() + self.text.len());
            let (found, fitted) = self.source.take_through(b'<', &mut self.text, room)?;
            fits &= fitted;
            if !found {
                return Ok(Err(if fits { Reason::CutOff } else { Reason::TooLong }));
            }
            let close: [&[u8]; 3] = [b"/", child, b">"];
            let next: [&[u8]; 3] = [child, b" ", b"p="];
            if self.comes(&close.concat())? {
                break;
            } else if self.comes(&next.concat())? {
                let tag: [&[u8]; 2] = [b"<", &next.concat()];
                self.source.give_back(&tag.concat());
                break;
            } else if self.comes(b"![CDATA[")? {
                fits &= self.take_cdata()?;
            }
        }
        // Without the bracket that ended it.
        if fits {
            self.text.pop();
        }
        Ok(if fits { Ok(()) } else { Err(Reason::TooLong) })
    }

    /// Takes `expected` if it comes next.
    fn comes(&mut self, expected: &[u8]) -> Result<bool, ReadError> {
        for (at, byte) in expected.iter().enumerate() {
            if self.source.peek()? != Some(*byte) {
                if at > 0 {
                    self.source.give_back(&expected[..at]);
                }
                return Ok(false);
            }
            self.source.next()?;
        }
        Ok(true)
    }

    /// Takes a text without markup, whose beginning has been taken. Returns
    /// whether it fitted.
    fn take_cdata(&mut self) -> Result<bool, ReadError> {
        self.text.extend_from_slice(b"![CDATA[");
        loop {
            let room = self.limit.saturating_sub(self.tag.len() + self.text.len());
            let (found, fits) = self.source.take_through(b'>', &mut self.text, room)?;
            if !found || !fits || self.text.ends_with(b"]]>") {
                return Ok(fits);
            }
        }
    }
}

/// The name at the front of a tag.
fn name_of(tag: &[u8]) -> &[u8] {
    let end = tag.iter().position(|b| b.is_ascii_whitespace() || matches!(b, b'/' | b'>'));
    &tag[..end.unwrap_or(tag.len())]
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn scan(file: &str) -> Result<Vec<String>, String> {
        let mut seen = None;
        for capacity in [1, 3, 1000] {
            let input = BufReader::with_capacity(capacity, file.as_bytes());
            let mut scanner = Scanner::new(input, "i", "d", 60);
            let mut found = Vec::new();
            let result = loop {
                match scanner.next() {
                    Ok(Some(Element { line, parts, .. })) => found.push(match parts {
                        Ok((tag, text)) => {
                            let both = [tag, b"|", text].concat();
                            format!("{line}{}", String::from_utf8(both).unwrap())
                        }
                        Err(reason) => format!("{line} {reason:?}"),
                    }),
                    Ok(None) => break Ok(found),
                    Err(error) => break Err(error.to_string()),
                }
            };
            match &seen {
                None => seen = Some(result),
                Some(first) => assert_eq!(*first, result, "in chunks of {capacity}"),
            }
        }
        seen.unwrap()
    }

    fn found(file: &str) -> Vec<String> {
        scan(file).unwrap()
    }

    #[test]
    fn elements_come_with_their_lines_and_everything_else_is_passed_over() {
        let file = "\u{feff}\n<?xml version=\"1.0\"?>\n<!-- <d p=\"0\">no</d> -->\n<!DOCTYPE i>\n<i>\n\
                    <source>k-v</source>junk < & <3\n<d p=\"1\">a</d>\n\n<d p='2'>b\nc</d><x><y/>\n\
                    <i><d p=\"3\"></d></i></x><d p=\"4\"/>\n</i>\n<!-- end -->\n";
        let want = ["7 p=\"1\"|a", "9 p='2'|b\nc", "11 p=\"3\"|", "11 p=\"4\"/|"];
        assert_eq!(found(file), want);
    }

    #[test]
    fn what_is_broken_ends_where_the_next_begins() {
        assert_eq!(found("<i><d p=\"1\">a<d p=\"2\">b</d></i>"), ["1 p=\"1\"|a", "1 p=\"2\"|b"]);
        assert_eq!(found("<i><d p=\"1>a</d><d p=\"2\">b</d></i>"), ["1 Syntax", "1 p=\"2\"|b"]);
        assert_eq!(found("<i><d p=\"1\">a<b>&</dx></d></i>"), ["1 p=\"1\"|a<b>&</dx>"]);
        assert_eq!(found("<i><source><d p=\"1\">a</d></i>"), ["1 p=\"1\"|a"]);
        assert_eq!(
            found("<i><d p=\"1\"><![CDATA[x</d><d p=>]]></d></i>"),
            ["1 p=\"1\"|<![CDATA[x</d><d p=>]]>"]
        );
        assert_eq!(found("<i><d p=\"1\" raw=\"a>b'\">c</d></i>"), ["1 p=\"1\" raw=\"a>b'\"|c"]);
    }

    #[test]
    fn what_is_too_long_is_dropped_and_the_next_is_read() {
        let long = "y".repeat(61);
        let file = format!(
            "<i><d p=\"1\">{long}</d><d p=\"2\">{long}<![CDATA[x]]>{long}</d><d p=\"{long}\">b</d>\
             <d p=\"3\">c</d></i>"
        );
        let want = ["1 TooLong", "1 TooLong", "1 TooLong", "1 p=\"3\"|c"];
        assert_eq!(found(&file), want);
    }

    #[test]
    fn a_file_that_ends_too_early_says_so() {
        assert_eq!(found("<i><d p=\"1\">a</d>"), ["1 p=\"1\"|a", "1 Unfinished"]);
        assert_eq!(found("<i>\n<d p=\"1\">a"), ["2 CutOff", "2 Unfinished"]);
        assert_eq!(found("<i><d p=\"1"), ["1 CutOff", "1 Unfinished"]);
        assert_eq!(found("<i>"), ["1 Unfinished"]);
    }

    #[test]
    fn another_root_and_a_second_one_are_errors() {
        for (file, error) in [
            ("", "no XML"),
            ("{}", "no XML"),
            ("<?xml?>", "no root element"),
            ("<danuni/></i>", "another root element than a list of comments has"),
            ("<i><d p=\"1\">a</d></i><danuni/>", "a second root element"),
            ("<i/><i></i>", "a second root element"),
            ("<?xml version=\"1.0\" encoding='GBK'?><i></i>", "not in UTF-8"),
        ] {
            assert_eq!(scan(file), Err(format!("line 1: {error}")), "{file}");
        }
        assert_eq!(found("<i></i>\n"), [""; 0]);
    }
}
