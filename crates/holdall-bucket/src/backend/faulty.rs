//! A server that does what a bad network and a tired server do.
//!
//! Owns: [`Faulty`], which by a seed loses requests and answers, sends requests again, fails after the
//! effect, cuts pages short and, with a hook, answers late. It never breaks what a bucket promises: a
//! store over it must work.

use super::{Backend, Features, Got, Page, Put, Tag};
use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use holdall::Result;
use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// How often of 1,000 requests each fault happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    /// A conditional write is lost on the way: no effect, and nothing is known.
    pub lost: u32,
    /// A conditional write is done, and its answer is lost.
    pub unanswered: u32,
    /// A conditional write is done, and the answer is a failure of the server.
    pub failed: u32,
    /// A request is sent twice; of a conditional write the second answer counts.
    pub repeated: u32,
    /// A page is shorter than it may be.
    pub cut: u32,
    /// A request waits, before its effect or before its answer, if there is a hook that waits.
    pub late: u32,
}

impl Default for Faults {
    fn default() -> Self {
        Self { lost: 50, unanswered: 50, failed: 50, repeated: 50, cut: 300, late: 300 }
    }
}

impl Faults {
    /// None.
    pub const NONE: Self = Self { lost: 0, unanswered: 0, failed: 0, repeated: 0, cut: 0, late: 0 };

    /// Those that a client which believes `Put::NotDone` and knows no `Put::Unknown` survives.
    pub const HARMLESS: Self = Self { cut: 500, late: 500, ..Self::NONE };
}

/// What waits: given a random number, from which it may take how long.
pub type Wait = Box<dyn Fn(u64) -> BoxFuture<'static, ()> + Send + Sync>;

/// A backend with faults. Where all requests come in the same order, a seed gives the same faults.
pub struct Faulty<B> {
    inner: B,
    faults: Faults,
    random: Mutex<u64>,
    wait: Option<Wait>,
}

impl<B: fmt::Debug> fmt::Debug for Faulty<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<B: Backend> Faulty<B> {
    /// With these faults, drawn by this seed. Nothing is late yet.
    pub fn new(inner: B, faults: Faults, seed: u64) -> Self {
        Self { inner, faults, random: Mutex::new(seed), wait: None }
    }

    /// With a hook that waits, by whatever the caller's executor has for that.
    pub fn with_wait(self, wait: Wait) -> Self {
        Self { wait: Some(wait), ..self }
    }

    /// What it stands before.
    pub fn inner(&self) -> &B {
        &self.inner
    }

    /// A random number: splitmix64.
    fn next(&self) -> u64 {
        let mut state = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn happens(&self, of_thousand: u32) -> bool {
        of_thousand > 0 && self.next() % 1000 < u64::from(of_thousand)
    }

    async fn late(&self) {
        if let Some(wait) = &self.wait
            && self.happens(self.faults.late)
        {
            wait(self.next()).await;
        }
    }
}

#[async_trait]
impl<B: Backend> Backend for Faulty<B> {
    async fn get(&self, key: &str, range: Option<Range<u64>>, unless: Option<&Tag>) -> Result<Got> {
        self.late().await;
        let got = self.inner.get(key, range, unless).await;
        self.late().await;
        got
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.late().await;
        if self.happens(self.faults.repeated) {
            self.inner.put_new(key, bytes.clone()).await?;
            self.late().await;
        }
        let put = self.inner.put_new(key, bytes).await;
        self.late().await;
        put
    }

    async fn put_if(&self, key: &str, expected: Option<&Tag>, bytes: Bytes) -> Result<Put> {
        self.late().await;
        if self.happens(self.faults.lost) {
            self.late().await;
            return Ok(Put::Unknown("the connection broke (a fault)".into()));
        }
        if self.happens(self.faults.repeated) {
            self.inner.put_if(key, expected, bytes.clone()).await?;
            self.late().await;
        }
        let put = self.inner.put_if(key, expected, bytes).await;
        self.late().await;
        if self.happens(self.faults.unanswered) {
            return put.map(|_| Put::Unknown("no answer in time (a fault)".into()));
        }
        if self.happens(self.faults.failed) {
            return put.map(|_| Put::Unknown("500 Internal Server Error (a fault)".into()));
        }
        put
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.late().await;
        if self.happens(self.faults.repeated) {
            self.inner.delete(key).await?;
            self.late().await;
        }
        let deleted = self.inner.delete(key).await;
        self.late().await;
        deleted
    }

    async fn delete_if(&self, key: &str, tag: &Tag) -> Result<bool> {
        self.late().await;
        if self.happens(self.faults.lost) {
            return Ok(false);
        }
        if self.happens(self.faults.repeated) {
            self.inner.delete_if(key, tag).await?;
            self.late().await;
        }
        let deleted = self.inner.delete_if(key, tag).await;
        self.late().await;
        if self.happens(self.faults.unanswered) {
            return deleted.map(|_| false);
        }
        deleted
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        folders: bool,
        limit: usize,
    ) -> Result<Page> {
        self.late().await;
        let cut = self.happens(self.faults.cut) && limit > 1;
        let limit = if cut { 1 + self.next() as usize % (limit - 1) } else { limit };
        let page = self.inner.list(prefix, after, folders, limit).await;
        self.late().await;
        page
    }

    fn features(&self) -> Features {
        self.inner.features()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Memory, conformance};
    use futures::FutureExt;

    /// What waits for nothing here.
    fn block_on<T>(work: impl Future<Output = T>) -> T {
        work.now_or_never().unwrap()
    }

    #[test]
    fn harmless_faults_change_no_answer() {
        for seed in 0..20 {
            let faulty = Faulty::new(Memory::default(), Faults::HARMLESS, seed);
            let faulty = faulty.with_wait(Box::new(|_| Box::pin(async {})));
            block_on(conformance::check(&faulty, "x/")).unwrap();
        }
    }

    #[test]
    fn every_fault_happens_and_a_seed_repeats_them() {
        let run = |seed| {
            let faulty = Faulty::new(Memory::default(), Faults::default(), seed);
            let mut answers = Vec::new();
            for n in 0..1000 {
                let (key, bytes) = (format!("k/{n:04}"), Bytes::from_static(b"1"));
                let put = block_on(faulty.put_if(&key, None, bytes)).unwrap();
                let there = block_on(faulty.get(&key, None, None)).unwrap() != Got::Absent;
                answers.push((matches!(put, Put::Unknown(_)), put == Put::NotDone, there));
            }
            let page = block_on(faulty.list("k/", None, false, 900)).unwrap();
            (answers, page.keys.len())
        };
        let (answers, _) = run(1);
        for fault in [(true, false, true), (true, false, false), (false, true, true)] {
            assert!(answers.contains(&fault), "unknown, not done, there: {fault:?}");
        }
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        assert!((0..20).any(|seed| run(seed).1 < 800));
    }
}
