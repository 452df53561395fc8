//! Free space goes back to the file system: holes while open, the end of the file, at the close.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that goes wrong")]

use holdall::{Options, Store};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;

fn blocks(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().blocks() * 512
}

fn put(store: &Store, name: &str, bytes: &[u8]) {
    store.write(|tx| tx.put(name, bytes)).unwrap();
}

fn get(store: &Store, name: &str) -> Vec<u8> {
    store.read().unwrap().get(name).unwrap().unwrap()
}

fn bytes(i: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 997 + i) as u8).collect()
}

/// 64 objects of 1 MiB, of which each eighth stays.
fn emptied(path: &Path, background: bool) -> Store {
    let store = Options::default().background(background).create(path).unwrap();
    for i in 0..64 {
        put(&store, &format!("{i:02}"), &bytes(i, MIB));
    }
    store.checkpoint().unwrap();
    assert!(blocks(path) > 64 * MIB as u64);
    for i in (0..64).filter(|i| i % 8 != 0) {
        store.write(|tx| tx.remove(format!("{i:02}"))).unwrap();
    }
    store
}

fn check(store: &Store) {
    for i in (0..64).step_by(8) {
        assert_eq!(get(store, &format!("{i:02}")), bytes(i, MIB));
    }
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn a_checkpoint_gives_back_what_was_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.holdall");
    let store = emptied(&path, false);
    store.checkpoint().unwrap();
    let stat = store.stat().unwrap();
    assert_eq!(stat.file_bytes, blocks(&path));
    assert!(stat.file_bytes < 11 * MIB as u64, "{} bytes of blocks", stat.file_bytes);
    assert!(stat.hole_bytes > 40 * MIB as u64);
    check(&store);
    // What is written next goes into the holes, and the file is not longer for it.
    let len = std::fs::metadata(&path).unwrap().len();
    for i in 100..140 {
        put(&store, &format!("{i}"), &bytes(i, MIB));
    }
    store.checkpoint().unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), len);
    check(&store);
    store.close().unwrap();
    let store = Store::open(&path).unwrap();
    check(&store);
    for i in 100..140 {
        store.write(|tx| tx.remove(format!("{i}"))).unwrap();
    }
    store.close().unwrap();
    assert!(blocks(&path) < 11 * MIB as u64, "{} bytes of blocks", blocks(&path));
    check(&Store::open(&path).unwrap());
}

#[test]
fn the_store_does_it_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.holdall");
    let store = emptied(&path, true);
    let begin = Instant::now();
    while blocks(&path) > 11 * MIB as u64 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{} bytes of blocks", blocks(&path));
        std::thread::sleep(Duration::from_millis(100));
    }
    check(&store);
}

#[test]
fn a_free_end_is_cut_off_while_the_store_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.holdall");
    let store = Options::default().background(false).create(&path).unwrap();
    put(&store, "kept", b"some bytes");
    let mut tx = store.begin_write().unwrap();
    tx.put("large", &vec![7; 40 * MIB]).unwrap();
    drop(tx);
    let length = || std::fs::metadata(&path).unwrap().len();
    assert!(length() > 40 * MIB as u64);
    store.checkpoint().unwrap();
    assert!(length() < 2 * MIB as u64, "{} bytes", length());
    put(&store, "large again", &vec![8; 20 * MIB]);
    assert_eq!(get(&store, "kept"), b"some bytes");
    drop(store);
    assert!(Store::open(&path).unwrap().verify().unwrap().is_sound());
}
