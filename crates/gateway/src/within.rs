//! Deadlines that cost nothing where nothing is waited for.
//!
//! Most work is done the first time that it is looked at. A timer is made only
//! for what is not: it is large, and would make everything large that holds it.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::poll_fn;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

/// What `work` comes to, or that it took longer than `limit`.
pub(crate) async fn within<F: Future>(limit: Duration, work: F) -> Result<F::Output, Elapsed> {
    let mut work = pin!(work);
    match poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
        Poll::Ready(done) => Ok(done),
        Poll::Pending => Box::pin(timeout(limit, work)).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_done_at_once_is_never_late_and_what_never_ends_is() {
        assert_eq!(within(Duration::ZERO, async { 7 }).await.unwrap(), 7);
        assert!(within(Duration::ZERO, std::future::pending::<()>()).await.is_err());
    }

    #[tokio::test]
    async fn what_waits_for_others_comes_to_its_end() {
        let work = async {
            tokio::task::yield_now().await;
            7
        };
        assert_eq!(within(Duration::from_hours(1), work).await.unwrap(), 7);
    }
}
