//! What the pager and the allocator ask of the store above them: room.
//!
//! Owns: [`Housekeeping`], one of the two places where a lower layer calls a higher one (the
//! other is [`crate::log::DataFile`]). Checkpoints and the log file belong to the store, and only
//! the layers below notice that they are needed.

use super::{Pager, Waiting};
use holdall_core::{PageRun, Result};
use std::sync::{Arc, OnceLock, Weak};

/// A store that makes room for its transactions.
pub trait Housekeeping: Send + Sync {
    /// Makes ready for a transaction that is about to change pages. The writer's lock is held,
    /// and nothing was read yet.
    ///
    /// # Errors
    /// What keeps the store from being written; [`holdall_core::Error::Busy`] and
    /// [`holdall_core::Error::Cancelled`] if a checkpoint must come first, and `waiting` ends
    /// before it.
    fn before_write(&self, waiting: &Waiting) -> Result<()>;

    /// Makes room in the log, by a checkpoint or by waiting for the one under way. Called again
    /// if that is not enough.
    ///
    /// # Errors
    /// Whatever stops the checkpoint; the transaction then fails, nothing is installed.
    fn make_log_room(&self) -> Result<()>;

    /// Makes the log larger, for a commit that it could not even hold alone. Returns whether it
    /// grew.
    ///
    /// # Errors
    /// As [`Housekeeping::make_log_room`]; [`holdall_core::Error::Full`] if the disk has no room
    /// for a larger one.
    fn enlarge_log(&self) -> Result<bool>;

    /// Gives freed pages back that only wait for a checkpoint.
    ///
    /// # Errors
    /// As [`Housekeeping::make_log_room`].
    fn free_waiting(&self) -> Result<()>;

    /// Reserves at most `pages` neighbouring pages for old versions of others; `None` if nothing is
    /// free and the volume cannot grow. Waits for nobody.
    ///
    /// # Errors
    /// Those of looking at what is free.
    fn reserve_scratch(&self, pages: u64) -> Result<Option<PageRun>>;

    /// Gives up the oldest snapshot for the room that its old versions take. Returns whether there
    /// were any.
    fn give_up_scratch(&self) -> bool;

    /// Gives back what [`Housekeeping::reserve_scratch`] gave.
    fn give_scratch_back(&self, run: PageRun);

    /// Empties sparse pages, so that about `pages` of them wait to be freed. Returns whether there
    /// was one; not if this thread holds the writer's lock.
    ///
    /// # Errors
    /// Those of the transactions that it makes.
    fn compact(self: Arc<Self>, pages: u64) -> Result<bool>;
}

/// The store above, once there is one.
#[derive(Default)]
pub(super) struct Above(OnceLock<Weak<dyn Housekeeping>>);

impl std::fmt::Debug for Above {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Above")
    }
}

impl Pager {
    /// Names the store above. Called once, at opening.
    pub fn serve(&self, store: Weak<dyn Housekeeping>) {
        // A second call would change nothing.
        let _ = self.above.0.set(store);
    }

    /// The store above; None in tests of the layers below, and while it closes.
    pub fn housekeeping(&self) -> Option<Arc<dyn Housekeeping>> {
        self.above.0.get()?.upgrade()
    }
}
