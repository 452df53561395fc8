//! A server whose answer is once of two records: the beginning of one and the end of the next.

use async_trait::async_trait;
use bytes::Bytes;
use holdall::{Error, Result};
use holdall_bucket::BucketStore;
use holdall_bucket::backend::{Backend, Features, Got, Memory, Page, Put, Tag};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Damages this many reads of records.
#[derive(Debug, Default)]
struct Joined(Memory, AtomicU32);

#[async_trait]
impl Backend for Joined {
    async fn get(&self, key: &str, range: Option<Range<u64>>, unless: Option<&Tag>) -> Result<Got> {
        let mut got = self.0.get(key, range, unless).await?;
        if let Got::Found(found) = &mut got
            && key.starts_with("n/")
            && self.1.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
        {
            let mut bytes = found.bytes.whole().to_vec();
            bytes.iter_mut().skip(30).take(8).for_each(|byte| *byte ^= 0x55);
            found.bytes = Bytes::from(bytes).into();
        }
        Ok(got)
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.0.put_new(key, bytes).await
    }

    async fn put_if(&self, key: &str, expected: Option<&Tag>, bytes: Bytes) -> Result<Put> {
        self.0.put_if(key, expected, bytes).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.0.delete(key).await
    }

    async fn delete_if(&self, key: &str, tag: &Tag) -> Result<bool> {
        self.0.delete_if(key, tag).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        folders: bool,
        limit: usize,
    ) -> Result<Page> {
        self.0.list(prefix, after, folders, limit).await
    }

    fn features(&self) -> Features {
        self.0.features()
    }
}

#[tokio::test]
async fn what_is_damaged_once_is_read_again_and_twice_is_damaged() {
    let server = Arc::new(Joined::default());
    BucketStore::create(server.clone()).await.unwrap().put("a", "bytes").await.unwrap();
    let read = async |damaged: u32| {
        let store = BucketStore::open_in(server.clone()).await.unwrap();
        server.1.store(damaged, Relaxed);
        store.get("a").await
    };
    assert_eq!(read(1).await.unwrap().unwrap(), "bytes");
    assert!(matches!(read(2).await, Err(Error::Corrupt { .. })));
}
