//! How many requests calls take, and how many bytes come, by a backend that counts.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use async_trait::async_trait;
use bytes::Bytes;
use holdall::{Attributes, Result};
use holdall_bucket::backend::{Backend, Features, Got, Memory, Page, Put, Tag};
use holdall_bucket::format::Sizes;
use holdall_bucket::store::{BucketStore, ListNames, Options, PutOptions};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A bucket in memory; counts reads, and bytes that they give.
#[derive(Debug, Default)]
struct Counted {
    inner: Memory,
    reads: AtomicUsize,
    bytes: AtomicUsize,
}

impl Counted {
    /// Reads and bytes since this was asked last.
    fn since(&self) -> (usize, usize) {
        (self.reads.swap(0, Ordering::Relaxed), self.bytes.swap(0, Ordering::Relaxed))
    }
}

#[async_trait]
impl Backend for Counted {
    async fn get(&self, k: &str, range: Option<Range<u64>>, tag: Option<&Tag>) -> Result<Got> {
        let got = self.inner.get(k, range, tag).await?;
        self.reads.fetch_add(1, Ordering::Relaxed);
        if let Got::Found(found) = &got {
            self.bytes.fetch_add(found.bytes.len(), Ordering::Relaxed);
        }
        Ok(got)
    }
    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.inner.put_new(key, bytes).await
    }
    async fn put_if(&self, key: &str, tag: Option<&Tag>, bytes: Bytes) -> Result<Put> {
        self.inner.put_if(key, tag, bytes).await
    }
    async fn delete(&self, key: &str) -> Result<()> {
        self.inner.delete(key).await
    }
    async fn delete_if(&self, key: &str, tag: &Tag) -> Result<bool> {
        self.inner.delete_if(key, tag).await
    }
    async fn list(&self, p: &str, at: Option<&str>, folders: bool, n: usize) -> Result<Page> {
        self.inner.list(p, at, folders, n).await
    }
    fn features(&self) -> Features {
        self.inner.features()
    }
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 31 % 251) as u8).collect()
}

#[tokio::test]
async fn a_read_of_what_many_inserts_left_asks_for_little_more() {
    let counted = Arc::new(Counted::default());
    let sizes = Sizes { embedded: 1000, segment: 64 << 10, slices: 4096, ..Sizes::default() };
    let store = Options::default().sizes(sizes).create(counted.clone()).await.unwrap();
    let mut model = bytes(10 << 20);
    store.put("a", model.clone()).await.unwrap();
    let read = async || {
        counted.since();
        let mut pieces = store.open("a").await.unwrap().unwrap().pieces(0..u64::MAX);
        let mut read = Vec::new();
        while let Some(piece) = pieces.next().await.unwrap() {
            read.extend(piece);
        }
        (read, counted.since().0)
    };
    let (got, first) = read().await;
    assert!(got == model && first <= 162, "{first} requests");
    for turn in 0..200 {
        let at = turn * 7_919_333 % model.len();
        let new = bytes(turn % 90);
        store.insert("a", at as u64, new.clone()).await.unwrap();
        model.splice(at..at, new);
    }
    let (got, after) = read().await;
    assert!(got == model && after <= first * 13 / 10, "{first}, then {after} requests");
}

/// 100 objects of 20,000 bytes, of which one has attributes that no header of a kilobyte holds.
async fn filled(store: &BucketStore) {
    for n in 0..100 {
        let long = Attributes::from([("k".into(), vec![b'v'; if n == 50 { 2000 } else { 20 }])]);
        let options = PutOptions { attributes: long, ..PutOptions::default() };
        store.put_with(&format!("{n:02}"), vec![n; 20_000], options).await.unwrap();
    }
}

#[tokio::test]
async fn sizes_come_from_the_headers_of_records() {
    let counted = Arc::new(Counted::default());
    let writer = Options::default().create(counted.clone()).await.unwrap();
    filled(&writer).await;
    let reader = Options::default().open(counted.clone()).await.unwrap();
    let all = ListNames::default();
    counted.since();
    let page = reader.list_infos(&all, |_| true).await.unwrap();
    let (reads, came) = counted.since();
    assert_eq!((page.objects.len(), reads), (100, 101), "the long one is read whole");
    assert!(came < 101 * 1024 + 25_000, "{came} bytes");
    for (n, info) in page.objects.iter().enumerate() {
        let found = reader.info(&info.name).await.unwrap().unwrap();
        assert_eq!((info, info.name.as_str()), (&found, format!("{n:02}").as_str()));
    }
    let known = Options::default().open(counted.clone()).await.unwrap();
    let names: Vec<String> = page.objects.iter().map(|info| info.name.clone()).collect();
    assert_eq!(known.infos(&names).await.unwrap(), page.objects);
    counted.since();
    assert_eq!(known.infos(&names).await.unwrap(), page.objects);
    assert_eq!(counted.since(), (100, 0), "the server says that nothing changed");
    assert_eq!(known.list_infos(&all, |_| true).await.unwrap(), page);
    assert_eq!(counted.since(), (0, 0), "the listing shows the tags at hand");
    writer.append("07", "more").await.unwrap();
    writer.remove("08").await.unwrap();
    counted.since();
    let page = known.list_infos(&all, |name| name < "10").await.unwrap();
    assert_eq!(page.objects.len(), 9);
    assert_eq!((page.objects[7].name.as_str(), page.objects[7].size), ("07", 20_004));
    assert_eq!(counted.since().0, 1, "of the one that changed");
    // Damage is reported, not left out.
    let keys = counted.inner.list("n/", None, false, 3).await.unwrap().keys;
    let Got::Found(found) = counted.inner.get(&keys[2].key, None, None).await.unwrap() else {
        panic!("no record")
    };
    let mut stored = found.bytes.whole().to_vec();
    stored[84] ^= 1;
    counted.inner.put_if(&keys[2].key, Some(&found.tag), stored.into()).await.unwrap();
    let error = known.list_infos(&all, |_| true).await.unwrap_err();
    assert!(matches!(error, holdall::Error::Corrupt { .. }), "{error}");
}
