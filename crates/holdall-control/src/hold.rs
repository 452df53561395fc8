//! A state that the process which writes holds for this one.
//!
//! Owns: [`Held`], the connection that it hangs on.

use crate::client::Client;
use holdall::{Error, Holder, PageNo, Result};
use parking_lot::Mutex;
use std::time::Duration;

/// A connection that asks for nothing but pages of one state.
#[derive(Debug)]
pub(crate) struct Held(pub(crate) Mutex<Client>);

impl Holder for Held {
    fn page(&self, page: PageNo, kind: u8) -> Result<Vec<u8>> {
        self.0.lock().page(page.0, kind).map_err(|e| match e {
            // With the process the snapshot is gone.
            Error::Io { .. } => Error::SnapshotTooOld { age: Duration::ZERO },
            other => other,
        })
    }

    fn is_held(&self) -> bool {
        self.0.lock().holds().unwrap_or(false)
    }
}
