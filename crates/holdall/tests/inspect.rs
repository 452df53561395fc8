//! Golden dumps: what `inspect` says of a fixed store, compared line by line with files.
//! HOLDALL_REWRITE_GOLDEN=1 writes the files anew.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage;

use damage::{bytes, quiet};
use holdall::{Attributes, PageNo, Store, inspect};
use holdall_io::MemoryStorage;
use rand::{SeedableRng, rngs::SmallRng};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

fn golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden").join(name);
    if std::env::var_os("HOLDALL_REWRITE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    for (i, (a, b)) in expected.lines().zip(text.lines()).enumerate() {
        assert_eq!(a, b, "{name} line {}; HOLDALL_REWRITE_GOLDEN=1 if it is meant", i + 1);
    }
    assert_eq!(expected.len(), text.len(), "{name}: HOLDALL_REWRITE_GOLDEN=1 if it is meant");
}

/// A store with a bit of everything, the same in every run.
fn sample() -> (Arc<MemoryStorage>, Store) {
    let storage = Arc::new(MemoryStorage::new());
    // No room to grow, so that a large object has to use the gaps and gets a tree.
    let options = holdall::Options {
        space_pages: Some(128),
        growth_bytes: 4096,
        max_bytes: 90 * 4096,
        first_log_bytes: 1 << 20,
        ..quiet()
    };
    let store = Store::create_on(storage.clone(), &options).unwrap();
    let mut rng = SmallRng::seed_from_u64(1);
    let attributes = Attributes::from([("type".into(), b"text/plain".to_vec())]);
    store.write(|tx| tx.put_with("greeting", b"Hello, hold!\n", &attributes)).unwrap();
    store.write(|tx| tx.put("folder/large", &bytes(&mut rng, 50_000))).unwrap();
    store.write(|tx| tx.create(&bytes(&mut rng, 5000))).unwrap();
    store
        .write(|tx| {
            let tx = tx.collection("photos")?;
            for i in 0..120 {
                tx.put(format!("folder/name {i:04} that is not very short"), &[i; 20])?;
            }
            Ok(())
        })
        .unwrap();
    // Two large objects in turn fragment the space, so that a third gets a tree.
    for i in 0..24 {
        store.write(|tx| tx.put(format!("gap {i}"), &bytes(&mut rng, 8192))).unwrap();
    }
    for i in (0..24).step_by(2) {
        store.write(|tx| tx.delete(format!("gap {i}").as_str())).unwrap();
    }
    store.checkpoint().unwrap();
    store.write(|tx| tx.put("tree", &bytes(&mut rng, 95_000))).unwrap();
    store.checkpoint().unwrap();
    (storage, store)
}

#[test]
fn dumps_of_a_fixed_store_are_as_expected() {
    let (storage, store) = sample();
    golden("superblock.txt", &inspect::superblock(&store).unwrap());
    golden("space.txt", &inspect::space(&store, 0).unwrap());
    golden("names.txt", &inspect::names(&store, "photos", b"").unwrap());
    let part = inspect::names(&store, "photos", b"folder/name 01").unwrap();
    golden("names-prefix.txt", &part);
    assert_eq!(part.matches("oid:").count(), 20, "{part}");
    let mut objects = String::new();
    for name in ["greeting", "folder/large", "gap 1", "tree"] {
        objects += &inspect::object(&store, "default", name).unwrap();
    }
    golden("objects.txt", &objects);
    store.write(|tx| tx.put("after the checkpoint", &[5; 3_000])).unwrap();
    store.write(|tx| tx.delete("greeting")).unwrap();
    let killed = storage.fork();
    golden("log.txt", &inspect::log_of(&killed).unwrap());
    store.close().unwrap();
    let store = Store::open_on(storage, &quiet()).unwrap();
    let mut pages = String::new();
    let count = store.verify(&mut |_| {}).unwrap().pages;
    for no in 0..count {
        let _ = write!(pages, "{}", inspect::page(&store, PageNo(no)).unwrap());
    }
    golden("pages.txt", &pages);
    for kind in [
        "SpaceDir",
        "SpaceInfo",
        "Root",
        "Collection",
        "PageMap",
        "Handle",
        "Heap",
        "Names",
        "SegmentNode",
    ] {
        assert!(pages.contains(&format!(": {kind}, LSN")), "no page of kind {kind}");
    }
}

#[test]
fn a_damaged_log_is_shown_as_far_as_it_goes() {
    let (storage, store) = sample();
    for i in 0..3 {
        store
            .write(|tx| tx.put(format!("n{i}"), &bytes(&mut SmallRng::seed_from_u64(i), 600)))
            .unwrap();
    }
    let (volume, log) = storage.snapshot();
    let mut log = log.unwrap();
    let whole =
        inspect::log_of(&MemoryStorage::from_bytes(volume.clone(), Some(log.clone()))).unwrap();
    let groups = whole.matches("group at LSN").count();
    assert_eq!(groups, 3, "{whole}");
    // The middle group's block.
    let at: Vec<u64> = whole
        .lines()
        .filter_map(|l| l.strip_prefix("group at LSN ")?.split(':').next()?.parse().ok())
        .collect();
    let n = log.len() as u64;
    log[(at[1] % n) as usize + 100] ^= 1;
    let text = inspect::log_of(&MemoryStorage::from_bytes(volume.clone(), Some(log))).unwrap();
    assert!(text.contains("torn or damaged") && text.contains("the log is damaged"), "{text}");
    let none = inspect::log_of(&MemoryStorage::from_bytes(volume, None)).unwrap();
    assert!(none.contains("missing, although"), "{none}");
}

#[test]
fn damaged_pages_are_shown_and_not_followed() {
    let (storage, store) = sample();
    store.close().unwrap();
    let (mut volume, _) = storage.snapshot();
    // What leads there stays whole: only leaves, heap pages and tree nodes are damaged.
    let catalog = (0..volume.len() / 4096)
        .find(|no| volume[no * 4096 + 4] == 8 && volume[no * 4096 + 24] == 0)
        .unwrap();
    for no in (4..volume.len() / 4096).filter(|no| *no != 16 && *no != catalog) {
        if (7..=9).contains(&volume[no * 4096 + 4]) {
            volume[no * 4096 + 2000] ^= 0xff;
        }
    }
    let damaged = Arc::new(MemoryStorage::from_bytes(volume.clone(), None));
    let store = Store::open_read_only_on(damaged, &quiet()).unwrap();
    for no in 0..volume.len() as u64 / 4096 {
        inspect::page(&store, PageNo(no)).unwrap();
    }
    let names = inspect::names(&store, "photos", b"").unwrap();
    assert!(names.contains("checksum is"), "{names}");
    assert!(inspect::object(&store, "photos", "folder/name 0000").is_err());
    assert!(inspect::page(&store, PageNo(1 << 40)).is_err());
    assert!(inspect::space(&store, 7).is_err());
}
