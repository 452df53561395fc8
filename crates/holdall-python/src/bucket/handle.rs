//! An open store in a bucket: its life, waiting for the server, and what a fork does to it.
//!
//! Owns: [`Opened`], [`Handle`]. A child of a fork has none of the threads that speak to the server, so
//! it opens the store again when it first uses it, whatever the mode: others may use a bucket anyhow.
//! What the parent opened is forgotten, not dropped.

use crate::backup::Reach;
use crate::errors::{Fail, Outcome};
use crate::handle::process;
use arc_swap::ArcSwapOption;
use holdall::{Error, Result};
use holdall_bucket::{Access, Check, blocking, store};
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Time between two looks whether the user interrupts.
const INTERVAL: Duration = Duration::from_millis(100);

/// A store as one process has it open.
pub struct Opened {
    store: blocking::BucketStore,
    process: u64,
}

/// A store that Python objects share.
pub struct Handle {
    /// Its address.
    pub place: String,
    /// Whether it was opened for reading.
    pub read_only: bool,
    access: Access,
    opened: ArcSwapOption<Opened>,
    /// Held while a child opens the store again.
    reopening: Mutex<()>,
}

/// Ends `work` when the user interrupts; what was raised is then in `raised`.
async fn interruptible<T>(
    work: impl Future<Output = Result<T>>,
    raised: &Mutex<Option<PyErr>>,
) -> Result<T> {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(INTERVAL) => {
                if let Err(e) = Python::attach(|py| py.check_signals()) {
                    *raised.lock() = Some(e);
                    return Err(Error::Cancelled);
                }
            }
        }
    }
}

/// What came of it: what was raised comes before the error that it led to.
fn outcome<T>(done: Result<T>, raised: Mutex<Option<PyErr>>) -> Outcome<T> {
    done.map_err(|e| raised.into_inner().map_or(Fail::Store(e), Fail::Python))
}

async fn open(place: &str, mode: &str, access: &Access) -> Result<store::BucketStore> {
    let create = async || {
        let made = store::BucketStore::create_at(place, access, &mut |_: &Check| ()).await;
        made.map(|(store, _)| store)
    };
    match mode {
        "x" => create().await,
        "a" => match store::BucketStore::open_at(place, access).await {
            Err(Error::NotFound(_)) => match create().await {
                // Another process was first.
                Err(Error::Exists(_)) => store::BucketStore::open_at(place, access).await,
                made => made,
            },
            opened => opened,
        },
        _ => store::BucketStore::open_at(place, access).await,
    }
}

impl Handle {
    /// Opens or makes a store. Must be called without the interpreter's lock. Cost: two requests; to
    /// make one, some 900.
    ///
    /// # Errors
    /// NotFoundError, ExistsError, InvalidError; what a signal raised; those of the server.
    pub fn open(place: String, mode: &str, access: Access) -> Outcome<Self> {
        if !["r", "r+", "a", "x"].contains(&mode) {
            let text = format!("mode {mode:?} is none of \"r\", \"r+\", \"a\", \"x\" for a bucket");
            return Err(Error::Invalid(text).into());
        }
        let raised = Mutex::new(None);
        let opening = interruptible(open(&place, mode, &access), &raised);
        let store = outcome(blocking::BucketStore::opened_by(opening), raised)?;
        let opened = ArcSwapOption::from_pointee(Opened { store, process: process() });
        Ok(Self { place, read_only: mode == "r", access, opened, reopening: Mutex::new(()) })
    }

    /// The store, in this process.
    ///
    /// # Errors
    /// That it was closed; those of opening it again.
    fn store(&self) -> Outcome<blocking::BucketStore> {
        let current = |opened: &Opened| opened.process == process();
        match &*self.opened.load() {
            None => return Err(Fail::Closed("store")),
            Some(opened) if current(opened) => return Ok(opened.store.clone()),
            Some(_) => {}
        }
        let _one = self.reopening.lock();
        match &*self.opened.load() {
            None => return Err(Fail::Closed("store")),
            Some(opened) if current(opened) => return Ok(opened.store.clone()),
            Some(_) => {}
        }
        let raised = Mutex::new(None);
        let opening = interruptible(open(&self.place, "r+", &self.access), &raised);
        let store = outcome(blocking::BucketStore::opened_by(opening), raised)?;
        let new = Opened { store: store.clone(), process: process() };
        std::mem::forget(self.opened.swap(Some(Arc::new(new))));
        Ok(store)
    }

    /// Waits for what `work` makes of the store, seen from a collection. Must be called without the
    /// interpreter's lock.
    ///
    /// # Errors
    /// Those of the work; that the store was closed; what a signal raised.
    pub fn wait<T>(
        &self,
        collection: Option<&str>,
        work: impl AsyncFnOnce(&store::BucketStore) -> Result<T>,
    ) -> Outcome<T> {
        let threads = self.store()?;
        let raised = Mutex::new(None);
        let seen = async {
            match collection {
                None => work(threads.inner()).await,
                Some(name) => work(&threads.inner().collection(name)?).await,
            }
        };
        outcome(threads.wait(interruptible(seen, &raised)), raised)
    }

    /// Refuses a change of a store that was opened for reading.
    ///
    /// # Errors
    /// ReadOnlyError.
    pub fn check_writes(&self) -> Outcome<()> {
        if self.read_only { Err(Error::ReadOnly.into()) } else { Ok(()) }
    }

    /// How it is reached.
    pub fn reach(&self) -> Reach {
        let Access { endpoint, region, profile, remote, .. } = self.access.clone();
        (endpoint, region, profile, remote)
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.opened.load().is_none()
    }

    /// Closes it; files that are open go on.
    pub fn close(&self) {
        match self.opened.swap(None) {
            Some(opened) if opened.process != process() => std::mem::forget(opened),
            opened => drop(opened),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close();
    }
}
