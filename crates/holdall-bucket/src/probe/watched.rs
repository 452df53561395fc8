//! A backend that is watched while it is probed.
//!
//! Owns: [`Watched`], which counts requests and remembers which keys were written, so that they can be
//! deleted even where listings are wrong.

use crate::backend::{Backend, Features, Got, Page, Put, Tag};
use async_trait::async_trait;
use bytes::Bytes;
use futures::future::join_all;
use holdall::Result;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Passes all on.
#[derive(Debug)]
pub(super) struct Watched<'w> {
    inner: &'w dyn Backend,
    requests: AtomicU64,
    written: Mutex<BTreeSet<String>>,
}

impl<'w> Watched<'w> {
    pub(super) fn new(inner: &'w dyn Backend) -> Self {
        Self { inner, requests: AtomicU64::new(0), written: Mutex::default() }
    }

    /// Requests so far, not counting those that the backend itself repeats.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Deletes what was written, `at_once` keys at a time. What cannot be deleted stays.
    pub(super) async fn clean_up(&self, at_once: usize) {
        let keys: Vec<String> = {
            let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *written).into_iter().collect()
        };
        for some in keys.chunks(at_once) {
            let _ = join_all(some.iter().map(|key| self.delete(key))).await;
        }
    }

    /// What is watched, for what another will delete.
    pub(super) fn unwatched(&self) -> &'w dyn Backend {
        self.inner
    }

    fn asked(&self) -> &'w dyn Backend {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.inner
    }

    fn writes(&self, key: &str) -> &'w dyn Backend {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.insert(key.to_owned());
        self.asked()
    }
}

#[async_trait]
impl Backend for Watched<'_> {
    async fn get(&self, key: &str, range: Option<Range<u64>>, unless: Option<&Tag>) -> Result<Got> {
        self.asked().get(key, range, unless).await
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.writes(key).put_new(key, bytes).await
    }

    async fn put_if(&self, key: &str, expected: Option<&Tag>, bytes: Bytes) -> Result<Put> {
        self.writes(key).put_if(key, expected, bytes).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.asked().delete(key).await
    }

    async fn delete_if(&self, key: &str, tag: &Tag) -> Result<bool> {
        self.asked().delete_if(key, tag).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        folders: bool,
        limit: usize,
    ) -> Result<Page> {
        self.asked().list(prefix, after, folders, limit).await
    }

    fn features(&self) -> Features {
        self.inner.features()
    }
}
