//! The handle: what the rest of the program calls.

mod review;
mod site;
mod undo;
mod viewer;

use std::sync::Arc;
use std::time::Duration;

use tideline_queue::Queue;
use tideline_store::{Clock, StoreError, Table, TableName};
use tideline_types::limits::{
    FIELD_BYTES_MAX, IMPORT_BYTES_MAX, IMPORT_ITEMS_MAX, VIDEO_BYTES_MAX,
};
use tideline_types::{PartitionId, Position, Seq, UserId};
use tideline_wire::danmaku::Item;

use site::Site;
pub use undo::Audited;

use crate::ask::{
    Action, Answer, Changes, ImportItem, Moderated, Op, Posted, Refusal, SettingsPatch, Snapshot,
    Tally, View,
};
use crate::comment::{Actor, Comment, Draft, Role};
use crate::erase::{self, Erasing};
use crate::id::CommentId;
use crate::options::Options;
use crate::owner;
use crate::rows::{self, Settings};
use crate::rules::Rules;
use crate::task::{Driver, Watch};
use crate::works::{self, Sum};
use crate::{apart, flag, item, personal, segment};

/// Videos' comments. Clones share one; all calls may be made at once.
///
/// Whatever a call answers rests on what survives power loss.
#[derive(Clone)]
pub struct Danmaku {
    driver: Arc<Driver>,
    site: Arc<Site>,
}

impl Danmaku {
    /// Takes over the topic `danmaku` of `queue`, making it with `partitions`
    /// partitions if there is none (else it keeps its own number), registers
    /// the topics derived from it, and replays what is not at rest in `table`.
    /// Blocks; must be called within a tokio runtime.
    pub fn open(
        queue: Queue,
        table: Arc<dyn Table>,
        clock: Arc<dyn Clock>,
        options: Options,
        partitions: u16,
    ) -> Result<Self, StoreError> {
        let driver = Driver::open(queue, table, clock, options, partitions)?;
        Ok(Self { driver, site: Arc::default() })
    }

    /// What an operator set.
    pub fn options(&self) -> &Options {
        &self.driver.rules.options
    }

    /// Posts a comment. The same `client_id` of the same user again, among
    /// their latest 64 under the video, is the same comment.
    pub async fn post(&self, video: &str, draft: Draft, actor: Actor) -> Result<Posted, Refusal> {
        if actor.role == Role::Viewer {
            if self.site_list().await?.rejects(&draft.text, &[actor.user.as_str()]) {
                return Err(Refusal::Forbidden);
            }
            self.count(video, &draft, &actor).await?;
        }
        expect(self.ask(video, Op::Post { draft, actor }).await, |answer| match answer {
            Answer::Posted(posted) => Some(posted),
            _ => None,
        })
    }

    /// Counts a viewer's post against the limit of their day, if there is one.
    async fn count(&self, video: &str, draft: &Draft, actor: &Actor) -> Result<(), Refusal> {
        let Rules { options, keys } = &*self.driver.rules;
        if options.sender_per_day == 0 {
            return Ok(());
        }
        // What no video would take is not counted.
        draft.clone().admit(actor.role, None)?;
        let user = actor.user.as_str();
        let post = draft.client_id.as_ref().map(|id| keys.client(user, &format!("{video}/{id}")));
        let name = apart::sender(keys.user(user));
        expect(self.driver.ask(&name, Op::Send { post }).await, is_done)
    }

    /// Takes comments of a file, at most 1,000 and 4 MiB at a time, whatever the
    /// limit; those that are there already are not taken again.
    pub async fn import(
        &self,
        video: &str,
        items: Vec<ImportItem>,
        actor: Actor,
    ) -> Result<Tally, Refusal> {
        let bytes: usize = items.iter().map(|item| item.item.text.len()).sum();
        if items.len() > IMPORT_ITEMS_MAX || bytes > IMPORT_BYTES_MAX {
            let max = IMPORT_ITEMS_MAX as u32;
            return Err(Refusal::TooMany { what: "comments (or 4 MiB) of one import", max });
        }
        expect(self.ask(video, Op::Import { items, actor }).await, |answer| match answer {
            Answer::Imported(tally) => Some(tally),
            _ => None,
        })
    }

    /// Takes one's own comment back, within two minutes.
    pub async fn recall(
        &self,
        video: &str,
        id: CommentId,
        actor: Actor,
    ) -> Result<Arc<Comment>, Refusal> {
        self.comment(video, Op::Recall { id, actor }).await
    }

    /// Changes rank, pool or state; for the owner, moderators and services.
    pub async fn moderate(
        &self,
        video: &str,
        id: CommentId,
        action: Action,
        actor: Actor,
    ) -> Result<Moderated, Refusal> {
        let op = Op::Moderate { id, action, actor };
        expect(self.ask(video, op).await, |answer| match answer {
            Answer::Moderated(moderated) => Some(moderated),
            _ => None,
        })
    }

    /// Where the audit tells of what was done to `video` at a number.
    pub fn place_of(&self, video: &str, seq: Seq) -> (PartitionId, Position) {
        self.driver.place_of(video, seq)
    }

    /// What of a video is hidden for another reason than room, by where in the
    /// video, behind `after`; at most 100.
    pub async fn hidden(
        &self,
        video: &str,
        after: Option<CommentId>,
        limit: usize,
    ) -> Result<Vec<Arc<Comment>>, Refusal> {
        expect(self.ask(video, Op::Hidden { after, limit }).await, |answer| match answer {
            Answer::Own(comments) => Some(comments),
            _ => None,
        })
    }

    /// Likes a comment; `Again` the second time.
    pub async fn like(
        &self,
        video: &str,
        id: CommentId,
        actor: Actor,
    ) -> Result<Arc<Comment>, Refusal> {
        self.comment(video, Op::Like { id, actor }).await
    }

    /// Reports a comment; `Again` the second time.
    pub async fn report(
        &self,
        video: &str,
        id: CommentId,
        actor: Actor,
        reason: u8,
    ) -> Result<Arc<Comment>, Refusal> {
        self.comment(video, Op::Report { id, actor, reason }).await
    }

    /// Changes the settings of a video; answers all of them.
    pub async fn set(
        &self,
        video: &str,
        patch: SettingsPatch,
        actor: Actor,
    ) -> Result<Settings, Refusal> {
        expect(self.ask(video, Op::Set { patch, actor }).await, |answer| match answer {
            Answer::Settings(settings) => Some(settings),
            _ => None,
        })
    }

    /// Sets the owner's filters of a video, from the JSON of a list.
    pub async fn set_filters(
        &self,
        video: &str,
        json: String,
        actor: Actor,
    ) -> Result<(), Refusal> {
        expect(self.ask(video, Op::SetFilters { json, actor }).await, is_done)
    }

    /// Removes everything of a user, from every video; answers how many comments
    /// there were. Their bytes leave the files within
    /// [`Options::erase_within`].
    pub async fn erase(&self, user: &UserId) -> Result<u64, Refusal> {
        let mut videos = self.driver.unrested_videos();
        let taken = self.driver.now();
        let noted = self.personal(user, move |table, user| {
            // Scores may be in a topic of a user who has no comment.
            let (partition, through) = (PartitionId(0), Seq::ZERO);
            table.commit(&[erase::note(&Erasing { partition, user, through, taken })])?;
            personal::erase(table, user)?;
            table.scan(TableName::Danmaku, &rows::user_key(user), &[], None, false, usize::MAX)
        });
        let noted = noted.await?;
        videos.extend(noted.iter().filter_map(|(key, _)| Some(rows::wrote_on(key)?.into())));
        // What is no video has no comments.
        videos.retain(|name| name.len() <= VIDEO_BYTES_MAX);
        videos.sort_unstable();
        videos.dedup();
        let mut erased = 0;
        for video in videos {
            let op = Op::Erase { user: user.clone() };
            erased += expect(self.ask(&video, op).await, |answer| match answer {
                Answer::Erased(count) => Some(count),
                _ => None,
            })?;
        }
        Ok(erased)
    }

    /// Says which work a video belongs to, for its counts; `None`: to none. At
    /// most 64 bytes.
    pub async fn belong(&self, video: &str, work: Option<&str>) -> Result<(), Refusal> {
        let work = work.filter(|work| (1..=FIELD_BYTES_MAX).contains(&work.len()));
        expect(self.ask(video, Op::Belong { work: work.map(Into::into) }).await, is_done)
    }

    /// How many comments the videos of a work have together, as far as their
    /// counts are at rest: some minutes late.
    pub async fn work(&self, work: &str) -> Result<Sum, Refusal> {
        let work = work.to_owned();
        self.blocking(move |table| works::sum(table, &work)).await
    }

    /// Reads or writes the table, on the blocking pool.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Table) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let driver = Arc::clone(&self.driver);
        let done = tokio::task::spawn_blocking(move || work(&*driver.table)).await;
        let done = done.map_err(|_| Refusal::Overloaded("the server is stopping"))?;
        done.map_err(|error| Refusal::from(&error))
    }

    /// A user's own comments under a video, newest first, each with its state;
    /// at most 100, below `below`.
    pub async fn own(
        &self,
        video: &str,
        user: &UserId,
        below: Option<CommentId>,
        limit: usize,
    ) -> Result<Vec<Arc<Comment>>, Refusal> {
        let op = Op::Own { user: user.clone(), below, limit };
        expect(self.ask(video, op).await, |answer| match answer {
            Answer::Own(comments) => Some(comments),
            _ => None,
        })
    }

    /// One comment of whatever state.
    pub async fn find(&self, video: &str, id: CommentId) -> Result<Option<Arc<Comment>>, Refusal> {
        expect(self.ask(video, Op::Find { id }).await, |answer| match answer {
            Answer::Found(found) => Some(found),
            _ => None,
        })
    }

    /// Figures and settings.
    pub async fn view(&self, video: &str) -> Result<View, Refusal> {
        expect(self.ask(video, Op::View).await, |answer| match answer {
            Answer::View(view) => Some(view),
            _ => None,
        })
    }

    /// What segment `n`, from 1, shows, but for scripts and BAS; `None` outside
    /// the video.
    pub async fn segment(&self, video: &str, n: u32) -> Result<Option<Snapshot>, Refusal> {
        self.snapshot(video, Op::Segment(n)).await
    }

    /// What all segments show, but for scripts and BAS.
    pub async fn all(&self, video: &str) -> Result<Snapshot, Refusal> {
        let all = self.snapshot(video, Op::All).await?;
        all.ok_or(Refusal::NotFound)
    }

    /// A pack of script and BAS comments, from 1; `None` beyond the last.
    pub async fn special(&self, video: &str, pack: u32) -> Result<Option<Snapshot>, Refusal> {
        self.snapshot(video, Op::Special { pack }).await
    }

    /// What happened after `since`.
    pub async fn changes_since(&self, video: &str, since: Seq) -> Result<Changes, Refusal> {
        expect(self.ask(video, Op::Changes { since }).await, |answer| match answer {
            Answer::Changes(changes) => Some(changes),
            _ => None,
        })
    }

    /// Tells when a video changes: ask [`Danmaku::changes_since`] then, and once
    /// after the watch began.
    pub fn watch(&self, video: &str) -> Watch {
        self.driver.watch(video)
    }

    /// A comment as files and players carry it: its sender as a hash that says
    /// nothing beyond this video.
    pub fn item<'a>(&self, video: &str, comment: &'a Comment) -> Item<'a> {
        item::item(&self.driver.rules.keys, video, comment)
    }

    /// The flags of comments for a viewer that differ from the default.
    pub fn flags(
        &self,
        video: &str,
        viewer: &flag::Viewer,
        comments: &[Arc<Comment>],
    ) -> Vec<(CommentId, u8)> {
        flag::flags(&self.driver.rules.keys, video, viewer, comments)
    }

    /// Makes the bodies of a video's segments.
    pub fn bodies(&self, video: &str) -> segment::Bodies {
        segment::Bodies::new(self.driver.rules.keys, video)
    }

    /// Figures of each partition.
    pub fn stats(&self) -> Vec<(PartitionId, owner::Stats)> {
        (0..).map(PartitionId).zip(self.driver.stats()).collect()
    }

    /// Refuses new calls, brings everything to rest within `limit`, and stops.
    /// Blocks. What does not come to rest in time is in the log.
    pub fn close(&self, limit: Duration) {
        self.driver.close(limit);
    }

    async fn comment(&self, video: &str, op: Op) -> Result<Arc<Comment>, Refusal> {
        expect(self.ask(video, op).await, |answer| match answer {
            Answer::Comment(comment) => Some(comment),
            _ => None,
        })
    }

    async fn snapshot(&self, video: &str, op: Op) -> Result<Option<Snapshot>, Refusal> {
        expect(self.ask(video, op).await, |answer| match answer {
            Answer::Snapshot(snapshot) => Some(snapshot),
            _ => None,
        })
    }

    async fn ask(&self, video: &str, op: Op) -> Answer {
        match (1..=VIDEO_BYTES_MAX).contains(&video.len()) {
            true => self.driver.ask(video, op).await,
            false => Answer::Refused(Refusal::BadVideo),
        }
    }
}

fn is_done(answer: Answer) -> Option<()> {
    matches!(answer, Answer::Done).then_some(())
}

/// The answer that the call asks for, or the refusal.
fn expect<T>(answer: Answer, as_asked: impl FnOnce(Answer) -> Option<T>) -> Result<T, Refusal> {
    match answer {
        Answer::Refused(refusal) => Err(refusal),
        answer => Ok(as_asked(answer).expect("an owner answers what it was asked")),
    }
}
