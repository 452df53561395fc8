//! Versions of objects, puts on conditions, and transactions begun by hand.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{
    Attributes, Durability, Error, Hints, Options, PutMode, PutOptions, Store, Target, Version,
    WriteTx,
};
use std::collections::HashSet;

fn version(store: &Store, name: &str) -> Version {
    store.read_newest().unwrap().metadata(name).unwrap().version
}

fn mode(mode: PutMode) -> PutOptions {
    PutOptions { mode, ..PutOptions::default() }
}

type Call = fn(&mut WriteTx) -> holdall::Result<()>;

#[test]
fn every_change_of_bytes_or_attributes_gives_another_version_and_nothing_else_does() {
    let store = Store::in_memory().unwrap();
    store.write(|tx| tx.put("a", &[1; 9000])).unwrap();
    store.write(|tx| tx.put("b", &[2; 300_000])).unwrap();
    let changes: [Call; 10] = [
        |tx| tx.put("a", b"small").map(drop),
        |tx| tx.set_bytes("a", &[3; 100_000]),
        |tx| tx.splice("a", 5..9, b"x").map(drop),
        |tx| tx.append("a", b"end").map(drop),
        |tx| tx.set_len("a", 50_000).map(drop),
        |tx| tx.set_attributes("a", &Attributes::from([("k".into(), b"v".to_vec())])),
        |tx| tx.copy("b", "a").map(drop),
        |tx| tx.copy_range("b", 0..200_000, "a", 3).map(drop),
        |tx| tx.put_many([("a", "again")]).map(drop),
        |tx| {
            let mut writer = tx.writer("a", PutOptions::default())?;
            writer.push(&[4; 70_000])?;
            writer.finish().map(drop)
        },
    ];
    let mut seen = HashSet::from([version(&store, "a")]);
    for (i, change) in changes.into_iter().enumerate() {
        store.write(change).unwrap();
        let version = version(&store, "a");
        assert!(seen.insert(version), "change {i} left version {version}");
        assert_eq!(version.to_string().parse::<Version>().unwrap(), version);
    }
    let before = version(&store, "a");
    let others: [Call; 4] = [
        |tx| tx.set_hints("a", Hints { append_mostly: true, ..Hints::default() }),
        |tx| tx.copy("a", Target::New).map(drop),
        |tx| tx.copy_range("a", 0..60_000, "b", 0).map(drop),
        |tx| tx.rename("a", "other name"),
    ];
    others.into_iter().for_each(|call| store.write(call).unwrap());
    assert_eq!(version(&store, "other name"), before);
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn an_object_that_just_fits_a_record_can_be_changed() {
    let options = Options::default().page_size(4096);
    for len in 4020..4040 {
        let storage = std::sync::Arc::new(holdall_io::MemoryStorage::new());
        let store = options.create_on(storage).unwrap();
        store.write(|tx| tx.put("n", &vec![1; len])).unwrap();
        store.write(|tx| tx.splice("n", 7..8, b"x")).unwrap();
        store.write(|tx| tx.put("n", &vec![2; len])).unwrap();
        store.write(|tx| tx.set_bytes("n", &vec![3; len])).unwrap();
        assert_eq!(store.read().unwrap().get("n").unwrap().unwrap(), vec![3; len]);
        assert!(store.verify().unwrap().is_sound());
    }
}

#[test]
fn a_put_on_a_condition_leaves_the_transaction_usable_where_it_is_refused() {
    let store = Store::in_memory().unwrap();
    store.write(|tx| tx.put("a", b"1")).unwrap();
    let old = version(&store, "a");
    store.write(|tx| tx.put_with("a", b"2", &mode(PutMode::Update(old)))).unwrap();
    store
        .write(|tx| {
            let exists = tx.put_with("a", b"3", &mode(PutMode::Create));
            assert!(matches!(exists, Err(Error::Exists(_))));
            let late = tx.put_with("a", b"3", &mode(PutMode::Update(old)));
            let Err(Error::Conflict { object, detail }) = late else { panic!("{late:?}") };
            assert!(object.contains("\"a\"") && detail.contains(&old.to_string()), "{detail}");
            let missing = tx.put_with("none", b"3", &mode(PutMode::Update(old)));
            assert!(matches!(missing, Err(Error::Conflict { .. })));
            let mut writer = tx.writer("a", mode(PutMode::Create))?;
            writer.push(&[5; 100_000])?;
            assert!(matches!(writer.finish(), Err(Error::Exists(_))));
            tx.put_with("new", b"4", &mode(PutMode::Create))
        })
        .unwrap();
    let reader = store.read().unwrap();
    assert_eq!(reader.get("a").unwrap().unwrap(), b"2");
    assert_eq!(reader.get("new").unwrap().unwrap(), b"4");
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn a_version_that_a_crash_took_back_does_not_come_again() {
    let storage = std::sync::Arc::new(holdall_testkit::FaultyStorage::new(1));
    let options = Options::default().background(false);
    let store = options.create_on(storage.clone()).unwrap();
    store.write(|tx| tx.put("a", b"1")).unwrap();
    let deferred = |store: &Store, bytes: &[u8]| {
        let mut tx = store.begin_write().unwrap();
        tx.set_durability(Durability::Deferred);
        tx.put("a", bytes).unwrap();
        tx.commit().unwrap();
        version(store, "a")
    };
    let lost = deferred(&store, b"lost");
    let kind = holdall_testkit::CrashKind::ProcessKilled;
    let after = std::sync::Arc::new(storage.crash(kind, 1).unwrap());
    let store = options.open_on(after).unwrap();
    assert_eq!(store.read().unwrap().get("a").unwrap().unwrap(), b"1");
    assert_ne!(deferred(&store, b"other"), lost);
}

#[test]
fn a_transaction_begun_by_hand_is_one_and_may_outlive_its_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.holdall");
    let store = Store::create(&path).unwrap();
    let mut dropped = store.begin_write().unwrap();
    dropped.put("dropped", b"x").unwrap();
    drop(dropped);
    let mut tx = store.begin_write().unwrap();
    tx.put("a", b"1").unwrap();
    drop(store);
    tx.commit().unwrap();
    let store = Store::open(&path).unwrap();
    let names: Vec<_> = store.read().unwrap().names("").map(|e| e.unwrap().name).collect();
    assert_eq!(names, [b"a".to_vec()]);
}

#[test]
fn a_collection_is_dropped_with_all_it_has_and_its_space_comes_back() {
    let store = Store::in_memory().unwrap();
    let shared = store.write(|tx| tx.put("shared", &[9; 500_000])).unwrap();
    let fill = |tx: &mut WriteTx| {
        let mut tx = tx.collection("c")?;
        for i in 0..3000_u32 {
            tx.put(format!("name {i}"), &vec![i as u8; i as usize % 2000])?;
            tx.create(&[7; 50])?;
        }
        tx.put("large", &[8; 2_000_000])?;
        tx.copy(shared, "copy").map(drop)
    };
    store.write(fill).unwrap();
    store.checkpoint().unwrap();
    let before = store.stat().unwrap();
    assert_eq!(before.objects, 6003);
    store
        .write(|tx| {
            assert!(matches!(tx.drop_collection("default"), Err(Error::Invalid(_))));
            assert!(!tx.drop_collection("none")?);
            assert!(tx.drop_collection("c")?);
            assert!(!tx.drop_collection("c")?);
            // The name can be used again at once, and has nothing of before.
            assert_eq!(tx.collection("c")?.lookup("large")?, None);
            tx.collection("c")?.put("new", b"new")
        })
        .unwrap();
    assert!(store.verify().unwrap().is_sound());
    let reader = store.read().unwrap();
    assert_eq!(reader.collection("c").unwrap().names("").count(), 1);
    assert_eq!(reader.get("shared").unwrap().unwrap(), [9; 500_000]);
    drop(reader);
    assert!(store.write(|tx| tx.drop_collection("c")).unwrap());
    while store.empty_dropped().unwrap() {}
    store.checkpoint().unwrap();
    assert_eq!(store.stat().unwrap().objects, 1);
    assert_eq!(store.read().unwrap().collections().unwrap(), ["default"]);
    store.write(fill).unwrap();
    let again = store.stat().unwrap();
    assert!(again.used_bytes <= before.used_bytes * 11 / 10, "{again:?}");
    assert!(store.verify().unwrap().is_sound());
}
