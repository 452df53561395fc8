//! A whole store of which some bytes changed, with right checksums: opened, verified, dumped,
//! read, and written to.

use super::Input;
use holdall::{Options, PageNo, Salvage, inspect};
use holdall_core::page;
use holdall_io::{MemoryStorage, Storage};
use std::sync::Arc;

const PAGE: usize = 4096;
static BASE: &[u8] = include_bytes!("../../../../testdata/stores/v1.holdall");

/// The base with edits.
fn damaged(input: &mut Input<'_>) -> Vec<u8> {
    let mut volume = BASE.to_vec();
    let pages = volume.len() / PAGE;
    // Pages that have a header, by what lies there.
    let headed: Vec<usize> = (1..pages)
        .filter(|no| page::check(&volume[no * PAGE..][..PAGE], PageNo(*no as u64)).is_ok())
        .collect();
    for _ in 0..1 + input.u8() % 4 {
        let how = input.u8();
        let no = headed[usize::from(input.u8()) % headed.len()];
        let bytes = &mut volume[no * PAGE..][..PAGE];
        if how % 8 == 7 {
            input.edit(bytes, 0, 2);
        } else {
            // What no checksum finds.
            input.edit(bytes, if how % 8 == 6 { 4 } else { page::HEADER }, 4);
            let lsn = page::lsn(bytes);
            page::seal(bytes, lsn);
        }
    }
    volume
}

fn options() -> Options {
    Options::default().background(false).cache_bytes(1 << 20)
}

/// Opens a changed store for reading: verify, dumps, all objects.
pub fn open_store(data: &[u8]) {
    let mut input = Input(data);
    let storage = Arc::new(MemoryStorage::from_bytes(damaged(&mut input), None));
    let Ok(store) = options().open_read_only_on(storage) else { return };
    let report = store.verify().unwrap();
    let sound = report.is_sound();
    let frag = store.frag(&mut |_, _| {});
    assert!(frag.is_ok() || !sound, "{frag:?} of a store found sound");
    for no in 0..report.pages.min(100) {
        let _ = inspect::page(&store, PageNo(no));
    }
    let _ = inspect::space(&store, 0);
    let _ = inspect::spaces(&store).map(Iterator::count);
    let _ = inspect::names(&store, "default", b"").map(Iterator::count);
    let Ok(reader) = store.read() else {
        assert!(!sound, "cannot be read, found sound");
        return;
    };
    let mut objects = 0;
    for oid in reader.oids() {
        let Ok(oid) = oid else {
            assert!(!sound);
            break;
        };
        objects += 1;
        let _ = (reader.metadata(oid), reader.segments(oid));
        // An object may claim any size; nobody would read it into memory.
        let read = reader.open(oid).and_then(|object| {
            let mut buf = vec![0; object.size().min(1 << 20) as usize];
            object.read_at(0, &mut buf).map(drop)?;
            object.read_at(object.size() / 2, &mut buf[..]).map(drop)
        });
        assert!(read.is_ok() || !sound, "{oid}: {read:?} in a store found sound");
    }
    assert!(objects == report.objects || !sound, "{objects} objects, {report:?}");
    let names = reader.collections().unwrap_or_default();
    for name in names {
        let Ok(reader) = reader.collection(&name) else { continue };
        for entry in reader.names("").take(10_000) {
            match entry {
                Ok(entry) => drop(inspect::object(&store, "default", &entry.name)),
                Err(_) => break,
            }
        }
    }
}

/// Salvages a changed store: what comes of it is sound, and holds what the report says.
pub fn salvaged_store(data: &[u8]) {
    let mut input = Input(data);
    let mut volume = damaged(&mut input);
    if input.u8() % 4 == 0 {
        // Without superblocks every page is believed by itself.
        volume[..PAGE].fill(0);
        volume[65_536..][..PAGE].fill(0);
    }
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::from_bytes(volume, None));
    let new: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let Ok(report) = Salvage::new().partial(input.u8() % 2 == 0).on(&storage, &new) else { return };
    let store = options().open_read_only_on(new).unwrap();
    let verified = store.verify().unwrap();
    assert!(verified.is_sound(), "{:?}", verified.problems);
    assert_eq!(verified.objects, report.objects);
}

/// Opens a changed store for writing and changes it: errors, no panic.
pub fn write_store(data: &[u8]) {
    let mut input = Input(data);
    let storage = Arc::new(MemoryStorage::from_bytes(damaged(&mut input), None));
    let max_bytes = 4 << 20;
    let Ok(store) = options().max_bytes(max_bytes).open_on(storage.clone()) else {
        return;
    };
    for _ in 0..8 {
        let name = ["small", "tree", "folder/large", "new", "empty"][usize::from(input.u8() % 5)];
        let len = usize::from(input.u16());
        let collection = ["default", "photos", "more"][usize::from(input.u8() % 3)];
        let how = input.u8();
        let _ = store.write(|tx| {
            let mut tx = tx.collection(collection)?;
            match how % 4 {
                0 | 1 => tx.put(name, &vec![how; len]).map(drop),
                2 => tx.remove(name).map(drop),
                _ => tx.rename(name, "renamed"),
            }
        });
        if how & 16 != 0 {
            let _ = store.checkpoint();
        }
    }
    let _ = store.verify();
    drop(store);
    let Ok(store) = options().open_on(storage) else { return };
    let _ = store.verify();
}
