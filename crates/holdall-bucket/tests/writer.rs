//! When the requests of an object that comes in parts begin and end, and what becomes of it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use holdall::{Error, Result};
use holdall_bucket::backend::{Backend, Features, Got, Memory, Page, Put, Tag};
use holdall_bucket::format::{Id, Sizes};
use holdall_bucket::store::{Environment, Machine, Options, PutOptions};
use holdall_bucket::{BucketStore, blocking};
use std::io::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

const SEGMENT: usize = 5000;

/// A bucket whose blobs wait for permits.
#[derive(Debug)]
struct Gate {
    memory: Memory,
    permits: Semaphore,
    begun: AtomicUsize,
    ended: AtomicUsize,
    fails: AtomicBool,
}

#[async_trait]
impl Backend for Gate {
    async fn get(&self, key: &str, range: Option<Range<u64>>, unless: Option<&Tag>) -> Result<Got> {
        self.memory.get(key, range, unless).await
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.begun.fetch_add(1, SeqCst);
        self.permits.acquire().await.unwrap().forget();
        if self.fails.load(SeqCst) {
            return Err(Error::Full("no room".into()));
        }
        self.memory.put_new(key, bytes).await?;
        self.ended.fetch_add(1, SeqCst);
        Ok(())
    }

    async fn put_if(&self, key: &str, expected: Option<&Tag>, bytes: Bytes) -> Result<Put> {
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
        n: usize,
    ) -> Result<Page> {
        self.memory.list(prefix, after, folders, n).await
    }

    fn features(&self) -> Features {
        self.memory.features()
    }
}

/// One on which nothing goes on by itself.
#[derive(Debug)]
struct Still;

#[async_trait]
impl Environment for Still {
    fn now(&self) -> Duration {
        Machine.now()
    }

    fn draw(&self) -> Result<Id> {
        Machine.draw()
    }

    async fn sleep(&self, _time: Duration) {}

    fn begin(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        work
    }
}

/// A store over a gate that lets this many blobs through.
fn store(permits: usize, environment: Arc<dyn Environment>) -> (BucketStore, Arc<Gate>) {
    let gate = Gate {
        memory: Memory::default(),
        permits: Semaphore::new(permits),
        begun: AtomicUsize::new(0),
        ended: AtomicUsize::new(0),
        fails: AtomicBool::new(false),
    };
    let gate = Arc::new(gate);
    let segment = SEGMENT as u64;
    let sizes = Sizes { embedded: 1000, segment, slices: 16, fanout: 8, retired: 8, grace: 3600 };
    let options = Options::default().sizes(sizes).environment(environment);
    let store = options.create(gate.clone()).now_or_never().unwrap().unwrap();
    (store, gate)
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 31 % 251) as u8).collect()
}

#[test]
fn a_full_segment_is_sent_at_once_and_only_the_ninth_waits() {
    let (store, gate) = store(0, Arc::new(Still));
    let mut writer = store.writer("a", PutOptions::default()).unwrap();
    let model = bytes(9 * SEGMENT);
    for n in 0..8 {
        let part = &model[n * SEGMENT..(n + 1) * SEGMENT];
        writer.push(&part[..SEGMENT - 1]).now_or_never().unwrap().unwrap();
        assert_eq!(gate.begun.load(SeqCst), n);
        writer.push(&part[SEGMENT - 1..]).now_or_never().unwrap().unwrap();
        assert_eq!(gate.begun.load(SeqCst), n + 1);
    }
    let mut ninth = writer.push(&model[8 * SEGMENT..]).boxed();
    assert!((&mut ninth).now_or_never().is_none());
    assert_eq!(gate.begun.load(SeqCst), 8);
    gate.permits.add_permits(9);
    ninth.now_or_never().unwrap().unwrap();
    assert_eq!((gate.begun.load(SeqCst), writer.size()), (9, model.len() as u64));
    writer.finish().now_or_never().unwrap().unwrap();
    assert_eq!(store.get("a").now_or_never().unwrap().unwrap().unwrap(), model);
}

#[test]
fn after_a_push_that_was_dropped_nothing_can_be_put() {
    let (store, gate) = store(0, Arc::new(Still));
    let mut writer = store.writer("a", PutOptions::default()).unwrap();
    let dropped = writer.push(&bytes(9 * SEGMENT)).now_or_never();
    assert!(dropped.is_none());
    gate.permits.add_permits(20);
    let again = writer.push(b"x").now_or_never().unwrap();
    assert!(matches!(again, Err(Error::Invalid(_))), "{again:?}");
    let finished = writer.finish().now_or_never().unwrap();
    assert!(matches!(finished, Err(Error::Invalid(_))), "{finished:?}");
    assert!(store.get("a").now_or_never().unwrap().unwrap().is_none());
}

#[test]
fn an_error_comes_with_the_next_push_and_stays() {
    let (store, gate) = store(0, Arc::new(Still));
    let mut writer = store.writer("a", PutOptions::default()).unwrap();
    writer.push(&bytes(SEGMENT + 1)).now_or_never().unwrap().unwrap();
    gate.fails.store(true, SeqCst);
    gate.permits.add_permits(20);
    let pushed = writer.push(b"x").now_or_never().unwrap();
    assert!(matches!(pushed, Err(Error::Full(_))), "{pushed:?}");
    gate.fails.store(false, SeqCst);
    let finished = writer.finish().now_or_never().unwrap();
    assert!(matches!(finished, Err(Error::Invalid(_))), "{finished:?}");
    assert!(store.get("a").now_or_never().unwrap().unwrap().is_none());
}

/// Waits until this many blobs are there.
fn until(gate: &Gate, ended: usize) {
    let began = Instant::now();
    while gate.ended.load(SeqCst) < ended {
        assert!(began.elapsed() < Duration::from_secs(60), "nothing goes on");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_a_thread_writes_is_sent_while_it_does_something_else() {
    let (store, gate) = store(100, Arc::new(Machine));
    let store = blocking::BucketStore::of(store).unwrap();
    let mut writer = store.writer("a", PutOptions::default()).unwrap();
    let model = bytes(3 * SEGMENT + 7);
    writer.write_all(&model).unwrap();
    until(&gate, 3);
    writer.finish().unwrap();
    assert_eq!(store.get("a").unwrap().unwrap(), model);
    let mut writer = store.writer("b", PutOptions::default()).unwrap();
    writer.write_all(&model).unwrap();
    drop(writer);
    assert!(store.get("b").unwrap().is_none(), "what is not finished is not there");
    gate.fails.store(true, SeqCst);
    let mut writer = store.writer("c", PutOptions::default()).unwrap();
    // The error comes with a write or with the end.
    if writer.write_all(&model).is_ok() {
        assert!(matches!(writer.finish(), Err(Error::Full(_))));
    }
    assert!(store.get("c").unwrap().is_none());
}
