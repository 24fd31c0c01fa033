//! For those who run the server: is it alive, is it ready, what does it do.

use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};

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
        let stats = self.inner.history.stats();
        let sum = |of: fn(&tideline_history::owner::Stats) -> usize| {
            stats.iter().map(|(_, stats)| of(stats) as f64).sum::<f64>()
        };
        gauge(out, "tideline_history_users_hot", "Users in memory.", sum(|s| s.users));
        gauge(out, "tideline_history_hot_bytes", "Their bytes.", sum(|s| s.hot_bytes));
        let help = "Users with changes that are not yet in cold rows.";
        gauge(out, "tideline_history_users_dirty", help, sum(|s| s.dirty_users));
        let help = "Bytes of the log that are not yet in cold rows.";
        gauge(out, "tideline_history_lag_bytes", help, sum(|s| s.lag_bytes));
        let help = "Marks and calls that wait for a user to be loaded.";
        gauge(out, "tideline_history_parked", help, sum(|s| s.parked));
        let help = "Calls that wait for a sync.";
        gauge(out, "tideline_history_waiting_sync", help, sum(|s| s.waiting));
        let help = "Outcomes that are synced and not yet applied to cold rows.";
        head(out, "tideline_view_lag_records", "gauge", help);
        for (partition, stats) in &stats {
            let lag = stats.lag;
            line(
                out,
                format_args!(
                    "tideline_view_lag_records{{view=\"history\",partition=\"{partition}\"}} {lag}"
                ),
            );
        }
        for (partition, stats) in self.inner.danmaku.stats() {
            let lag = stats.lag;
            line(
                out,
                format_args!(
                    "tideline_view_lag_records{{view=\"danmaku\",partition=\"{partition}\"}} {lag}"
                ),
            );
        }
        self.write_danmaku(out);
        let help = "Connections in live rooms, one for each room.";
        gauge(out, "tideline_room_members", help, self.inner.rooms.members() as f64);
        let usage = self.inner.queue.usage();
        gauge(out, "tideline_log_bytes", "Bytes of the log.", usage.total_bytes as f64);
        let help = "Bytes of the log not yet in segments.";
        gauge(out, "tideline_log_unfilled_bytes", help, usage.unfilled_bytes as f64);
        counter(out, "tideline_log_syncs_total", "Syncs of the log.", usage.syncs);
        let help = "Bytes appended to the log.";
        counter(out, "tideline_log_appended_bytes_total", help, usage.appended_bytes);
        let ready = if self.ready().is_ok() { 1.0 } else { 0.0 };
        gauge(out, "tideline_ready", "1 while writes are taken.", ready);
    }
    fn write_danmaku(&self, out: &mut String) {
        let stats = self.inner.danmaku.stats();
        let sum = |of: fn(&tideline_danmaku::owner::Stats) -> usize| {
            stats.iter().map(|(_, stats)| of(stats) as f64).sum::<f64>()
        };
        gauge(out, "tideline_danmaku_videos_hot", "Videos in memory.", sum(|s| s.videos));
        gauge(out, "tideline_danmaku_hot_bytes", "Their bytes.", sum(|s| s.hot_bytes));
        let help = "Videos with changes that are not yet in rows.";
        gauge(out, "tideline_danmaku_videos_dirty", help, sum(|s| s.dirty_videos));
        let help = "Calls that wait for rows.";
        gauge(out, "tideline_danmaku_parked", help, sum(|s| s.parked));
        let help = "Calls that wait for a sync.";
        gauge(out, "tideline_danmaku_waiting_sync", help, sum(|s| s.waiting));
    }
}
