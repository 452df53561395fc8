//! Readers of any age: what they read and memory has no room for lies in scratch.

use holdall::{Options, Result, Store};
use holdall_io::{MemoryStorage, Storage};
use std::sync::Arc;

const COUNT: u32 = 1000;

fn options() -> Options {
    Options::default().background(false).page_size(4096).old_version_bytes(64 << 10)
}

fn name(n: u32) -> String {
    format!("name {n:05}")
}

fn put_all(store: &Store, value: u8) -> Result<()> {
    for part in 0..10 {
        store.write(|tx| {
            (part..COUNT).step_by(10).try_for_each(|n| tx.put(name(n), &[value; 900][..]).map(drop))
        })?;
    }
    Ok(())
}

#[test]
fn snapshots_stay_what_they_were_however_much_is_replaced() -> Result<()> {
    let storage = Arc::new(MemoryStorage::new());
    let store = options().create_on(storage.clone())?;
    put_all(&store, 0)?;
    let mut readers = Vec::new();
    for value in 1..20 {
        readers.push((value - 1, store.read()?));
        put_all(&store, value)?;
    }
    let elsewhere = store.stat()?.elsewhere;
    assert!(elsewhere.scratch_bytes > 2 << 20, "{elsewhere:?}");
    assert!(store.stat()?.old_versions <= 40, "in memory");
    for (value, reader) in &readers {
        for n in 0..COUNT {
            assert_eq!(reader.get(name(n))?.as_deref(), Some(&[*value; 900][..]));
        }
        assert_eq!(reader.count_names()?, u64::from(COUNT));
    }
    assert!(store.verify()?.is_sound());
    // One reader left keeps only the versions of its own age.
    readers.truncate(10);
    readers.drain(..9);
    drop(readers);
    put_all(&store, 20)?;
    assert_eq!(store.stat()?.elsewhere.scratch_bytes, 0);
    store.checkpoint()?;
    assert_eq!(store.stat()?.reserved_bytes, 0);
    store.close()?;
    let store = options().open_on(storage.clone())?;
    assert!(store.verify()?.is_sound());
    let length = storage.volume().len().unwrap_or(0);
    assert!(length < 4 << 20, "the file keeps {length} bytes");
    Ok(())
}

/// The loop that any user writes.
#[test]
fn a_walk_goes_on_while_all_that_it_sees_is_replaced() -> Result<()> {
    let store = options().create_on(Arc::new(MemoryStorage::new()))?;
    put_all(&store, 7)?;
    let reader = store.read()?;
    let mut seen = 0;
    for entry in reader.names("") {
        let entry = entry?;
        let old = reader.get(&entry.name)?.unwrap_or_default();
        let new = [old[0] + 1; 900];
        store.write(|tx| tx.put(&entry.name, &new[..]))?;
        seen += 1;
    }
    assert_eq!(seen, COUNT);
    assert!((0..COUNT).all(|n| store.get(name(n)).is_ok_and(|b| b.is_some_and(|b| b[0] == 8))));
    Ok(())
}

/// What came and went after a reader does not wait for it: the file holds what the reader sees, what
/// is there now, and what waits for a checkpoint.
#[test]
fn a_reader_keeps_only_what_it_sees() -> Result<()> {
    let store = Options::default().background(false).create_on(Arc::new(MemoryStorage::new()))?;
    let fill = |round: u8| {
        for i in 0..40_u8 {
            store.write(|tx| tx.put(format!("{i}"), &vec![round ^ i; 250_000]))?;
            store.write(|tx| tx.collection("c")?.put(format!("{i}"), &[round; 300]))?;
        }
        store.checkpoint()
    };
    fill(0)?;
    let reader = store.read()?;
    for round in 1..12 {
        fill(round)?;
        let middle = store.read()?;
        fill(round)?;
        assert_eq!(middle.get("7")?.as_deref(), Some(&vec![round ^ 7; 250_000][..]));
    }
    for i in 0..40_u8 {
        assert_eq!(reader.get(format!("{i}"))?.as_deref(), Some(&vec![i; 250_000][..]), "{i}");
    }
    let stat = store.stat()?;
    assert!(stat.file_bytes < 45_000_000, "{} bytes of file", stat.file_bytes);
    assert!(stat.pinned_bytes < 13_000_000, "{} bytes pinned", stat.pinned_bytes);
    assert!(store.verify()?.is_sound());
    Ok(())
}
