//! The metadata tree, whichever face asks for it.

use std::collections::BTreeMap;

use tideline_meta::Meta;
use tideline_meta::ask::Refusal;
use tideline_meta::kept::Places;
use tideline_types::TopicName;
use tideline_wire::Code;

use crate::Gateway;
use crate::problem::Problem;

/// A consumer of a topic, and where it goes on.
pub(crate) struct Checkpoint {
    pub(crate) consumer: String,
    pub(crate) places: Places,
}

impl Gateway {
    pub(crate) fn meta(&self) -> Result<&Meta, Problem> {
        let none = || Problem::new(Code::NotFound, "this server keeps no metadata tree");
        self.inner.meta.get().ok_or_else(none)
    }

    /// Consumers of a topic; of `consumer` alone, if it is named.
    pub(crate) async fn checkpoints(
        &self,
        topic: &TopicName,
        consumer: Option<&TopicName>,
    ) -> Result<Vec<Checkpoint>, Problem> {
        if self.inner.queue.topic(topic).is_none() {
            return Err(no_topic());
        }
        let meta = self.meta()?;
        let found = match consumer {
            None => meta.checkpoints(topic).await?,
            Some(name) => {
                let places = meta.checkpoint(topic, name).await?;
                BTreeMap::from([(name.as_str().to_owned(), places)])
            }
        };
        let found = found.into_iter().filter(|(_, places)| !places.is_empty());
        Ok(found.map(|(consumer, places)| Checkpoint { consumer, places }).collect())
    }

    /// `consumer` is done with what lies before `places`.
    pub(crate) async fn keep_checkpoint(
        &self,
        topic: &TopicName,
        consumer: &TopicName,
        places: &Places,
    ) -> Result<(), Problem> {
        let info = self.inner.queue.topic(topic).ok_or_else(no_topic)?;
        for (partition, next) in places {
            let bounds = info.bounds.get(usize::from(partition.0)).ok_or_else(|| {
                Problem::invalid(format!("partition: {topic} has {}", info.partitions))
            })?;
            if next.incarnation != info.incarnation {
                let detail = format!("{topic} is of incarnation {}", info.incarnation.0);
                return Err(Problem::new(Code::Conflict, detail));
            }
            if next.seq > bounds.synced.next() {
                let detail = format!("next: {partition} ends at {}", bounds.synced);
                return Err(Problem::invalid(detail));
            }
        }
        Ok(self.meta()?.keep_checkpoint(topic, consumer, places).await?)
    }
}

fn no_topic() -> Problem {
    Problem::new(Code::NotFound, "there is no such topic")
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let code = match &refusal {
            Refusal::NoSubtree(_) | Refusal::NoNode(_) => Code::NotFound,
            Refusal::CrossSubtree(..)
            | Refusal::Valueless(_)
            | Refusal::Path(_)
            | Refusal::Root
            | Refusal::NoSession => Code::InvalidArgument,
            Refusal::Subtree(_)
            | Refusal::Kept(_)
            | Refusal::Exists(_)
            | Refusal::Conflict { .. }
            | Refusal::NotEmpty(_)
            | Refusal::Ephemeral(_)
            | Refusal::Quota { .. } => Code::Conflict,
            Refusal::Expired(_) => Code::Closed,
            Refusal::Limit { .. } => Code::PayloadTooLarge,
            Refusal::Overloaded(_) | Refusal::Fenced | Refusal::NoSpace(_) => Code::Overloaded,
            // It may have happened.
            Refusal::Unknown(_) => Code::DeadlineExceeded,
            Refusal::Store(_) => Code::Internal,
        };
        Self::new(code, refusal.to_string())
    }
}
