//! A transaction as a whole: durability, waiting, the commit.
//!
//! Owns: [`WriteTx`], [`Durability`].

use super::ObjectsMut;
use crate::engine::Inner;
use crate::space::SpaceTx;
use holdall_core::Result;
use std::fmt::Debug;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

/// When a transaction's commit counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// When it survives a crash. Cost: one sync of the log, shared with commits that come
    /// together.
    #[default]
    Immediate,
    /// When this process sees it. A crash within [`Options::defer`](crate::Options::defer)
    /// undoes it whole, and all later commits. [`Store::read`](crate::Store::read) shows it once
    /// it is durable, [`Store::read_newest`](crate::Store::read_newest) at once.
    Deferred,
}

/// A write transaction: all of it happens or nothing.
///
/// From [`Store::write`](crate::Store::write), which commits it, or
/// [`Store::begin_write`](crate::Store::begin_write). Calls on objects, which are those of
/// [`ObjectsMut`], go to the default collection; [`WriteTx::collection`] leads to others. Reads
/// through it see its own changes. Dropped without a commit it leaves no trace. It may go from
/// thread to thread, one at a time.
#[derive(Debug)]
pub struct WriteTx(ObjectsMut);

impl Deref for WriteTx {
    type Target = ObjectsMut;

    fn deref(&self) -> &ObjectsMut {
        &self.0
    }
}

impl DerefMut for WriteTx {
    fn deref_mut(&mut self) -> &mut ObjectsMut {
        &mut self.0
    }
}

impl WriteTx {
    /// Begins a transaction that keeps `store` open, if it is given.
    pub(crate) fn new(
        inner: &Arc<Inner>,
        store: Option<Arc<dyn Debug + Send + Sync>>,
    ) -> Result<Self> {
        ObjectsMut::new(inner, store).map(Self)
    }

    /// Says when the commit counts as done; [`Durability::Immediate`] unless this is called.
    ///
    /// ```
    /// # use holdall::Durability;
    /// # let store = holdall::Store::in_memory()?;
    /// store.write(|tx| {
    ///     tx.set_durability(Durability::Deferred);
    ///     tx.put("counter", b"7")
    /// })?;
    /// assert!(store.read_newest()?.lookup("counter")?.is_some());
    /// # Ok::<(), holdall::Error>(())
    /// ```
    pub fn set_durability(&mut self, durability: Durability) {
        self.0.durability = durability;
    }

    /// Makes the transaction's changes happen, as its [`Durability`] says.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if a call of the transaction failed;
    /// [`Error::TooLarge`](crate::Error::TooLarge); [`Error::Full`](crate::Error::Full);
    /// [`Error::Poisoned`](crate::Error::Poisoned) if it cannot be made durable;
    /// [`Error::Moved`](crate::Error::Moved) if nobody would find it.
    pub fn commit(self) -> Result<()> {
        let (inner, durability) = (self.0.inner.clone(), self.0.durability);
        let Some(lsn) = self.0.install_all(durability == Durability::Immediate)? else {
            return Ok(());
        };
        match durability {
            Durability::Immediate => {
                inner.pager.wait_durable(lsn)?;
                inner.note_time();
                inner.after_commit()
            }
            Durability::Deferred => inner.after_deferred(),
        }
    }

    /// Waits at most `limit` for the transaction under way, and then begins; returns whether it
    /// has begun, as the first call that touches the store would have it after any wait. Asked
    /// again, it goes on waiting.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let store = holdall::Store::in_memory()?;
    /// let mut first = store.begin_write()?;
    /// first.put("a", b"1")?;
    /// let second = std::thread::scope(|scope| {
    ///     let wait = || store.begin_write()?.wait(Duration::from_millis(1));
    ///     scope.spawn(wait).join().expect("does not panic")
    /// });
    /// assert!(!second?);
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if this thread runs another transaction, or
    /// if this one has failed; [`Error::Poisoned`](crate::Error::Poisoned),
    /// [`Error::Corrupt`](crate::Error::Corrupt), [`Error::Io`](crate::Error::Io).
    pub fn wait(&mut self, limit: Duration) -> Result<bool> {
        let tx = &mut self.0;
        if tx.begun.is_some() || tx.failed {
            return tx.begin().map(|_| true);
        }
        tx.forget_some_placements();
        let inner = &tx.inner;
        let begun = SpaceTx::begin_within(&inner.pager, &inner.alloc, inner.root, limit)?;
        let Some(begun) = begun else { return Ok(false) };
        tx.begin_in(begun)?;
        Ok(true)
    }
}
