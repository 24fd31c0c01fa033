//! Making topics, whichever face asks for it.

use std::time::Duration;

use tideline_queue::{TopicInfo, TopicSpec};
use tideline_record::OnError;
use tideline_types::TopicName;

use crate::Gateway;
use crate::problem::Problem;

/// A topic to be, as a caller asks for it.
pub(crate) struct NewTopic {
    pub(crate) name: TopicName,
    pub(crate) partitions: Option<u16>,
    pub(crate) retention_hours: Option<u32>,
    /// What it is derived from, if it is.
    pub(crate) source: Option<Source>,
}

/// What a topic is derived from.
pub(crate) struct Source {
    /// The topic's name.
    pub(crate) topic: String,
    /// The text of the operator.
    pub(crate) operator: String,
    pub(crate) on_error: OnError,
}

impl Gateway {
    /// Makes the topic, or has another operator take effect in it.
    pub(crate) async fn make_topic(&self, new: NewTopic) -> Result<TopicInfo, Problem> {
        let queue = self.inner.queue.clone();
        let NewTopic { name, partitions, retention_hours, source } = new;
        let Some(Source { topic, operator, on_error }) = source else {
            if retention_hours == Some(0) {
                return Err(Problem::invalid("retention_hours: at least 1"));
            }
            let retention = retention_hours.map(|hours| Duration::from_hours(hours.into()));
            let spec = TopicSpec { partitions, retention, ..TopicSpec::new(name) };
            return Ok(blocking(move || queue.create_topic(spec)).await??);
        };
        let topic =
            TopicName::new(&topic).map_err(|bad| Problem::invalid(format!("source: {}", bad.0)))?;
        if partitions.is_some() || retention_hours.is_some() {
            return Err(Problem::invalid("partitions, retention_hours: are those of the source"));
        }
        Ok(blocking(move || queue.declare(&name, &topic, &operator, on_error)).await??)
    }

    /// Removes the topic and its records.
    pub(crate) async fn remove_topic(&self, name: TopicName) -> Result<(), Problem> {
        let queue = self.inner.queue.clone();
        Ok(blocking(move || queue.delete_topic(&name)).await??)
    }
}

/// Runs what waits for the disk where it holds up no one.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Problem::internal())
}
