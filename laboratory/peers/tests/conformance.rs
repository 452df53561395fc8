//! Every store does what the trait says: one test of all calls for each maker and load.
//!
//! Run with `cargo test --release`: it shares the C and C++ libraries with the release build.

#![expect(clippy::unwrap_used, reason = "a test ends at the first error")]

use holdall_bench::peer::{Load, Maker, Peer, Setup};

const CACHE: u64 = 16 << 20;

/// Bytes that differ by seed and repeat with no period a page has.
fn bytes(seed: u64, size: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..size).map(|_| step()).collect()
}

fn size(load: Load, index: u64) -> usize {
    let index = usize::try_from(index).unwrap();
    match load {
        Load::Small => 100 + index * 7 % 200,
        Load::Web => 200 + index * 997 % 20_000,
        Load::Large => 100_000 + index * 300_007,
    }
}

/// Ordinals, because some stores take no other keys.
fn key(index: u64) -> Vec<u8> {
    index.to_be_bytes().to_vec()
}

const STREAMED: u64 = 100_000;
const THREADS: u64 = 200_000;
const AFTER: u64 = 300_000;

fn count(load: Load) -> u64 {
    if load == Load::Large { 5 } else { 300 }
}

fn get(peer: &dyn Peer, key: &[u8]) -> Option<Vec<u8>> {
    // What `out` held before must not show.
    let mut out = vec![7; 12];
    peer.get(key, &mut out).unwrap().then_some(out)
}

fn view(peer: &dyn Peer, key: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    peer.view(key, &mut |piece| out.extend_from_slice(piece)).unwrap().then_some(out)
}

/// What the store should hold, in the order of its keys.
type Model = std::collections::BTreeMap<Vec<u8>, Vec<u8>>;

fn check(peer: &dyn Peer, model: &Model, what: &str) {
    for (key, value) in model {
        assert!(get(peer, key).as_ref() == Some(value), "{what}: get");
        assert!(view(peer, key).as_ref() == Some(value), "{what}: view");
        let start = value.len() / 3;
        let mut range = vec![0; (value.len() - start).min(4096)];
        peer.get_range(key, start as u64, &mut range).unwrap();
        assert!(range == value[start..start + range.len()], "{what}: range");
    }
    let keys: Vec<_> = model.keys().map(Vec::as_slice).collect();
    let mut values = model.values();
    peer.get_many(&keys, &mut |got| assert!(Some(got) == values.next().map(Vec::as_slice)))
        .unwrap();
    assert!(values.next().is_none(), "{what}: get of many");
}

fn put(peer: &dyn Peer, model: &mut Model, items: Vec<(Vec<u8>, Vec<u8>)>) {
    let borrowed: Vec<_> = items.iter().map(|(k, v)| (k.as_slice(), v.as_slice())).collect();
    peer.put(&borrowed).unwrap();
    model.extend(items);
}

fn splice(peer: &dyn Peer, model: &mut Model, key: &[u8], at: usize, delete: usize, new: &[u8]) {
    peer.splice(key, at as u64, delete as u64, new).unwrap();
    model.get_mut(key).unwrap().splice(at..at + delete, new.iter().copied());
}

fn fill(peer: &dyn Peer, model: &mut Model, load: Load) {
    let count = count(load);
    // Ascending keys, then keys between them, then replacement by other sizes.
    put(peer, model, (0..count).map(|i| (key(2 * i), bytes(i, size(load, i)))).collect());
    put(peer, model, (0..count).rev().map(|i| (key(2 * i + 1), bytes(i, 100))).collect());
    put(
        peer,
        model,
        (0..count / 2).map(|i| (key(2 * i), bytes(i + 9, size(load, i + 1)))).collect(),
    );
}

fn exercise(peer: &dyn Peer, model: &mut Model, load: Load) {
    fill(peer, model, load);
    check(peer, model, "after puts");
    let (first, middle, insert) = (key(0), key(2), bytes(1, 33));
    splice(peer, model, &first, 50, 0, &insert);
    splice(peer, model, &first, 0, 10, &[]);
    splice(peer, model, &middle, 20, insert.len(), &insert);
    check(peer, model, "after splices");

    let streamed = bytes(77, size(load, 4) + 300_000);
    let mut given = 0;
    peer.put_stream(&key(STREAMED), streamed.len() as u64, &mut |piece| {
        piece.copy_from_slice(&streamed[given..given + piece.len()]);
        given += piece.len();
    })
    .unwrap();
    assert_eq!(given, streamed.len(), "the stream's bytes are drawn once");
    model.insert(key(STREAMED), streamed);

    let (gone, kept): (Vec<_>, Vec<_>) = model.keys().cloned().partition(|k| k[7] % 10 == 3);
    peer.delete(&gone.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
    model.retain(|key, _| kept.contains(key));
    for key in &gone {
        assert!(get(peer, key).is_none() && view(peer, key).is_none(), "deleted, yet there");
    }
    assert!(peer.get_range(&gone[0], 0, &mut [0; 4]).is_err(), "range of nothing");
    assert!(peer.splice(&gone[0], 0, 0, b"x").is_err(), "splice of nothing");
    check(peer, model, "after deletion");
}

/// Readers and writers at once: every get sees a whole value, and all are there in the end.
fn threads(peer: &dyn Peer, model: &mut Model) {
    let (writers, each) = (3, 20);
    let thread_key = |thread: u64, index: u64| key(THREADS + thread * 1000 + index);
    std::thread::scope(|scope| {
        for thread in 0..writers {
            scope.spawn(move || {
                for index in 0..each {
                    let key = thread_key(thread, index);
                    peer.put(&[(&key, &bytes(thread * each + index, 150))]).unwrap();
                    assert!(get(peer, &key) == Some(bytes(thread * each + index, 150)));
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| check(peer, model, "beside writers"));
        }
    });
    for (thread, index) in (0..writers).flat_map(|t| (0..each).map(move |i| (t, i))) {
        model.insert(thread_key(thread, index), bytes(thread * each + index, 150));
    }
}

fn conforms(maker: &dyn Maker, load: Load) {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup { cache_bytes: CACHE, load };
    let mut model = Model::new();
    let peer = maker.open(dir.path(), &setup).unwrap();
    exercise(&*peer, &mut model, load);
    threads(&*peer, &mut model);
    peer.settle().unwrap();
    check(&*peer, &model, "settled");
    peer.close().unwrap();

    let peer = maker.open(dir.path(), &setup).unwrap();
    check(&*peer, &model, "reopened");
    assert!(get(&*peer, &key(3)).is_none(), "deleted, yet there after reopening");
    put(&*peer, &mut model, vec![(key(AFTER), b"reopening".to_vec())]);
    check(&*peer, &model, "changed after reopening");
    peer.close().unwrap();
}

fn all_loads(name: &str) {
    let mut makers = holdall_bench_peers::stores::makers();
    makers.extend(holdall_bench::stores::own());
    let maker = makers.iter().find(|maker| maker.name() == name).unwrap();
    let mut taken = 0;
    for load in [Load::Small, Load::Web, Load::Large] {
        if maker.takes(load) {
            let text = maker.settings(&Setup { cache_bytes: CACHE, load });
            assert!(text.chars().any(|c| c.is_ascii_digit()), "no version: {text}");
            conforms(&**maker, load);
            taken += 1;
        }
    }
    assert!(taken > 0, "{name} takes part in nothing");
}

#[test]
fn sqlite() {
    all_loads("SQLite");
}

#[test]
fn lmdb() {
    all_loads("LMDB");
}

#[test]
fn redb() {
    all_loads("redb");
}

#[test]
fn fjall() {
    all_loads("fjall");
    all_loads("fjall blobs");
}

#[test]
#[cfg(feature = "rocksdb")]
fn rocksdb() {
    all_loads("RocksDB");
    all_loads("RocksDB blobs");
}

#[test]
fn holdall_and_files() {
    let own = holdall_bench::stores::own();
    assert!(own.len() >= 2);
    for maker in own {
        all_loads(maker.name());
    }
}

#[test]
fn every_maker_has_a_test() {
    let mut tested = vec!["SQLite", "LMDB", "redb", "fjall", "fjall blobs"];
    if cfg!(feature = "rocksdb") {
        tested.extend(["RocksDB", "RocksDB blobs"]);
    }
    let makers = holdall_bench_peers::stores::makers();
    let names: Vec<_> = makers.iter().map(|maker| maker.name()).collect();
    assert_eq!(names, tested);
}
