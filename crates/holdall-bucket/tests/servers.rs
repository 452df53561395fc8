//! Conformance and probe of what bucket stores can lie on: a bucket in memory, one with faults, and the
//! server that the environment names.
//!
//! `HOLDALL_TEST_S3=s3://BUCKET/PREFIX`, with the variables of aws-cli, names one; `tests/servers/` has
//! scripts that start some. With `--nocapture` its report is shown.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use futures::future::join_all;
use holdall_bucket::backend::{Backend, Faults, Faulty, Got, Memory, Put, S3, conformance};
use holdall_bucket::{Access, Check, ProbeReport, probe, probe_s3};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Clients that change one key, and how often each does.
const CLIENTS: u32 = 8;
const APPENDS: u32 = 25;
/// Requests one after another of a measurement.
const REQUESTS: u32 = 200;
/// Requests at once of a measurement.
const AT_ONCE: u32 = 16;

fn run<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(work)
}

#[test]
fn a_bucket_in_memory_conforms() {
    run(async {
        let memory = Memory::default();
        conformance::check(&memory, "x/").await.unwrap();
        let report = probe(&memory, "x/", &mut |_| {}).await.unwrap();
        assert!(report.delete_if);
    });
}

#[test]
fn one_with_faults_conforms_where_faults_are_legal() {
    run(async {
        for seed in 0..10 {
            let wait = |random: u64| -> futures::future::BoxFuture<'static, ()> {
                Box::pin(tokio::time::sleep(Duration::from_micros(random % 200)))
            };
            let faulty = Faulty::new(Memory::default(), Faults::HARMLESS, seed);
            let faulty = faulty.with_wait(Box::new(wait));
            conformance::check(&faulty, "x/").await.unwrap();
            let faults = Faults { repeated: 0, ..Faults::default() };
            let faulty = Faulty::new(Memory::default(), faults, seed).with_wait(Box::new(wait));
            probe(&faulty, "x/", &mut |_| {}).await.unwrap();
        }
    });
}

#[test]
fn the_server_that_the_environment_names_conforms() {
    let Ok(place) = std::env::var("HOLDALL_TEST_S3") else { return };
    run(async {
        let s3 = S3::open(&place, &Access::default()).unwrap();
        let (s3, report) = probe_s3(s3, "", &mut |check| show(check)).await.unwrap();
        summary(&report);
        let prefix = format!("test/{:016x}/", getrandom::u64().unwrap());
        // One after another a deletion is right, if it ever is.
        let s3 = s3.with_delete_if(report.delete_if);
        conformance::check(&s3, &prefix).await.unwrap();
        let page = s3.list("probe/", None, false, 10).await.unwrap();
        assert!(page.keys.is_empty(), "the probe left {:?}", page.keys);
        appended(&s3, &format!("{prefix}n/appended!")).await;
        speed(&s3, &prefix).await;
    });
}

/// Several append to one key, each as often; nothing may be lost, and nothing be there twice. As a store
/// does, a look tells what became of a write of which nothing is known.
async fn appended(s3: &S3, key: &str) {
    let first = s3.put_if(key, None, Bytes::from_static(b"begun")).await.unwrap();
    assert!(matches!(first, Put::Done(_)), "{first:?}");
    let (refused, unknown) = (AtomicU32::new(0), AtomicU32::new(0));
    let started = Instant::now();
    let append = async |line: String| {
        loop {
            let Got::Found(found) = s3.get(key, None, None).await.unwrap() else { continue };
            let text = String::from_utf8(found.bytes.whole().to_vec()).unwrap();
            if text.lines().any(|there| there == line) {
                break;
            }
            let bytes = Bytes::from(format!("{text}\n{line}"));
            match s3.put_if(key, Some(&found.tag), bytes).await.unwrap() {
                Put::Done(_) => break,
                Put::NotDone => refused.fetch_add(1, Relaxed),
                Put::Unknown(_) => unknown.fetch_add(1, Relaxed),
            };
            tokio::time::sleep(Duration::from_millis(getrandom::u64().unwrap() % 20)).await;
        }
    };
    let client = async |client: u32| {
        for n in 0..APPENDS {
            append(format!("{client}-{n}")).await;
        }
    };
    join_all((0..CLIENTS).map(client)).await;
    let took = started.elapsed();
    let Got::Found(found) = s3.get(key, None, None).await.unwrap() else { unreachable!() };
    let text = String::from_utf8(found.bytes.whole().to_vec()).unwrap();
    let lines: BTreeSet<&str> = text.lines().collect();
    assert_eq!((text.lines().count(), lines.len()), (201, 201), "{text}");
    println!("200 appends by 8 clients: {took:.1?}, {refused:?} refused, {unknown:?} unknown");
    s3.delete(key).await.unwrap();
}

fn show(check: &Check) {
    let found = check.found.as_deref().map(|found| format!(": {found}")).unwrap_or_default();
    println!("{:>7.0?} {:>4} requests  {}{found}", check.took, check.requests, check.what);
}

fn summary(report: &ProbeReport) {
    let ProbeReport { quoting, delete_if, requests, took, .. } = report;
    println!("{took:.1?}, {requests} requests, {quoting:?}, delete_if {delete_if}");
}

/// Shows how fast a server is, asked for one thing after another, and for several at once.
async fn speed(s3: &S3, prefix: &str) {
    let small = Bytes::from(vec![7; 4096]);
    let key = |n: u32| format!("{prefix}s/{n}!");
    let each = |what: &str, started: Instant, many: u32| {
        println!("{what}: {:.2?} each", started.elapsed() / many);
    };
    let started = Instant::now();
    for n in 0..REQUESTS {
        let put = s3.put_if(&key(n), None, small.clone()).await.unwrap();
        assert!(matches!(put, Put::Done(_)), "{put:?}");
    }
    each("create 4 KiB", started, REQUESTS);
    let started = Instant::now();
    for n in 0..REQUESTS {
        assert!(matches!(s3.get(&key(n), None, None).await.unwrap(), Got::Found(_)));
    }
    each("get 4 KiB", started, REQUESTS);
    let started = Instant::now();
    for round in 0..REQUESTS / AT_ONCE {
        let keys: Vec<String> = (0..AT_ONCE).map(|n| key(1000 + round * AT_ONCE + n)).collect();
        for put in join_all(keys.iter().map(|key| s3.put_if(key, None, small.clone()))).await {
            assert!(matches!(put.unwrap(), Put::Done(_)));
        }
    }
    each("create 4 KiB, 16 at once", started, REQUESTS / AT_ONCE * AT_ONCE);
    let (large, blob) = (Bytes::from(vec![7; 8 << 20]), format!("{prefix}b/0"));
    let started = Instant::now();
    for _ in 0..8 {
        s3.put_new(&blob, large.clone()).await.unwrap();
    }
    each("put 8 MiB", started, 8);
    let started = Instant::now();
    for _ in 0..8 {
        assert!(matches!(s3.get(&blob, None, None).await.unwrap(), Got::Found(_)));
    }
    each("get 8 MiB", started, 8);
    let started = Instant::now();
    let listed = s3.list(prefix, None, false, 1000).await.unwrap();
    each(&format!("list {}", listed.keys.len()), started, 1);
    for some in listed.keys.chunks(AT_ONCE as usize) {
        let deleted = join_all(some.iter().map(|listed| s3.delete(&listed.key))).await;
        deleted.into_iter().for_each(Result::unwrap);
    }
}
