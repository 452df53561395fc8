//! Many gets at once give what single gets give, and what the model says.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Error, Fetched, Key, Located, Looked, Oid, Options, Reader, Store};
use holdall_io::MemoryStorage;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn store(cache_bytes: usize, old_version_bytes: usize) -> Store {
    options(cache_bytes, old_version_bytes).create_on(Arc::new(MemoryStorage::new())).unwrap()
}

fn options(cache_bytes: usize, old_version_bytes: usize) -> Options {
    Options::default()
        .background(false)
        .page_size(4096)
        .cache_bytes(cache_bytes)
        .old_version_bytes(old_version_bytes)
        .tuning(|t| t.dirty_pages(4000))
}

/// What a get returned, to be compared.
type Said = Result<Option<Vec<u8>>, String>;

fn said(got: holdall::Result<Option<impl AsRef<[u8]>>>) -> Said {
    got.map(|b| b.map(|b| b.as_ref().to_vec())).map_err(|e| format!("{e:?}"))
}

/// The slow path: opened and read through.
fn read_through(reader: &Reader, key: &Key<'_>) -> Said {
    let mut object = match (reader.open(key), key) {
        (Err(Error::NotFound(_)), Key::Name(_)) => return Ok(None),
        (object, _) => object.map_err(|e| format!("{e:?}"))?,
    };
    let mut all = Vec::new();
    object.read_to_end(&mut all).unwrap();
    Ok(Some(all))
}

fn many(reader: &Reader, keys: &[Key<'_>]) -> Vec<Said> {
    let mut all = Vec::new();
    let each = |i, bytes: holdall::Result<Option<&[u8]>>| {
        assert_eq!(i, all.len(), "in order, each once");
        all.push(said(bytes));
        Ok(())
    };
    reader.get_many(keys, each).unwrap();
    assert_eq!(all.len(), keys.len());
    all
}

/// As [`many`], found first and read to memory of their sizes.
fn located(reader: &Reader, keys: &[Key<'_>]) -> Vec<Said> {
    let found = match reader.locate_many(keys) {
        Ok(found) => found,
        // The first with which something is wrong; the others by themselves.
        Err(e) => {
            if let [_] = keys {
                return vec![Err(format!("{e:?}"))];
            }
            return keys
                .iter()
                .flat_map(|key| located(reader, std::slice::from_ref(key)))
                .collect();
        }
    };
    let mut all: Vec<Option<Vec<u8>>> =
        found.sizes().map(|size| size.map(|size| vec![0xee; size as usize])).collect();
    found.read_into(all.iter_mut().flatten().map(|bytes| &mut bytes[..])).unwrap();
    // The first bytes alone, and more than there are.
    let mut few: Vec<Vec<u8>> =
        all.iter().flatten().map(|bytes| vec![0; bytes.len().div_ceil(2)]).collect();
    found.read_into(few.iter_mut().map(|bytes| &mut bytes[..])).unwrap();
    for (few, all) in few.iter().zip(all.iter().flatten()) {
        assert_eq!(few[..], all[..few.len()]);
    }
    if let Some(first) = all.iter().flatten().next() {
        let long = found.read_into([&mut vec![0; first.len() + 1][..]]);
        assert!(matches!(long, Err(Error::Range { .. })), "{long:?}");
    }
    all.into_iter().map(Ok).collect()
}

/// As [`located`], after a look at what lies in memory.
fn looked(reader: &Reader, keys: &[Key<'_>]) -> Vec<Said> {
    let mut all: Vec<Option<Vec<u8>>> = vec![None; keys.len()];
    let give = |i: usize, parts: [&[u8]; 2]| {
        assert_eq!(all[i].replace(parts.concat()), None, "each once");
    };
    let found = reader.look_many(keys, give).and_then(|mut found| {
        found.find_rest(keys)?;
        Ok(found)
    });
    let found: Located = match found {
        Ok(found) => found,
        Err(e) if keys.len() == 1 => return vec![Err(format!("{e:?}"))],
        Err(_) => {
            let alone = |key| looked(reader, std::slice::from_ref(key));
            return keys.iter().flat_map(alone).collect();
        }
    };
    assert!(found.is_complete());
    for (bytes, size) in all.iter_mut().zip(found.sizes()) {
        if let Some(size) = size {
            assert_eq!(bytes.replace(vec![0xee; size as usize]), None, "given already");
        }
    }
    let left = all.iter_mut().zip(found.sizes()).filter(|(_, size)| size.is_some());
    found.read_into(left.filter_map(|(bytes, _)| bytes.as_deref_mut())).unwrap();
    all.into_iter().map(Ok).collect()
}

fn looked_alone(reader: &Reader, key: &Key<'_>) -> Said {
    match reader.look(key, |parts| parts.concat()).map_err(|e| format!("{e:?}"))? {
        Looked::Missing => Ok(None),
        Looked::Small(bytes) => Ok(Some(bytes)),
        Looked::Large(mut object) => {
            let mut bytes = Vec::new();
            object.read_to_end(&mut bytes).unwrap();
            Ok(Some(bytes))
        }
        Looked::NotInMemory => fetched(reader, key),
    }
}

fn fetched(reader: &Reader, key: &Key<'_>) -> Said {
    let mut bytes = vec![1; 100];
    match reader.fetch(key, &mut bytes).map_err(|e| format!("{e:?}"))? {
        None => Ok(None),
        Some(Fetched::Read) => Ok(Some(bytes)),
        Some(Fetched::Opened(mut object)) => {
            assert!(bytes.is_empty());
            object.read_to_end(&mut bytes).unwrap();
            Ok(Some(bytes))
        }
    }
}

#[derive(Debug, Clone)]
enum Op {
    Put(u8, usize),
    Create(usize),
    /// Deletes by name.
    Delete(u8),
    /// Deletes one of those created, by OID.
    Free(usize),
    Snapshot,
}

fn op() -> impl Strategy<Value = Op> {
    let len = || prop_oneof![8 => 0..300_usize, 2 => 3000..4200_usize, 1 => 4200..60_000_usize];
    prop_oneof![
        8 => (any::<u8>(), len()).prop_map(|(n, len)| Op::Put(n, len)),
        4 => len().prop_map(Op::Create),
        3 => any::<u8>().prop_map(Op::Delete),
        2 => any::<usize>().prop_map(Op::Free),
        1 => Just(Op::Snapshot),
    ]
}

fn name(n: u8) -> Vec<u8> {
    // Some shorter than others, some with a beginning of their own.
    format!("{}{n}", if n.is_multiple_of(3) { "a/long/beginning/" } else { "" }).into_bytes()
}

/// What one snapshot must show.
struct Seen {
    reader: Reader,
    named: BTreeMap<Vec<u8>, Vec<u8>>,
    by_oid: BTreeMap<Oid, Vec<u8>>,
}

struct Model {
    store: Store,
    named: BTreeMap<Vec<u8>, Vec<u8>>,
    by_oid: BTreeMap<Oid, Vec<u8>>,
    /// All OIDs there ever were.
    oids: Vec<Oid>,
    seen: Vec<Seen>,
}

impl Model {
    fn run(&mut self, i: usize, op: &Op) {
        let bytes = |len: usize| -> Vec<u8> { (0..len).map(|j| (i * 31 + j * 7) as u8).collect() };
        match op {
            Op::Put(n, len) => {
                self.store.write(|tx| tx.put(name(*n), &bytes(*len))).unwrap();
                self.named.insert(name(*n), bytes(*len));
            }
            Op::Create(len) => {
                let oid = self.store.write(|tx| tx.create(&bytes(*len))).unwrap();
                self.oids.push(oid);
                self.by_oid.insert(oid, bytes(*len));
            }
            Op::Delete(n) => {
                if self.named.remove(&name(*n)).is_some() {
                    self.store.write(|tx| tx.remove(name(*n))).unwrap();
                }
            }
            Op::Free(n) => {
                if let Some(oid) = self.oids.get(n % self.oids.len().max(1)).copied()
                    && self.by_oid.remove(&oid).is_some()
                {
                    self.store.write(|tx| tx.remove(oid)).unwrap();
                }
            }
            Op::Snapshot => self.take_snapshot(),
        }
    }

    fn take_snapshot(&mut self) {
        let reader = self.store.read().unwrap();
        let (named, by_oid) = (self.named.clone(), self.by_oid.clone());
        self.seen.push(Seen { reader, named, by_oid });
    }
}

impl Seen {
    fn check(&self, keys: &[Key<'_>]) {
        // First, so that some of it is not in memory yet.
        let first = looked(&self.reader, keys);
        let all = many(&self.reader, keys);
        assert_eq!(first, all);
        assert_eq!(located(&self.reader, keys), all);
        assert_eq!(looked(&self.reader, keys), all);
        for (key, got) in keys.iter().zip(all) {
            assert_eq!(got, fetched(&self.reader, key), "{key:?}");
            assert_eq!(got, looked_alone(&self.reader, key), "{key:?}");
            assert_eq!(got, said(self.reader.get(key)), "{key:?}");
            assert_eq!(got, read_through(&self.reader, key), "{key:?}");
            match key {
                Key::Name(name) => assert_eq!(got, Ok(self.named.get(&**name).cloned())),
                Key::Oid(oid) => assert_eq!(got.ok(), self.by_oid.get(oid).cloned().map(Some)),
            }
        }
    }
}

fn check_all(model: &Model, draws: &[(bool, u16)]) {
    let names: Vec<_> = (0..=255).map(name).chain([vec![b'n'; 2000], Vec::new()]).collect();
    // Numbers that no store of some hundred objects has given out.
    let never = [(0, 1, 1 << 31), (700_000, 3, 1), (0, u16::MAX, 1)];
    let never = never.map(|(page, slot, unique)| Oid { site: 0, page, slot, unique });
    let elsewhere = Oid { site: 7, page: 0, slot: 0, unique: 1 };
    let oids: Vec<_> = model.oids.iter().copied().chain(never).chain([elsewhere]).collect();
    let keys: Vec<_> = draws
        .iter()
        .map(|&(by_name, n)| match by_name {
            true => Key::from(&names[usize::from(n) % names.len()]),
            false => Key::Oid(oids[usize::from(n) % oids.len()]),
        })
        .collect();
    for seen in &model.seen {
        seen.check(&keys);
        seen.check(&keys);
        // All that is there, so that most groups are found in memory; backwards and twice.
        let there = seen.named.keys().map(Key::from);
        let there: Vec<_> = there.chain(seen.by_oid.keys().map(|o| Key::Oid(*o))).collect();
        seen.check(&there);
        seen.check(&there.iter().rev().flat_map(|k| [k.clone(), k.clone()]).collect::<Vec<_>>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn many_gets_are_as_single_ones(
        ops in proptest::collection::vec(op(), 0..150),
        draws in proptest::collection::vec(any::<(bool, u16)>(), 0..100),
        small_pool in any::<bool>(),
    ) {
        let store = store(if small_pool { 64 << 10 } else { 16 << 20 }, 64 << 20);
        let mut model = Model { store, named: BTreeMap::new(), by_oid: BTreeMap::new(), oids: Vec::new(), seen: Vec::new() };
        for (i, op) in ops.iter().enumerate() {
            model.run(i, op);
        }
        model.take_snapshot();
        check_all(&model, &draws);
    }
}

#[test]
fn no_keys_no_calls_and_an_error_of_the_callers_ends_it() {
    let store = store(1 << 20, 1 << 20);
    store.write(|tx| (0..50_u8).try_for_each(|i| tx.put([i], &[i]).map(|_| ()))).unwrap();
    let reader = store.read().unwrap();
    assert_eq!(many(&reader, &[]), []);
    let (keys, mut calls) = ((0..50_u8).map(|i| [i]).collect::<Vec<_>>(), 0);
    let stopped = reader.get_many(&keys, |i, bytes| {
        calls += 1;
        assert_eq!(bytes?.unwrap(), [i as u8]);
        if i == 20 { Err(Error::NotFound("enough".into())) } else { Ok(()) }
    });
    assert!(matches!(stopped, Err(Error::NotFound(why)) if why == "enough"));
    assert_eq!(calls, 21);
}

#[test]
fn a_look_reads_nothing_from_disk() {
    let (storage, names) = (Arc::new(MemoryStorage::new()), (0..100_u8).map(|i| [i]));
    let names: Vec<_> = names.collect();
    let store = options(1 << 20, 1 << 20).create_on(storage.clone()).unwrap();
    store.write(|tx| names.iter().try_for_each(|n| tx.put(n, &n.repeat(500)).map(drop))).unwrap();
    store.close().unwrap();
    let store = options(1 << 20, 1 << 20).open_on(storage).unwrap();
    let keys: Vec<Key<'_>> = names.iter().map(Key::from).collect();
    let reader = store.read().unwrap();
    let misses = || store.metrics().page_reads;
    let before = misses();
    let unread = reader.look(&keys[0], |_| panic!("it is not in memory")).unwrap();
    assert!(matches!(unread, Looked::NotInMemory));
    let mut found = reader.look_many(&keys, |_, _| panic!("nothing is in memory")).unwrap();
    assert!(!found.is_complete() && found.sizes().all(|size| size.is_none()));
    assert_eq!(misses(), before);
    found.find_rest(&keys).unwrap();
    assert!(found.is_complete() && found.sizes().all(|size| size == Some(500)));
    assert!(misses() > before);
    let mut given = 0;
    let found = reader.look_many(&keys, |i, parts| {
        assert_eq!(parts.concat(), names[i].repeat(500));
        given += 1;
    });
    assert!(given == 100 && found.unwrap().sizes().all(|size| size.is_none()));
    found_after_truncation(&reader, &keys);
}

fn found_after_truncation(reader: &Reader, keys: &[Key<'_>]) {
    let mut found = reader.locate_many(keys).unwrap();
    found.truncate(3);
    assert_eq!(found.sizes().collect::<Vec<_>>(), [Some(500); 3]);
}

#[test]
fn each_collection_has_names_of_its_own() {
    let store = store(1 << 20, 1 << 20);
    let empty = many(&store.read().unwrap(), &["a".into(), "b".into()]);
    assert_eq!(empty, [Ok(None), Ok(None)]);
    store
        .write(|tx| {
            tx.put("a", b"default")?;
            let mut tx = tx.collection("other")?;
            tx.put("a", b"other")?;
            tx.put("b", b"only there").map(|_| ())
        })
        .unwrap();
    let reader = store.read().unwrap();
    let got = |reader: &Reader| many(reader, &["a".into(), "b".into()]);
    let here = got(&reader);
    assert_eq!(here, [Ok(Some(b"default".to_vec())), Ok(None)]);
    let there = got(&reader.collection("other").unwrap());
    assert_eq!(there, [Ok(Some(b"other".to_vec())), Ok(Some(b"only there".to_vec()))]);
}

#[test]
fn the_caller_may_use_the_store_while_it_is_called() {
    let store = store(16 << 20, 64 << 20);
    let put =
        |v: u8| store.write(|tx| (0..100_u8).try_for_each(|i| tx.put([i], &[v; 200]).map(|_| ())));
    put(0).unwrap();
    let (reader, keys) = (store.read().unwrap(), (0..100_u8).map(|i| [i]).collect::<Vec<_>>());
    let mut seen = 0;
    reader
        .get_many(&keys, |i, bytes| {
            assert_eq!(bytes?.unwrap(), [0; 200], "the snapshot stays");
            put(i as u8 + 1)?;
            assert_eq!(store.read()?.get(keys[i])?.unwrap(), [i as u8 + 1; 200]);
            seen += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, 100);
}

#[test]
fn a_snapshot_given_up_says_so_for_every_key() {
    // Neither memory nor the disk has room for what it reads.
    let options = options(16 << 20, 64 << 10).max_bytes(480 << 10);
    let store = options.create_on(Arc::new(MemoryStorage::new())).unwrap();
    let put = |v: u8| {
        let keys = (0..200_u8).map(|i| [i]);
        store.write(|tx| keys.clone().try_for_each(|k| tx.put(k, &[v; 1000]).map(|_| ()))).unwrap();
    };
    put(1);
    let old = store.read().unwrap();
    let names: Vec<_> = (0..200_u8).map(|i| [i]).collect();
    let keys: Vec<Key<'_>> = names.iter().map(Key::from).collect();
    assert!(many(&old, &keys).iter().all(|s| *s == Ok(Some(vec![1; 1000]))));
    for v in 2..20 {
        put(v);
    }
    let said = many(&old, &keys);
    assert_eq!(looked(&old, &keys), said);
    assert!(said.iter().any(Result::is_err), "the snapshot was to be given up");
    assert!(
        said.iter().all(|s| s.as_ref().is_err_and(|e| e.starts_with("SnapshotTooOld"))),
        "{:?}",
        said.first()
    );
    assert!(many(&store.read().unwrap(), &keys).iter().all(|s| *s == Ok(Some(vec![19; 1000]))));
}

#[test]
fn readers_see_one_state_while_all_is_replaced() {
    let store = store(1 << 20, 64 << 20);
    let names: Vec<_> = (0..300_u16).map(u16::to_be_bytes).collect();
    let put = |v: u16| {
        let bytes = v.to_be_bytes().repeat(50 + usize::from(v % 60));
        store.write(|tx| names.iter().try_for_each(|n| tx.put(n, &bytes).map(|_| ()))).unwrap();
    };
    put(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reading = || {
            let (mut rounds, mut last) = (0, 0);
            while rounds == 0 || !done.load(Ordering::Relaxed) {
                let (reader, mut first) = (store.read().unwrap(), None::<Vec<u8>>);
                reader
                    .get_many(&names, |_, bytes| {
                        let bytes = bytes?.unwrap();
                        assert_eq!(first.get_or_insert_with(|| bytes.to_vec()), bytes);
                        Ok(())
                    })
                    .unwrap();
                let first = first.unwrap();
                let v = u16::from_be_bytes([first[0], first[1]]);
                assert!(v >= last && first.len() == 2 * (50 + usize::from(v % 60)));
                (rounds, last) = (rounds + 1, v);
            }
        };
        let readers = [scope.spawn(reading), scope.spawn(reading)];
        for v in 1..200 {
            put(v);
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    });
}
