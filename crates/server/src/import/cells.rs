//! The cells of one CSV row, and the columns that a header names.

use std::ops::Range;

/// One row, taken apart as RFC 4180 says: cells in double quotes may hold
/// commas, line ends and doubled quotes. Reused from row to row.
#[derive(Debug, Default)]
pub(super) struct Cells {
    text: String,
    spans: Vec<Range<usize>>,
}

impl Cells {
    /// Takes `record` apart; an error says why it is no row.
    pub(super) fn read(&mut self, record: &[u8]) -> Result<(), String> {
        let record = std::str::from_utf8(record).map_err(|_| "not UTF-8".to_owned())?;
        self.text.clear();
        self.spans.clear();
        let mut start = 0;
        let mut open = false;
        let mut chars = record.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '"' if open && chars.peek() == Some(&'"') => {
                    chars.next();
                    self.text.push('"');
                }
                '"' => open = !open,
                ',' if !open => {
                    self.spans.push(start..self.text.len());
                    start = self.text.len();
                }
                c => self.text.push(c),
            }
        }
        if open {
            return Err("a quote is not closed".into());
        }
        self.spans.push(start..self.text.len());
        Ok(())
    }

    /// The cell at `column` without blanks around it; `None` where it is empty
    /// or the row is shorter.
    pub(super) fn get(&self, column: Option<usize>) -> Option<&str> {
        let span = self.spans.get(column?)?;
        Some(self.text[span.clone()].trim()).filter(|cell| !cell.is_empty())
    }

    /// All cells, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.spans.iter().map(|span| self.text[span.clone()].trim())
    }

    /// The cell at `column` as a whole number.
    pub(super) fn number<T: std::str::FromStr>(
        &self,
        column: Option<usize>,
        name: &str,
    ) -> Result<Option<T>, String> {
        let Some(cell) = self.get(column) else { return Ok(None) };
        cell.parse().map(Some).map_err(|_| format!("{name} is no whole number: {cell:?}"))
    }
}

/// Where a row holds what: the place of each of `wanted` among the cells of a
/// header.
pub(super) fn columns<const N: usize>(header: &Cells, wanted: [&str; N]) -> [Option<usize>; N] {
    wanted.map(|name| header.iter().position(|cell| cell == name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(text: &str) -> Result<Vec<String>, String> {
        let mut cells = Cells::default();
        cells.read(text.as_bytes())?;
        Ok(cells.iter().map(str::to_owned).collect())
    }

    #[test]
    fn cells_are_split_at_commas_outside_quotes() {
        assert_eq!(row("a,\"b, \"\"c\"\"\",,d").unwrap(), ["a", "b, \"c\"", "", "d"]);
        assert_eq!(row("").unwrap(), [""]);
        assert_eq!(row("a,\"b").unwrap_err(), "a quote is not closed");
    }

    proptest! {
        #[test]
        fn quoted_cells_read_back(cells in prop::collection::vec("[a-z,\"\n]{0,6}", 1..6)) {
            let text: Vec<_> =
                cells.iter().map(|cell| format!("\"{}\"", cell.replace('"', "\"\""))).collect();
            let trimmed: Vec<_> = cells.iter().map(|cell| cell.trim().to_owned()).collect();
            prop_assert_eq!(row(&text.join(",")).unwrap(), trimmed);
        }
    }
}
