//! Filters that the product itself brings.

use std::sync::Arc;

use tideline_record::batch::Record;
use tideline_record::{Operator, Output};

/// What the derived record holds (key, value), or `None` to leave it out.
/// Must depend on the record alone.
pub type Filter = Arc<dyn Fn(&Record<'_>) -> Option<(Vec<u8>, Vec<u8>)> + Send + Sync>;

/// A filter that the product itself brings.
pub(crate) struct Built(pub(crate) Filter);

impl Operator for Built {
    fn apply(&self, record: &Record<'_>, out: &mut Output) -> Result<(), String> {
        if let Some((key, value)) = (self.0)(record) {
            out.push(&key, &value);
        }
        Ok(())
    }
}
