//! What a store costs at a public provider, with many writers: the real code in virtual time.
//!
//! `HOLDALL_PROVIDER=1` runs as many writers and names as docs/bucket.md shows, and prints the figures;
//! without it a tenth suffices for the checks.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

use futures::future::join_all;
use holdall_bucket::format::Sizes;
use holdall_bucket::store::{ListNames, Options};
use holdall_bucket::{BucketStore, CollectOptions, Splice};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use world::{Clock, Counts, Provider};

struct Run {
    provider: Arc<Provider>,
    store: BucketStore,
    writers: u64,
}

/// What some work took.
struct Took {
    seconds: f64,
    counts: Counts,
}

fn is_large() -> bool {
    std::env::var_os("HOLDALL_PROVIDER").is_some()
}

impl Run {
    async fn new() -> Self {
        let provider = Arc::new(Provider::new());
        let sizes = Sizes { grace: 60, ..Sizes::default() };
        let options = Options::default().sizes(sizes).environment(Arc::new(Clock::new()));
        let store = options.create(provider.clone()).await.unwrap();
        Self { provider, store, writers: if is_large() { 1000 } else { 100 } }
    }

    /// A store of a process of its own.
    async fn opened(&self) -> BucketStore {
        let options = Options::default().environment(Arc::new(Clock::new()));
        options.open(self.provider.clone()).await.unwrap()
    }

    async fn measure<T>(&self, what: &str, count: u64, work: impl Future<Output = T>) -> (T, Took) {
        let (before, begun) = (self.provider.counts(), Instant::now());
        let out = work.await;
        let took = Took {
            seconds: begun.elapsed().as_secs_f64(),
            counts: self.provider.counts().since(before),
        };
        let Counts { writes, reads, slowed, .. } = took.counts;
        let each = |n: u64| n as f64 / count as f64;
        println!(
            "| {what} | {count} | {:.0} | {:.1} | {:.3} | {:.3} | {slowed} | {:.2} |",
            took.seconds,
            count as f64 / took.seconds,
            each(writes),
            each(reads),
            took.counts.price() / count as f64 * 1e6,
        );
        (out, took)
    }
}

#[tokio::test(start_paused = true)]
async fn many_writers_of_their_own_names() {
    let run = Run::new().await;
    println!("| what | operations | s | a second | PUT, LIST | GET | slowed | $ for 10⁶ |");
    println!("|---|---|---|---|---|---|---|---|");
    let stores = join_all((0..run.writers).map(|_| run.opened())).await;
    let each = 20;
    let count = run.writers * each;
    let put = async |(writer, store): (usize, &BucketStore), len: usize| {
        for n in 0..each {
            store.put(&format!("{writer}/{len}/{n}"), vec![7; len]).await.unwrap();
        }
    };
    let puts = join_all(stores.iter().enumerate().map(|at| put(at, 25_000)));
    let (_, took) = run.measure("put of 25 KB, a new name", count, puts).await;
    assert!(took.counts.writes < count * 11 / 10 + took.counts.slowed * 2, "one request each");
    let edits = stores.iter().enumerate().map(|(writer, store)| async move {
        store.put(&format!("{writer}/large"), vec![1; 100_000]).await.unwrap();
    });
    run.measure("put of 100 KB, a new name", run.writers, join_all(edits)).await;
    let edits = stores.iter().enumerate().map(|(writer, store)| async move {
        for n in 0..each {
            store.insert(&format!("{writer}/large"), n * 17, vec![2; 1000]).await.unwrap();
        }
    });
    let (_, took) = run.measure("insert of 1 KB", count, join_all(edits)).await;
    assert!(took.counts.writes < count * 12 / 10 + took.counts.slowed * 2, "one request each");
    let run = &run;
    let gets = stores.iter().enumerate().map(|(writer, store)| async move {
        for n in 0..each {
            let name = format!("{}/25000/{n}", (writer as u64 + 1) % run.writers);
            assert_eq!(store.get(&name).await.unwrap().unwrap().len(), 25_000);
        }
    });
    run.measure("get of 25 KB", count, join_all(gets)).await;
    check(run, count).await;
}

/// Lists, collects and verifies what is there.
async fn check(run: &Run, count: u64) {
    let listed = async {
        let (mut what, mut names) = (ListNames::default(), 0);
        loop {
            let page = run.store.list(&what).await.unwrap();
            names += page.names.len() as u64;
            what.after = page.next;
            if what.after.is_none() {
                return names;
            }
        }
    };
    let (names, _) = run.measure("list, of names", count + run.writers, listed).await;
    assert_eq!(names, count + run.writers);
    tokio::time::sleep(Duration::from_secs(100)).await;
    let mut quiet = |_: &_| {};
    let gc = run.store.collect(CollectOptions::default(), &mut quiet);
    let (done, _) = run.measure("gc, of names", names, gc).await;
    assert!(done.unwrap().blobs == 0, "nothing was replaced but embedded bytes");
    let gc = CollectOptions { full: true, ..CollectOptions::default() };
    let mut quiet = |_: &_| {};
    let gc = run.store.collect(gc, &mut quiet);
    let (done, _) = run.measure("gc --full, of names", names, gc).await;
    assert_eq!(done.unwrap().blobs, 0);
    let problems = run.store.verify(&mut |_| {}).await.unwrap().problems;
    assert_eq!(problems, []);
}

#[tokio::test(start_paused = true)]
async fn one_name_that_all_change() {
    let run = Run::new().await;
    run.store.put("hot", "").await.unwrap();
    println!("| what | operations | s | a second | PUT, LIST | GET | slowed | $ for 10⁶ |");
    for writers in [1, 2, 10, 100] {
        let stores = join_all((0..writers).map(|_| run.opened())).await;
        let appends = stores.iter().map(|store| async move {
            let mut done = 0;
            for _ in 0..20 {
                done += u64::from(store.append("hot", "x").await.is_ok());
            }
            done
        });
        let before = run.store.info("hot").await.unwrap().unwrap().size;
        let what = format!("append to one name, {writers} writers");
        let (done, _) = run.measure(&what, writers * 20, join_all(appends)).await;
        let done: u64 = done.into_iter().sum();
        println!("  done: {done} of {}", writers * 20);
        let size = run.store.info("hot").await.unwrap().unwrap().size;
        assert!(size - before >= done, "an acknowledged change is there");
    }
    let many = (0..100).map(|_| Splice::Append("y".into())).collect::<Vec<_>>();
    let (done, _) =
        run.measure("100 appends as one change", 100, run.store.edit("hot", many)).await;
    done.unwrap();
}
