//! Whom to ask: an address, and a token.

use tideline_types::{Incarnation, Seq, TopicName};
use tideline_wire::queue_v1 as v1;
use tideline_wire::queue_v1::queue_service_client::QueueServiceClient;
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};

use crate::follower::Refused;

/// A server that topics are read from. Cheap to clone; clones share their
/// connection, which is made with the first call, and again when it breaks.
#[derive(Clone, Debug)]
pub struct Source {
    channel: Channel,
    token: Option<MetadataValue<Ascii>>,
}

/// A topic, as a reader has to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicAbout {
    /// Which life of that name.
    pub incarnation: Incarnation,
    /// How many it has.
    pub partitions: u16,
    /// The last number of each that is synced.
    pub synced: Vec<Seq>,
}

/// What is no address or no token; says which.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSource(String);

impl Source {
    /// The server at `url` (`http://host:port`), asked with `token`.
    ///
    /// # Errors
    /// If either cannot be one.
    pub fn new(url: &str, token: Option<&str>) -> Result<Self, BadSource> {
        let endpoint = Endpoint::from_shared(url.to_owned());
        let endpoint = endpoint.map_err(|e| BadSource(format!("{url}: {e}")))?;
        let bearer = token.map(|token| format!("Bearer {token}").parse()).transpose();
        let token = bearer.map_err(|_| BadSource("the token has odd characters".into()))?;
        Ok(Self { channel: endpoint.connect_lazy(), token })
    }

    /// What a topic is now.
    ///
    /// # Errors
    /// If the server refuses, or is away: [`Refused::is_final`] tells these apart.
    pub async fn topic(&self, topic: &TopicName) -> Result<TopicAbout, Refused> {
        let asked = v1::GetTopicRequest { topic: topic.as_str().to_owned() };
        let mut client = QueueServiceClient::new(self.channel());
        let answer = client.get_topic(self.request(asked)).await;
        let answer = answer.map_err(|status| Refused::of(&status))?;
        let found = answer.into_inner();
        Ok(TopicAbout {
            incarnation: Incarnation(found.incarnation),
            partitions: found.partitions.len() as u16,
            synced: found.partitions.iter().map(|partition| Seq(partition.synced)).collect(),
        })
    }

    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }

    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("authorization", token.clone());
        }
        request
    }
}
