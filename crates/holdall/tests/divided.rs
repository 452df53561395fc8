//! Records in two parts: sizes that would fill pages badly, and every call on such objects.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that goes wrong")]

use holdall::{Options, Store};
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::SliceRandom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

fn bytes(i: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 / 7 + i * 13) as u8).collect()
}

fn name(i: usize) -> String {
    format!("{i:08}.bin")
}

fn put_batch(store: &Store, all: &[usize], size: usize) {
    for some in all.chunks(500) {
        store.write(|tx| tx.put_all(some.iter().map(|&i| (name(i), bytes(i, size))))).unwrap();
    }
}

fn ratio(path: &Path, n: usize, size: usize) -> f64 {
    (std::fs::metadata(path).unwrap().blocks() * 512) as f64 / (n * size) as f64
}

#[test]
fn explore() {
    let n = std::env::var("N").map_or(4000, |n| n.parse().unwrap());
    let sizes = std::env::var("SIZES").unwrap_or("200 1000 1100 1300 1500 2600 3000 4200 5000 6000 7200 8000 9000 12400 17000 21000 100000".into());
    for size in sizes.split(' ').map(|s| s.parse::<usize>().unwrap()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.holdall");
        let options = Options::default().background(false);
        let store = options.clone().create(&path).unwrap();
        let mut all: Vec<usize> = (0..n).collect();
        put_batch(&store, &all, size);
        store.close().unwrap();
        let bulk = ratio(&path, n, size);
        let mut line = format!("{size} bulk {bulk:.3}");
        let store = options.clone().open(&path).unwrap();
        let mut rng = SmallRng::seed_from_u64(1);
        for round in 0..3 {
            all.shuffle(&mut rng);
            for some in all[..n / 2].chunks(500) {
                store.write(|tx| some.iter().try_for_each(|&i| tx.remove(&name(i)).map(drop))).unwrap();
            }
            let back = all[..n / 2].to_vec();
            put_batch(&store, &back, size);
            store.checkpoint().unwrap();
            let stat = store.stat().unwrap();
            line += &format!(" r{round} {:.3}", stat.file_bytes as f64 / (n * size) as f64);
        }
        store.close().unwrap();
        line += &format!(" closed {:.3}", ratio(&path, n, size));
        if std::env::var("ONE").is_ok() {
            let path = dir.path().join("t.holdall");
            let store = options.clone().create(&path).unwrap();
            (0..1000).for_each(|i| drop(store.write(|tx| tx.put(name(i), &bytes(i, size))).unwrap()));
            store.close().unwrap();
            line += &format!(" single {:.3}", ratio(&path, 1000, size));
        }
        println!("{line}");
    }
}
