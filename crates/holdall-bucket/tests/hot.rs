//! An object that is changed all the time: what it retired goes nevertheless.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use async_trait::async_trait;
use bytes::Bytes;
use holdall::Result;
use holdall_bucket::CollectOptions;
use holdall_bucket::backend::{Backend, Features, Got, Memory, Page, Put, Tag};
use holdall_bucket::format::{Id, Sizes};
use holdall_bucket::store::{Environment, Options};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Seconds.
const GRACE: u64 = 100;

/// A bucket and a machine whose time a test sets, in seconds.
#[derive(Debug, Default)]
struct World {
    memory: Memory,
    dates: Mutex<HashMap<String, u64>>,
    seconds: AtomicU64,
    drawn: AtomicU64,
}

impl World {
    fn date(&self, key: &str) -> u64 {
        self.dates.lock().unwrap().get(key).copied().unwrap_or(0) * 1000
    }

    fn wrote(&self, key: &str) {
        self.dates.lock().unwrap().insert(key.to_owned(), self.seconds.load(Relaxed));
    }
}

#[async_trait]
impl Backend for World {
    async fn get(&self, key: &str, range: Option<Range<u64>>, unless: Option<&Tag>) -> Result<Got> {
        let mut got = self.memory.get(key, range, unless).await?;
        if let Got::Found(found) = &mut got {
            found.date = self.date(key);
        }
        Ok(got)
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.wrote(key);
        self.memory.put_new(key, bytes).await
    }

    async fn put_if(&self, key: &str, expected: Option<&Tag>, bytes: Bytes) -> Result<Put> {
        self.wrote(key);
        self.memory.put_if(key, expected, bytes).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.memory.delete(key).await
    }

    async fn delete_if(&self, key: &str, tag: &Tag) -> Result<bool> {
        self.memory.delete_if(key, tag).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        folders: bool,
        limit: usize,
    ) -> Result<Page> {
        let mut page = self.memory.list(prefix, after, folders, limit).await?;
        page.keys.iter_mut().for_each(|listed| listed.date = self.date(&listed.key));
        Ok(page)
    }

    fn features(&self) -> Features {
        self.memory.features()
    }
}

#[async_trait]
impl Environment for World {
    fn now(&self) -> Duration {
        Duration::from_secs(self.seconds.load(Relaxed))
    }

    fn draw(&self) -> Result<Id> {
        let n = u128::from(self.drawn.fetch_add(1, Relaxed) + 1);
        Ok(Id(n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_le_bytes()))
    }

    async fn sleep(&self, _time: Duration) {}
}

/// Replaces an object each second for ten times the grace, and collects each tenth of it. Returns the
/// most blobs that there were.
async fn most_blobs(retired: usize, shared: bool) -> usize {
    let world = Arc::new(World::default());
    world.seconds.store(1_000_000, Relaxed);
    let sizes = Sizes { embedded: 10, segment: 50, slices: 16, fanout: 8, retired, grace: GRACE };
    let options = Options::default().sizes(sizes).environment(world.clone());
    let store = options.create(world.clone()).await.unwrap();
    let mut most = 0;
    for second in 0..10 * GRACE {
        store.put("hot", vec![second as u8; 40]).await.unwrap();
        if shared && second % 50 == 0 {
            store.copy("hot", "copy").await.unwrap();
        }
        world.seconds.fetch_add(1, Relaxed);
        if second % (GRACE / 10) == 0 {
            store.collect(CollectOptions::default(), &mut |_| {}).await.unwrap();
            let blobs = store.stat(&mut |_| {}).await.unwrap().blobs;
            most = most.max(blobs as usize);
        }
    }
    assert_eq!(store.verify(&mut |_| {}).await.unwrap().problems, []);
    most
}

#[tokio::test]
async fn what_an_object_retired_goes_though_it_is_changed_more_often_than_a_record_lists() {
    for (retired, shared) in [(200, false), (8, false), (8, true), (2, false)] {
        let most = most_blobs(retired, shared).await;
        println!("{retired} listed, shared {shared}: {most} blobs at most");
        // One is dropped each second, and each list is a blob too.
        assert!(most < 5 * GRACE as usize, "{most} blobs, with {retired} listed, shared: {shared}");
    }
}
