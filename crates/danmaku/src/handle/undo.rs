//! Undoing what the audit tells, by the place of its record.

use std::time::Duration;

use tideline_queue::{FetchError, From};
use tideline_store::ReadLimits;
use tideline_types::limits::VIDEO_BYTES_MAX;
use tideline_types::{PartitionId, Position};

use super::{Danmaku, expect, is_done};
use crate::apart::SITE;
use crate::ask::{Op, Refusal};
use crate::comment::Actor;
use crate::outcome::{self, Outcome};

/// Something that somebody did, as the audit tells it.
#[derive(Clone, Debug)]
pub struct Audited {
    name: String,
    outcome: Outcome,
}

impl Audited {
    /// The video that it was done to; `None`: the site.
    pub fn video(&self) -> Option<&str> {
        (self.name.len() <= VIDEO_BYTES_MAX).then_some(&*self.name)
    }
}

impl Danmaku {
    /// What stands at a place of topic `danmaku-audit`; `None` if that is no
    /// moderation.
    ///
    /// # Errors
    /// What a read of the topic says: the record is gone by age, or of a past
    /// that never was.
    pub async fn audited(
        &self,
        partition: PartitionId,
        at: Position,
    ) -> Result<Option<Audited>, FetchError> {
        let (queue, topic) = self.driver.log();
        let limits = ReadLimits { records_max: 1, bytes_max: 1 };
        let from = From::At(at);
        let found = queue.fetch(topic, partition, from, limits, Duration::ZERO).await?;
        let record = found.records.into_iter().next().filter(|record| record.seq == at.seq);
        Ok(record.and_then(|record| {
            let name = String::from_utf8(record.key.to_vec()).ok()?;
            let outcome = Outcome::decode(&record.value).ok()?;
            outcome::audit(&name, &outcome)?;
            Some(Audited { name, outcome })
        }))
    }

    /// Puts back what was there before, where nobody has changed it since. For
    /// who may do the thing itself.
    pub async fn undo(&self, audited: Audited, actor: Actor) -> Result<(), Refusal> {
        let Audited { name, outcome } = audited;
        let op = Op::Undo { outcome: Box::new(outcome), actor };
        match &*name {
            SITE => self.change_site(op).await,
            name => expect(self.driver.ask(name, op).await, is_done),
        }
    }
}
