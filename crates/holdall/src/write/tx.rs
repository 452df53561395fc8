//! A transaction as a whole: durability, waiting, the commit.
//!
//! Owns: [`WriteTx`], [`Durability`], [`WriteOptions`].

use super::ObjectsMut;
use crate::engine::Inner;
use crate::txn::{Cancel, Wait, Waiting};
use holdall_core::Result;
use std::fmt::Debug;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

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

/// How a transaction waits for others before it begins.
///
/// ```
/// # use holdall::{Error, Store, Wait, WriteOptions};
/// # use std::time::Duration;
/// # let store = Store::in_memory()?;
/// let limit = Wait::For(Duration::from_millis(1));
/// let options = WriteOptions { wait: limit, ..WriteOptions::default() };
/// let first = store.begin_write_with(&options)?;
/// match store.begin_write_with(&options) {
///     Err(Error::Busy(by)) => println!("{} has written for {:?}", by.thread, by.held),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct WriteOptions {
    /// How long. Checkpoints that must come first count, unless the store has no threads
    /// ([`Options::background`](crate::Options::background)): then the call runs them to their
    /// end. Default: [`Wait::Forever`].
    pub wait: Wait,
    /// Ends the wait when it is set. Default: none.
    pub cancel: Option<Cancel>,
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

    /// Begins a transaction at once, which keeps `store` open.
    pub(crate) fn begin_now(
        inner: &Arc<Inner>,
        store: Arc<dyn Debug + Send + Sync>,
        options: &WriteOptions,
    ) -> Result<Self> {
        let mut tx = Self::new(inner, Some(store))?;
        tx.start(&Waiting::begin(options.wait, options.cancel.as_ref()))?;
        Ok(tx)
    }

    /// Begins a transaction of maintenance at once: it waits until no user does, a second at most.
    pub(crate) fn for_maintenance(inner: &Arc<Inner>) -> Result<Self> {
        let mut tx = Self::new(inner, None)?;
        tx.start(&Waiting::maintenance())?;
        Ok(tx)
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
}
