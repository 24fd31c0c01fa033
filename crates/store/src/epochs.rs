//! What every journal holds of a stream's epochs, and whom it lets append.

use tideline_types::limits::EPOCHS_KEPT_MAX;
use tideline_types::{Epoch, Seq, StreamId};

use crate::{AppendError, Bounds, EpochStart, StoreError};
use tideline_record::batch::{Extra, Header};

/// Begins `epoch` at `first`: epochs that wrote nothing before it go.
pub(crate) fn begin(epochs: &mut Vec<EpochStart>, epoch: Epoch, first: Seq) {
    while epochs.last().is_some_and(|e| e.first >= first) {
        epochs.pop();
    }
    epochs.push(EpochStart { epoch, first });
    let over = epochs.len().saturating_sub(EPOCHS_KEPT_MAX);
    epochs.drain(..over);
}

/// Forgets epochs whose records all lie before `start.prev()`: the one that
/// wrote the record right before `start` is kept, for readers that stand there.
pub(crate) fn forget(epochs: &mut Vec<EpochStart>, start: Seq) {
    let keep = epochs.partition_point(|e| e.first <= start.prev()).saturating_sub(1);
    epochs.drain(..keep);
}

/// Whether `batch` is the next one of `stream`; its last number if so.
pub(crate) fn admit(
    stream: StreamId,
    bounds: &Bounds,
    owned: bool,
    batch: &[u8],
) -> Result<Seq, AppendError> {
    let refuse = |cause: String| StoreError::Io { what: format!("append to {stream}"), cause };
    let header = Header::read(batch).map_err(|e| refuse(e.to_string()))?;
    if header.stream != stream || header.len != batch.len() {
        return Err(refuse("the batch is of another stream or length".into()).into());
    }
    if matches!(header.extra, Extra::Last(_)) {
        return Err(refuse("the batch is of a derived topic".into()).into());
    }
    if !owned || header.epoch != bounds.epoch {
        return Err(AppendError::Fenced { stream, epoch: bounds.epoch });
    }
    if header.first != bounds.next {
        return Err(AppendError::OutOfOrder { stream, given: header.first, expected: bounds.next });
    }
    Ok(header.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(pairs: &[(u32, u64)]) -> Vec<EpochStart> {
        pairs.iter().map(|&(e, s)| EpochStart { epoch: Epoch(e), first: Seq(s) }).collect()
    }

    #[test]
    fn an_epoch_that_wrote_nothing_is_left_out() {
        let mut epochs = Vec::new();
        for (epoch, first) in [(1, 1), (2, 1), (3, 10), (4, 10), (5, 12)] {
            begin(&mut epochs, Epoch(epoch), Seq(first));
        }
        assert_eq!(epochs, starts(&[(2, 1), (4, 10), (5, 12)]));
    }

    #[test]
    fn the_epoch_of_the_record_before_the_start_is_kept() {
        let mut epochs = starts(&[(2, 1), (4, 10), (5, 12)]);
        forget(&mut epochs, Seq(10));
        assert_eq!(epochs, starts(&[(2, 1), (4, 10), (5, 12)]));
        forget(&mut epochs, Seq(11));
        assert_eq!(epochs, starts(&[(4, 10), (5, 12)]));
        forget(&mut epochs, Seq(40));
        assert_eq!(epochs, starts(&[(5, 12)]));
    }
}
