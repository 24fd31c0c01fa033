//! Comments, as every face needs them: who may what about a video.

use tideline_danmaku::ask::{Posted, Refusal};
use tideline_danmaku::comment::{Actor, Draft, Role};
use tideline_types::UserId;
use tideline_wire::Code;

use crate::Gateway;
use crate::auth::Caller;
use crate::http::is_privileged;
use crate::problem::Problem;

impl Gateway {
    /// Posts in the name of `user`: as any viewer, and where a viewer may not,
    /// with the rights of `caller`.
    pub(crate) async fn post_comment(
        &self,
        caller: &Caller,
        video: &str,
        draft: Draft,
        user: UserId,
    ) -> Result<Posted, Problem> {
        let danmaku = &self.inner.danmaku;
        if is_privileged(&draft) {
            let role = self.role_of(caller, video).await;
            return Ok(danmaku.post(video, draft, Actor { user, role }).await?);
        }
        // Who posts in another's name does so within the other's limits.
        let own = *user.as_str() == *caller.user.as_ref().map_or(&*caller.name, UserId::as_str);
        let refused = match self.inner.rates.check_sender(user.as_str()) {
            Err(problem) if own => problem,
            Err(problem) => return Err(problem),
            Ok(()) => {
                let actor = Actor { user: user.clone(), role: Role::Viewer };
                let posted = danmaku.post(video, draft.clone(), actor).await;
                if let Ok(posted) = &posted {
                    if let Some(hook) = &self.inner.hook {
                        hook.ask(video, &posted.comment);
                    }
                    self.tell_work(video).await;
                }
                match posted {
                    Err(refusal @ (Refusal::Closed | Refusal::Forbidden)) => refusal.into(),
                    Err(refusal @ Refusal::OverDay { .. }) if own => refusal.into(),
                    done => return Ok(done?),
                }
            }
        };
        match self.role_of(caller, video).await {
            Role::Viewer => Err(refused),
            role => Ok(danmaku.post(video, draft, Actor { user, role }).await?),
        }
    }

    /// Tells danmaku the work of a video that somebody comments on, where the
    /// catalogue says one: once, until the catalogue is given another.
    async fn tell_work(&self, video: &str) {
        if self.inner.works_told.get(video).is_some() {
            return;
        }
        let joined = self.inner.catalogue.get_many(&[("video", video)], self.enrich_wait()).await;
        if joined.partial {
            return;
        }
        let work = joined.items.into_iter().next().flatten().and_then(|item| item.work);
        match self.inner.danmaku.belong(video, work.as_deref()).await {
            Ok(()) => self.inner.works_told.insert(video.into(), ()),
            // Told with the next comment.
            Err(error) => tracing::warn!(%error, %video, "the work of a video is not told"),
        }
    }

    /// The catalogue was given another item for a video.
    pub(crate) fn forget_work(&self, video: &str) {
        self.inner.works_told.remove(video);
    }

    /// What `caller` may do about `video`.
    pub(crate) async fn role_of(&self, caller: &Caller, video: &str) -> Role {
        if caller.roles.service || caller.roles.admin {
            return Role::Service;
        }
        if caller.roles.moderator {
            return Role::Moderator;
        }
        let Some(user) = &caller.user else { return Role::Viewer };
        let joined = self.inner.catalogue.get_many(&[("video", video)], self.enrich_wait()).await;
        let owner = joined.items.into_iter().next().flatten().and_then(|item| item.owner);
        match owner.is_some_and(|owner| *owner == *user.as_str()) {
            true => Role::Owner,
            false => Role::Viewer,
        }
    }

    /// The caller as one who moderates the whole site.
    pub(crate) fn site_moderator(&self, caller: &Caller) -> Result<Actor, Problem> {
        let role = match caller.roles {
            roles if roles.service || roles.admin => Role::Service,
            roles if roles.moderator => Role::Moderator,
            _ => {
                let detail = "for moderators, services and admins";
                return Err(Problem::new(Code::PermissionDenied, detail));
            }
        };
        Ok(Actor { user: self.acting_user(caller)?, role })
    }

    /// The user in whose name `caller` acts: their own; of a service or where
    /// nobody is asked for a name, one that is called as they are.
    pub(crate) fn acting_user(&self, caller: &Caller) -> Result<UserId, Problem> {
        match &caller.user {
            Some(user) => Ok(user.clone()),
            None if caller.is_nobody() => {
                Err(Problem::new(Code::Unauthenticated, "a bearer token is due for this"))
            }
            None => UserId::new(&caller.name).map_err(|bad| Problem::invalid(bad.0)),
        }
    }

    /// Comments are for everyone, or for everyone who is known.
    pub(crate) fn may_read_comments(&self, caller: &Caller) -> Result<(), Problem> {
        if caller.is_nobody() && !self.inner.options.danmaku.public_read {
            return Err(Problem::new(Code::Unauthenticated, "a bearer token is due for this"));
        }
        Ok(())
    }
}
