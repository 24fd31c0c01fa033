//! Where a reader begins: turns a place that may be old, lost or of another
//! life into the next number to read, or into the reason why there is none.

use tideline_store::{Bounds, EpochStart};
use tideline_types::{Epoch, Incarnation, Millis, Position, Seq};

use crate::FetchError;

/// Where reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// At the first record that there is.
    Earliest,
    /// After the last record that there is.
    Latest,
    /// At the record that stands there.
    At(Position),
    /// After the record that stands there: what a reader that has applied it
    /// says. Number 0 stands before every record.
    After(Position),
    /// At the first record whose time is at least this.
    Time(Millis),
}

/// The next number to read for a position, as the stream is now.
pub(crate) fn next_of(
    position: Position,
    after: bool,
    incarnation: Incarnation,
    bounds: &Bounds,
    epochs: &[EpochStart],
) -> Result<Seq, FetchError> {
    if position.incarnation != incarnation {
        return Err(FetchError::Recreated { incarnation });
    }
    let claimed = if !after && is_next(position, bounds, epochs) {
        position.seq.prev()
    } else {
        position.seq
    };
    if claimed != Seq::ZERO {
        check(position.epoch, claimed, claimed != position.seq, bounds, epochs)?;
    }
    let next = if after { position.seq.next() } else { Seq(position.seq.0.max(1)) };
    if next < bounds.start {
        return Err(FetchError::Truncated { start: bounds.start });
    }
    Ok(next)
}

/// Whether what stands at `position` is what comes next for a reader of its
/// epoch, who says so before having read it: yet to come, or written by a later
/// owner. Such a place claims nothing but what is before it.
fn is_next(position: Position, bounds: &Bounds, epochs: &[EpochStart]) -> bool {
    let before = position.seq.prev();
    let wrote_before = || epoch_of(before, epochs) == Some(position.epoch);
    let later = || epoch_of(position.seq, epochs).is_some_and(|writer| writer > position.epoch);
    before == Seq::ZERO || position.seq == bounds.synced.next() || wrote_before() && later()
}

/// Whether `epoch` wrote `seq` (`at_least`: that epoch or one before it).
fn check(
    epoch: Epoch,
    seq: Seq,
    at_least: bool,
    bounds: &Bounds,
    epochs: &[EpochStart],
) -> Result<(), FetchError> {
    let writer = epoch_of(seq, epochs);
    let fits = match writer {
        Some(writer) => writer == epoch || at_least && writer < epoch && epoch <= bounds.epoch,
        // Older than what is remembered: only a later epoch can be ruled out.
        None => epochs.first().is_none_or(|oldest| epoch <= oldest.epoch),
    };
    if fits && seq <= bounds.synced {
        return Ok(());
    }
    // The reader's epoch was cut where the next one began.
    let cut = epochs.iter().find(|e| e.epoch > epoch).map_or(bounds.synced, |e| e.first.prev());
    let common = cut.min(bounds.synced).min(seq);
    let epoch = epoch_of(common, epochs).unwrap_or_default();
    Err(FetchError::Diverged { epoch, seq: common })
}

/// The epoch that wrote `seq`, as far as it is remembered.
pub(crate) fn epoch_of(seq: Seq, epochs: &[EpochStart]) -> Option<Epoch> {
    let after = epochs.partition_point(|e| e.first <= seq);
    Some(epochs[after.checked_sub(1)?].epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Epoch 1 wrote 1..=9, epoch 3 wrote 10..=20, epoch 4 has begun; what is
    /// before `start` is freed.
    fn next(text: &str, after: bool, start: u64) -> String {
        let epochs =
            [(1, 1), (3, 10), (4, 21)].map(|(e, s)| EpochStart { epoch: Epoch(e), first: Seq(s) });
        let bounds = Bounds { epoch: Epoch(4), start: Seq(start), synced: Seq(20), next: Seq(21) };
        let position = text.parse().unwrap();
        match next_of(position, after, Incarnation(7), &bounds, &epochs) {
            Ok(seq) => seq.to_string(),
            Err(FetchError::Diverged { epoch, seq }) => format!("diverged {epoch}-{seq}"),
            Err(FetchError::Truncated { start }) => format!("truncated {start}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_place_that_holds_is_where_reading_goes_on() {
        assert_eq!(next("7-0-0", true, 1), "1");
        assert_eq!(next("7-1-9", true, 1), "10");
        assert_eq!(next("7-3-20", true, 1), "21");
        assert_eq!(next("7-3-10", false, 1), "10");
        assert_eq!(next("7-4-21", false, 1), "21");
    }

    #[test]
    fn what_comes_next_after_an_epoch_is_the_next_epochs_first_record() {
        assert_eq!(next("7-1-10", false, 1), "10");
        assert_eq!(next("7-0-1", false, 1), "1");
        assert_eq!(next("7-1-11", false, 1), "diverged 1-9");
        assert_eq!(next("7-3-5", false, 1), "diverged 1-5");
    }

    #[test]
    fn a_place_on_a_lost_tail_names_the_last_common_record() {
        assert_eq!(next("7-1-12", true, 1), "diverged 1-9");
        assert_eq!(next("7-2-10", true, 1), "diverged 1-9");
        assert_eq!(next("7-3-25", true, 1), "diverged 3-20");
        assert_eq!(next("7-3-9", true, 1), "diverged 1-9");
        assert_eq!(next("7-9-20", true, 1), "diverged 3-20");
    }

    #[test]
    fn a_place_before_the_start_is_truncated_unless_all_of_it_was_read() {
        assert_eq!(next("7-1-3", true, 6), "truncated 6");
        assert_eq!(next("7-1-5", true, 6), "6");
        assert_eq!(next("7-1-5", false, 6), "truncated 6");
        assert_eq!(next("7-0-0", true, 6), "truncated 6");
    }

    #[test]
    fn another_life_is_told_apart() {
        assert_eq!(next("6-1-3", true, 1), "the topic was made anew (incarnation 7)");
    }
}
