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
        let g = store.frag(&mut |_, _| {}).unwrap();
        let h = &g.heap.collections[0];
        let q = 8192.0 / (n * size) as f64;
        line += &format!(" [heap {:.3}+{:.3} util {:.3} meta {:.3} free {:.3} wait {:.3} res {:.3}]", h.pages as f64 * q, h.fresh_pages as f64 * q, h.utilization, g.geometry.metadata_pages as f64 * q, g.geometry.free_pages as f64 * q, g.geometry.waiting_pages as f64 * q, g.geometry.reserved_pages as f64 * q);
        store.close().unwrap();
        line += &format!(" div {}  closed {:.3}", h.records as usize - n, ratio(&path, n, size));
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

fn hashed(i: u64) -> u64 {
    let mut z = i.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|l| l.strip_prefix("wchar: ")).unwrap().parse().unwrap()
}

#[test]
fn web() {
    let n = 50_000u64;
    let len = |i: u64, v: u64| {
        let u = ((hashed(7 ^ hashed(i ^ (v << 40))) >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        ((860.0 * u.powf(-1.0 / 1.2)) as usize).min(256 << 10)
    };
    let data = bytes(3, 300_000);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.holdall");
    let store = Options::default().background(false).create(&path).unwrap();
    let mut version = vec![0u64; n as usize];
    let report = |what: &str, version: &[u64], before: u64| {
        store.checkpoint().unwrap();
        let w = written() - before;
        let g = store.frag(&mut |_, _| {}).unwrap();
        let h = &g.heap.collections[0];
        let total: u64 = (0..n).map(|i| len(i, version[i as usize]) as u64).sum();
        println!("{what}: file {:.3} util {:.3} divided {} of {n}, heap pages {} fresh {}, written {w}", store.stat().unwrap().file_bytes as f64 / total as f64, h.utilization, h.records - n, h.pages, h.fresh_pages);
    };
    let before = written();
    for from in (0..n).step_by(100) {
        store.write(|tx| (from..from + 100).try_for_each(|i| tx.put(i.to_be_bytes(), &data[..len(i, 0)]).map(drop))).unwrap();
    }
    report("load", &version, before);
    for round in 0..4 {
        let before = written();
        for c in 0..500u64 {
            let picks: Vec<u64> = (0..100).map(|k| hashed(4 ^ (round * 50_000 + c * 100 + k)) % n).collect();
            store.write(|tx| picks.iter().try_for_each(|&i| {
                version[i as usize] += 1;
                tx.put(i.to_be_bytes(), &data[..len(i, version[i as usize])]).map(drop)
            })).unwrap();
        }
        report("replace", &version, before);
    }
}
