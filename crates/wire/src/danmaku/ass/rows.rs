//! Which rows of the screen are free for the next comment.

/// The rows of one kind of movement.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    /// What came last in each row.
    last: Vec<Option<Last>>,
    /// Width of the screen; 0 where comments stand still.
    screen: u32,
    life_ms: u32,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    at_ms: u32,
    width: u32,
}

impl Rows {
    /// Rows in which comments cross a screen of `screen` pixels.
    pub(super) fn moving(count: usize, screen: u32, life_ms: u32) -> Self {
        Self { last: vec![None; count], screen, life_ms }
    }

    /// Rows in which comments stand still.
    pub(super) fn still(count: usize, life_ms: u32) -> Self {
        Self { last: vec![None; count], screen: 0, life_ms }
    }

    /// Takes `count` rows beside each other for a comment of `width` pixels;
    /// the first of them. Where none are free, those whose last comment is the
    /// oldest.
    pub(super) fn take(&mut self, at_ms: u32, width: u32, count: usize) -> u32 {
        let count = count.min(self.last.len());
        let starts = 0..=self.last.len() - count;
        let free = |start: &usize| {
            self.last[*start..start + count].iter().flatten().all(|last| {
                // Whatever came later than this comment is in its way as well.
                self.is_past(last, at_ms, width)
            })
        };
        let newest = |start: &usize| {
            self.last[*start..start + count].iter().flatten().map(|last| last.at_ms).max()
        };
        let start = starts.clone().find(free).or_else(|| starts.min_by_key(newest)).unwrap_or(0);
        self.last[start..start + count].fill(Some(Last { at_ms, width }));
        u32::try_from(start).expect("rows of at most 10,000 pixels")
    }

    /// Whether a comment at `at_ms` neither touches nor catches up with `last`.
    fn is_past(&self, last: &Last, at_ms: u32, width: u32) -> bool {
        let (at, before) = (u64::from(at_ms), u64::from(last.at_ms));
        let life = u64::from(self.life_ms);
        if self.screen == 0 {
            return at >= before + life;
        }
        let screen = u64::from(self.screen);
        // Both sides by the time that each needs for its own part of the way.
        let tail_is_in = before + life * u64::from(last.width) / (screen + u64::from(last.width));
        let head_is_out = at + life * screen / (screen + u64::from(width));
        at > tail_is_in && head_is_out >= before + life
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_free_once_the_tail_is_in_and_will_not_be_caught() {
        let mut rows = Rows::moving(3, 1000, 5_000);
        assert_eq!(rows.take(0, 1000, 1), 0);
        assert_eq!(rows.take(2_500, 100, 1), 1, "the tail is just at the edge");
        let mut rows = Rows::moving(3, 1000, 5_000);
        rows.take(0, 1000, 1);
        assert_eq!(rows.take(2_600, 100, 1), 0);
        assert_eq!(rows.take(3_300, 4_000, 1), 1, "a long one would catch up");
    }

    #[test]
    fn several_rows_are_taken_together() {
        let mut rows = Rows::still(4, 5_000);
        assert_eq!(rows.take(0, 1, 1), 0);
        assert_eq!(rows.take(0, 1, 3), 1);
        assert_eq!(rows.take(5_000, 1, 9), 0, "more than there are: all");
    }

    #[test]
    fn without_a_free_row_the_oldest_is_drawn_over() {
        let mut rows = Rows::still(2, 5_000);
        assert_eq!([0, 1, 2, 3].map(|at| rows.take(at, 1, 1)), [0, 1, 0, 1]);
    }
}
