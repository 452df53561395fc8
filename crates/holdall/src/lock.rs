//! Locks that every commit takes: who waits for them sleeps.
//!
//! Owns: [`Mutex`] and [`Condvar`], the standard library's without poison. parking_lot's waiters
//! yield first, and where a reader never leaves its processor that gives up all the time they
//! may have: puts beside two such readers were 2.5 times fewer (W9).
//!
//! Who is woken needs the mutex at once: wake it after letting go.

use std::sync::PoisonError;
use std::time::Instant;

pub(crate) use std::sync::MutexGuard;

/// A mutex that a panic of its holder leaves usable.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    /// Waits for it without end.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where threads wait for a change of what a [`Mutex`] holds. They may wake without one.
#[derive(Debug, Default)]
pub(crate) struct Condvar(std::sync::Condvar);

impl Condvar {
    /// Lets go of the lock, sleeps until woken, takes it again.
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Condvar::wait`], at most until then.
    pub(crate) fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        until: Instant,
    ) -> MutexGuard<'a, T> {
        let left = until.saturating_duration_since(Instant::now());
        self.0.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Wakes one who waits, if any.
    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all who wait.
    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
