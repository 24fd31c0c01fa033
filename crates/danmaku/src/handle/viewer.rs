//! What is a viewer's alone: their filters, and a model's scores for them.
//!
//! Read and written in the table at once: nobody decides anything about it.

use bytes::Bytes;
use tideline_store::{StoreError, Table};
use tideline_types::UserId;
use tideline_types::limits::{SCORES_BYTES_MAX, SCORES_MAX, VIDEO_BYTES_MAX};

use super::Danmaku;
use crate::ask::Refusal;
use crate::scores::Scores;
use crate::{filters, personal};

impl Danmaku {
    /// A viewer's own filters, as the JSON of a list.
    pub async fn user_filters(&self, user: &UserId) -> Result<Option<String>, Refusal> {
        let json = self.personal(user, personal::filters).await?;
        Ok(json.map(|json| String::from_utf8_lossy(&json).into_owned()))
    }

    /// Sets a viewer's own filters, from the JSON of a list.
    pub async fn set_user_filters(&self, user: &UserId, json: &str) -> Result<(), Refusal> {
        let json = filters::checked(json)?;
        self.personal(user, move |table, user| personal::set_filters(table, user, json)).await
    }

    /// The scores of a segment, from 1, for a viewer: as they came.
    pub async fn scores(
        &self,
        user: &UserId,
        video: &str,
        segment: u32,
    ) -> Result<Option<Bytes>, Refusal> {
        let video = video.to_owned();
        let read = move |table: &dyn Table, user| personal::scores(table, user, &video, segment);
        self.personal(user, read).await
    }

    /// Sets scores of segments (video, segment from 1, bytes) for a viewer. At
    /// most 1,000 of 64 KiB each.
    pub async fn set_scores(
        &self,
        user: &UserId,
        scores: Vec<(String, u32, Bytes)>,
    ) -> Result<(), Refusal> {
        let fits = |(video, _, bytes): &(String, u32, Bytes)| {
            (1..=VIDEO_BYTES_MAX).contains(&video.len()) && bytes.len() <= SCORES_BYTES_MAX
        };
        if scores.len() > SCORES_MAX || !scores.iter().all(fits) {
            let max = SCORES_MAX as u32;
            return Err(Refusal::TooMany { what: "scores (of 64 KiB each) at a time", max });
        }
        self.personal(user, move |table, user| personal::set_scores(table, user, scores)).await
    }

    /// Sets scores of many viewers. Durable on return.
    pub async fn put_scores(&self, scores: Vec<Scores>) -> Result<(), Refusal> {
        let keys = self.driver.rules.keys;
        let of_user = |scores: Scores| (keys.user(scores.user.as_str()), scores);
        let scores = scores.into_iter().map(of_user).collect();
        self.blocking(move |table| personal::put_scores(table, scores)).await
    }

    /// Reads or writes what is a user's alone.
    pub(super) async fn personal<T: Send + 'static>(
        &self,
        user: &UserId,
        work: impl FnOnce(&dyn Table, u64) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let user = self.driver.rules.keys.user(user.as_str());
        self.blocking(move |table| work(table, user)).await
    }
}
