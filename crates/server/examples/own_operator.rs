//! Tideline with an operator of one's own: the whole program, and one name more.
//!
//! ```sh
//! cargo run -p tideline-server --example own_operator -- serve
//! tideline topic create words --source chat --operator '{"native":"words@1"}'
//! ```

use std::process::ExitCode;
use std::sync::Arc;

use tideline_record::batch::Record;
use tideline_record::{Operator, Output};

/// Hands on each word of a text, as a counter that grows.
struct Words;

impl Operator for Words {
    fn apply(&self, record: &Record<'_>, out: &mut Output) -> Result<(), String> {
        let text = std::str::from_utf8(record.value).map_err(|e| e.to_string())?;
        for word in text.split_whitespace() {
            out.push(word.as_bytes(), br#"{"add":1}"#);
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    // Other output, another name: what was read stays as it was read.
    tideline_server::cli::run_with(vec![("words@1".into(), Arc::new(Words))])
}
