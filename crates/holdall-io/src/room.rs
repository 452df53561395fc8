//! What a file system lacks if it refuses to make a file, and what a new file takes.
//!
//! Owns no state. The system has one error for both bytes and inodes that ran out.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::fs::StatVfs;

use crate::blocks::full_kind;
use crate::open::named;

/// Why a file could not be made, inside an [`io::Error`] of the kind `StorageFull`: the file
/// system has room, but no inode is free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoInodes {
    /// The file that was to be made.
    pub path: PathBuf,
}

impl fmt::Display for NoInodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: the file system has no free inodes", self.path.display())
    }
}

impl std::error::Error for NoInodes {}

/// Whether `error` says that there was no inode for a new file.
#[must_use]
pub fn is_out_of_inodes(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<NoInodes>())
}

/// The error of making the file at `path`, in a file system that is asked only if it is full.
pub(crate) fn not_made(
    path: &Path,
    error: io::Error,
    ask: impl FnOnce() -> rustix::io::Result<StatVfs>,
) -> io::Error {
    let error = full_kind(error);
    match error.kind() {
        ErrorKind::StorageFull if ask().is_ok_and(|found| lacks_inodes(&found)) => {
            io::Error::new(ErrorKind::StorageFull, NoInodes { path: path.to_owned() })
        }
        _ => named(path, &error),
    }
}

/// Whether the file system of `path`, or of the directory where it would lie, has room but no
/// free inode. Cost: a system call.
#[must_use]
pub fn lacks_inodes_at(path: &Path) -> bool {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    rustix::fs::statvfs(path)
        .or_else(|_| rustix::fs::statvfs(dir))
        .is_ok_and(|found| lacks_inodes(&found))
}

/// A file system that makes inodes of its free blocks has none only if these ran out too.
fn lacks_inodes(found: &StatVfs) -> bool {
    // Btrfs counts no inodes: it has 0 of 0.
    found.f_files > 0 && found.f_favail == 0 && found.f_bavail > 0
}

/// Bytes that a file system of this kind takes to make a file, beside those in the file. XFS
/// asks for 64 inodes at a time, and for every block that its trees could grow by: 150 KB were
/// measured with blocks of 4 KiB.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn of_new_file(file: &std::fs::File) -> u64 {
    const XFS: u64 = 0x5846_5342;
    match rustix::fs::fstatfs(file) {
        Ok(found) if found.f_type as u64 == XFS => 256 << 10,
        _ => 0,
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn of_new_file(_file: &std::fs::File) -> u64 {
    0
}
