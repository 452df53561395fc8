//! Golden dumps: what `inspect` says of a fixed store, in words and as JSON, compared line by line
//! with files. HOLDALL_REWRITE_GOLDEN=1 writes the files anew.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::inspect::{LogDump, LogPart, PageContent};
use holdall::{Attributes, Error, Options, PageNo, PutOptions, Result, Store, inspect};
use holdall_core::collection_entry::ENTRIES_OWNER;
use holdall_core::{page, root_page};
use holdall_io::{MemoryStorage, Storage};
use holdall_report::inspect::{self as words, json};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

fn quiet() -> Options {
    Options::default().background(false).page_size(4096).tuning(|t| t.store_id([7; 16]).clock(|| 1))
}

/// Bytes that differ at every place.
fn bytes(rng: &mut SmallRng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes[..]);
    bytes
}

/// A value on a line.
fn line(value: Value) -> String {
    value.to_string() + "\n"
}

/// A tree of names in words and as JSON.
fn names(store: &Store, collection: &str, prefix: &[u8]) -> (String, String) {
    let tree = inspect::names(store, collection, prefix).unwrap();
    let (mut text, mut values) = (words::names(&tree), line(json::names(&tree)));
    for stop in tree {
        let stop = stop.unwrap();
        text += &words::names_stop(&stop);
        values += &line(json::names_stop(&stop));
    }
    (text, values)
}

/// A log in words and as JSON.
fn log(storage: &dyn Storage) -> Result<(String, String)> {
    let log: LogDump = inspect::log_of(storage)?;
    let (mut text, mut values) = (words::log(&log), line(json::log(&log)));
    for part in log {
        let part = part?;
        text += &words::log_part(&part);
        values += &line(json::log_part(&part));
        if let LogPart::Group(group) = &part {
            for record in group.records() {
                text += &words::record(&record);
                values += &line(json::record(&record));
            }
        }
    }
    Ok((text, values))
}

fn log_text(volume: Vec<u8>, bytes: Option<Vec<u8>>) -> String {
    log(&MemoryStorage::from_bytes(volume, bytes)).unwrap().0
}

fn spaces(store: &Store) -> String {
    let mut found = inspect::spaces(store).unwrap();
    let lines: String = found.by_ref().map(|(n, found)| words::listed(n, &found)).collect();
    lines + &words::named_too_many(&found).unwrap_or_default()
}

fn space(store: &Store, number: u32) -> String {
    words::space(&inspect::space(store, number).unwrap())
}

fn page_text(store: &Store, no: u64) -> String {
    words::page(&inspect::page(store, PageNo(no)).unwrap())
}

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
    let superblocks = inspect::superblocks(&store).unwrap();
    golden("superblock.txt", &words::superblocks(&superblocks));
    golden("superblock.json", &line(json::superblocks(&superblocks)));
    golden("space.txt", &space(&store, 0));
    golden("space.json", &line(json::space(&inspect::space(&store, 0).unwrap())));
    golden("spaces.txt", &spaces(&store));
    let (text, values) = names(&store, "photos", b"");
    golden("names.txt", &text);
    golden("names.json", &values);
    let part = names(&store, "photos", b"folder/name 01").0;
    golden("names-prefix.txt", &part);
    assert_eq!(part.matches("oid:").count(), 20, "{part}");
    let (mut objects, mut values) = (String::new(), String::new());
    for name in ["greeting", "folder/large", "gap 1", "tree"] {
        let found = inspect::object(&store, "default", name).unwrap();
        objects += &words::object(&found);
        values += &line(json::object(&found));
        assert_eq!(found.modified, store.read().unwrap().metadata(name).unwrap().modified);
    }
    golden("objects.txt", &objects);
    golden("objects.json", &values);
    assert_eq!(objects.matches("last changed 1970-01-01T00:00:00.001Z\n").count(), 4, "{objects}");
    store.write(|tx| tx.put("after the checkpoint", &[5; 3_000])).unwrap();
    store.write(|tx| tx.remove("greeting")).unwrap();
    let killed = storage.fork();
    let (text, values) = log(&killed).unwrap();
    golden("log.txt", &text);
    golden("log.json", &values);
    store.close().unwrap();
    let store = quiet().open_on(storage).unwrap();
    let (mut pages, mut values) = (String::new(), BTreeMap::new());
    let count = store.verify().unwrap().pages;
    for no in 0..count {
        let page = inspect::page(&store, PageNo(no)).unwrap();
        let _ = write!(pages, "{}", words::page(&page));
        let value = json::page(&page);
        if let PageContent::Known { kind, lsn, body, damage, .. } = &page.content {
            assert!(body.is_some() && damage.is_none(), "page {no}: {damage:?}");
            let (content, body) = (&value["content"], &value["content"]["body"]);
            assert_eq!(
                (&content["kind"], &content["lsn"]),
                (&format!("{kind:?}").into(), &lsn.0.into())
            );
            let found = values.entry(format!("{kind:?}")).or_insert_with(|| body.clone());
            if body.to_string().len() > found.to_string().len() {
                *found = body.clone();
            }
        }
    }
    // Of each kind the page that says most.
    golden("bodies.json", &values.iter().map(|(k, v)| format!("{k} {v}\n")).collect::<String>());
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
    let whole = log_text(volume.clone(), Some(log.clone()));
    let groups = whole.matches("group at LSN").count();
    assert_eq!(groups, 3, "{whole}");
    // The middle group's block.
    let at: Vec<u64> = whole
        .lines()
        .filter_map(|l| l.strip_prefix("group at LSN ")?.split(':').next()?.parse().ok())
        .collect();
    let n = log.len() as u64;
    log[(at[1] % n) as usize + 100] ^= 1;
    let text = log_text(volume.clone(), Some(log));
    assert!(text.contains("torn or damaged") && text.contains("the log is damaged"), "{text}");
    let none = log_text(volume, None);
    assert!(none.contains("missing, although"), "{none}");
}

#[test]
fn an_empty_log_or_store_is_said_to_be_empty() {
    let (storage, store) = sample();
    let (volume, _) = storage.snapshot();
    let needed = MemoryStorage::from_bytes(volume, Some(Vec::new()));
    let text = log(&needed).unwrap().0;
    assert!(text.starts_with("log: empty, although the store needs it: put back"), "{text}");
    store.close().unwrap();
    let (volume, _) = storage.snapshot();
    let closed = MemoryStorage::from_bytes(volume.clone(), Some(Vec::new()));
    let text = log(&closed).unwrap().0;
    assert_eq!(text, "log: empty, and the store, which was closed, needs none\n");
    let short = MemoryStorage::from_bytes(volume, Some(vec![1; 100]));
    let text = log(&short).unwrap().0;
    assert!(text.contains(" is beyond the end of the file\n"), "{text}");
    let empty = MemoryStorage::from_bytes(Vec::new(), Some(Vec::new()));
    let error = log(&empty).unwrap_err();
    assert!(matches!(error, Error::Unfinished { .. }), "{error}");
}

#[test]
fn spaces_are_listed_with_what_is_free() {
    let options = quiet().tuning(|t| t.space_pages(64).growth_bytes(4096));
    let storage = Arc::new(MemoryStorage::new());
    let store = options.create_on(storage.clone()).unwrap();
    let mut rng = SmallRng::seed_from_u64(2);
    // The 64 KiB that a close keeps behind what is in use lie in the last space.
    for i in 0..23 {
        store.write(|tx| tx.put(format!("{i}"), &bytes(&mut rng, 40_000))).unwrap();
    }
    store.close().unwrap();
    let (mut volume, _) = storage.snapshot();
    let pages = volume.len() / 4096;
    assert!(!pages.is_multiple_of(64), "the last space is cut short");
    let read = |volume: &[u8]| {
        let storage = Arc::new(MemoryStorage::from_bytes(volume.to_vec(), None));
        let store = quiet().open_read_only_on(storage).unwrap();
        (spaces(&store), store)
    };
    let (list, store) = read(&volume);
    assert_eq!(list.lines().count(), pages.div_ceil(64), "{list}");
    for (i, line) in list.lines().enumerate() {
        let map = space(&store, i as u32);
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
    let catalog = |volume: &[u8], no: usize| {
        let owner = page::owner(&volume[no * 4096..][..4096]);
        volume[no * 4096 + 4] == 8 && (owner == 0 || owner == ENTRIES_OWNER)
    };
    for no in (4..volume.len() / 4096).filter(|no| *no != 16) {
        if catalog(&volume, no) {
            continue;
        }
        if (7..=9).contains(&volume[no * 4096 + 4]) {
            volume[no * 4096 + 2000] ^= 0xff;
        }
    }
    let damaged = Arc::new(MemoryStorage::from_bytes(volume.clone(), None));
    let store = quiet().open_read_only_on(damaged).unwrap();
    for no in 0..volume.len() as u64 / 4096 {
        let page = inspect::page(&store, PageNo(no)).unwrap();
        assert_eq!(json::page(&page)["page"], no, "{}", words::page(&page));
    }
    let (text, values) = names(&store, "photos", b"");
    assert!(text.contains("checksum is") && values.contains("checksum is"), "{text}{values}");
    assert!(inspect::object(&store, "photos", "folder/name 0000").is_err());
    assert!(inspect::page(&store, PageNo(1 << 40)).is_err());
    assert!(inspect::space(&store, 7).is_err());
}

/// As much of a page is shown as can be understood, and then all its bytes.
#[test]
fn a_page_whose_body_is_damaged_is_shown_up_to_there() {
    let (storage, store) = sample();
    store.close().unwrap();
    let (mut volume, _) = storage.snapshot();
    let heap = (0..volume.len() / 4096)
        .find(|no| {
            page::check(&volume[no * 4096..][..4096], PageNo(*no as u64))
                .is_ok_and(|k| k == page::PageKind::Heap)
        })
        .unwrap();
    let whole = {
        let store =
            quiet().open_read_only_on(Arc::new(MemoryStorage::from_bytes(volume.clone(), None)));
        page_text(&store.unwrap(), heap as u64)
    };
    // A slot that begins beyond the page; the checksum is right.
    let damaged = &mut volume[heap * 4096..][..4096];
    let slot = holdall_core::heap_page::place(3);
    damaged[slot].fill(0xff);
    page::seal(damaged, page::lsn(damaged));
    let store =
        quiet().open_read_only_on(Arc::new(MemoryStorage::from_bytes(volume, None))).unwrap();
    let found = inspect::page(&store, PageNo(heap as u64)).unwrap();
    let PageContent::Known { body: Some(_), damage: Some((why, bytes)), .. } = &found.content
    else {
        panic!("{found:?}");
    };
    let text = words::page(&found);
    assert!(text.contains(&format!("  {why}\n  000000  ")) && bytes.len() == 4096, "{text}");
    let alike = whole.lines().skip(2).take_while(|line| !line.contains("slot 3,"));
    assert!(alike.clone().count() > 0, "{whole}");
    for line in alike {
        assert!(text.contains(line), "{line} is missing: {text}");
    }
    assert!(text.lines().count() > whole.lines().count());
    assert_eq!(json::page(&found)["content"]["damage"]["error"], why.to_string());
}

#[test]
fn shared_pages_are_shown_by_range() {
    let (_, store) = sample();
    assert_eq!(words::sharing(&inspect::sharing(&store).unwrap()), "no shared pages\n");
    store.write(|tx| tx.copy("folder/large", "copy")).unwrap();
    let found = inspect::sharing(&store).unwrap();
    let text = words::sharing(&found);
    assert!(text.starts_with("shared pages, tree in page "), "{text}");
    assert!(text.ends_with("\n  12 pages from 20: 2 references\n"), "{text}");
    let ranges = &json::sharing(&found)["ranges"];
    assert_eq!(ranges, &serde_json::json!([{ "page": 20, "pages": 12, "references": 2 }]));
}
