//! What readers that hold a version may expect.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use async_trait::async_trait;
use holdall::{Error, Result};
use holdall_bucket::backend::Memory;
use holdall_bucket::format::{Id, Sizes, keys};
use holdall_bucket::store::{Environment, Held, LONGEST_HOLD, Machine, Options, PutOptions};
use holdall_bucket::{BucketStore, CollectOptions, blocking};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A store without a grace, so that collecting deletes at once what nobody holds.
async fn store(memory: &Arc<Memory>) -> BucketStore {
    let sizes = Sizes { embedded: 10, segment: 500, slices: 8, fanout: 4, retired: 4, grace: 0 };
    Options::default().sizes(sizes).create(memory.clone()).await.unwrap()
}

async fn collect(store: &BucketStore) -> u64 {
    let options = CollectOptions { full: true, ..CollectOptions::default() };
    let collected = store.collect(options, &mut |_| {}).await.unwrap();
    collected.blobs
}

async fn blobs(store: &BucketStore) -> u64 {
    store.stat(&mut |_| {}).await.unwrap().blobs
}

/// Enough for a tree of several levels.
fn film(n: u8) -> Vec<u8> {
    (0..20_000_u32).map(|i| (i / 7) as u8 ^ n).collect()
}

#[tokio::test]
async fn a_held_version_can_be_read_after_all_that_others_do() {
    let store = store(&Arc::default()).await;
    store.put("film", film(1)).await.unwrap();
    let version = store.info("film").await.unwrap().unwrap().version;
    let mut object = store.open("film").await.unwrap().unwrap();
    let hold = object.hold(DAY).await.unwrap();
    assert!(hold.id().is_some());
    let now = store.info("film").await.unwrap().unwrap().version;
    assert_eq!(now, version, "a hold changes no version");
    for n in 2..6 {
        store.put("film", film(n)).await.unwrap();
        store.insert("film", 7, "more").await.unwrap();
        store.compact(&mut |_| {}).await.unwrap();
        collect(&store).await;
    }
    store.remove("film").await.unwrap();
    collect(&store).await;
    // Nothing is at hand of what was not read before.
    let mut pieces = object.clone().pieces(0..u64::MAX);
    let mut read = Vec::new();
    while let Some(piece) = pieces.next().await.unwrap() {
        read.extend(piece);
    }
    assert!(read == film(1), "other bytes");
    assert_eq!(store.verify(&mut |_| {}).await.unwrap().problems, []);
    hold.release().await.unwrap();
    collect(&store).await;
    collect(&store).await;
    assert_eq!(blobs(&store).await, 0);
    let gone = object.read(0..u64::MAX).await;
    assert!(matches!(gone, Err(Error::SnapshotTooOld { .. })), "{gone:?}");
}

#[tokio::test]
async fn what_was_opened_before_a_change_is_not_held() {
    let store = store(&Arc::default()).await;
    store.put("film", film(1)).await.unwrap();
    let mut object = store.open("film").await.unwrap().unwrap();
    store.append("film", "x").await.unwrap();
    let refused = object.hold(DAY).await;
    assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
    assert_eq!(store.holds().await.unwrap(), []);
}

#[tokio::test]
async fn an_object_that_lies_in_its_record_needs_no_hold() {
    let memory = Arc::default();
    let store = store(&memory).await;
    store.put("note", "short").await.unwrap();
    let mut object = store.open("note").await.unwrap().unwrap();
    let mut hold = object.hold(DAY).await.unwrap();
    hold.extend(2 * DAY).await.unwrap();
    assert!(hold.id().is_none() && hold.ends() > SystemTime::now() + DAY);
    assert_eq!(store.holds().await.unwrap(), []);
    assert_eq!(store.stat(&mut |_| {}).await.unwrap().shared, 0);
    hold.release().await.unwrap();
}

#[tokio::test]
async fn the_time_of_a_hold_has_bounds() {
    let store = store(&Arc::default()).await;
    store.put("film", film(1)).await.unwrap();
    let mut object = store.open("film").await.unwrap().unwrap();
    for time in [Duration::ZERO, LONGEST_HOLD + Duration::from_nanos(1)] {
        let refused = object.hold(time).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
    let mut hold = object.hold(LONGEST_HOLD).await.unwrap();
    let ends = hold.ends();
    assert!(ends >= SystemTime::now() + LONGEST_HOLD - Duration::from_secs(2));
    // It never ends earlier for being extended.
    hold.extend(DAY).await.unwrap();
    assert_eq!(hold.ends(), ends);
    hold.release().await.unwrap();
}

#[tokio::test]
async fn holds_are_counted_listed_and_ended_by_others() {
    let memory: Arc<Memory> = Arc::default();
    let store = store(&memory).await;
    let texts = store.collection("texts").unwrap();
    texts.put("film", film(1)).await.unwrap();
    let mut object = texts.open("film").await.unwrap().unwrap();
    let mut hold = object.hold(DAY).await.unwrap();
    let mut other = object.hold(2 * DAY).await.unwrap();
    let stat = store.stat(&mut |_| {}).await.unwrap();
    assert_eq!((stat.holds, stat.intents), (2, 0));
    let held = store.holds().await.unwrap();
    let own = |held: &&Held| Some(&held.id) == hold.id().map(|id| id.to_string()).as_ref();
    let found = held.iter().find(own).unwrap();
    assert_eq!((&*found.collection, &*found.name), ("texts", "film"));
    assert_eq!(found.ends, hold.ends());
    assert!(store.release_hold(&found.id).await.unwrap());
    assert!(!store.release_hold(&found.id).await.unwrap());
    let ended = hold.extend(DAY).await;
    assert!(matches!(ended, Err(Error::NotFound(_))), "{ended:?}");
    hold.release().await.unwrap();
    // The other one goes on.
    texts.remove("film").await.unwrap();
    collect(&store).await;
    other.extend(3 * DAY).await.unwrap();
    assert!(object.read(0..u64::MAX).await.unwrap() == film(1));
    other.release().await.unwrap();
    for strange in ["", "film", "i/00"] {
        assert!(matches!(store.release_hold(strange).await, Err(Error::Invalid(_))));
    }
}

#[tokio::test]
async fn what_is_no_hold_is_not_released() {
    let memory: Arc<Memory> = Arc::default();
    let store = store(&memory).await;
    let mut writer = store.writer("film", PutOptions::default()).unwrap();
    writer.push(&film(1)).await.unwrap();
    let backend: &dyn holdall_bucket::backend::Backend = &*memory;
    let intents = backend.list(keys::INTENTS, None, false, 10).await.unwrap().keys;
    let id = keys::parse_intent(&intents[0].key).unwrap().to_string();
    let refused = store.release_hold(&id).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    writer.finish().await.unwrap();
}

/// A machine whose clock is wrong by a day.
#[derive(Debug)]
struct Wrong {
    slow: bool,
}

#[async_trait]
impl Environment for Wrong {
    fn now(&self) -> Duration {
        if self.slow { Machine.now() - DAY } else { Machine.now() + DAY }
    }

    fn draw(&self) -> Result<Id> {
        Machine.draw()
    }

    async fn sleep(&self, time: Duration) {
        Machine.sleep(time).await;
    }
}

#[tokio::test]
async fn a_hold_ends_by_the_clock_of_the_server() {
    for slow in [true, false] {
        let memory: Arc<Memory> = Arc::default();
        let store = store(&memory).await;
        let wrong = Options::default().environment(Arc::new(Wrong { slow }));
        let wrong = wrong.open(memory).await.unwrap();
        wrong.put("film", film(1)).await.unwrap();
        let mut object = wrong.open("film").await.unwrap().unwrap();
        let begun = SystemTime::now();
        let mut hold = object.hold(Duration::from_secs(2)).await.unwrap();
        let long = hold.ends().duration_since(begun).unwrap();
        assert!((2..=10).contains(&long.as_secs()), "{long:?}, slow: {slow}");
        store.remove("film").await.unwrap();
        collect(&store).await;
        assert!(object.clone().read(0..u64::MAX).await.unwrap() == film(1), "slow: {slow}");
        let left = hold.ends().duration_since(SystemTime::now()).unwrap_or_default();
        tokio::time::sleep(left + Duration::from_millis(1100)).await;
        // Once to end the hold, again for what retired blobs are dated by the wrong clock.
        collect(&store).await;
        assert_eq!(store.holds().await.unwrap(), []);
        let ended = hold.extend(DAY).await;
        assert!(matches!(ended, Err(Error::NotFound(_))), "{ended:?}");
        assert_eq!(blobs(&store).await, 0, "slow: {slow}");
    }
}

#[test]
fn programs_that_wait_hold_too() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = runtime.block_on(store(&Arc::default()));
    let store = blocking::BucketStore::of(store).unwrap();
    store.put("film", film(1)).unwrap();
    let mut object = store.open("film").unwrap().unwrap();
    let mut hold = object.hold(DAY).unwrap();
    hold.extend(2 * DAY).unwrap();
    assert!(hold.ends() > SystemTime::now() + DAY);
    store.remove("film").unwrap();
    store.collect(CollectOptions::default(), &mut |_| {}).unwrap();
    assert!(object.read(0..u64::MAX).unwrap() == film(1));
    let held = store.holds().unwrap();
    assert_eq!(held.len(), 1);
    assert_eq!(held.first().map(|held| &held.id), hold.id().map(|id| id.to_string()).as_ref());
    hold.release().unwrap();
    assert!(!store.release_hold(&held[0].id).unwrap());
}
