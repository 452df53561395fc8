//! Holds for programs that wait.

use super::Threads;
use crate::format::Id;
use crate::store;
use holdall::Result;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// That the blobs of one version of an object stay, as [`store::Hold`].
#[derive(Debug)]
#[must_use = "it says until when the version stays"]
pub struct Hold {
    pub(super) threads: Arc<Threads>,
    pub(super) hold: store::Hold,
}

impl Hold {
    /// As [`store::Hold::id`].
    pub fn id(&self) -> Option<Id> {
        self.hold.id()
    }

    /// As [`store::Hold::ends`].
    pub fn ends(&self) -> SystemTime {
        self.hold.ends()
    }

    /// As [`store::Hold::extend`].
    ///
    /// # Errors
    /// As that.
    pub fn extend(&mut self, time: Duration) -> Result<()> {
        self.threads.wait(self.hold.extend(time))
    }

    /// As [`store::Hold::release`].
    ///
    /// # Errors
    /// As that.
    pub fn release(self) -> Result<()> {
        self.threads.wait(self.hold.release())
    }
}
