//! What only real files have: names, locks, access, blocks, write-out.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::io::ErrorKind;
use std::sync::Arc;

use holdall_io::{Access, Astray, Disk, FileStorage, Near, OverlayStorage, Storage, WriteOut};
use tempfile::tempdir;

fn kind<T: std::fmt::Debug>(result: std::io::Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn creating() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("store");
    let storage = FileStorage::create(&path).unwrap();
    assert_eq!(storage.volume().len().unwrap(), 0);
    assert_eq!(storage.name(), fs::canonicalize(&path).unwrap().display().to_string());
    storage.sync_dir().unwrap();
    assert_eq!(kind(FileStorage::create(&path)), ErrorKind::AlreadyExists);
    assert_eq!(kind(FileStorage::create(dir.path())), ErrorKind::IsADirectory);
    assert_eq!(kind(FileStorage::open(dir.path(), Access::ReadOnly)), ErrorKind::IsADirectory);
    let error = FileStorage::open(dir.path().join("none"), Access::ReadWrite).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("none"), "{error}");
    assert_eq!(kind(FileStorage::open("/dev/null", Access::ReadOnly)), ErrorKind::InvalidInput);
}

#[test]
fn locks_exclude_in_one_process_too() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("store");
    let open = |access| FileStorage::open(&path, access);
    let writer = FileStorage::create(&path).unwrap();
    assert_eq!(kind(open(Access::ReadWrite)), ErrorKind::WouldBlock);
    let reader = open(Access::ReadOnly).unwrap();
    assert!(reader.has_writer().unwrap());
    let volume = writer.volume();
    drop(writer);
    assert_eq!(kind(open(Access::ReadWrite)), ErrorKind::WouldBlock, "the disk is still in use");
    assert!(reader.has_writer().unwrap());
    drop(volume);
    assert!(!reader.has_writer().unwrap());
    let _another = open(Access::ReadOnly).unwrap();
    let writer = open(Access::ReadWrite).expect("readers keep nobody out");
    assert!(reader.has_writer().unwrap());
    assert!(!writer.has_writer().unwrap(), "no other");
}

/// Another process holding the lock, through the shell's `flock` if there is one.
#[test]
fn locks_exclude_other_processes() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("store");
    let storage = FileStorage::create(&path).unwrap();
    let try_lock = || {
        let mut command = std::process::Command::new("flock");
        command.args(["--nonblock", "--conflict-exit-code", "9"]).arg(&path).arg("true");
        command.status().ok().and_then(|status| status.code())
    };
    let held = try_lock();
    drop(storage);
    let free = try_lock();
    assert!(matches!((held, free), (Some(9), Some(0)) | (None, None)), "{held:?} {free:?}");
}

#[test]
fn a_read_only_store_refuses_changes() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("store");
    fs::write(&path, b"volume").unwrap();
    let storage = FileStorage::open(&path, Access::ReadOnly).unwrap();
    assert!(storage.open_log().unwrap().is_none());
    fs::write(storage.log_path(), b"log").unwrap();
    let log = storage.open_log().unwrap().unwrap();
    for disk in [storage.volume(), log.clone()] {
        assert_eq!(kind(disk.write_at(0, b"x")), ErrorKind::PermissionDenied);
        assert_eq!(kind(disk.grow(100)), ErrorKind::PermissionDenied);
        assert_eq!(kind(disk.truncate(0)), ErrorKind::PermissionDenied);
        disk.sync().unwrap();
        disk.write_out(0, 1, WriteOut::Start).unwrap();
        disk.write_out(0, 1, WriteOut::Wait).unwrap();
    }
    assert_eq!(kind(storage.create_log()), ErrorKind::PermissionDenied);
    assert_eq!(kind(storage.remove_log(&*log)), ErrorKind::PermissionDenied);
    storage.sync_dir().unwrap();
    let overlay = OverlayStorage::new(Arc::new(storage)).unwrap();
    overlay.volume().write_at(0, b"V").unwrap();
    overlay.remove_log(&*log).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"volume");
    assert_eq!(fs::read(dir.path().join("store-log")).unwrap(), b"log");
}

#[test]
fn the_log_lies_beside_the_real_volume() {
    let dir = tempdir().unwrap();
    let (real, alias) = (dir.path().join("store"), dir.path().join("elsewhere"));
    fs::write(&real, b"").unwrap();
    fs::create_dir(&alias).unwrap();
    std::os::unix::fs::symlink(&real, alias.join("link")).unwrap();
    let storage = FileStorage::open(alias.join("link"), Access::ReadWrite).unwrap();
    let log = storage.create_log().unwrap();
    log.write_at(0, b"log").unwrap();
    assert_eq!(kind(storage.create_log()), ErrorKind::AlreadyExists);
    assert_eq!(fs::read(dir.path().join("store-log")).unwrap(), b"log");
    storage.remove_log(&*log).unwrap();
    storage.remove_log(&*log).unwrap();
    assert!(!dir.path().join("store-log").exists());
}

#[test]
fn a_log_is_locked_by_who_uses_it() {
    let dir = tempdir().unwrap();
    let (path, other) = (dir.path().join("store"), dir.path().join("other"));
    let first = FileStorage::create(&path).unwrap();
    let log = first.create_log().unwrap();
    log.write_at(0, b"log").unwrap();
    assert!(Arc::ptr_eq(&log, &first.open_log().unwrap().unwrap()), "the same while it is used");
    fs::rename(&path, &other).unwrap();
    let second = FileStorage::create(&path).unwrap();
    assert_eq!(kind(second.open_log()), ErrorKind::WouldBlock);
    assert_eq!(kind(second.create_log()), ErrorKind::AlreadyExists);
    drop(log);
    assert_eq!(second.open_log().unwrap().unwrap().len().unwrap(), 3);
}

#[test]
fn names_are_removed_only_from_the_file_that_is_meant() {
    let dir = tempdir().unwrap();
    let (path, log_path) = (dir.path().join("store"), dir.path().join("store-log"));
    let storage = FileStorage::create(&path).unwrap();
    let log = storage.create_log().unwrap();
    assert_eq!(storage.astray(Some(&*log)), None);
    fs::remove_file(&log_path).unwrap();
    assert_eq!(storage.astray(Some(&*log)), Some(Astray::Log));
    fs::write(&log_path, b"other").unwrap();
    storage.remove_log(&*log).unwrap();
    assert_eq!(fs::read(&log_path).unwrap(), b"other");
    fs::rename(&path, dir.path().join("moved")).unwrap();
    assert_eq!(storage.astray(None), Some(Astray::VolumeMoved));
    fs::write(&path, b"other").unwrap();
    storage.remove_volume().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"other");
    fs::remove_file(dir.path().join("moved")).unwrap();
    assert_eq!(storage.astray(Some(&*log)), Some(Astray::VolumeDeleted));
    let again = FileStorage::create(dir.path().join("again")).unwrap();
    again.remove_volume().unwrap();
    assert!(!dir.path().join("again").exists());
}

#[test]
fn a_directory_that_may_only_be_searched_will_do() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempdir().unwrap();
    let inner = dir.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("store"), b"volume").unwrap();
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o311)).unwrap();
    for access in [Access::ReadOnly, Access::ReadWrite] {
        FileStorage::open(inner.join("store"), access).unwrap();
    }
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn sums_lie_beside_the_real_volume_and_a_reader_makes_none() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("store");
    let storage = FileStorage::create(&path).unwrap();
    assert!(storage.open_sums(false).unwrap().is_none());
    storage.open_sums(true).unwrap().unwrap().write_at(0, b"sums").unwrap();
    assert_eq!(storage.open_sums(true).unwrap().unwrap().len().unwrap(), 4);
    drop(storage);
    let storage = FileStorage::open(&path, Access::ReadOnly).unwrap();
    let sums = storage.open_sums(true).unwrap().unwrap();
    assert_eq!(kind(sums.write_at(0, b"x")), ErrorKind::PermissionDenied);
    fs::remove_file(dir.path().join("store-sums")).unwrap();
    assert!(storage.open_sums(true).unwrap().is_none());
    std::os::unix::fs::symlink(&path, dir.path().join("store-sums")).unwrap();
    assert_eq!(kind(storage.open_sums(true)), ErrorKind::InvalidInput);
}

/// A pipe that nobody writes to.
fn make_fifo(path: &std::path::Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

#[test]
fn only_a_regular_file_is_opened_as_a_store() {
    let dir = tempdir().unwrap();
    let (fifo, link, socket) =
        (dir.path().join("fifo"), dir.path().join("link"), dir.path().join("socket"));
    make_fifo(&fifo);
    std::os::unix::fs::symlink(&fifo, &link).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for path in [&fifo, &link, &socket] {
        for access in [Access::ReadOnly, Access::ReadWrite] {
            let error = FileStorage::open(path, access).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            assert!(error.to_string().contains("is not a regular file"), "{error}");
        }
    }
}

#[test]
fn what_lies_in_the_logs_place_is_opened_only_if_it_is_a_file_itself() {
    let dir = tempdir().unwrap();
    let (path, log) = (dir.path().join("store"), dir.path().join("store-log"));
    let victim = dir.path().join("victim");
    fs::write(&victim, b"untouched").unwrap();
    let storage = FileStorage::create(&path).unwrap();
    let refused = |part: &str| {
        let error = storage.open_log().unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(kind(storage.create_log()), ErrorKind::AlreadyExists);
    };
    std::os::unix::fs::symlink(&victim, &log).unwrap();
    refused("store-log: is a symbolic link");
    fs::remove_file(&log).unwrap();
    // Not even one that leads nowhere yet.
    std::os::unix::fs::symlink(dir.path().join("new"), &log).unwrap();
    refused("store-log: is a symbolic link");
    fs::remove_file(&log).unwrap();
    make_fifo(&log);
    refused("store-log: is not a regular file");
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    refused("directory");
    assert_eq!(fs::read(&victim).unwrap(), b"untouched");
    assert!(!dir.path().join("new").exists());
}

#[test]
fn growing_takes_real_blocks() {
    let dir = tempdir().unwrap();
    let disk = FileStorage::create(dir.path().join("store")).unwrap().volume();
    disk.write_at(0, b"abc").unwrap();
    disk.grow(1 << 20).unwrap();
    assert_eq!(disk.len().unwrap(), 1 << 20);
    assert!(disk.allocated().unwrap() >= 1 << 20);
    let mut buf = [9; 5];
    disk.read_at(0, &mut buf).unwrap();
    assert_eq!(&buf, b"abc\0\0");
    disk.grow(5).unwrap();
    assert_eq!(disk.len().unwrap(), 1 << 20);
    let before = disk.allocated().unwrap();
    let error = disk.grow(1 << 53).unwrap_err().kind();
    assert!(matches!(error, ErrorKind::StorageFull | ErrorKind::FileTooLarge), "{error:?}");
    assert_eq!((disk.len().unwrap(), disk.allocated().unwrap()), (1 << 20, before));
    disk.truncate(4096).unwrap();
    assert!(disk.allocated().unwrap() < 1 << 20);
}

#[test]
fn pages_read_at_random_bring_their_neighbourhood_into_the_cache() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("store");
    let disk = FileStorage::create(&path).unwrap().volume();
    let bytes: Vec<u8> = (0..4 << 20).map(|i: u32| (i / 4096) as u8).collect();
    disk.write_at(0, &bytes).unwrap();
    disk.sync().unwrap();
    let file = fs::File::open(&path).unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let (mut page, mut there) = (vec![0; 8192], 0);
    for n in 0..512_u64 {
        let at = n * 37 % 512 * 8192;
        there += usize::from(cached(&file, at, &mut page) == page.len());
        disk.read_near(at, &mut page, Near::Many).unwrap();
        assert_eq!(page, bytes[at as usize..][..8192], "{at}");
    }
    if cached(&file, 0, &mut page) == page.len() {
        // Else this file system cannot tell.
        assert!(there > 256, "{there} of 512 pages were in the cache");
    }
}

#[test]
fn hints_at_any_range_do_no_harm() {
    let dir = tempdir().unwrap();
    let disk = FileStorage::create(dir.path().join("store")).unwrap().volume();
    let bytes: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
    disk.write_at(0, &bytes).unwrap();
    for (offset, len) in [(0, 100_000), (5000, 1), (0, 0), (1 << 40, 9), (u64::MAX, u64::MAX)] {
        disk.write_out(offset, len, WriteOut::Start).unwrap();
        disk.write_out(offset, len, WriteOut::Wait).unwrap();
        disk.read_hint(offset, len).unwrap();
    }
    disk.sync().unwrap();
    let mut found = vec![0; bytes.len()];
    disk.read_at(0, &mut found).unwrap();
    assert!(found == bytes);
}

#[test]
fn bulk_writes_are_read_back_whatever_their_alignment() {
    let dir = tempdir().unwrap();
    let disk = FileStorage::create(dir.path().join("store")).unwrap().volume();
    disk.grow(8 << 20).unwrap();
    let mut expected = vec![0u8; 8 << 20];
    for (i, (at, len)) in
        [(0, 4096), (8192, 3 << 20), (1, 5000), (4 << 20, 4096 * 300), (4096, 4096), (7 << 20, 77)]
            .into_iter()
            .enumerate()
    {
        let bytes: Vec<u8> = (0..len).map(|n| (n * (i + 3) / 7) as u8).collect();
        disk.write_bulk(at as u64, &bytes).unwrap();
        expected[at..at + len].copy_from_slice(&bytes);
        // A buffered write beside it must not be lost, nor hide it.
        disk.write_at((at + len) as u64, b"beside").unwrap();
        expected[at + len..at + len + 6].copy_from_slice(b"beside");
        let mut found = vec![0; expected.len()];
        disk.read_at(0, &mut found).unwrap();
        assert!(found == expected, "write {i}");
    }
}

/// Bytes of the front of the range that are in the page cache; 0 if that is not known.
fn cached(file: &fs::File, at: u64, buf: &mut [u8]) -> usize {
    let mut to = [std::io::IoSliceMut::new(buf)];
    rustix::io::preadv2(file, &mut to, at, rustix::io::ReadWriteFlags::NOWAIT).unwrap_or(0)
}

/// Reads parts of several lengths past the cache.
fn bulk(disk: &dyn Disk, at: usize, len: usize) -> Option<Vec<u8>> {
    const UNIT: usize = 4096;
    let (mut found, mut sums) = (vec![0xee; len], vec![0; len / UNIT]);
    let (first, rest) = found.split_at_mut(len / UNIT / 3 * UNIT);
    let (second, third) = rest.split_at_mut(len / UNIT / 2 * UNIT);
    let read = disk.read_bulk(at as u64, &mut [first, &mut [], second, third], &mut sums);
    let real: Vec<u32> = found.chunks(UNIT).map(crc_fast::crc32_iscsi).collect();
    assert!(!read || sums == real, "{len} at {at}");
    read.then_some(found)
}

#[test]
fn what_is_new_is_read_past_the_cache_and_only_once() {
    const MIB: usize = 1 << 20;
    let dir = tempdir().unwrap();
    let path = dir.path().join("store");
    let disk = FileStorage::create(&path).unwrap().volume();
    let mut bytes: Vec<u8> = (0..16 * MIB as u32).map(|i| (i / 4096 + i / 7) as u8).collect();
    disk.write_bulk(0, &bytes).unwrap();
    let file = fs::File::open(&path).unwrap();
    if cached(&file, 0, &mut [0]) == 1 || bulk(&*disk, 0, 8192).is_none() {
        return; // A file system without a way past its cache.
    }
    // Dirty pages in the midst of what is read.
    for at in [9 * MIB + 77, 11 * MIB - 2] {
        disk.write_at(at as u64, b"dirty").unwrap();
        bytes[at..at + 5].copy_from_slice(b"dirty");
    }
    for (at, len) in [(2 * MIB, 4096), (2 * MIB + 4096, MIB), (8 * MIB, 5 * MIB + 8192)] {
        let found = bulk(&*disk, at, len).expect("it is new");
        assert!(found == bytes[at..at + len], "{len} at {at}");
    }
    assert_eq!(bulk(&*disk, 8 * MIB, 4 * MIB), None, "it was read");
    assert!(!disk.reads_bulk(8 * MIB as u64, 4 * MIB as u64), "it was read");
    let hinted = (14 * MIB as u64, MIB as u64);
    assert!(disk.reads_bulk(hinted.0, hinted.1), "it is new");
    // A caller that hints will read through the cache, whatever another way there is.
    // Looking whether it is at hand begins to read it, which a fast device may have done by then.
    let told = disk.read_hint(hinted.0, hinted.1).unwrap();
    assert!(told || cached(&file, hinted.0, &mut [0]) == 1, "it is not at hand");
    disk.read_at(hinted.0, &mut vec![0; MIB]).unwrap();
    assert!(!disk.reads_bulk(hinted.0, hinted.1), "it is in the cache");
    // What is in the cache is read from there, and what is written anew is new.
    disk.read_at(6 * MIB as u64, &mut vec![0; 2 * MIB]).unwrap();
    assert_eq!(bulk(&*disk, 6 * MIB, 2 * MIB), None, "it is in the cache");
    disk.write_bulk(8 * MIB as u64, &bytes[MIB..3 * MIB]).unwrap();
    assert!(bulk(&*disk, 8 * MIB, 2 * MIB).unwrap() == bytes[MIB..3 * MIB]);
    for (at, len) in [(15 * MIB, 2 * MIB), (100 * MIB, MIB), (14 * MIB + 1, MIB), (14 * MIB, 77)] {
        assert_eq!(bulk(&*disk, at, len), None, "{len} at {at}");
    }
    assert_eq!(
        disk.read_at(15 * MIB as u64, &mut vec![0; 2 * MIB]).unwrap_err().kind(),
        ErrorKind::UnexpectedEof
    );
}
