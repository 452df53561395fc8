//! Which blocks of a file are written, so that ext4 looks for them behind the last one.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;
use std::path::Path;

use holdall_io::{FileStorage, Storage};
use rustix::fs::SeekFrom;
use tempfile::tempdir;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The first block from `at` on that was written; one that is only reserved was not.
fn written(path: &Path, at: u64) -> Option<u64> {
    let file = File::open(path).unwrap();
    rustix::fs::seek(&file, SeekFrom::Data(at)).ok()
}

/// Whether the file system tells blocks that are reserved from those that are written, as tmpfs
/// does not.
fn tells(dir: &Path) -> bool {
    let path = dir.join("probe");
    let file = File::create_new(&path).unwrap();
    file.set_len(MIB).unwrap();
    let reserved = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, MIB);
    reserved.is_ok() && written(&path, 0).is_none()
}

#[test]
fn growth_is_written_first_but_for_the_smallest_files() {
    let dir = tempdir().unwrap();
    if !tells(dir.path()) {
        return;
    }
    let path = dir.path().join("store");
    let disk = FileStorage::create(&path).unwrap().volume();
    disk.grow(96 * KIB).unwrap();
    assert_eq!(written(&path, 0), None, "ext4 would put it beside other small files");
    for len in [MIB, MIB + 64 * KIB, 9 * MIB, 9 * MIB + 4 * KIB] {
        let old = disk.len().unwrap();
        disk.grow(len).unwrap();
        assert_eq!(written(&path, old), Some(old), "grown to {len}");
    }
    assert_eq!(written(&path, MIB + 68 * KIB), Some(8 * MIB), "and so is each piece of 8 MiB");
    disk.grow(9 * MIB + 4 * KIB + 1).unwrap();
    assert_eq!(disk.len().unwrap(), 9 * MIB + 4 * KIB + 1, "a part of a block is not written");
}

#[test]
fn only_short_holes_are_reserved_without_a_write() {
    let dir = tempdir().unwrap();
    if !tells(dir.path()) {
        return;
    }
    let path = dir.path().join("store");
    let disk = FileStorage::create(&path).unwrap().volume();
    disk.grow(16 * MIB).unwrap();
    // The last one has a short piece before a border.
    let holes = [(2 * MIB, 64 * KIB, false), (4 * MIB, 256 * KIB, true)];
    for (at, len, first) in holes.into_iter().chain([(8 * MIB - 16 * KIB, 256 * KIB, true)]) {
        assert!(disk.punch(at, len).unwrap());
        disk.fill_holes(at, len).unwrap();
        assert_eq!(written(&path, at) == Some(at), first, "{len} bytes at {at}");
    }
}
