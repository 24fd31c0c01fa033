//! Reads for owners.

use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use tideline_store::StoreError;

use super::{Driver, Order, View};

impl<V: View> Driver<V> {
    /// Reads as it is asked to, until the driver stops.
    pub(super) fn run_loader(&self, orders: &Mutex<mpsc::Receiver<Vec<Order<V>>>>) {
        while !self.is_stopped() {
            let mut taken = Vec::new();
            {
                let orders = orders.lock().expect("nothing panics while it is held");
                taken.extend(orders.recv_timeout(WAIT).into_iter().flatten());
                while taken.len() < ORDERS_AT_A_TIME
                    && !self.is_stopped()
                    && let Ok(more) = orders.try_recv()
                {
                    taken.extend(more);
                }
            }
            for Order { at, wanted } in taken {
                self.view.load(self, at, wanted);
            }
        }
    }
}

/// Reads rows of `table`. An engine that panics on damaged bytes has named them
/// badly, and takes neither the loader nor what else it is to read with it.
pub fn guarded<T>(
    table: &'static str,
    read: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    std::panic::catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        let (file, what) = (format!("tables/{table}").into(), "the engine gave up".into());
        Err(StoreError::Damaged { file, offset: 0, what })
    })
}

/// How long a loader waits for work before it looks whether it must stop.
const WAIT: Duration = Duration::from_millis(50);
/// A loader that has so many orders takes no more.
const ORDERS_AT_A_TIME: usize = 16;
