//! A names entry says where the record lay when the name was noted. That fetches, and decides
//! nothing: records move, and their old pages are freed and used again, while entries stay.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Options, Store};
use std::collections::BTreeMap;

fn check(store: &Store, model: &BTreeMap<String, Vec<u8>>) {
    let snapshot = store.read().unwrap();
    let mut found = Vec::new();
    for (name, bytes) in model {
        assert!(snapshot.get_into(name.as_str(), &mut found).unwrap(), "{name}");
        assert!(found == *bytes, "{name} has {} bytes", found.len());
    }
    let mut all = 0;
    let keys = model.keys().map(String::as_str);
    let mut expected = model.values();
    snapshot
        .get_many(keys, |_, bytes| {
            assert_eq!(bytes?, expected.next().map(Vec::as_slice));
            all += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(all, model.len());
}

#[test]
fn a_record_that_moved_is_read_where_it_lies_though_its_old_page_is_freed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let options = Options::default().background(false);
    let store = options.create(&path).unwrap();
    let mut model = BTreeMap::new();
    for i in 0..600 {
        model.insert(format!("{i:04}"), vec![i as u8; 300]);
    }
    store.write(|tx| model.iter().try_for_each(|(n, b)| tx.put(n.as_str(), b).map(drop))).unwrap();
    check(&store, &model);
    let before = store.read().unwrap();
    let old = model.clone();
    // Each outgrows its page; the pages of the first life empty and are freed.
    for round in 1..4_usize {
        for (name, bytes) in &mut model {
            bytes.resize(300 + round * 1500, round as u8);
            store.write(|tx| tx.put(name.as_str(), &*bytes).map(drop)).unwrap();
        }
        check(&store, &model);
        for (name, bytes) in &old {
            assert_eq!(before.get(name.as_str()).unwrap().as_ref(), Some(bytes), "as it was");
        }
    }
    // Their place is taken by others, of other kinds too.
    drop(before);
    store.checkpoint().unwrap();
    for i in 0..300 {
        let (name, bytes) = (format!("new {i}"), vec![7; if i % 9 == 0 { 70_000 } else { 200 }]);
        store.write(|tx| tx.put(name.as_str(), &bytes).map(drop)).unwrap();
        model.insert(name, bytes);
    }
    check(&store, &model);
    store.close().unwrap();
    let store = options.open(&path).unwrap();
    check(&store, &model);
    // What was noted may lead beyond the file's end.
    store
        .write(|tx| model.keys().skip(20).try_for_each(|n| tx.remove(n.as_str()).map(drop)))
        .unwrap();
    let few: BTreeMap<_, _> = model.into_iter().take(20).collect();
    check(&store, &few);
    store.close().unwrap();
    let store = options.open(&path).unwrap();
    check(&store, &few);
    assert!(store.verify().unwrap().is_sound());
}
