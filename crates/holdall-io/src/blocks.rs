//! Blocks of a file: reserved, and given back in its midst. Owns no state.

use std::fs::File;
use std::io;

#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::fs::FallocateFlags;
#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::io::Errno;

/// Gives the range real blocks; the file grows where it reaches past the end.
///
/// # Errors
/// Those of the system; "not supported" where the file system cannot.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn allocate(file: &File, offset: u64, len: u64) -> io::Result<()> {
    change(file, FallocateFlags::empty(), offset, len)
}

/// Gives the range's blocks back; the length stays.
///
/// # Errors
/// As [`allocate`].
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn punch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    change(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn change(file: &File, flags: FallocateFlags, offset: u64, len: u64) -> io::Result<()> {
    loop {
        match rustix::fs::fallocate(file, flags, offset, len) {
            Err(Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn allocate(_file: &File, _offset: u64, _len: u64) -> io::Result<()> {
    Err(rustix::io::Errno::OPNOTSUPP.into())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn punch(_file: &File, _offset: u64, _len: u64) -> io::Result<()> {
    Err(rustix::io::Errno::OPNOTSUPP.into())
}
