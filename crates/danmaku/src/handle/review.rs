//! What is due to be looked at, and the word of who has looked.

use std::sync::Arc;

use tideline_types::{PartitionId, partition_of};

use super::Danmaku;
use crate::ask::{Op, Refusal};
use crate::comment::Comment;
use crate::due::{self, Due};
use crate::id::CommentId;

impl Danmaku {
    /// Comments of all videos that are due to be looked at, behind one or from
    /// the first: as far as they are at rest, so some minutes late. At most
    /// `limit`.
    pub async fn due(
        &self,
        after: Option<(&str, CommentId)>,
        limit: usize,
    ) -> Result<Vec<Due>, Refusal> {
        let partitions = self.driver.partitions();
        let after = after.map(|(video, id)| (video.to_owned(), id));
        let first = match &after {
            Some((video, _)) => partition_of(video.as_bytes(), partitions).0,
            None => 0,
        };
        self.blocking(move |table| {
            let mut found: Vec<Due> = Vec::new();
            for at in first..partitions {
                let after = after.as_ref().filter(|_| at == first);
                let after = after.map(|(video, id)| (&**video, *id));
                found.extend(due::read(table, PartitionId(at), after, limit - found.len())?);
                if found.len() >= limit {
                    break;
                }
            }
            Ok(found)
        })
        .await
    }

    /// Says of a comment that waits whether it is shown, or blocked. Answers it
    /// as it is now; one that does not wait stays as it is.
    pub async fn judge(
        &self,
        video: &str,
        id: CommentId,
        shown: bool,
    ) -> Result<Arc<Comment>, Refusal> {
        self.comment(video, Op::Judge { id, shown }).await
    }
}
