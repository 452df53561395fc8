//! Those who wait for the writer's lock, in order of arrival.
//!
//! Owns: [`Queue`], whose order says who comes next and whether it may still be overtaken.

use super::waiting::Wake;
use crate::lock::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// So long a running thread may overtake the oldest waiter. Strict hand-over costs a change of
/// threads for each commit.
const OVERTAKEN: Duration = Duration::from_millis(1);
/// So long maintenance may be overtaken by users.
const MAINTENANCE: Duration = Duration::from_secs(1);

/// A waiting thread. Its flags change under the lock of the queue.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) wake: Condvar,
    since: Instant,
    maintenance: bool,
    /// Woken since the lock is free, and not awake yet.
    pub(super) woken: AtomicBool,
    /// Has been given the lock.
    pub(super) given: AtomicBool,
    queue: Arc<Mutex<Queue>>,
}

impl Waiter {
    pub(super) fn new(maintenance: bool, queue: &Arc<Mutex<Queue>>) -> Self {
        Self {
            wake: Condvar::default(),
            since: Instant::now(),
            maintenance,
            woken: AtomicBool::new(false),
            given: AtomicBool::new(false),
            queue: queue.clone(),
        }
    }

    /// Whether it must get the lock before anybody who runs.
    pub(super) fn is_due(&self) -> bool {
        let most = if self.maintenance { MAINTENANCE } else { OVERTAKEN };
        self.since.elapsed() >= most
    }

    /// Notes that it is woken because the lock is free; returns whether it was not yet.
    pub(super) fn note_woken(&self) -> bool {
        !self.woken.swap(true, Relaxed)
    }

    /// Says that the lock is free, once.
    pub(super) fn tell(&self) {
        if self.note_woken() {
            self.wake.notify_one();
        }
    }
}

impl Wake for Waiter {
    fn wake(&self) {
        // It looks at its token with the lock of the queue, and then sleeps.
        let _queue = self.queue.lock();
        self.wake.notify_one();
    }
}

/// Who waits.
#[derive(Debug, Default)]
pub(super) struct Queue {
    users: VecDeque<Arc<Waiter>>,
    maintenance: VecDeque<Arc<Waiter>>,
}

impl Queue {
    pub(super) fn push(&mut self, waiter: Arc<Waiter>) {
        let line = if waiter.maintenance { &mut self.maintenance } else { &mut self.users };
        line.push_back(waiter);
    }

    /// Who comes next: maintenance after users, unless it has waited for a second.
    pub(super) fn next(&self) -> Option<&Arc<Waiter>> {
        let maintenance = self.maintenance.front();
        maintenance.filter(|w| w.is_due()).or(self.users.front()).or(maintenance)
    }

    pub(super) fn remove(&mut self, waiter: &Arc<Waiter>) {
        let line = if waiter.maintenance { &mut self.maintenance } else { &mut self.users };
        line.retain(|other| !Arc::ptr_eq(other, waiter));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.users.is_empty() && self.maintenance.is_empty()
    }

    /// How many wait, for tests.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.users.len() + self.maintenance.len()
    }
}
