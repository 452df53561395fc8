//! Runs that several figures share, each made once per process.
//!
//! Owns: [`Cache`]. Threads: results are behind a mutex that is not held while one is made.
//! Another behind it lets one run be made at a time per cache: one that waits for it finds it.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use anyhow::Result;

/// Results by what they depend on.
#[derive(Debug)]
pub struct Results<T> {
    done: Mutex<HashMap<String, T>>,
    turn: Mutex<()>,
}

/// A cache as a static.
pub type Cache<T> = LazyLock<Results<T>>;

impl<T> Default for Results<T> {
    fn default() -> Self {
        Self { done: Mutex::default(), turn: Mutex::default() }
    }
}

impl<T: Clone> Results<T> {
    fn known(&self, key: &str) -> Option<T> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }
}

/// The result kept under `key`, or that of `work`, which is then kept.
///
/// # Errors
/// Those of `work`; nothing is kept then.
pub fn cached<T: Clone>(
    cache: &Results<T>,
    key: &str,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    if let Some(done) = cache.known(key) {
        return Ok(done);
    }
    let _turn = cache.turn.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(done) = cache.known(key) {
        return Ok(done);
    }
    let made = work()?;
    let mut done = cache.done.lock().unwrap_or_else(PoisonError::into_inner);
    done.insert(key.to_owned(), made.clone());
    Ok(made)
}
