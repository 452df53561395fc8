//! A state that the process which writes holds for this one.
//!
//! Owns: [`Held`], the connection that it hangs on.

use crate::client::Client;
use crate::message::{Answer, Ask};
use holdall::{Error, Holder, Lsn, Options, PageNo, Result, Store};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// A process that sends no page for so long is stopped: its snapshot then serves nobody.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection that asks for nothing but pages of one state; none once it has failed.
#[derive(Debug)]
struct Held(Mutex<Option<Client>>);

impl Held {
    /// Asks; after an answer that did not come the connection is used no more.
    fn ask<T>(&self, ask: impl FnOnce(&mut Client) -> Result<T>) -> Result<T> {
        let gone = || Error::SnapshotTooOld { age: Duration::ZERO };
        let mut client = self.0.lock();
        let answer = ask(client.as_mut().ok_or_else(gone)?);
        answer.map_err(|e| match e {
            // With the connection the snapshot is gone. Errors of the other's disk have a code.
            Error::Io { source, .. } if source.raw_os_error().is_none() => {
                *client = None;
                gone()
            }
            other => other,
        })
    }
}

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
        self.wait_at_most(PATIENCE)?;
        let (path, state) = (self.path.clone(), (self.store, lsn));
        options.open_held(path, state, Arc::new(Held(Mutex::new(Some(self)))))
    }
}

impl Holder for Held {
    fn page(&self, page: PageNo, kind: u8) -> Result<Vec<u8>> {
        self.ask(|client| client.page(page.0, kind))
    }

    fn is_held(&self) -> bool {
        self.ask(Client::holds).unwrap_or(false)
    }
}
