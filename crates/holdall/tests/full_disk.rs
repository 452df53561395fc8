//! Real file systems without a free byte or inode: acknowledged data is there, and a store can be
//! emptied, or says what room it needs.
//!
//! `HOLDALL_FULL_DISK_ROUNDS` says how often the process that fills a disk is killed on each.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "full_disk/child.rs"]
mod child;
#[path = "full_disk/mount.rs"]
mod mount;

use child::{Said, bytes_of, options, run_and_kill};
use holdall::{Error, Result, Store};
use holdall_io::{FileStorage, Storage};
use mount::{BTRFS, BTRFS_IN_PLACE, EXT2, EXT3, EXT4, FEW_INODES, Kind, SmallDisk, XFS};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Runs only in the child.
#[test]
fn child_process() {
    if let Ok(path) = std::env::var(child::STORE) {
        child::run(Path::new(&path));
    }
}

/// Whether this is the child, which runs no other test.
fn is_child() -> bool {
    std::env::var(child::STORE).is_ok()
}

/// Compares what was acknowledged, and removes every object.
fn compare_and_empty(path: &Path, said: &Said) -> Result<()> {
    compare(&options().open_read_only(path)?, said);
    let store = options().open(path)?;
    compare(&store, said);
    let names = store.read()?.names("").map(|entry| entry.map(|e| e.name));
    for name in names.collect::<Result<Vec<_>>>()? {
        store.write(|tx| tx.remove(&name).map(drop))?;
    }
    assert_eq!(store.read()?.names("").count(), 0);
    let report = store.verify()?;
    assert!(report.is_sound(), "{:?}", report.problems);
    store.close()?;
    let store = options().open(path)?;
    assert_eq!(store.read()?.names("").count(), 0);
    Ok(())
}

fn compare(store: &Store, said: &Said) {
    let reader = store.read().unwrap();
    for name in &said.put {
        let found = reader.get(name).unwrap();
        assert!(found.is_some_and(|found| found == bytes_of(name)), "{name}");
    }
    for entry in reader.names("") {
        let name = String::from_utf8(entry.unwrap().name).unwrap();
        assert!(reader.get(&name).unwrap().unwrap() == bytes_of(&name), "{name}");
    }
}

/// Bytes of a file that is removed for a store that asks for room.
const SPARE: usize = 8 << 20;

/// Kills a process that fills the disk, fills what is left, and empties the store; returns the
/// message of a store that asked for room.
fn round(disk: &SmallDisk, seed: u64) -> Option<String> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let path = disk.path("store");
    fs::write(disk.path("spare"), vec![1; SPARE]).unwrap();
    let said = run_and_kill(&path, seed, rng.random_range(1..700));
    disk.fill("filler");
    let asked = match compare_and_empty(&path, &said) {
        Ok(()) => None,
        Err(Error::Unfinished { .. }) if said.put.is_empty() => None,
        Err(e @ (Error::Full(_) | Error::NoRoom { .. } | Error::Poisoned(_))) => {
            fs::remove_file(disk.path("filler")).unwrap();
            fs::remove_file(disk.path("spare")).unwrap();
            compare_and_empty(&path, &Said { doubtful: Vec::new(), put: Vec::new(), ..said })
                .unwrap_or_else(|again| panic!("{e}; and with room: {again}"));
            Some(e.to_string())
        }
        Err(e) => panic!("seed {seed}: {e}"),
    };
    for name in ["store", "store-log", "filler", "spare"] {
        let _ = fs::remove_file(disk.path(name));
    }
    asked
}

/// Kills by seed on a disk of this kind.
fn kills(kind: Kind) {
    let Some(disk) = (!is_child()).then(|| SmallDisk::mount(kind)).flatten() else { return };
    let rounds = std::env::var("HOLDALL_FULL_DISK_ROUNDS").ok().and_then(|n| n.parse().ok());
    let rounds: u64 = rounds.unwrap_or(2);
    disk.ballast(24 << 20);
    let asked: Vec<String> = (0..rounds).filter_map(|seed| round(&disk, seed)).collect();
    println!(
        "{}: {rounds} kills on a full disk, {} times emptied without a byte free",
        kind.name,
        rounds - asked.len() as u64
    );
    for why in &asked {
        println!("  asked for room: {why}");
    }
    assert!(kind.copies || asked.is_empty(), "{asked:?}");
}

#[test]
fn killed_on_a_full_ext4() {
    kills(EXT4);
}

#[test]
fn killed_on_a_full_ext3() {
    kills(EXT3);
}

#[test]
fn killed_on_a_full_ext2() {
    kills(EXT2);
}

#[test]
fn killed_on_a_full_xfs() {
    kills(XFS);
}

#[test]
fn killed_on_a_full_btrfs() {
    kills(BTRFS);
}

#[test]
fn killed_on_a_full_btrfs_that_writes_in_place() {
    kills(BTRFS_IN_PLACE);
}

/// A closed store of 40 objects; the disk is filled after it was closed.
fn closed_then_full(disk: &SmallDisk) -> (std::path::PathBuf, Said) {
    let path = disk.path("store");
    let store = Store::create(&path).unwrap();
    let put: Vec<String> = (0..40).map(|i| format!("closed {i}")).collect();
    for name in &put {
        store.write(|tx| tx.put(name, &bytes_of(name))).unwrap();
    }
    // Free space at the end and in the midst, which is punched out.
    store.write(|tx| tx.put("large", &vec![7; 9 << 20])).unwrap();
    store.write(|tx| tx.put("last", b"last")).unwrap();
    store.write(|tx| tx.remove("large")).unwrap();
    store.write(|tx| tx.remove("last")).unwrap();
    store.close().unwrap();
    disk.fill("filler");
    (path, Said { put, ..Said::default() })
}

#[test]
fn a_closed_store_is_emptied_on_a_disk_without_a_free_byte() {
    if is_child() {
        return;
    }
    for kind in [EXT4, EXT3, EXT2, XFS] {
        let Some(disk) = SmallDisk::mount(kind) else { continue };
        let (path, said) = closed_then_full(&disk);
        compare_and_empty(&path, &said).unwrap_or_else(|e| panic!("{}: {e}", kind.name));
    }
}

#[test]
fn what_is_acknowledged_on_a_full_disk_is_checkpointed_there() {
    if is_child() {
        return;
    }
    for kind in [EXT4, EXT3, EXT2, XFS] {
        let Some(disk) = SmallDisk::mount(kind) else { continue };
        let path = disk.path("store");
        let store = options().create(&path).unwrap();
        let large = vec![3; 12 << 20];
        store.write(|tx| tx.put("large", &large)).unwrap();
        store.write(|tx| tx.put("behind", &bytes_of("behind"))).unwrap();
        store.write(|tx| tx.remove("large")).unwrap();
        // Punches the hole that the puts after it would lie in.
        store.checkpoint().unwrap();
        disk.fill("filler");
        let mut said = Said { put: vec!["behind".into()], ..Said::default() };
        let mut refused = 0;
        for i in 0..400 {
            let name = format!("more {i}");
            match store.write(|tx| tx.put(&name, &bytes_of(&name))) {
                Ok(_) => said.put.push(name),
                Err(Error::Full(_)) => refused += 1,
                Err(e) => panic!("{}: {e}", kind.name),
            }
        }
        assert!(refused > 0, "{}: the disk was not full", kind.name);
        store.checkpoint().unwrap_or_else(|e| panic!("{}: checkpoint: {e}", kind.name));
        compare(&store, &said);
        store.close().unwrap_or_else(|e| panic!("{}: close: {e}", kind.name));
        compare_and_empty(&path, &said).unwrap_or_else(|e| panic!("{}: {e}", kind.name));
    }
}

#[test]
fn a_range_with_blocks_is_filled_on_a_full_disk_and_a_hole_is_not() {
    if is_child() {
        return;
    }
    for kind in [EXT4, EXT3, EXT2, XFS] {
        let Some(disk) = SmallDisk::mount(kind) else { continue };
        let volume = FileStorage::create(disk.path("volume")).unwrap().volume();
        let bytes: Vec<u8> = (0..4u32 << 20).map(|i| (i / 9) as u8).collect();
        volume.grow(4 << 20).unwrap();
        volume.write_at(0, &bytes).unwrap();
        volume.sync().unwrap();
        disk.fill("filler");
        volume.fill_holes(0, 4 << 20).unwrap_or_else(|e| panic!("{}: {e}", kind.name));
        let mut found = vec![0; 4 << 20];
        volume.read_at(0, &mut found).unwrap();
        assert!(found == bytes, "{}", kind.name);
        assert!(volume.punch(2 << 20, 1 << 20).unwrap(), "{}", kind.name);
        volume.sync().unwrap();
        disk.fill("filler");
        let refused = volume.fill_holes(2 << 20, 1 << 20).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::StorageFull, "{}", kind.name);
        let expected = [&bytes[..2 << 20], &[0; 1 << 20], &bytes[3 << 20..]].concat();
        volume.read_at(0, &mut found).unwrap();
        assert!(found == expected, "{}", kind.name);
    }
}

#[test]
fn a_file_system_without_a_free_inode_is_not_called_full() {
    let Some(disk) = (!is_child()).then(|| SmallDisk::mount(FEW_INODES)).flatten() else { return };
    let path = disk.path("store");
    let store = Store::create(&path).unwrap();
    store.write(|tx| tx.put("a", b"1")).unwrap();
    store.close().unwrap();
    let mut others = 0;
    while fs::write(disk.path(&format!("other{others}")), b"").is_ok() {
        others += 1;
    }
    assert_eq!(disk.free().1, 0);
    let store = Store::open(&path).unwrap();
    let no_log = store.write(|tx| tx.remove("a")).unwrap_err();
    let no_store = Store::create(disk.path("new")).unwrap_err();
    for e in [no_log, no_store] {
        let text = e.to_string();
        assert!(matches!(e, Error::NoRoom { .. }) && text.contains("no free inodes"), "{text}");
        assert!(text.contains("remove files"), "{text}");
    }
    fs::remove_file(disk.path("other0")).unwrap();
    store.write(|tx| tx.remove("a")).unwrap();
    assert_eq!(store.read().unwrap().names("").count(), 0);
}
