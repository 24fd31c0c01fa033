//! Where a caller waits.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::mark::Verdict;
use crate::owner::{Answer, Refusal};

/// Whom an owner answers.
#[derive(Debug)]
pub(crate) enum Waiter {
    /// A write, which may wait for other partitions too.
    Write(Arc<Gate>),
    /// A call about one user.
    Call(tokio::sync::oneshot::Sender<Answer>),
}

impl Waiter {
    /// Tells the caller; one who has gone away is not missed.
    pub(crate) fn answer(self, answer: Answer) {
        match self {
            Self::Write(gate) => gate.answer(answer),
            Self::Call(tell) => _ = tell.send(answer),
        }
    }
}

/// Gathers the verdicts of one write from the partitions that it touches.
#[derive(Debug)]
pub(crate) struct Gate {
    gathered: Mutex<Gathered>,
    open: Notify,
}

#[derive(Debug)]
struct Gathered {
    verdicts: Vec<Verdict>,
    refusal: Option<Refusal>,
    /// Partitions that have not answered.
    left: usize,
}

impl Gate {
    /// For `marks` marks, of which `parts` partitions will answer.
    pub(crate) fn new(marks: usize, parts: usize) -> Arc<Self> {
        let verdicts = vec![Verdict::Stale; marks];
        Arc::new(Self {
            gathered: Mutex::new(Gathered { verdicts, refusal: None, left: parts }),
            open: Notify::new(),
        })
    }

    /// Each mark's verdict, by its place; or the first refusal, in which case
    /// some of the marks may have been taken.
    pub(crate) async fn wait(&self) -> Result<Vec<Verdict>, Refusal> {
        loop {
            let opened = self.open.notified();
            {
                let mut gathered = self.lock();
                if gathered.left == 0 {
                    return match gathered.refusal.take() {
                        Some(refusal) => Err(refusal),
                        None => Ok(std::mem::take(&mut gathered.verdicts)),
                    };
                }
            }
            opened.await;
        }
    }

    fn answer(&self, answer: Answer) {
        let mut gathered = self.lock();
        match answer {
            Answer::Verdicts(verdicts) => {
                for (place, verdict) in verdicts {
                    gathered.verdicts[place as usize] = verdict;
                }
            }
            Answer::Refused(refusal) => _ = gathered.refusal.get_or_insert(refusal),
            _ => unreachable!("a write is answered with verdicts"),
        }
        gathered.left -= 1;
        if gathered.left == 0 {
            self.open.notify_one();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Gathered> {
        self.gathered.lock().expect("nothing panics while it is held")
    }
}
