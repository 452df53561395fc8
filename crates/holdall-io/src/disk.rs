//! The traits [`Disk`] and [`Storage`].
//!
//! Owns no state. Invariant: all backends give the same results and the same error kinds for the
//! same calls (`tests/backends.rs` of `holdall-testkit` compares them).

use std::ffi::OsStr;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What lies around a small read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Near {
    /// Few more of its kind among much else: a few dozen KiB are worth reading.
    Few,
    /// Mostly more of its kind, which may be wanted all in time.
    Many,
}

/// How much of a write-out to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOut {
    /// Nothing: it is started.
    Start,
    /// All of it: none of the bytes is dirty in the page cache afterwards.
    Wait,
}

/// Which file of the operating system something is, whatever names lead to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device that holds it.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

impl FileId {
    /// The file that `metadata` is of.
    #[must_use]
    pub fn from_metadata(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// What became of a file of an open store that its name no longer leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Astray {
    /// No name leads to the volume: it goes when it is closed.
    VolumeDeleted,
    /// The volume lies under another name.
    VolumeMoved,
    /// The log was deleted, renamed or replaced.
    Log,
}

/// A file of bytes that can be read, written and synced at any offset.
///
/// A call with an empty buffer does nothing and succeeds at any offset. What a failed read leaves
/// in its buffer, and which part of its range a failed write has changed, is unspecified.
#[expect(
    clippy::len_without_is_empty,
    reason = "a length that may fail; an empty disk has no meaning of its own"
)]
pub trait Disk: Send + Sync + Debug {
    /// Fills `buf` with the bytes from `offset` (bytes) on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the range reaches past the end.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()>;

    /// Fills `buf` with the bytes from `offset` on, if all of them are in the page cache
    /// and can be had without a system call, and `sums` with the CRC-32C of each 4 KiB of `buf`;
    /// returns whether it did. Offset and length are multiples of 4 KiB. What is missing is
    /// for [`read_at`](Self::read_at), and so is every error. For reads that come again
    /// and again near each other, whose caller compares the sums: where the range is
    /// written or cut off at the same time, `buf` may hold anything, and `sums` those of that.
    fn read_resident(&self, offset: u64, buf: &mut [u8], sums: &mut [u32]) -> bool {
        let _ = (offset, buf, sums);
        false
    }

    /// Says that [`read_resident`](Self::read_resident) of `len` bytes at `offset` comes next,
    /// so that the processor may bring them closer meanwhile. Costs next to nothing.
    fn approach(&self, offset: u64, len: usize) {
        let _ = (offset, len);
    }

    /// As [`read_at`](Self::read_at), for one of many small reads at places that cannot be
    /// foreseen in a stretch of the disk where more of them will follow. The disk may bring the
    /// neighbourhood into the page cache, as far as `near` lets it and it pays.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at).
    fn read_near(&self, offset: u64, buf: &mut [u8], near: Near) -> io::Result<()> {
        let _ = near;
        self.read_at(offset, buf)
    }

    /// Fills `parts`, one behind the other, with the bytes from `offset` on past the page
    /// cache, if they are not there and are read for the first time since they were written or
    /// the disk was opened, and `sums` with the CRC-32C of each 4 KiB; returns whether it did.
    /// What is read once then puts nothing out of the cache that is read often. For much data,
    /// offset and lengths multiples of 4 KiB; what is missing is for [`read_at`](Self::read_at),
    /// and so is every error.
    fn read_bulk(&self, offset: u64, parts: &mut [&mut [u8]], sums: &mut [u32]) -> bool {
        let _ = (offset, parts, sums);
        false
    }

    /// Whether [`read_bulk`](Self::read_bulk) would read `len` bytes at `offset` now, as far as
    /// that is known before. Reads nothing and counts as no read. Who reads that way gives
    /// no [`read_hint`](Self::read_hint), which brings into the cache what is to go past it.
    fn reads_bulk(&self, offset: u64, len: u64) -> bool {
        let _ = (offset, len);
        false
    }

    /// Writes all of `bytes` at `offset` (bytes), within or past the end; a gap reads as zeros.
    /// Not durable before the next [`sync`](Self::sync).
    ///
    /// # Errors
    /// `StorageFull`; `InvalidInput` if the range ends past 2^63 - 1; `PermissionDenied` on a
    /// disk opened read-only.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// As [`write_at`](Self::write_at), for much data that will not be read back at once: it may
    /// bypass the page cache, which keeps others' syncs from waiting behind it.
    /// Best with offset and length multiples of 4 KiB.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    fn write_bulk(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_at(offset, bytes)
    }

    /// Makes all earlier writes durable, and the length needed to find them (`fdatasync`).
    ///
    /// # Errors
    /// After an error the unsynced writes may be lost although they can still be read, and a
    /// later `sync` may succeed without having written them: only writing them again helps.
    fn sync(&self) -> io::Result<()>;

    /// The length in bytes.
    ///
    /// # Errors
    /// Those of the operating system.
    fn len(&self) -> io::Result<u64>;

    /// The file that holds the bytes; `None` for what is no file of the operating system. Cost: a
    /// system call at first.
    ///
    /// # Errors
    /// Those of the operating system.
    fn file_id(&self) -> io::Result<Option<FileId>> {
        Ok(None)
    }

    /// What the system says of the file that holds the bytes; `None` of what is no file.
    ///
    /// # Errors
    /// Those of the operating system.
    fn metadata(&self) -> io::Result<Option<std::fs::Metadata>> {
        Ok(None)
    }

    /// Makes the disk at least `len` bytes long. The new bytes are zeros and have real blocks,
    /// so that writing them later needs no space. Never shrinks.
    ///
    /// Must not run at the same time as a write past the end.
    ///
    /// # Errors
    /// `StorageFull`, the length then being the old one; `InvalidInput` past 2^63 - 1.
    fn grow(&self, len: u64) -> io::Result<()>;

    /// Cuts the disk to `len` bytes; does nothing if it is not longer.
    ///
    /// # Errors
    /// Those of the operating system; `PermissionDenied` on a disk opened read-only.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Gives the blocks of `len` bytes at `offset` back to the file system; they read as zeros
    /// from then on, and the length stays. Returns whether the file system can do that; if it
    /// cannot, nothing has changed. Offset and length are multiples of 4 KiB, the range lies
    /// within the length. Durable with the next [`sync`](Self::sync).
    ///
    /// # Errors
    /// Those of the operating system; `PermissionDenied` on a disk opened read-only.
    fn punch(&self, offset: u64, len: u64) -> io::Result<bool> {
        let _ = (offset, len);
        Ok(false)
    }

    /// Whether [`punch`](Self::punch) is known to work here; false also if only a call would
    /// tell. Changes nothing. Cost: a system call.
    fn can_punch(&self) -> bool {
        false
    }

    /// Gives `len` bytes at `offset` real blocks where [`punch`](Self::punch) took them, so that
    /// writing there needs no space. What is stored there stays. The range lies within the length,
    /// and nobody writes there meanwhile. Cost: for each 8 MiB a block read and written, and a
    /// call; if the file system cannot reserve blocks, or says that it has none, the range is read
    /// and written instead.
    ///
    /// # Errors
    /// `StorageFull`; some of the range may then have blocks. A file system that copies what is
    /// written may say so although the range has blocks.
    fn fill_holes(&self, offset: u64, len: u64) -> io::Result<()> {
        let _ = (offset, len);
        Ok(())
    }

    /// Bytes of blocks really used, which holes make less than the length.
    ///
    /// # Errors
    /// Those of the operating system.
    fn allocated(&self) -> io::Result<u64>;

    /// Bytes that are free where the file lies, for everybody together. `None`: unknown, or no limit
    /// but memory.
    ///
    /// # Errors
    /// Those of the operating system.
    fn room(&self) -> io::Result<Option<u64>> {
        Ok(None)
    }

    /// Writes `len` bytes at `offset` out of the page cache to the device, so that a later sync
    /// has less to do, and a bulk writer takes bounded memory. Promises no durability.
    ///
    /// # Errors
    /// Those of the operating system, to be treated like an error of [`sync`](Self::sync).
    fn write_out(&self, offset: u64, len: u64, how: WriteOut) -> io::Result<()> {
        let _ = (offset, len, how);
        Ok(())
    }

    /// Shows other processes that read the store that its log is durable up to `position` (bytes,
    /// below 2^62; 0: nothing is known yet), until this disk is closed; `None`: nothing any more.
    /// They see one position at a time, never one that was not shown. Does nothing where the
    /// system has no means for it.
    fn show_durable(&self, position: Option<u64>) {
        let _ = position;
    }

    /// What another disk of the same file shows by [`show_durable`](Self::show_durable) now;
    /// `None` if none does. Cost: a system call.
    fn shown_durable(&self) -> Option<u64> {
        None
    }

    /// When the file was last written (since 1970), and its length, if that was more than a second
    /// ago: as long as this stays the same nobody writes. `None` also if that is not known. Cost: a
    /// system call.
    fn at_rest(&self) -> Option<(Duration, u64)> {
        None
    }

    /// Says that `len` bytes at `offset` will be read soon, through the page cache.
    /// Does not wait. Returns whether that
    /// may help: false if the bytes are at hand already.
    ///
    /// # Errors
    /// Those of the operating system.
    fn read_hint(&self, offset: u64, len: u64) -> io::Result<bool> {
        let _ = (offset, len);
        Ok(false)
    }
}

/// A volume and the log beside it.
pub trait Storage: Send + Sync + Debug {
    /// The volume; every call gives the same disk.
    fn volume(&self) -> Arc<dyn Disk>;

    /// Whether another open may change the files while this one, which only reads, has them open.
    /// Keeps nobody out. Cost: up to three system calls.
    ///
    /// # Errors
    /// Those of the operating system.
    fn has_writer(&self) -> io::Result<bool> {
        Ok(false)
    }

    /// The existing log, or `None` if there is none. While one is in use, the same disk again.
    ///
    /// # Errors
    /// Those of the operating system; `WouldBlock` if another open store uses it.
    fn open_log(&self) -> io::Result<Option<Arc<dyn Disk>>>;

    /// Creates an empty log. The name is not durable before [`sync_dir`](Self::sync_dir).
    ///
    /// # Errors
    /// `AlreadyExists` if anything has its name; `StorageFull`, with [`NoInodes`](crate::NoInodes)
    /// inside if no inode is free; those of the operating system; `PermissionDenied` if opened
    /// read-only.
    fn create_log(&self) -> io::Result<Arc<dyn Disk>>;

    /// Bytes that [`create_log`](Self::create_log) may take of the file system beside those that
    /// the log will hold: what a store leaves for it, so that a full disk can have a log.
    fn room_of_log_name(&self) -> u64 {
        0
    }

    /// Removes the log's name if it leads to `log`; else does nothing. Disks got before still
    /// work, on bytes that no name leads to. Not durable before [`sync_dir`](Self::sync_dir).
    ///
    /// # Errors
    /// Those of the operating system; `PermissionDenied` if opened read-only.
    fn remove_log(&self, log: &dyn Disk) -> io::Result<()>;

    /// Whether the volume's name no longer leads to the volume, or the log's name to `log`.
    /// `None` also if that is not known. Cost: two system calls.
    fn astray(&self, log: Option<&dyn Disk>) -> Option<Astray> {
        let _ = log;
        None
    }

    /// Whether the log's place is `name` in the directory `dir`, whether or not there is a log;
    /// never for what has no place in the file system. Cost: a system call if the names are
    /// the same.
    ///
    /// # Errors
    /// Those of the operating system.
    fn is_log_place(&self, dir: FileId, name: &OsStr) -> io::Result<bool> {
        let _ = (dir, name);
        Ok(false)
    }

    /// The regular file in the log's place; `None` if there is none, or no file system. Opens
    /// nothing, so that it never meets a lock. Cost: a system call.
    ///
    /// # Errors
    /// Those of the operating system.
    fn log_id(&self) -> io::Result<Option<FileId>> {
        Ok(None)
    }

    /// Makes the creation and removal of names durable.
    ///
    /// # Errors
    /// Those of the operating system.
    fn sync_dir(&self) -> io::Result<()>;

    /// The file of sums beside the volume, which only tests keep; `None` if it is missing, unless
    /// `create` has it made. The store is safe without it, so that nobody syncs it.
    ///
    /// # Errors
    /// `Unsupported` if the storage has no place for it; those of the operating system.
    fn open_sums(&self, create: bool) -> io::Result<Option<Arc<dyn Disk>>> {
        let _ = create;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The volume's name, for messages.
    fn name(&self) -> String;

    /// Monotonic time since the storage was opened; a simulation sets it by hand.
    fn now(&self) -> Duration;
}
