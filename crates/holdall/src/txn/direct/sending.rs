//! New data on its way to its place while the transaction goes on.
//!
//! Owns: what waits to be handed over to the store's writing thread ([`super::WriteBehind`]), and
//! whether that failed.

use super::write_behind::{Batch, NewBytes};
use crate::txn::Pager;
use holdall_core::{Error, PageNo, Result};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What a transaction hands over.
#[derive(Debug, Default)]
pub(super) struct Sending {
    /// Segment data that waits for more.
    held: Mutex<Batch>,
    /// Something was handed over and may be under way.
    under_way: AtomicBool,
    /// Some of it could not be written.
    broken: AtomicBool,
}

impl Sending {
    pub(super) fn holds_nothing(&self) -> bool {
        self.held.lock().is_empty()
    }

    /// Takes over data for `start`; hands over what has gathered once it is `enough` bytes.
    pub(super) fn hold(&mut self, at: &Pager, start: PageNo, bytes: Vec<u8>, enough: usize) {
        let held = self.held.get_mut();
        held.push(start, NewBytes::Data(bytes));
        if held.bytes() >= enough {
            let batch = std::mem::take(held);
            self.hand_over(at, batch);
        }
    }

    pub(super) fn take_held(&mut self) -> Batch {
        std::mem::take(self.held.get_mut())
    }

    pub(super) fn hand_over(&self, at: &Pager, batch: Batch) {
        self.under_way.store(true, Relaxed);
        at.behind.send(&at.volume, batch);
    }

    /// Writes what is held, so that it can be read.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Io`]; the commit then fails too.
    pub(super) fn write_held(&self, at: &Pager) -> Result<()> {
        // What failed before is not in its place: a read from there would look like damage.
        self.check()?;
        let batch = std::mem::take(&mut *self.held.lock());
        self.finish(at, batch)
    }

    /// Writes `last` and waits for all that was handed over.
    ///
    /// # Errors
    /// As [`Sending::write_held`].
    pub(super) fn finish(&self, at: &Pager, last: Batch) -> Result<()> {
        if last.is_empty() && !self.under_way.load(Relaxed) {
            return Ok(());
        }
        let result = at.behind.finish(&at.volume, last);
        self.under_way.store(false, Relaxed);
        if result.is_err() {
            self.broken.store(true, Relaxed);
        }
        result
    }

    /// # Errors
    /// [`Error::Io`] once a write of this transaction has failed.
    pub(super) fn check(&self) -> Result<()> {
        if !self.broken.load(Relaxed) {
            return Ok(());
        }
        let why = std::io::Error::other("an earlier write of this transaction failed");
        Err(Error::io("writing new data", why))
    }

    /// Waits until nothing is being written any more. For transactions that end without a commit.
    pub(super) fn abandon(&self, at: &Pager) {
        if self.under_way.swap(false, Relaxed) {
            at.behind.abandon();
        }
    }
}
