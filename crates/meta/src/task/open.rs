//! A start: topics, partitions, what they hold, and what was begun and not
//! finished.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tideline_queue::Queue;
use tideline_queue::view::{self, Duty};
use tideline_store::{Clock, StoreError, Table};
use tideline_types::Incarnation;

use super::keep::EVERY;
use super::{Door, Driver, Subtrees, TOPIC};
use crate::ask::{Answer, Ask};
use crate::namespace;
use crate::options::Options;
use crate::owner::Owner;
use crate::path::Path;

impl Driver {
    /// Takes every partition over, brings back what it holds, and starts the
    /// threads. Blocks; must be called within a tokio runtime.
    pub(crate) fn open(
        queue: Queue,
        table: Arc<dyn Table>,
        clock: Arc<dyn Clock>,
        options: Options,
    ) -> Result<Arc<Self>, StoreError> {
        let partitions = view::ensure_topic(&queue, TOPIC, options.partitions, [])?;
        let subtrees = Subtrees::default();
        let view = view::Driver::open(subtrees, queue, table, clock, partitions, |writer, _| {
            let synced = writer.next().prev();
            let owner = Owner::new(writer.stream(), writer.epoch(), synced, writer.newest());
            owner.with_start(writer.start())
        })?;
        let driver = Arc::new(Self { options, view, closed: AtomicBool::new(false) });
        for at in 0..usize::from(driver.view.partitions()) {
            driver.view.look(at, |owner| {
                let doors = owner.subtrees().map(|(root, life, synced)| {
                    (root.clone(), Arc::new(Door::new(root.clone(), life, synced)))
                });
                driver.view.view().doors_mut().extend(doors);
            });
        }
        // On a thread of its own: the caller's may not wait for a sync.
        std::thread::scope(|scope| scope.spawn(|| driver.reconcile()).join())
            .map_err(|_| failed(&"a panic while it was opened"))??;
        let keeper = Arc::clone(&driver);
        driver.view.keep_house(vec![Duty { every: EVERY, run: Box::new(move || keeper.keep()) }]);
        Ok(driver)
    }

    /// Opens what is declared and not there, shuts what is there and not
    /// declared: a stop came between the two.
    fn reconcile(&self) -> Result<(), StoreError> {
        let top = Path::root();
        let (life, quota) = (namespace::LIFE, namespace::QUOTA);
        self.settle(&top, Ask::Open { incarnation: life, quota })?;
        let Answer::Image(image) = self.ask_blocking(&top, Ask::Picture) else {
            return Err(failed(&"what lies above subtrees cannot be read"));
        };
        let mut declared = BTreeMap::new();
        for (path, node) in image.tree.nodes() {
            let found = namespace::declared(node).map_err(|bad| failed(&bad))?;
            declared.extend(found.map(|found| (path.clone(), found)));
        }
        let there = self.view.look_at_all(|owner| {
            let there = owner.subtrees().map(|(root, life, _)| (root.clone(), life));
            there.collect::<Vec<(Path, Incarnation)>>()
        });
        for (root, &(incarnation, quota)) in &declared {
            self.settle(root, Ask::Open { incarnation, quota })?;
        }
        for (root, life) in there.into_iter().flatten() {
            let is_declared = declared.get(&root).is_some_and(|(held, _)| *held == life);
            if !root.is_root() && !is_declared {
                self.settle(&root, Ask::Shut(life))?;
            }
        }
        Ok(())
    }

    fn settle(&self, root: &Path, ask: Ask) -> Result<(), StoreError> {
        match self.ask_blocking(root, ask) {
            Answer::Refused(refusal) => Err(failed(&refusal)),
            _ => Ok(()),
        }
    }
}

fn failed(error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Io { what: "the metadata tree".into(), cause: error.to_string() }
}
