//! One file of the operating system: [`FileDisk`].
//!
//! Threads: reads and writes are `pread` and `pwrite` and take no lock; a mutex orders changes of
//! the length.

use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rustix::io::Errno;

use crate::blocks::{self, full_kind, write_all, write_back, write_zeros};
use crate::bounds::{check_len, past_the_end, read_only, write_end};
use crate::direct::{ALIGN, Direct};
use crate::disk::Near;
use crate::disk::WriteOut;
use crate::map::Map;
use crate::read_around::ReadAround;
use crate::sign::{self, Sign};
use crate::write_out::write_out;
use crate::{Disk, FileId};

/// Growth of at most this many bytes is written if it cannot be reserved; more would cost much
/// only to find that the disk is full.
const SMALL_GROWTH: u64 = 1 << 20;

/// The pieces of a large file, by their place in it, for which ext4 looks for blocks together
/// (`ext4_mb_normalize_request`).
const PIECE: u64 = 8 << 20;
/// The shortest hole of which the first block is written, which takes a write to the device, and
/// the shortest file: the blocks of a small one ext4 puts beside those of other small files.
const LEAST_PIECE: u64 = 128 << 10;
/// The pieces of the largest step by which a volume grows for what is to come.
const MOST_PIECES: u64 = 8;

/// How often a lock is tried that may be a reader's, and the time between: the look of a reader
/// takes microseconds.
const LOOKS_OF_OTHERS: u32 = 5;
const LOOK_OF_ANOTHER: Duration = Duration::from_millis(1);

/// How a store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No call changes a file, and nobody is kept out: others may write meanwhile.
    ReadOnly,
    /// No other open has this access.
    ReadWrite,
}

/// One file.
#[derive(Debug)]
pub struct FileDisk {
    file: File,
    access: Access,
    /// Asked for before each commit; it never changes.
    id: OnceLock<FileId>,
    /// Held while the length changes.
    resize: Mutex<()>,
    /// A write-out failed outside `sync`, which must report it: the kernel reports an error once.
    failed: AtomicBool,
    process: u32,
    /// The same file, opened to bypass the cache, if the system can.
    direct: Option<Direct>,
    around: ReadAround,
    map: Map,
    sign: Sign,
}

impl Drop for FileDisk {
    /// Gives the locks back at once: a child forked by another thread holds a copy of the
    /// descriptor until it execs, and would keep the lock for as long. In such a child the
    /// lock is the parent's and stays.
    fn drop(&mut self) {
        if std::process::id() == self.process {
            self.sign.show(&self.file, None);
            // If it fails, closing the descriptor gives the lock back.
            let _ = self.file.unlock();
        }
    }
}

impl FileDisk {
    pub(crate) fn new(file: File, access: Access) -> Self {
        let (resize, map, failed) = (Mutex::new(()), Map::default(), AtomicBool::new(false));
        let (process, around) = (std::process::id(), ReadAround::new(memory()));
        let (id, sign) = (OnceLock::new(), Sign::default());
        Self { file, access, id, resize, failed, process, direct: None, around, map, sign }
    }

    /// Opens the file once more, for reads and writes past the cache.
    pub(crate) fn with_direct(mut self) -> Self {
        self.direct = Direct::open(&self.file, self.access == Access::ReadWrite);
        self
    }

    /// Locks the file if it is to be written. A reader locks nothing: but it looks, for some
    /// microseconds, whether it could, and who finds its lock looks again.
    ///
    /// # Errors
    /// `WouldBlock` if somebody else has it.
    pub(crate) fn lock(file: &File, access: Access) -> Result<(), TryLockError> {
        if access == Access::ReadOnly {
            return Ok(());
        }
        for _ in 0..LOOKS_OF_OTHERS {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) if sign::shown(file).is_none() => {
                    std::thread::sleep(LOOK_OF_ANOTHER);
                }
                other => return other,
            }
        }
        file.try_lock()
    }

    /// Whether another open has the file locked for writing.
    ///
    /// # Errors
    /// Those of the operating system.
    pub(crate) fn is_locked(&self) -> io::Result<bool> {
        if sign::shown(&self.file).is_some() {
            return Ok(true);
        }
        match self.file.try_lock_shared() {
            Ok(()) => self.file.unlock().map(|()| false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// What the system says about the file.
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// Whether no name leads to the file any more.
    pub(crate) fn is_deleted(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
    }

    /// Writes past the cache. `Ok(false)`: this file cannot.
    fn write_direct(&self, offset: u64, bytes: &[u8]) -> io::Result<bool> {
        let Some(direct) = &self.direct else { return Ok(false) };
        let written = direct.write(offset, bytes);
        // What the cache had of it is dropped.
        self.map.forget(offset, bytes.len() as u64);
        written
    }

    /// Gives a range blocks, behind those before if the file system can. ext4 takes blocks that are
    /// only reserved from anywhere. For a block that is written it looks behind the last one, and
    /// keeps what follows for the rest of the piece. So the first block of each piece is written,
    /// if it is a hole or lies behind the end: the zeros that are read there already. One short
    /// piece elsewhere takes the next ones along, so that only short holes go without. Many pieces
    /// are asked for in one call, which fails at once if there is no room. `inside`: the range may
    /// hold bytes, which stay.
    fn allocate(&self, offset: u64, len: u64, inside: bool) -> io::Result<()> {
        if len > MOST_PIECES * PIECE {
            return blocks::allocate(&self.file, offset, len);
        }
        let end = offset.saturating_add(len);
        let mut at = offset;
        while at < end {
            let next = (at / PIECE + 1).saturating_mul(PIECE).min(end);
            let mut first = [0; ALIGN];
            let worth = len >= LEAST_PIECE || !inside && at >= LEAST_PIECE;
            // Not beyond the range: what lies there is another's, or makes the file longer.
            let fits = worth && next - at >= ALIGN as u64;
            let empty =
                fits && (!inside || self.read_at(at, &mut first).is_ok() && first == [0; ALIGN]);
            if empty {
                // A hint: what is wrong shows when the rest is reserved.
                let _ = self.write_direct(at, &first);
            }
            blocks::allocate(&self.file, at, next - at)?;
            at = next;
        }
        Ok(())
    }

    /// Reads the bytes at the start of the range that are in the page cache, without waiting for
    /// the device. Returns how many bytes of `buf` it filled; 0 also if the system cannot tell.
    fn read_cached(&self, offset: u64, buf: &mut [u8]) -> usize {
        if write_end(offset, buf.len()).is_err() { 0 } else { read_now(&self.file, offset, buf) }
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.access == Access::ReadOnly { Err(read_only()) } else { Ok(()) }
    }

    fn check_write_out(&self, result: io::Result<()>) -> io::Result<()> {
        if result.is_err() {
            self.failed.store(true, Ordering::SeqCst);
        }
        result
    }
}

impl Disk for FileDisk {
    fn read_at(&self, offset: u64, mut buf: &mut [u8]) -> io::Result<()> {
        let wanted = buf.len();
        // The kernel calls a range past the largest offset invalid; here it is past the end.
        if wanted > 0 && write_end(offset, wanted).is_err() {
            return Err(past_the_end(offset, wanted, self.len()?));
        }
        let mut at = offset;
        while !buf.is_empty() {
            // Not through libc, whose `pread` prepares for the thread being cancelled.
            match rustix::io::pread(&self.file, &mut *buf, at) {
                Ok(0) => return Err(past_the_end(offset, wanted, self.len()?)),
                Ok(n) => {
                    buf = &mut buf[n..];
                    at += n as u64;
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    fn read_resident(&self, offset: u64, buf: &mut [u8], sums: &mut [u32]) -> bool {
        self.map.read(&self.file, offset, buf, sums)
    }

    fn approach(&self, offset: u64, len: usize) {
        self.map.approach(offset, len);
    }

    fn read_near(&self, offset: u64, buf: &mut [u8], near: Near) -> io::Result<()> {
        if self.read_cached(offset, buf) == buf.len() {
            self.around.note(near);
            return Ok(());
        }
        let len = self.len()?;
        let piece = self.around.piece(near, offset, len);
        // First what is waited for: behind a piece of megabytes it would come last.
        self.read_at(offset, buf)?;
        if let Some(piece) = piece {
            let more = self.around.sweep(near, &piece, len);
            for range in [Some(piece), more].into_iter().flatten() {
                // A hint: what is wrong shows when it is read.
                let _ = will_need(&self.file, range.start, range.end - range.start);
            }
        }
        Ok(())
    }

    fn read_bulk(&self, offset: u64, parts: &mut [&mut [u8]], sums: &mut [u32]) -> bool {
        let len = parts.iter().map(|part| part.len() as u64).sum();
        self.direct.as_ref().is_some_and(|direct| {
            self.map.is_new(&self.file, offset, len, true) && direct.read(offset, parts, sums)
        })
    }

    fn reads_bulk(&self, offset: u64, len: u64) -> bool {
        self.direct.as_ref().is_some_and(Direct::serves)
            && self.map.is_new(&self.file, offset, len, false)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.check_writable()?;
        if bytes.is_empty() {
            return Ok(());
        }
        write_end(offset, bytes.len())?;
        write_all(&self.file, offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        let result = self.file.sync_data();
        if self.failed.swap(false, Ordering::SeqCst) {
            result?;
            return Err(io::Error::other("an earlier write-out of this file failed"));
        }
        result
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn file_id(&self) -> io::Result<Option<FileId>> {
        if let Some(id) = self.id.get() {
            return Ok(Some(*id));
        }
        let id = FileId::from_metadata(&self.file.metadata()?);
        Ok(Some(*self.id.get_or_init(|| id)))
    }

    fn metadata(&self) -> io::Result<Option<std::fs::Metadata>> {
        self.file.metadata().map(Some)
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        self.check_writable()?;
        check_len(len)?;
        let _resize = self.resize.lock();
        let old = self.len()?;
        if len <= old {
            return Ok(());
        }
        let result = match self.allocate(old, len - old, false).map_err(full_kind) {
            // A little in one step: what was cut short when it was made is known by its length.
            Err(e) if is_unsupported(&e) && len - old <= SMALL_GROWTH => {
                self.file.set_len(len).and_then(|()| write_zeros(&self.file, old, len))
            }
            Err(e) if is_unsupported(&e) => write_zeros(&self.file, old, len),
            // XFS asks for more room than it takes: whether a little fits, a write shows.
            Err(e) if is_full(&e) && len - old <= SMALL_GROWTH => write_zeros(&self.file, old, len),
            other => other,
        };
        if result.is_err() {
            // Gives back what was allocated; the caller gets the first error.
            let _ = self.file.set_len(old);
            self.map.forget(old, u64::MAX - old);
        }
        result
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.check_writable()?;
        let _resize = self.resize.lock();
        if len < self.len()? { self.map.cut(len, || self.file.set_len(len)) } else { Ok(()) }
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.check_writable()?;
        let punched = match blocks::punch(&self.file, offset, len) {
            Err(e) if is_unsupported(&e) => return Ok(false),
            other => other.map(|()| true),
        };
        // What the mapping knows to be in the cache is gone.
        self.map.forget(offset, len);
        punched
    }

    fn can_punch(&self) -> bool {
        blocks::can_punch(&self.file)
    }

    fn fill_holes(&self, offset: u64, len: u64) -> io::Result<()> {
        self.check_writable()?;
        // The system has no range of no bytes.
        if len == 0 {
            return Ok(());
        }
        match self.allocate(offset, len, true).map_err(full_kind) {
            // ext2 and ext3 punch holes and cannot fill them. XFS asks for the room of the whole
            // range, also if it has blocks already.
            Err(e) if is_unsupported(&e) || is_full(&e) => write_back(&self.file, offset, len),
            other => other,
        }
    }

    fn allocated(&self) -> io::Result<u64> {
        // `st_blocks` counts units of 512 bytes whatever the block size.
        Ok(self.file.metadata()?.blocks().saturating_mul(512))
    }

    fn room(&self) -> io::Result<Option<u64>> {
        let found = rustix::fs::fstatvfs(&self.file)?;
        // Some that stand for others (FUSE) have no numbers.
        let known = found.f_blocks > 0;
        Ok(known.then(|| found.f_bavail.saturating_mul(found.f_frsize)))
    }

    fn write_bulk(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.access == Access::ReadWrite && self.write_direct(offset, bytes)? {
            return Ok(());
        }
        self.write_at(offset, bytes)
    }

    /// An error is also reported by the next `sync`.
    fn write_out(&self, offset: u64, len: u64, how: WriteOut) -> io::Result<()> {
        if len == 0 || self.access == Access::ReadOnly {
            return Ok(());
        }
        self.check_write_out(write_out(&self.file, offset, len, how))
    }

    fn show_durable(&self, position: Option<u64>) {
        if self.access == Access::ReadWrite {
            self.sign.show(&self.file, position);
        }
    }

    fn at_rest(&self) -> Option<(Duration, u64)> {
        // Each get of a reader beside others asks: `statx`, which std calls, costs half as much again.
        let found = rustix::fs::fstat(&self.file).ok()?;
        let nanoseconds = u32::try_from(found.st_mtime_nsec).ok()?;
        let written = Duration::new(u64::try_from(found.st_mtime).ok()?, nanoseconds);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
        // File systems give the same time for some milliseconds.
        let rests = now.checked_sub(written).is_some_and(|since| since > Duration::from_secs(1));
        rests.then_some((written, u64::try_from(found.st_size).ok()?))
    }

    fn shown_durable(&self) -> Option<u64> {
        sign::shown(&self.file)
    }

    fn read_hint(&self, offset: u64, len: u64) -> io::Result<bool> {
        // Where a byte is at hand, what is around it mostly is too, and telling the kernel page
        // by page would cost more than it saves.
        if len == 0 || self.read_cached(offset, &mut [0]) == 1 {
            return Ok(false);
        }
        will_need(&self.file, offset, len).map(|()| true)
    }
}

pub(crate) fn is_unsupported(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::OPNOTSUPP | Errno::NOSYS))
}

pub(crate) fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::StorageFull
}

/// Reads what can be had without waiting for the device; 0 if the system cannot tell.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn read_now(file: &File, offset: u64, buf: &mut [u8]) -> usize {
    let mut to = [io::IoSliceMut::new(buf)];
    rustix::io::preadv2(file, &mut to, offset, rustix::io::ReadWriteFlags::NOWAIT).unwrap_or(0)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn read_now(_file: &File, _offset: u64, _buf: &mut [u8]) -> usize {
    0
}

/// Bytes of memory of this machine; 0 if the system does not say.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn memory() -> u64 {
    let info = rustix::system::sysinfo();
    // The type differs between systems of 32 and 64 bits.
    let bytes = info.totalram as u128 * u128::from(info.mem_unit);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn memory() -> u64 {
    0
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn will_need(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let len = len.min(crate::bounds::MAX_LEN.saturating_sub(offset));
    let Some(len) = std::num::NonZeroU64::new(len) else { return Ok(()) };
    match rustix::fs::fadvise(file, offset, Some(len), rustix::fs::Advice::WillNeed) {
        // A file system that knows no advice is no error.
        Ok(()) | Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS | Errno::SPIPE) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn will_need(_file: &File, _offset: u64, _len: u64) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> FileDisk {
        FileDisk::new(tempfile::tempfile().unwrap(), Access::ReadWrite)
    }

    #[test]
    fn without_fallocate_zeros_are_written() {
        let disk = disk();
        disk.write_at(0, b"abc").unwrap();
        write_zeros(&disk.file, 3, 600_001).unwrap();
        assert_eq!(disk.len().unwrap(), 600_001);
        let mut all = vec![9; 600_001];
        disk.read_at(0, &mut all).unwrap();
        assert!(all.starts_with(b"abc") && all[3..].iter().all(|&b| b == 0));
        disk.sync().unwrap();
        assert!(disk.allocated().unwrap() >= 600_001);
    }

    #[test]
    fn an_error_of_a_write_out_is_told_by_the_next_sync() {
        let disk = disk();
        disk.check_write_out(Err(io::ErrorKind::Other.into())).unwrap_err();
        disk.check_write_out(Ok(())).unwrap();
        assert!(disk.sync().is_err());
        disk.sync().unwrap();
    }

    #[test]
    fn a_hole_reads_as_zeros_and_takes_no_blocks() {
        let disk = disk();
        disk.grow(4 << 20).unwrap();
        disk.write_at(0, &[7; 1 << 20]).unwrap();
        disk.write_at(1 << 20, &[8; 1 << 20]).unwrap();
        disk.sync().unwrap();
        let before = disk.allocated().unwrap();
        if !disk.punch(1 << 20, 3 << 20).unwrap() {
            return;
        }
        assert!(disk.allocated().unwrap() + (3 << 20) <= before + 4096);
        assert_eq!(disk.len().unwrap(), 4 << 20);
        let mut at = [9; 2];
        disk.read_at((1 << 20) - 1, &mut at).unwrap();
        assert_eq!(at, [7, 0]);
        disk.fill_holes(1 << 20, 0).unwrap();
        disk.fill_holes(1 << 20, 3 << 20).unwrap();
        assert!(disk.allocated().unwrap() + 4096 >= before);
        disk.fill_holes(0, 4 << 20).unwrap();
        disk.read_at((1 << 20) - 1, &mut at).unwrap();
        assert_eq!(at, [7, 0]);
    }

    #[test]
    fn kinds_of_errors() {
        let quota = full_kind(io::ErrorKind::QuotaExceeded.into());
        assert_eq!(quota.kind(), io::ErrorKind::StorageFull);
        assert_eq!(io::Error::from(Errno::NOSPC).kind(), io::ErrorKind::StorageFull);
        assert!(is_unsupported(&Errno::OPNOTSUPP.into()));
        assert!(!is_unsupported(&Errno::NOSPC.into()));
    }
}
