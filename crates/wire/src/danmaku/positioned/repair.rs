//! Makes an array of one that was cut off or badly quoted.

use std::borrow::Cow;

use super::{ENTRIES_MAX, parse};

/// The entry that holds what is read; a string cut off here is kept.
const TEXT: usize = 4;

/// `text` as an array that [`parse`] reads: as it is where it does already;
/// else with raw line ends and quotes inside strings escaped, cut off strings
/// closed (a path behind its last whole number) and the array closed. `None`
/// where what is needed has been cut away.
pub fn repair(text: &str) -> Option<Cow<'_, str>> {
    if parse(text).is_some() {
        return Some(Cow::Borrowed(text));
    }
    let mut rest = text.trim_start().strip_prefix('[')?;
    let mut out = String::from("[");
    for at in 0..ENTRIES_MAX {
        let Some((entry, after)) = take_entry(rest, at) else { break };
        if at > 0 {
            out.push(',');
        }
        out.push('"');
        out.push_str(&entry);
        out.push('"');
        rest = after.trim_start();
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None => break,
        }
    }
    out.push(']');
    parse(&out).is_some().then_some(Cow::Owned(out))
}

/// One entry as what stands between the quotes of a JSON string, and what
/// follows it. `None` where it is cut away.
fn take_entry(rest: &str, at: usize) -> Option<(Cow<'_, str>, &str)> {
    let rest = rest.trim_start();
    if let Some(string) = rest.strip_prefix('"') {
        return take_string(string, at);
    }
    let end = rest.find([',', ']'])?;
    let word = rest[..end].trim();
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'+');
    (!word.is_empty() && word.bytes().all(plain)).then_some((Cow::Borrowed(word), &rest[end..]))
}

/// What a string behind its opening quote holds, with its escapes as they are.
/// It ends at a quote that a comma, a bracket or nothing follows; other quotes
/// belong to it.
fn take_string(string: &str, at: usize) -> Option<(Cow<'_, str>, &str)> {
    let mut held = String::new();
    let mut rest = string;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        match c {
            '"' if matches!(after.trim_start().bytes().next(), None | Some(b',' | b']')) => {
                return Some((Cow::Owned(held), after));
            }
            '"' => held.push_str("\\\""),
            '\n' => held.push_str("\\n"),
            '\t' => held.push_str("\\t"),
            '\\' => {
                let length = escape_length(after);
                if length > after.len() {
                    break;
                }
                held.push('\\');
                held.push_str(if length == 0 { "\\" } else { &after[..length] });
                rest = &after[length..];
                continue;
            }
            c => held.push(c),
        }
        rest = after;
    }
    if at > TEXT {
        // A path or a name of a font: what stands before the last comma is
        // whole.
        held.truncate(held.rfind(',')?);
    }
    Some((Cow::Owned(held), ""))
}

/// How many bytes behind a backslash belong to its escape: 0 where it is none,
/// more than there are where it is cut off.
fn escape_length(after: &str) -> usize {
    match after.as_bytes() {
        [] => 1,
        [b'u', digits @ ..] => {
            let digits = digits.iter().take(4).take_while(|b| b.is_ascii_hexdigit()).count();
            if digits == 4 || digits + 1 == after.len() { 5 } else { 0 }
        }
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::danmaku::positioned::inner_text;

    #[test]
    fn a_whole_array_stays_as_it_is() {
        let text = r#"[ 0.5, "0.2" ,"1-1",4.5,"a/nb"]"#;
        assert!(matches!(repair(text), Some(Cow::Borrowed(same)) if same == text));
    }

    #[test]
    fn an_array_that_was_cut_in_its_path_is_closed() {
        let text = r#"[0,0,"1-1",4.5,"hi",0,0,0,0,500,0,true,"f",1,"M10,20L30,40L5"#;
        let want =
            r#"["0","0","1-1","4.5","hi","0","0","0","0","500","0","true","f","1","M10,20L30"]"#;
        assert_eq!(repair(text).as_deref(), Some(want));
        let text = r#"[0,0,"1-1",4.5,"hi",0,0,0,0,500,0,true,"f",1,"M"#;
        assert_eq!(inner_text(&repair(text).unwrap()).unwrap(), "hi");
    }

    #[test]
    fn a_text_that_was_cut_keeps_what_is_there() {
        for (cut, inner) in [
            (r#"[0,0,"1-1",4.5,"hello wor"#, "hello wor"),
            (r#"[0,0,"1-1",4.5,"hello\"#, "hello"),
            (r#"[0,0,"1-1",4.5,"\u0041\\\q\"\u00"#, "A\\\\q\""),
            (r#"[0,0,"1-1",4.5,"\u00g""#, "\\u00g"),
            (r#"[0,0,"1-1",4.5,"hi",0,4"#, "hi"),
            (r#"[0,0,"1-1",4.5,"hi","#, "hi"),
            (r#"[0,0,"1-1",4.5,"hi""#, "hi"),
            ("[0,0,\"1-1\",4.5,\"a\nb\",0,0]", "a\nb"),
            (r#"[0,0,"1-1",4.5,"say "hi" twice",0,0]"#, "say \"hi\" twice"),
            (r#"[.5,05,"1-1",4.5,"x",0,0]"#, "x"),
            (r#"[0,0,"1-1",4.5,"x",0,0] and more"#, "x"),
        ] {
            let repaired = repair(cut).unwrap_or_else(|| panic!("{cut}"));
            assert_eq!(inner_text(&repaired).unwrap(), inner, "{cut}");
        }
    }

    #[test]
    fn an_array_without_a_text_is_none() {
        for cut in [
            "",
            "[",
            "[0,0,\"1-1\"",
            "[0,0,\"1-1\",4.5,",
            "hello",
            "[0,0,[],4.5,\"x\"]",
            "[a,b,c,d,e]",
        ] {
            assert_eq!(repair(cut), None, "{cut}");
        }
    }

    proptest! {
        #[test]
        fn wherever_it_is_cut_the_text_or_its_beginning_is_left(cut in 0..200_usize) {
            let text = r#"[0,0.25,"1-1",4.5,"hello world",0,0,0,0,500,0,true,"f",1,"M10,20L30,40L5,6"]"#;
            let cut = cut.min(text.len());
            match repair(&text[..cut]) {
                Some(repaired) => {
                    let inner = inner_text(&repaired).unwrap().into_owned();
                    prop_assert!("hello world".starts_with(&inner));
                }
                None => prop_assert!(cut < 19),
            }
        }

        #[test]
        fn nothing_makes_it_panic(text in r#"\[?([0-9.,"\\nM\[\] -]|哈){0,40}"#) {
            if let Some(repaired) = repair(&text) {
                prop_assert!(parse(&repaired).is_some());
            }
        }
    }
}
