//! What a fuzzer feeds: each function takes any bytes and must not panic.

use tideline_record::batch::Record;
use tideline_record::{Operator as _, Output};
use tideline_types::{Millis, Seq};

use crate::spec::Declared;

/// The text of an operator, a line end, and a value that it is given.
pub fn operator(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (text, value) = text.split_once('\n').unwrap_or((text, "{\"kind\":\"video\",\"n\":1}"));
    let Ok(declared) = Declared::read(text, None) else { return };
    let record = Record {
        seq: Seq(7),
        sub: 0,
        time: Millis(1_000),
        erased: false,
        skipped: false,
        key: b"key",
        value: value.as_bytes(),
    };
    let made = || {
        let mut out = Output::default();
        let result = declared.apply(&record, &mut out);
        let owned = |(key, value, _): (&[u8], &[u8], bool)| (key.to_vec(), value.to_vec());
        (result, out.records().map(owned).collect::<Vec<_>>())
    };
    assert_eq!(made(), made(), "an operator that is not the same twice");
}
