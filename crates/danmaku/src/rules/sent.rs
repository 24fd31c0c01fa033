//! How much one sender posts in a day: decided under a name of their own, for
//! it counts over all videos.

use super::{Decision, Desk, Rules, outcome};
use crate::ask::{Answer, Refusal};
use crate::outcome::{Act, Change};
use crate::rows;
use crate::sent::Sent;

impl Rules {
    /// Counts one post, if it is not over the limit. `post` is its fingerprint.
    pub(super) fn send(&self, desk: &mut Desk<'_>, post: Option<u64>) -> Decision {
        let Some(row) = desk.reads.row(rows::SENT_KEY.into()) else { return Decision::Wait };
        // Rows are checked when they come from the table.
        let sent = row.and_then(|row| Sent::decode(&row).ok()).unwrap_or_default();
        let max = self.options.sender_per_day;
        match sent.count(desk.now, max, post) {
            Err(wait_ms) => Decision::refused(Refusal::OverDay { max, wait_ms }),
            Ok(None) => Decision::Done(Answer::Done, None),
            Ok(Some(sent)) => {
                let sent = outcome(desk, Act::Send, None, vec![Change::Sent(sent)]);
                Decision::Done(Answer::Done, Some(sent))
            }
        }
    }
}
