//! Golden dumps: what `inspect` says of a fixed store, compared line by line with files.
//! HOLDALL_REWRITE_GOLDEN=1 writes the files anew.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage;

use damage::{bytes, quiet};
use holdall::{Attributes, Error, PageNo, PutOptions, Store, inspect};
use holdall_core::{page, root_page};
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
    let options = quiet()
        .tuning(|t| t.space_pages(128).growth_bytes(4096))
        .max_bytes(90 * 4096)
        .tuning(|t| t.first_log_bytes(1 << 20));
    let store = options.create_on(storage.clone()).unwrap();
    let mut rng = SmallRng::seed_from_u64(1);
    let attributes = Attributes::from([("type".into(), b"text/plain".to_vec())]);
    store
        .write(|tx| {
            tx.put_with(
                "greeting",
                b"Hello, hold!\n",
                &PutOptions::with_attributes(attributes.clone()),
            )
        })
        .unwrap();
    store.write(|tx| tx.put("folder/large", &bytes(&mut rng, 50_000))).unwrap();
    store.write(|tx| tx.create(&bytes(&mut rng, 5000))).unwrap();
    store
        .write(|tx| {
            let mut tx = tx.collection("photos")?;
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
        store.write(|tx| tx.remove(format!("gap {i}").as_str())).unwrap();
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
    golden("spaces.txt", &inspect::spaces(&store).unwrap());
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
    store.write(|tx| tx.remove("greeting")).unwrap();
    let killed = storage.fork();
    golden("log.txt", &inspect::log_of(&killed).unwrap());
    store.close().unwrap();
    let store = quiet().open_on(storage).unwrap();
    let mut pages = String::new();
    let count = store.verify().unwrap().pages;
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
fn an_empty_log_or_store_is_said_to_be_empty() {
    let (storage, store) = sample();
    let (volume, _) = storage.snapshot();
    let needed = MemoryStorage::from_bytes(volume, Some(Vec::new()));
    let text = inspect::log_of(&needed).unwrap();
    assert!(text.starts_with("log: empty, although the store needs it: put back"), "{text}");
    store.close().unwrap();
    let (volume, _) = storage.snapshot();
    let closed = MemoryStorage::from_bytes(volume.clone(), Some(Vec::new()));
    let text = inspect::log_of(&closed).unwrap();
    assert_eq!(text, "log: empty, and the store, which was closed, needs none\n");
    let short = MemoryStorage::from_bytes(volume, Some(vec![1; 100]));
    let text = inspect::log_of(&short).unwrap();
    assert!(text.contains(" is beyond the end of the file\n"), "{text}");
    let empty = MemoryStorage::from_bytes(Vec::new(), Some(Vec::new()));
    let error = inspect::log_of(&empty).unwrap_err();
    assert!(matches!(error, Error::Unfinished { .. }), "{error}");
}

#[test]
fn spaces_are_listed_with_what_is_free() {
    let options = quiet().tuning(|t| t.space_pages(64).growth_bytes(4096));
    let storage = Arc::new(MemoryStorage::new());
    let store = options.create_on(storage.clone()).unwrap();
    let mut rng = SmallRng::seed_from_u64(2);
    for i in 0..20 {
        store.write(|tx| tx.put(format!("{i}"), &bytes(&mut rng, 40_000))).unwrap();
    }
    store.close().unwrap();
    let (mut volume, _) = storage.snapshot();
    let pages = volume.len() / 4096;
    assert!(!pages.is_multiple_of(64), "the last space is cut short");
    let read = |volume: &[u8]| {
        let storage = Arc::new(MemoryStorage::from_bytes(volume.to_vec(), None));
        let store = quiet().open_read_only_on(storage).unwrap();
        (inspect::spaces(&store).unwrap(), store)
    };
    let (list, store) = read(&volume);
    assert_eq!(list.lines().count(), pages.div_ceil(64), "{list}");
    for (i, line) in list.lines().enumerate() {
        let map = inspect::space(&store, i as u32).unwrap();
        let figures = line.strip_prefix(&format!("space {i}: ")).unwrap();
        assert!(map.contains(figures), "{line}\n{map}");
        let map = map.lines().nth(2).unwrap().split_whitespace().last().unwrap();
        let map = &map[..64.min(pages - i * 64)];
        let longest = map.split('#').map(str::len).max().unwrap();
        let free = map.matches('.').count();
        let used = map.len() - free;
        let says = format!("{used} pages in use, {free} free, largest free run of {longest}");
        let (figures, rest) = figures.split_once(';').unwrap_or((figures, ""));
        assert_eq!(figures, says);
        let beyond = 64 - map.len();
        assert!(beyond == 0 && rest.is_empty() || rest.starts_with(&format!(" {beyond} beyond")));
    }
    // The directory of the second space, and only that.
    drop(store);
    volume[64 * 4096 + 100] ^= 1;
    let (damaged, _) = read(&volume);
    let differ: Vec<_> = list.lines().zip(damaged.lines()).filter(|(a, b)| a != b).collect();
    assert!(matches!(differ[..], [(_, line)] if line.starts_with("space 1: ")), "{damaged}");
    // A root page that names more spaces than the file has.
    let kind = page::PageKind::Root as u8;
    let root = volume.chunks_exact_mut(4096).find(|page| page[4] == kind).unwrap();
    root_page::set_spaces(root, u32::MAX);
    page::seal(root, page::lsn(root));
    let storage = Arc::new(MemoryStorage::from_bytes(volume.clone(), None));
    let refused = quiet().open_read_only_on(storage).unwrap_err();
    let says = format!("names {} spaces, the file has room for {}", u32::MAX, list.lines().count());
    assert!(refused.to_string().contains(&says), "{refused}");
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
    let store = quiet().open_read_only_on(damaged).unwrap();
    for no in 0..volume.len() as u64 / 4096 {
        inspect::page(&store, PageNo(no)).unwrap();
    }
    let names = inspect::names(&store, "photos", b"").unwrap();
    assert!(names.contains("checksum is"), "{names}");
    assert!(inspect::object(&store, "photos", "folder/name 0000").is_err());
    assert!(inspect::page(&store, PageNo(1 << 40)).is_err());
    assert!(inspect::space(&store, 7).is_err());
}
