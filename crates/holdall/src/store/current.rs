//! A store open for reading, while others may write it: which opening of it is current.
//!
//! Owns: [`Current`]. Mostly the same opening goes on from state to state. If a
//! checkpoint passed its state or another process took over, the store is opened again; snapshots
//! of before keep their own.
//!
//! Threads: one goes on while others wait for it.

use crate::engine::{Inner, Options, open_beside};
use holdall_core::Result;
use holdall_io::Storage;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// The current opening.
#[derive(Debug)]
pub(crate) struct Current {
    storage: Arc<dyn Storage>,
    options: Options,
    inner: RwLock<Arc<Inner>>,
    /// Whether it sees another state than the one it was opened with.
    moved: AtomicBool,
    going_on: Mutex<()>,
}

impl Current {
    /// Opens a store for reading.
    ///
    /// # Errors
    /// Those of [`open_beside`].
    pub(crate) fn open(storage: Arc<dyn Storage>, options: &Options) -> Result<Self> {
        let inner = RwLock::new(open_beside(&storage, options)?);
        let (options, moved) = (options.clone(), AtomicBool::new(false));
        Ok(Self { storage, options, inner, moved, going_on: Mutex::default() })
    }

    /// The opening that was current last.
    pub(crate) fn last(&self) -> Arc<Inner> {
        self.inner.read().clone()
    }

    /// The opening, seeing the newest state that is known to be durable. Cost: a system call,
    /// mostly; if there is a newer state, as [`Pager::advance`](crate::txn::Pager::advance).
    ///
    /// # Errors
    /// Those of [`open_beside`].
    pub(crate) fn newest(&self) -> Result<Arc<Inner>> {
        let last = self.last();
        last.pager.horizon.check_fork()?;
        if !last.pager.is_behind()? {
            return Ok(last);
        }
        let _one = self.going_on.lock();
        let last = self.last();
        if !last.pager.is_behind()? {
            return Ok(last);
        }
        self.moved.store(true, SeqCst);
        if last.pager.advance()? {
            return Ok(last);
        }
        self.open_again()
    }

    /// An opening that sees the newest state, and what it holds beside pages is of that state too.
    ///
    /// # Errors
    /// Those of [`open_beside`].
    pub(crate) fn settled(&self) -> Result<Arc<Inner>> {
        let _one = self.going_on.lock();
        let last = self.last();
        if self.moved.load(SeqCst) || last.pager.is_behind()? {
            return self.open_again();
        }
        Ok(last)
    }

    fn open_again(&self) -> Result<Arc<Inner>> {
        let inner = open_beside(&self.storage, &self.options)?;
        *self.inner.write() = inner.clone();
        self.moved.store(false, SeqCst);
        Ok(inner)
    }
}
