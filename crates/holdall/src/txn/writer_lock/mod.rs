//! The writer's lock: one transaction changes pages at a time.
//!
//! Owns: [`Writer`]. Invariant: the lock is held from a transaction's first touch of a page to
//! its end. It belongs to no thread: any may go on with a transaction, or end it.
//!
//! Free or taken, without waiters, it is one atomic number. Waiters have a queue, whose mutex is
//! taken by who waits and by who lets go while somebody does. Who lets go gives the lock to the
//! oldest waiter if that has waited for long enough; else the lock is free, the waiter is woken,
//! and a running thread may be faster.

mod holder;
mod queue;
#[cfg(test)]
mod tests;
mod waiting;

pub use waiting::{Cancel, Wait, Waiting};

use crate::lock::{Mutex, MutexGuard};
use crate::metrics::{Distribution, Recorder};
use holdall_core::{Busy, Error, Result};
use holder::Holder;
use queue::{Queue, Waiter};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::Instant;
use waiting::{ASK_EVERY, Wake};

/// Somebody has the lock.
const LOCKED: u32 = 1;
/// Somebody waits. Set and cleared with the queue's mutex held.
const WAITERS: u32 = 2;

/// The lock, and which thread holds it.
#[derive(Debug, Default)]
pub(super) struct Writer(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: AtomicU32,
    holder: Holder,
    queue: Arc<Mutex<Queue>>,
    /// Nanoseconds that those waited who got it.
    waits: Recorder,
}

/// The lock, held.
pub(super) struct WriterLock(Arc<Shared>);

impl Writer {
    /// Takes the lock, waiting for the transaction that has it.
    ///
    /// # Errors
    /// [`Error::Busy`] once the time of the wait is over, or at once if it has no end and the
    /// transaction is one of this thread; [`Error::Cancelled`].
    #[inline]
    pub(super) fn lock(&self, waiting: &Waiting) -> Result<WriterLock> {
        if !self.0.take_free(waiting) {
            self.0.lock_slowly(waiting)?;
        }
        self.0.holder.begin();
        Ok(WriterLock(self.0.clone()))
    }

    /// Whether this thread holds the lock.
    pub(super) fn is_mine(&self) -> bool {
        self.0.holder.is_own()
    }

    /// Who holds the lock; None if nobody does.
    pub(super) fn holder(&self) -> Option<Busy> {
        (self.0.state.load(Relaxed) & LOCKED != 0).then(|| self.0.holder.report())
    }

    /// Nanoseconds that those waited who found it taken and got it.
    pub(super) fn waits(&self) -> Distribution {
        self.0.waits.load()
    }

    /// Threads that wait, for tests.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.0.queue.lock().len()
    }
}

impl Shared {
    /// Takes the lock if it is free. Users may overtake waiters: it is free only while the next
    /// of these had to wait for little when it was let go.
    #[inline]
    fn take_free(&self, waiting: &Waiting) -> bool {
        let take =
            |free| self.state.compare_exchange(free, free | LOCKED, Acquire, Relaxed).is_ok();
        take(0) || !waiting.maintenance && take(WAITERS)
    }

    #[cold]
    fn lock_slowly(&self, waiting: &Waiting) -> Result<()> {
        let begun = Instant::now();
        self.lock_in_turn(waiting).inspect(|()| self.waits.record_since(begun))
    }

    fn lock_in_turn(&self, waiting: &Waiting) -> Result<()> {
        waiting.check()?;
        let endless = waiting.wait == Wait::Forever;
        if waiting.wait == Wait::Not || endless && self.holder.is_own() {
            return Err(Error::Busy(Box::new(self.holder.report())));
        }
        let waiter = Arc::new(Waiter::new(waiting.maintenance, &self.queue));
        let entered: Arc<dyn Wake> = waiter.clone();
        if let Some(cancel) = waiting.cancel() {
            cancel.enter(entered.clone());
        }
        let mut place = Place { shared: self, waiter: &waiter, is_kept: true };
        let result = self.wait(&waiter, waiting);
        place.is_kept = false;
        if let Some(cancel) = waiting.cancel() {
            cancel.leave(&entered);
        }
        result
    }

    fn wait(&self, waiter: &Arc<Waiter>, waiting: &Waiting) -> Result<()> {
        let is_asked = waiting.cancel().is_some_and(Cancel::is_asked);
        let later = || is_asked.then(|| Instant::now() + ASK_EVERY);
        let mut ask = later();
        let mut queue = self.queue.lock();
        queue.push(waiter.clone());
        loop {
            if waiter.given.load(Relaxed) {
                return Ok(());
            }
            waiter.woken.store(false, Relaxed);
            // From here on who lets go looks at the queue.
            let before = self.state.fetch_or(WAITERS, Relaxed);
            if before & LOCKED == 0 && self.take_in_turn(&mut queue, waiter) {
                return Ok(());
            }
            if ask.is_some_and(|ask| Instant::now() >= ask) {
                drop(queue);
                let cancelled = waiting.check();
                queue = self.queue.lock();
                ask = later();
                if cancelled.is_ok() {
                    // Much may have changed.
                    continue;
                }
            }
            if waiting.is_cancelled() || waiting.is_over() {
                return self.give_up(queue, waiter, waiting);
            }
            queue = match waiting.until().into_iter().chain(ask).min() {
                Some(until) => waiter.wake.wait_until(queue, until),
                None => waiter.wake.wait(queue),
            };
        }
    }

    /// Takes the lock, which was free, if it is the waiter's turn; else wakes whose turn it is.
    fn take_in_turn(&self, queue: &mut MutexGuard<'_, Queue>, waiter: &Arc<Waiter>) -> bool {
        match queue.next() {
            Some(next) if !Arc::ptr_eq(next, waiter) => {
                next.tell();
                return false;
            }
            _ => {}
        }
        let free = (WAITERS, WAITERS | LOCKED);
        let taken = self.state.compare_exchange(free.0, free.1, Acquire, Relaxed).is_ok();
        if taken {
            self.leave(queue, waiter);
        }
        taken
    }

    /// Ends a wait that was cancelled, or whose time is over.
    fn give_up(
        &self,
        mut queue: MutexGuard<'_, Queue>,
        waiter: &Arc<Waiter>,
        waiting: &Waiting,
    ) -> Result<()> {
        if waiter.given.load(Relaxed) {
            return Ok(());
        }
        self.pass_on(&mut queue, waiter);
        drop(queue);
        if waiting.is_cancelled() {
            return Err(Error::Cancelled);
        }
        Err(Error::Busy(Box::new(self.holder.report())))
    }

    /// Takes a waiter out of the queue that has not got the lock.
    fn pass_on(&self, queue: &mut MutexGuard<'_, Queue>, waiter: &Arc<Waiter>) {
        self.leave(queue, waiter);
        // It may be free, and this the one that was woken for it.
        if self.state.load(Relaxed) & LOCKED == 0
            && let Some(next) = queue.next()
        {
            next.tell();
        }
    }

    /// Takes a waiter out of the queue.
    fn leave(&self, queue: &mut MutexGuard<'_, Queue>, waiter: &Arc<Waiter>) {
        queue.remove(waiter);
        if queue.is_empty() {
            self.state.fetch_and(!WAITERS, Relaxed);
        }
    }

    #[inline]
    fn unlock(&self) {
        self.holder.end();
        if self.state.compare_exchange(LOCKED, 0, Release, Relaxed).is_err() {
            self.unlock_with_waiters();
        }
    }

    #[cold]
    fn unlock_with_waiters(&self) {
        let mut queue = self.queue.lock();
        match queue.next().cloned() {
            Some(next) if next.is_due() => {
                self.leave(&mut queue, &next);
                next.given.store(true, Relaxed);
                // The mutex orders what was written before.
                drop(queue);
                next.wake.notify_one();
            }
            Some(next) => {
                self.state.fetch_and(!LOCKED, Release);
                let is_news = next.note_woken();
                drop(queue);
                if is_news {
                    next.wake.notify_one();
                }
            }
            None => drop(self.state.fetch_and(!(LOCKED | WAITERS), Release)),
        }
    }
}

/// A place in the queue, which a panic of what a token asks gives up.
struct Place<'a> {
    shared: &'a Shared,
    waiter: &'a Arc<Waiter>,
    is_kept: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            return;
        }
        let mut queue = self.shared.queue.lock();
        if self.waiter.given.load(Relaxed) {
            drop(queue);
            self.shared.unlock();
        } else {
            self.shared.pass_on(&mut queue, self.waiter);
        }
    }
}

impl WriterLock {
    /// Says that this thread runs the transaction now, which another one may have begun.
    #[inline]
    pub(super) fn run_here(&self) {
        self.0.holder.call();
    }
}

impl Drop for WriterLock {
    #[inline]
    fn drop(&mut self) {
        self.0.unlock();
    }
}

impl std::fmt::Debug for WriterLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WriterLock")
    }
}
