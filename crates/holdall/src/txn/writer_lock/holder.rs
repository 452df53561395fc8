//! Who has the writer's lock, for those who wait.
//!
//! Owns: [`Holder`]. It is written by the thread that has the lock alone, and read by anybody: the
//! fields may be of two holders for a moment, which an error text survives.

use crate::cache::{thread_name, thread_number};
use holdall_core::Busy;
use holdall_io::coarse_time;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// What stays of a thread.
#[derive(Debug)]
struct Thread {
    number: usize,
    name: Arc<str>,
}

/// The holder of a lock, if there is one.
#[derive(Debug, Default)]
pub(super) struct Holder {
    /// Number of the thread plus one; 0 if nobody holds it.
    number: AtomicUsize,
    /// The one that `thread` is of.
    noted: AtomicUsize,
    /// Nanoseconds of the coarse clock.
    since: AtomicU64,
    last_call: AtomicU64,
    thread: Mutex<Option<Thread>>,
}

fn now() -> u64 {
    u64::try_from(coarse_time().as_nanos()).unwrap_or(u64::MAX)
}

impl Holder {
    /// This thread has the lock from now on.
    #[inline]
    pub(super) fn begin(&self) {
        let now = now();
        self.since.store(now, Relaxed);
        self.last_call.store(now, Relaxed);
        self.take(thread_number() + 1);
    }

    /// This thread uses the transaction now, which another one may have begun.
    #[inline]
    pub(super) fn call(&self) {
        self.last_call.store(now(), Relaxed);
        let own = thread_number() + 1;
        if self.number.load(Relaxed) != own {
            self.take(own);
        }
    }

    #[inline]
    fn take(&self, own: usize) {
        if self.noted.load(Relaxed) != own {
            self.note(own);
        }
        self.number.store(own, Relaxed);
    }

    #[cold]
    fn note(&self, own: usize) {
        // At the end of a thread there is no name any more.
        let name = thread_name(own - 1).unwrap_or_else(|| "a thread that ends".into());
        *self.thread.lock() = Some(Thread { number: own, name });
        self.noted.store(own, Relaxed);
    }

    /// Nobody has it. Before the lock is free: the next holder says who it is.
    #[inline]
    pub(super) fn end(&self) {
        self.number.store(0, Relaxed);
    }

    /// Whether this thread has it.
    #[inline]
    pub(super) fn is_own(&self) -> bool {
        // Only this thread sets its own number, and the thread that took the transaction over
        // clears it.
        self.number.load(Relaxed) == thread_number() + 1
    }

    /// What others learn of it.
    pub(super) fn report(&self) -> Busy {
        let age =
            |stamp: &AtomicU64| Duration::from_nanos(now().saturating_sub(stamp.load(Relaxed)));
        let mut busy = Busy::default();
        (busy.held, busy.idle) = (age(&self.since), age(&self.last_call));
        busy.is_own = self.is_own();
        let number = self.number.load(Relaxed);
        match &*self.thread.lock() {
            Some(thread) if thread.number == number => {
                busy.thread = thread.name.to_string();
                busy.has_ended = thread_name(number - 1).is_none();
            }
            // The lock is being handed over.
            _ => busy.thread = "another thread".into(),
        }
        busy
    }
}
