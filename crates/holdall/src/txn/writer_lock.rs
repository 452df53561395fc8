//! The writer's lock: one transaction changes pages at a time.
//!
//! Owns: [`Writer`]. Invariant: the lock is held from a transaction's first touch of a page to
//! its end. A thread that asks for it while it holds it would wait for ever, so it gets an error.
//! A transaction may go on in another thread, which then holds it.

use crate::cache::thread_number;
use holdall_core::{Error, Result};
use parking_lot::{ArcMutexGuard, Mutex, RawMutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// The lock, and which thread holds it.
#[derive(Debug, Default)]
pub(super) struct Writer {
    lock: Arc<Mutex<()>>,
    /// Number of the thread plus one; 0 if nobody holds it.
    holder: Arc<AtomicUsize>,
}

/// The lock, held.
pub(super) struct WriterLock {
    holder: Arc<AtomicUsize>,
    _guard: ArcMutexGuard<RawMutex, ()>,
}

impl Writer {
    /// Takes the lock, waiting for the transaction that has it.
    ///
    /// # Errors
    /// [`Error::Invalid`] if that is one of this thread.
    pub(super) fn lock(&self) -> Result<WriterLock> {
        if self.is_mine() {
            let text = "a transaction of this thread is still running; end it before the next";
            return Err(Error::Invalid(text.into()));
        }
        Ok(self.held(self.lock.lock_arc()))
    }

    /// As [`Writer::lock`], waiting no longer than `limit`; `None` if that was not enough.
    ///
    /// # Errors
    /// As [`Writer::lock`].
    pub(super) fn lock_within(&self, limit: Duration) -> Result<Option<WriterLock>> {
        if self.is_mine() {
            return self.lock().map(Some);
        }
        let guard = self.lock.try_lock_arc().or_else(|| self.lock.try_lock_arc_for(limit));
        Ok(guard.map(|guard| self.held(guard)))
    }

    fn held(&self, guard: ArcMutexGuard<RawMutex, ()>) -> WriterLock {
        self.holder.store(thread_number() + 1, Relaxed);
        WriterLock { holder: self.holder.clone(), _guard: guard }
    }

    /// Whether this thread holds the lock.
    pub(super) fn is_mine(&self) -> bool {
        // Only this thread sets its own number, and the thread that took the transaction over
        // clears it.
        self.holder.load(Relaxed) == thread_number() + 1
    }
}

impl WriterLock {
    /// Says that this thread runs the transaction now, which another one may have begun.
    #[inline]
    pub(super) fn run_here(&self) {
        self.holder.store(thread_number() + 1, Relaxed);
    }
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        // Before the lock is free: the next holder sets its own.
        self.holder.store(0, Relaxed);
    }
}

impl std::fmt::Debug for WriterLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WriterLock")
    }
}
