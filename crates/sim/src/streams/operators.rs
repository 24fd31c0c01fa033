//! What the derived topics make of records: by rules that are few and pure.
//!
//! A record's value is `producer.life.number word`. `ops:V` makes operations on
//! keys of the words, and writes its version into what it sets; `rare:V` keeps
//! the operations of one key, which depends on the version.

use std::sync::Arc;

use tideline_record::batch::Record;
use tideline_record::{Maker, Operator, Output};
use tideline_store::{Clock, ManualClock};
use tideline_types::TopicName;

use super::sabotage::{self, Broken};

/// A key and a value.
pub(super) type Pair = (Vec<u8>, Vec<u8>);

/// Makes the operators of the world.
pub(super) struct Words(pub(super) Arc<ManualClock>);

struct Word {
    kind: String,
    version: u32,
    /// Of an operator that breaks the rule.
    clock: Option<Arc<ManualClock>>,
}

impl Maker for Words {
    fn make(&self, _: &TopicName, text: &str) -> Result<Arc<dyn Operator>, String> {
        let (kind, version) = text.split_once(':').ok_or("no version")?;
        let version = version.parse().map_err(|_| "no number")?;
        let clock = sabotage::is(Broken::OperatorReadsClock).then(|| self.0.clone());
        Ok(Arc::new(Word { kind: kind.into(), version, clock }))
    }
}

impl Operator for Word {
    fn apply(&self, record: &Record<'_>, out: &mut Output) -> Result<(), String> {
        let pairs = made(&self.kind, self.version, record.key, record.value)?;
        for (key, mut value) in pairs {
            if let Some(clock) = &self.clock
                && value.starts_with(b"{\"set\"")
            {
                value = format!("{{\"set\":\"{}\"}}", clock.now().0).into_bytes();
            }
            out.push(&key, &value);
        }
        Ok(())
    }
}

/// What a version of an operator makes of a record.
pub(super) fn made(
    kind: &str,
    version: u32,
    key: &[u8],
    value: &[u8],
) -> Result<Vec<Pair>, String> {
    if kind == "rare" {
        let kept: &[u8] = if version.is_multiple_of(2) { b"k0" } else { b"k1" };
        let pair = (key.to_vec(), value.to_vec());
        return Ok(if key == kept { vec![pair] } else { Vec::new() });
    }
    let value = std::str::from_utf8(value).map_err(|e| e.to_string())?;
    let (_, word) = value.split_once(' ').ok_or("no word")?;
    let set = format!("{{\"set\":\"v{version}-{word}\"}}").into_bytes();
    let key = key.to_vec();
    Ok(match word.as_bytes().first() {
        Some(b's') => vec![(key, set)],
        Some(b'd') => vec![(key, br#"{"delete":true}"#.to_vec())],
        Some(b'a') => vec![(key, br#"{"add":1}"#.to_vec())],
        Some(b'2') => {
            let second = [&key[..], b"+"].concat();
            vec![(key, br#"{"add":1}"#.to_vec()), (second, set)]
        }
        Some(b'!') => return Err("cannot".into()),
        _ => Vec::new(),
    })
}
