//! For those who run the server: is it alive, is it ready, what does it do.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use tideline_danmaku::owner::Stats as DanmakuStats;
use tideline_history::owner::Stats as HistoryStats;
use tideline_meta::ask::Subtree;
use tideline_types::PartitionId;

use super::door;
use crate::Gateway;
use crate::meters::{counter, gauge, head, line};
use crate::problem::Problem;

/// The process answers.
pub(super) async fn healthz() -> Response {
    door::json(b"{\"status\":\"ok\"}".to_vec())
}

/// The process takes writes.
pub(super) async fn readyz(State(gateway): State<Gateway>) -> Response {
    match gateway.ready() {
        Ok(()) => door::json(b"{\"status\":\"ready\"}".to_vec()),
        Err(problem) => problem.into_response(),
    }
}

/// In the text format of Prometheus.
pub(super) async fn metrics(State(gateway): State<Gateway>) -> Response {
    let mut out = String::with_capacity(32 << 10);
    gateway.inner.meters.write(&mut out);
    gateway.write_parts(&mut out);
    door::typed("text/plain; version=0.0.4; charset=utf-8", out)
}

/// The API document.
pub(super) async fn openapi(State(gateway): State<Gateway>) -> Response {
    door::typed("application/json", gateway.inner.openapi.clone())
}

impl Gateway {
    /// Whether writes are taken.
    pub(crate) fn ready(&self) -> Result<(), Problem> {
        if *self.inner.stopping.borrow() {
            return Err(Problem::overloaded("the server is stopping", Duration::from_secs(5)));
        }
        self.inner.queue.health().map_err(|error| {
            let detail = format!("the log takes no writes: {error}");
            Problem::overloaded(detail, Duration::from_secs(5))
        })
    }

    /// What the parts say about themselves.
    fn write_parts(&self, out: &mut String) {
        let history = self.inner.history.stats();
        let mut sum_of = |name: &str, help: &str, of: fn(&HistoryStats) -> usize| {
            gauge(out, name, help, sum(&history, of));
        };
        sum_of("tideline_history_users_hot", "Users in memory.", |s| s.users);
        sum_of("tideline_history_hot_bytes", "Their bytes.", |s| s.hot_bytes);
        sum_of(
            "tideline_history_users_dirty",
            "Users with changes that are not yet in cold rows.",
            |s| s.dirty_users,
        );
        sum_of(
            "tideline_history_lag_bytes",
            "Bytes of the log that are not yet in cold rows.",
            |s| s.lag_bytes,
        );
        sum_of(
            "tideline_history_parked",
            "Marks and calls that wait for a user to be loaded.",
            |s| s.parked,
        );
        sum_of("tideline_history_waiting_sync", "Calls that wait for a sync.", |s| s.waiting);
        let danmaku = self.inner.danmaku.stats();
        let mut sum_of = |name: &str, help: &str, of: fn(&DanmakuStats) -> usize| {
            gauge(out, name, help, sum(&danmaku, of));
        };
        sum_of("tideline_danmaku_videos_hot", "Videos in memory.", |s| s.videos);
        sum_of("tideline_danmaku_hot_bytes", "Their bytes.", |s| s.hot_bytes);
        sum_of(
            "tideline_danmaku_videos_dirty",
            "Videos with changes that are not yet in rows.",
            |s| s.dirty_videos,
        );
        sum_of("tideline_danmaku_lag_bytes", "Bytes of the log that are not yet in rows.", |s| {
            s.lag_bytes
        });
        sum_of("tideline_danmaku_parked", "Calls that wait for rows.", |s| s.parked);
        sum_of("tideline_danmaku_waiting_sync", "Calls that wait for a sync.", |s| s.waiting);
        let help = "Outcomes that are synced and not yet applied to cold rows.";
        head(out, "tideline_view_lag_records", "gauge", help);
        let lags = history.iter().map(|(partition, stats)| ("history", partition, stats.lag));
        let lags = lags.chain(danmaku.iter().map(|(at, stats)| ("danmaku", at, stats.lag)));
        for (view, partition, lag) in lags {
            let labels = format_args!("view=\"{view}\",partition=\"{partition}\"");
            line(out, format_args!("tideline_view_lag_records{{{labels}}} {lag}"));
        }
        let help = "Connections in live rooms, one for each room.";
        gauge(out, "tideline_room_members", help, self.inner.rooms.members() as f64);
        let help = "Subscriptions to topics that are open.";
        gauge(out, "tideline_topic_readers", help, self.inner.readers.count() as f64);
        let usage = self.inner.queue.usage();
        gauge(out, "tideline_log_bytes", "Bytes of the log.", usage.total_bytes as f64);
        let help = "Bytes of the log not yet in segments.";
        gauge(out, "tideline_log_unfilled_bytes", help, usage.unfilled_bytes as f64);
        counter(out, "tideline_log_syncs_total", "Syncs of the log.", usage.syncs);
        let help = "Bytes appended to the log.";
        counter(out, "tideline_log_appended_bytes_total", help, usage.appended_bytes);
        let help = "Bytes of batches that readers of a topic were given.";
        head(out, "tideline_topic_egress_bytes_total", "counter", help);
        for topic in self.inner.queue.topics() {
            let (name, bytes) = (&topic.name, topic.egress_bytes);
            let labels = format_args!("topic=\"{name}\"");
            line(out, format_args!("tideline_topic_egress_bytes_total{{{labels}}} {bytes}"));
        }
        self.write_tree(out);
        let ready = if self.ready().is_ok() { 1.0 } else { 0.0 };
        gauge(out, "tideline_ready", "1 while writes are taken.", ready);
        self.write_hook(out);
    }

    fn write_tree(&self, out: &mut String) {
        let Some(meta) = self.inner.meta.get() else { return };
        let subtrees = meta.subtrees();
        let mut sum_of = |name: &str, help: &str, of: fn(&Subtree) -> u64| {
            gauge(out, name, help, subtrees.iter().map(of).sum::<u64>() as f64);
        };
        sum_of("tideline_meta_subtrees", "Subtrees of the metadata tree.", |_| 1);
        sum_of("tideline_meta_nodes", "Nodes in them.", |s| s.nodes);
        sum_of("tideline_meta_bytes", "What these count against quotas.", |s| s.bytes);
        sum_of("tideline_meta_sessions", "Sessions that have not ended.", |s| s.sessions);
        sum_of("tideline_meta_observers", "Observers that wait for a change.", |s| s.observers);
        sum_of("tideline_meta_rest_bytes", "Bytes of changes that are not yet in rows.", |s| {
            s.unrested_bytes
        });
    }

    fn write_hook(&self, out: &mut String) {
        let Some(hook) = &self.inner.hook else { return };
        let counts = &hook.counts;
        let help = "Comments about which the moderation hook was asked, by what came of it.";
        let name = "tideline_danmaku_hook_comments_total";
        head(out, name, "counter", help);
        for (word, count) in [
            ("shown", &counts.shown),
            ("blocked", &counts.blocked),
            ("left", &counts.left),
            ("failed", &counts.failed),
            ("full", &counts.full),
        ] {
            let count = count.load(Ordering::Relaxed);
            line(out, format_args!("{name}{{came=\"{word}\"}} {count}"));
        }
    }
}

/// A figure of all partitions together.
fn sum<S>(stats: &[(PartitionId, S)], of: fn(&S) -> usize) -> f64 {
    stats.iter().map(|(_, stats)| of(stats) as f64).sum()
}
