//! How far a salvage is, and whether it is to end.
//!
//! Owns: [`Meter`].

use crate::backup::BackupProgress;
use crate::maintain::Progress;
use holdall_core::{Error, Result};
use std::cell::{Cell, RefCell};

/// Tells the caller how far the work is. The file counts twice: once read, once brought.
pub(super) struct Meter<'p> {
    tell: RefCell<BackupProgress<'p>>,
    at: Cell<Progress>,
}

impl<'p> Meter<'p> {
    pub(super) fn new(tell: BackupProgress<'p>) -> Self {
        Self { tell: RefCell::new(tell), at: Cell::default() }
    }

    /// `read` of `file` bytes are read, `brought` are done with. Goes forward only.
    ///
    /// # Errors
    /// As [`Meter::check`].
    pub(super) fn at(&self, (read, brought): (u64, u64), file: u64) -> Result<()> {
        let done = (read + brought).max(self.at.get().done);
        self.at.set(Progress { done, total: 2 * file });
        self.check()
    }

    /// Tells the same again.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the caller ends the work.
    pub(super) fn check(&self) -> Result<()> {
        let ended = (self.tell.borrow_mut())(self.at.get()).is_break();
        if ended { Err(Error::Cancelled) } else { Ok(()) }
    }
}
