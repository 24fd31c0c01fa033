//! The timer of heads: one alarm for each connection, however many requests.
//!
//! hyper asks for a sleep before each head, and drops it once the head is
//! there. Setting and clearing a real alarm for each costs more than reading
//! the head. So the alarm of a connection stays set; when it rings and the
//! sleep that is waited for ends later, it is set to that end. Always: a sleep
//! ends no earlier than its deadline, and as soon after it as the runtime's.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use tokio::time::sleep_until;

type Alarm = Mutex<Option<Pin<Box<tokio::time::Sleep>>>>;

/// The timer of one connection.
#[derive(Default)]
pub(crate) struct HeadTimer {
    alarm: Arc<Alarm>,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(HeadSleep { deadline: deadline.into(), alarm: self.alarm.clone() })
    }
}

/// One wait for a head.
struct HeadSleep {
    deadline: tokio::time::Instant,
    alarm: Arc<Alarm>,
}

impl Sleep for HeadSleep {}

impl Future for HeadSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut alarm = self.alarm.lock().unwrap_or_else(PoisonError::into_inner);
        let alarm = alarm.get_or_insert_with(|| Box::pin(sleep_until(self.deadline)));
        if alarm.deadline() > self.deadline {
            alarm.as_mut().reset(self.deadline);
        }
        loop {
            ready!(alarm.as_mut().poll(context));
            if alarm.deadline() == self.deadline {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(self.deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn is_over(sleep: &mut Pin<Box<dyn Sleep>>) -> bool {
        sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[tokio::test]
    async fn a_sleep_does_not_end_with_the_alarm_of_the_one_before() {
        let timer = HeadTimer::default();
        timer.sleep(Duration::ZERO).await;
        let mut next = timer.sleep(HOUR);
        assert!(!is_over(&mut next));
        timer.sleep_until(Instant::now()).await;
        assert!(!is_over(&mut next));
    }

    #[tokio::test]
    async fn a_sleep_that_ends_sooner_than_the_one_before_does() {
        let timer = HeadTimer::default();
        let mut long = timer.sleep(HOUR);
        assert!(!is_over(&mut long));
        timer.sleep(Duration::ZERO).await;
        assert!(!is_over(&mut long));
    }
}
