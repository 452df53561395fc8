//! The mapping alone: what it answers, what it forgets, and that it never shows stale bytes.

use super::*;
use crate::{Access, Disk, FileStorage, Storage};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

const PAGE: usize = 4096;

fn byte(at: usize) -> u8 {
    (at / PAGE * 7 + at) as u8
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(byte).collect()
}

/// A file that is in the page cache.
fn cached(len: usize) -> File {
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(&content(len), 0).unwrap();
    file.sync_all().unwrap();
    file
}

/// Reads as often as it takes to have the system asked.
fn read(map: &Map, file: &File, at: u64, buf: &mut [u8]) -> bool {
    (0..OFTEN).any(|_| once(map, file, at, buf))
}

/// Reads once; the sums are those of what was read.
fn once(map: &Map, file: &File, at: u64, buf: &mut [u8]) -> bool {
    let mut sums = vec![0; buf.len() / PAGE];
    let found = map.read(file, at, buf, &mut sums);
    let real = buf.chunks(PAGE).map(crc_fast::crc32_iscsi);
    assert!(!found || real.eq(sums), "sums at {at}");
    found
}

fn drop_cache(file: &File) {
    file.sync_all().unwrap();
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

/// Whether the system can drop what it has of a file: not if files lie in memory alone.
fn can_drop() -> bool {
    let file = cached(PAGE);
    drop_cache(&file);
    let mut to = [0];
    let mut to = [io::IoSliceMut::new(&mut to)];
    let now = rustix::io::ReadWriteFlags::NOWAIT;
    rustix::io::preadv2(&file, &mut to, 0, now).is_err()
}

#[test]
fn places_follow_one_another_without_gap() {
    let mut at = 0;
    for number in 0..CHUNKS {
        let (start, len) = extent(number);
        assert_eq!(start, at);
        assert_eq!((place(start), place(start + len - 1)), (number, number));
        at += len;
    }
    assert_eq!(at, 1 << 47);
    let (map, file) = (Map::default(), cached(PAGE));
    for at in [1 << 46, 1 << 47, 1 << 62, u64::MAX - 4096, u64::MAX] {
        assert!(!read(&map, &file, at, &mut [0; PAGE]), "{at}");
        map.approach(at, PAGE);
        map.forget(at, u64::MAX);
    }
}

#[test]
fn what_is_resident_is_read_once_reads_are_frequent() {
    let len = (5 << 20) + 100;
    let (map, file) = (Map::default(), cached(len));
    let mut buf = vec![0; PAGE];
    for n in 1..OFTEN / CALL {
        assert!(!once(&map, &file, 0, &mut buf), "read {n} is left to a call");
    }
    assert!(once(&map, &file, 0, &mut buf));
    let whole = content(len);
    for (at, n) in [(0, PAGE), (PAGE, 3 * PAGE), ((2 << 20) - PAGE, 2 * PAGE), (3 << 20, 1 << 20)] {
        let mut buf = vec![0; n];
        map.approach(at as u64, n);
        assert!(read(&map, &file, at as u64, &mut buf), "{n} at {at}");
        assert_eq!(buf, whole[at..at + n], "{n} at {at}");
    }
    let tail = len.next_multiple_of(PAGE);
    assert!(!read(&map, &file, (tail - PAGE) as u64, &mut [0; 2 * PAGE]), "behind the end");
    assert!(!read(&map, &file, tail as u64, &mut [0; PAGE]), "behind the end");
    assert!(!read(&map, &file, 10, &mut [0; PAGE]), "no multiple of a unit");
    assert!(!read(&map, &file, 0, &mut [0; PAGE + 10]), "a part of a unit");
    assert!(!map.read(&file, 0, &mut [0; PAGE], &mut []), "no place for the sum");
    assert!(!read(&map, &file, 0, &mut []));
}

#[test]
fn what_is_read_through_is_left_to_calls_twice() {
    let len = WINDOW as usize;
    let (map, file) = (Map::default(), cached(len));
    let mut piece = vec![0; 256 << 10];
    let mut pass = || {
        let answered = |at| once(&map, &file, at as u64, &mut piece);
        (0..len).step_by(256 << 10).map(answered).filter(|&found| found).count()
    };
    assert_eq!((pass(), pass()), (0, 0));
    assert_eq!(pass(), 1, "with the last piece, the system is asked");
    assert_eq!(pass(), 8);
    // What was resident once is asked about when two reads come soon after one another.
    std::thread::sleep(std::time::Duration::from_millis(TRUSTED + SOON + 50));
    assert!(!once(&map, &file, 0, &mut [0; PAGE]), "a short one by itself");
    assert!(once(&map, &file, 0, &mut [0; PAGE]), "again");
    std::thread::sleep(std::time::Duration::from_millis(TRUSTED + SOON + 50));
    assert!(once(&map, &file, 0, &mut piece), "a long one is worth the question");
}

#[test]
fn what_grows_is_found_and_what_spans_two_mappings_is_not() {
    let (map, file) = (Map::default(), cached(PAGE));
    let mut buf = [0; 2 * PAGE];
    assert!(!read(&map, &file, 0, &mut buf));
    // Into the second mapping, with a hole in the first.
    let at = FIRST - 2 * PAGE as u64;
    file.write_all_at(&[7; 4 * PAGE], at).unwrap();
    assert!(!read(&map, &file, 0, &mut buf), "believed for a while, and then not resident");
    let last = &mut [0; PAGE];
    assert!(read(&map, &file, FIRST, last) && *last == [7; PAGE]);
    assert!(!read(&map, &file, FIRST - PAGE as u64, &mut buf), "spans two");
    assert!(!read(&map, &file, at, &mut buf), "a window with a hole");
}

#[test]
fn what_is_not_resident_is_not_touched() {
    if !can_drop() {
        return;
    }
    let (map, file) = (Map::default(), cached(4 << 20));
    let mut buf = [0; PAGE];
    drop_cache(&file);
    assert!(!read(&map, &file, 0, &mut buf));
    // One page that is there does not make its window trusted.
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).unwrap();
    file.read_exact_at(&mut buf, 2 << 20).unwrap();
    assert!(!read(&map, &file, 2 << 20, &mut buf));
    // The system's answer is believed for a while.
    let mut all = vec![0; 4 << 20];
    file.read_exact_at(&mut all, 0).unwrap();
    assert!(!read(&map, &file, 2 << 20, &mut buf));
    std::thread::sleep(std::time::Duration::from_millis(TRUSTED + 50));
    assert!(read(&map, &file, 2 << 20, &mut buf));
    assert_eq!(buf[..], content(4 << 20)[2 << 20..][..PAGE]);
    // And that it is gone is known after that at the latest.
    drop_cache(&file);
    std::thread::sleep(std::time::Duration::from_millis(TRUSTED + 50));
    assert!(!read(&map, &file, 2 << 20, &mut buf));
}

#[test]
fn whoever_is_lied_to_about_residence_does_not_use_it() {
    // A page behind the end is resident to who may not know. Here, that is made so by a file
    // that grows while it is asked about: the end was read before.
    let (map, file) = (Map::default(), cached(PAGE));
    assert!(map.tells_truth(&file, PAGE as u64));
    file.write_all_at(&[1; PAGE], FIRST).unwrap();
    assert!(!map.tells_truth(&file, PAGE as u64));
}

fn volume(path: &Path, len: usize) -> Arc<dyn Disk> {
    let disk = FileStorage::create(path).unwrap().volume();
    disk.grow(len as u64).unwrap();
    disk.write_at(0, &content(len)).unwrap();
    disk
}

fn read_disk(disk: &dyn Disk, at: u64, buf: &mut [u8]) -> bool {
    let mut sums = vec![0; buf.len() / PAGE];
    (0..OFTEN).any(|_| disk.read_resident(at, buf, &mut sums))
}

#[test]
fn both_kinds_of_writes_are_seen() {
    let dir = tempfile::tempdir().unwrap();
    let disk = volume(&dir.path().join("v"), 4 << 20);
    let mut buf = vec![0; 2 * PAGE];
    assert!(read_disk(&*disk, PAGE as u64, &mut buf));
    for round in 0..50_u8 {
        let at = u64::from(round) * 3 * PAGE as u64;
        disk.write_at(at, &[round; 2 * PAGE]).unwrap();
        if read_disk(&*disk, at, &mut buf) {
            assert_eq!(buf, [round; 2 * PAGE], "buffered {round}");
        }
        disk.write_bulk(at, &[round ^ 99; 2 * PAGE]).unwrap();
        if read_disk(&*disk, at, &mut buf) {
            assert_eq!(buf, [round ^ 99; 2 * PAGE], "past the cache {round}");
        }
        let mut by_call = vec![0; 2 * PAGE];
        disk.read_at(at, &mut by_call).unwrap();
        assert_eq!(by_call, [round ^ 99; 2 * PAGE]);
        if round % 25 == 0 {
            // The cache may have dropped more than was written.
            disk.read_at(0, &mut vec![0; 4 << 20]).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(TRUSTED + 50));
            assert!(read_disk(&*disk, at, &mut buf), "in the cache again");
            assert_eq!(buf, by_call);
        }
    }
}

#[test]
fn writes_past_the_cache_beside_reads_are_seen_by_the_next_read() {
    let dir = tempfile::tempdir().unwrap();
    let disk = volume(&dir.path().join("v"), 2 << 20);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut page = vec![0; PAGE];
            while !done.load(Relaxed) {
                for n in 0..512 {
                    disk.read_resident(n * PAGE as u64, &mut page, &mut [0]);
                }
            }
        });
        for round in 0..300_u64 {
            let (at, fill) = (round * 5 % 512 * PAGE as u64, round as u8);
            if round % 2 == 0 {
                disk.write_bulk(at, &[fill; PAGE]).unwrap();
            } else {
                disk.write_at(at, &[fill; PAGE]).unwrap();
            }
            let (mut page, mut mapped) = ([0; PAGE], [0; PAGE]);
            disk.read_at(at, &mut page).unwrap();
            assert_eq!(page, [fill; PAGE], "{round}");
            if disk.read_resident(at, &mut mapped, &mut [0]) {
                assert_eq!(mapped, page, "{round}");
            }
        }
        done.store(true, Relaxed);
    });
}

#[test]
fn what_is_cut_off_while_it_is_read_ends_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let disk = volume(&dir.path().join("v"), 4 << 20);
    let (done, far) = (std::sync::atomic::AtomicBool::new(false), 3 << 20);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut page = vec![0; 8 * PAGE];
            while !done.load(Relaxed) {
                disk.read_resident(far, &mut page, &mut [0; 8]);
            }
        });
        assert!(read_disk(&*disk, far, &mut [0; PAGE]));
        std::thread::sleep(std::time::Duration::from_millis(20));
        disk.truncate((1 << 20) + 10).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        done.store(true, Relaxed);
    });
    let mut page = [9; PAGE];
    std::thread::sleep(std::time::Duration::from_millis(TRUSTED + 50));
    assert!(!read_disk(&*disk, far, &mut page));
    // What is left can be had, what grows again only by calls.
    assert!(read_disk(&*disk, 0, &mut page));
    assert_eq!(page[..], content(PAGE));
    disk.grow(4 << 20).unwrap();
    disk.write_at(2 << 20, &[5; 2 << 20]).unwrap();
    assert!(!read_disk(&*disk, far, &mut page));
    disk.read_at(far, &mut page).unwrap();
    assert_eq!(page, [5; PAGE]);
}

#[test]
fn cutting_runs_where_nothing_is_mapped_and_tells_its_error() {
    let map = Map::default();
    map.cut(0, || Ok(())).unwrap();
    let file = cached(PAGE);
    assert!(read(&map, &file, 0, &mut [0; PAGE]));
    let refused = map.cut(PAGE as u64, || Err(io::ErrorKind::Other.into()));
    assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::Other);
    assert!(once(&map, &file, 0, &mut [0; PAGE]), "before the new end");
}

#[test]
fn who_may_only_read_the_file_reads_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v");
    std::fs::write(&path, content(1 << 20)).unwrap();
    let disk = FileStorage::open(&path, Access::ReadOnly).unwrap().volume();
    let mut page = [0; PAGE];
    // The owner learns the truth about it.
    assert!(read_disk(&*disk, 8192, &mut page));
    assert_eq!(page[..], content(1 << 20)[8192..][..PAGE]);
    let other = OpenOptions::new().write(true).open(&path).unwrap();
    other.write_all_at(&[3; PAGE], 8192).unwrap();
    assert!(read_disk(&*disk, 8192, &mut page));
    assert_eq!(page, [3; PAGE], "written by somebody else");
}

#[test]
fn a_window_is_new_until_it_was_read_through() {
    if !can_drop() {
        return;
    }
    let len = 4 * WINDOW as usize;
    let (map, file) = (Map::default(), cached(len));
    assert!(!map.is_new(&file, 0, WINDOW, true), "it is in the cache");
    drop_cache(&file);
    assert!(map.is_new(&file, 0, WINDOW, true), "what came from the cache did not count");
    let half = WINDOW / 2;
    assert!(map.is_new(&file, WINDOW, half, false), "asking does not count");
    assert!(map.is_new(&file, WINDOW, half, true));
    assert!(map.is_new(&file, WINDOW + half, half, true), "the other half");
    assert!(!map.is_new(&file, WINDOW, half, true), "again");
    assert!(map.is_new(&file, WINDOW, 2 * WINDOW, true), "its neighbour is new");
    assert!(!map.is_new(&file, WINDOW, 2 * WINDOW, true));
    map.forget(WINDOW, 10);
    assert!(map.is_new(&file, WINDOW, half, true), "written anew");
    assert!(!map.is_new(&file, 2 * WINDOW, half, true), "not this one");
    // Once the system was asked about it, it was read often, and stays known.
    for n in 0..OFTEN {
        assert!(!once(&map, &file, 3 * WINDOW, &mut [0; PAGE]), "{n}: not in the cache");
    }
    assert!(!map.is_new(&file, 3 * WINDOW, half, true));
    for at in [1 << 47, u64::MAX - 4096, u64::MAX] {
        assert!(!map.is_new(&file, at, u64::MAX, true), "{at}");
    }
}
