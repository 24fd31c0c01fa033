//! Filters of the site: what no viewer may post under any video.
//!
//! Decided, logged and at rest as those of a video, under a name of their own;
//! the list in force is in memory, and read again when it is changed here.

use std::sync::{Arc, PoisonError, RwLock};

use super::{Danmaku, expect, is_done};
use crate::apart::SITE;
use crate::ask::{Answer, Op, Refusal};
use crate::comment::Actor;
use crate::filters::Filters;

/// What of the site is in memory.
#[derive(Default)]
pub(super) struct Site {
    /// The list in force; `None` until it has been read.
    list: RwLock<Option<Arc<Filters>>>,
    /// Held while it is read or changed, so that the later one stands.
    changing: tokio::sync::Mutex<()>,
}

impl Danmaku {
    /// The filters of the site, as the JSON of a list.
    pub async fn site_filters(&self) -> Result<Option<Arc<str>>, Refusal> {
        expect(self.driver.ask(SITE, Op::View).await, |answer| match answer {
            Answer::View(view) => Some(view.filters),
            _ => None,
        })
    }

    /// Sets them, for what is posted from now on.
    pub async fn set_site_filters(&self, json: String, actor: Actor) -> Result<(), Refusal> {
        self.change_site(Op::SetFilters { json, actor }).await
    }

    /// Makes a call that changes the site, and takes up what it comes to.
    pub(super) async fn change_site(&self, op: Op) -> Result<(), Refusal> {
        let _changing = self.site.changing.lock().await;
        let done = expect(self.driver.ask(SITE, op).await, is_done);
        // Whether it was done or not: what is in memory may not outlive it.
        self.site.put(None);
        self.read_site().await?;
        done
    }

    /// The list in force.
    pub(super) async fn site_list(&self) -> Result<Arc<Filters>, Refusal> {
        if let Some(list) = self.site.get() {
            return Ok(list);
        }
        let _changing = self.site.changing.lock().await;
        match self.site.get() {
            Some(list) => Ok(list),
            None => self.read_site().await,
        }
    }

    async fn read_site(&self) -> Result<Arc<Filters>, Refusal> {
        let json = self.site_filters().await?;
        let list = Arc::new(json.as_ref().map(Filters::of_rest).unwrap_or_default());
        self.site.put(Some(Arc::clone(&list)));
        Ok(list)
    }
}

impl Site {
    fn get(&self) -> Option<Arc<Filters>> {
        self.list.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put(&self, list: Option<Arc<Filters>>) {
        *self.list.write().unwrap_or_else(PoisonError::into_inner) = list;
    }
}
