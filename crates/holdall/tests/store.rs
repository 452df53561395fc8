//! The store as a user meets it: put, get, ranges, delete, rename, reopen.

use holdall::{Attributes, Error, Key, Options, PutOptions, Store};
use holdall_io::MemoryStorage;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Arc;

fn quiet() -> Options {
    Options::default().background(false).page_size(4096)
}

fn bytes(rng: &mut SmallRng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.random()).collect()
}

#[test]
fn objects_of_every_size_come_back_after_closing_and_after_a_kill() {
    let storage = Arc::new(MemoryStorage::new());
    let mut rng = SmallRng::seed_from_u64(1);
    let mut model = BTreeMap::new();
    let store = quiet().create_on(storage.clone()).unwrap();
    for (i, len) in
        [0, 1, 100, 3900, 4000, 4096, 5000, 70_000, 1 << 20, 9_000_001].iter().enumerate()
    {
        let data = bytes(&mut rng, *len);
        let name = format!("object {i}");
        store.write(|tx| tx.put(&name, &data)).unwrap();
        model.insert(name, data);
    }
    let check = |store: &Store| {
        let reader = store.read().unwrap();
        let mut own = b"of another object".to_vec();
        for (name, data) in &model {
            assert!(reader.get(name).unwrap().unwrap() == *data, "{name}");
            assert!(reader.get_into(name, &mut own).unwrap());
            assert!(own == *data, "{name}");
            let (a, b) = (data.len() as u64 / 3, data.len() as u64 * 2 / 3);
            let part = reader.get_range(name, a..b).unwrap().unwrap();
            assert!(part == data[a as usize..b as usize], "{name} {a}..{b}");
        }
        let names: Vec<_> = reader.names("").map(|n| n.unwrap().name).collect();
        assert_eq!(names, model.keys().map(|k| k.clone().into_bytes()).collect::<Vec<_>>());
        assert_eq!(store.stat().unwrap().objects, model.len() as u64);
    };
    check(&store);
    // As a kill leaves it: the bytes of both files at this moment.
    let killed = Arc::new(storage.fork());
    store.close().unwrap();
    assert!(storage.snapshot().1.is_none(), "a closed store is one file");
    check(&quiet().open_on(storage.clone()).unwrap());
    check(&quiet().open_read_only_on(killed.clone()).unwrap());
    check(&quiet().open_on(killed).unwrap());
}

#[test]
fn a_failed_transaction_changes_nothing_and_the_store_goes_on() {
    let store = quiet().create_on(Arc::new(MemoryStorage::new())).unwrap();
    store.write(|tx| tx.put("kept", b"old")).unwrap();
    let before = store.stat().unwrap();
    let result = store.write(|tx| {
        tx.put("kept", &vec![1; 100_000])?;
        tx.put("other", b"x")?;
        tx.rename("missing", "renamed")
    });
    assert!(matches!(result, Err(Error::NotFound(_))));
    let reader = store.read().unwrap();
    assert_eq!(reader.get("kept").unwrap().unwrap(), b"old");
    assert!(reader.lookup("other").unwrap().is_none());
    let after = store.stat().unwrap();
    assert_eq!((before.objects, before.logical_bytes), (after.objects, after.logical_bytes));
    store.write(|tx| tx.put("other", b"y")).unwrap();
    assert_eq!(store.read().unwrap().get("other").unwrap().unwrap(), b"y");
}

#[test]
fn snapshots_keep_what_they_saw() {
    let store = quiet().create_on(Arc::new(MemoryStorage::new())).unwrap();
    let big = vec![7; 300_000];
    let oid = store.write(|tx| tx.put("a", &big)).unwrap();
    let old = store.read().unwrap();
    let mut object = old.open("a").unwrap();
    store.write(|tx| tx.put("a", b"new")).unwrap();
    store.checkpoint().unwrap();
    store.write(|tx| tx.put("b", &vec![9; 300_000])).unwrap();
    store.checkpoint().unwrap();
    assert!(old.get("a").unwrap().unwrap() == big);
    let mut tail = Vec::new();
    object.seek(SeekFrom::End(-5)).unwrap();
    object.read_to_end(&mut tail).unwrap();
    assert_eq!(tail, [7; 5]);
    let new = store.read().unwrap();
    assert_eq!(new.get(oid).unwrap().unwrap(), b"new", "the OID stays when the name is put again");
    store.write(|tx| tx.remove("a")).unwrap();
    assert!(matches!(store.read().unwrap().get(oid), Err(Error::Dangling(_))));
    assert_eq!(new.get(Key::Oid(oid)).unwrap().unwrap(), b"new");
}

/// Names in order go on in the last leaf of their own collection, also if the transaction
/// changes between collections, makes one, or creates objects without names.
#[test]
fn names_in_order_stay_in_their_collection() {
    let store = quiet().create_on(Arc::new(MemoryStorage::new())).unwrap();
    let name = |i: u32| i.to_be_bytes();
    for first in [0, 3000] {
        store
            .write(|tx| {
                for i in first..first + 3000_u32 {
                    // Runs in one collection, and turns from one to the other.
                    let of = if (i / 100) % 2 == 0 { i % 3 } else { i / 100 % 3 };
                    let mut tx = tx.collection(["a", "b", "c"][of as usize])?;
                    tx.put(name(i), &name(i))?;
                    if i % 7 == 0 {
                        tx.create(b"without a name")?;
                    }
                    if i % 50 == 49 {
                        tx.remove(name(i))?;
                    }
                }
                Ok(())
            })
            .unwrap();
    }
    let readers = ["a", "b", "c"].map(|c| store.read().unwrap().collection(c).unwrap());
    let mut found = 0;
    for i in 0..6000 {
        let all: Vec<_> = readers.iter().filter_map(|r| r.get(name(i)).unwrap()).collect();
        let want = if i % 50 == 49 { vec![] } else { vec![name(i).to_vec()] };
        assert_eq!(all, want, "{i}");
        found += all.len();
    }
    assert_eq!(found, 5880);
    drop(readers);
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn names_attributes_collections_and_ranges() {
    let store = quiet().create_on(Arc::new(MemoryStorage::new())).unwrap();
    let mut attributes = Attributes::new();
    attributes.insert("type".into(), b"text/plain".to_vec());
    let oid = store
        .write(|tx| tx.put_with("a/b", b"hello", &PutOptions::with_attributes(attributes.clone())))
        .unwrap();
    store.write(|tx| tx.rename("a/b", "c")).unwrap();
    let meta = store.read().unwrap().metadata(oid).unwrap();
    assert_eq!(meta.name.as_deref(), Some(&b"c"[..]));
    assert_eq!((meta.size, &meta.attributes), (5, &attributes));
    store.write(|tx| tx.put("d", b"x")).unwrap();
    assert!(matches!(store.write(|tx| tx.rename("c", "d")), Err(Error::Exists(_))));
    let range = store.read().unwrap().get_range("c", 2..6);
    assert_eq!(range.unwrap().unwrap(), b"llo");
    store.write(|tx| tx.collection("photos")?.put("c", b"other")).unwrap();
    let reader = store.read().unwrap();
    assert_eq!(reader.collections().unwrap(), ["default", "photos"]);
    assert_eq!(reader.collection("photos").unwrap().get("c").unwrap().unwrap(), b"other");
    assert_eq!(reader.get("c").unwrap().unwrap(), b"hello");
    // By OID an object is found and deleted whatever collection is current.
    let other = reader.collection("photos").unwrap().lookup("c").unwrap().unwrap();
    store
        .write(|tx| {
            tx.remove(other)?;
            tx.put("z", b"after a call by OID the current collection is what it was")
        })
        .unwrap();
    let reader = store.read().unwrap();
    assert!(reader.lookup("z").unwrap().is_some());
    assert!(reader.collection("photos").unwrap().lookup("c").unwrap().is_none());
    assert!(matches!(store.write(|tx| tx.put(vec![b'n'; 1025], b"")), Err(Error::Invalid(_))));
}

#[test]
fn streams_of_unknown_length_and_a_transaction_larger_than_memory() {
    let options = quiet().cache_bytes(64 << 10).tuning(|t| t.dirty_pages(64));
    let store = options.create_on(Arc::new(MemoryStorage::new())).unwrap();
    let mut rng = SmallRng::seed_from_u64(5);
    let data = bytes(&mut rng, 3_000_000);
    store
        .write(|tx| {
            let mut w = tx.writer("stream", PutOptions::default())?;
            for part in data.chunks(777) {
                w.write_all(part).map_err(|e| Error::Other(Box::new(e)))?;
            }
            w.finish()
        })
        .unwrap();
    assert!(store.read().unwrap().get("stream").unwrap().unwrap() == data);
    // Far more new pages than the pool or the dirty limit hold.
    store
        .write(|tx| {
            for i in 0..5000 {
                tx.put(format!("n{i:05}"), &[i as u8; 300])?;
            }
            Ok(())
        })
        .unwrap();
    let reader = store.read().unwrap();
    for i in 0..5000 {
        assert_eq!(reader.get(format!("n{i:05}")).unwrap().unwrap(), [i as u8; 300]);
    }
}
