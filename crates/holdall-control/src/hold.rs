//! A state that the process which writes holds for this one.
//!
//! Owns: [`Held`], the connection that it hangs on.

use crate::client::Client;
use crate::message::{Answer, Ask};
use holdall::{Error, Holder, Lsn, Options, PageNo, Result, Store};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// A connection that asks for nothing but pages of one state.
#[derive(Debug)]
struct Held(Mutex<Client>);

impl Client {
    /// Has the process hold a snapshot of the newest durable state, and opens it here, to be read for
    /// as long as the store returned lives. Reads go to the file; the process is asked for pages that
    /// it has changed since.
    ///
    /// # Errors
    /// Those of [`Options::open_read_only`] and of a lost connection.
    pub fn hold(mut self, options: &Options) -> Result<Store> {
        let lsn = match self.ask(&Ask::Hold {})? {
            Answer::Held { lsn } => Lsn(lsn),
            other => return self.unexpected(&other),
        };
        let (path, state) = (self.path.clone(), (self.store, lsn));
        options.open_held(path, state, Arc::new(Held(Mutex::new(self))))
    }
}

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
