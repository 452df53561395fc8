//! Write-out of a byte range: `sync_file_range`, which no safe wrapper offers.
//!
//! Owns no state. The argument for the `unsafe`: the call takes a file
//! descriptor and three numbers, reads and writes no memory of ours, and the descriptor is
//! borrowed from an open [`File`] for the length of the call. Any numbers are safe: the
//! kernel answers those it cannot use with an error.

use crate::disk::WriteOut;
use std::fs::File;
use std::io;

/// Writes out `len` bytes from `offset`. Promises no durability: device caches and file
/// metadata are not flushed. If the file system or system has no such call, does nothing.
///
/// # Errors
/// Those of the operating system; a write error is reported once, here or at the next sync.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn write_out(file: &File, offset: u64, len: u64, how: WriteOut) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let flags = match how {
        WriteOut::Start => libc::SYNC_FILE_RANGE_WRITE,
        WriteOut::Wait => {
            libc::SYNC_FILE_RANGE_WAIT_BEFORE
                | libc::SYNC_FILE_RANGE_WRITE
                | libc::SYNC_FILE_RANGE_WAIT_AFTER
        }
    };
    // No file has bytes past the largest signed offset: nothing there is dirty.
    let Ok(offset) = i64::try_from(offset) else { return Ok(()) };
    let len = i64::try_from(len).unwrap_or(i64::MAX).min(i64::MAX - offset);
    loop {
        #[expect(unsafe_code, reason = "no safe wrapper; see the argument above")]
        // SAFETY: the descriptor is open for the whole call; no memory is passed.
        let result = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, flags) };
        if result == 0 {
            return Ok(());
        }
        let e = io::Error::last_os_error();
        match e.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ENOSYS | libc::EOPNOTSUPP | libc::ESPIPE | libc::EINVAL) => return Ok(()),
            _ => return Err(e),
        }
    }
}

/// As on Linux, if there is nothing of the kind.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn write_out(_file: &File, _offset: u64, _len: u64, _how: WriteOut) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn ranges_of_any_place_and_length_are_taken_and_bytes_stay() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 100_000]).unwrap();
        for how in [WriteOut::Start, WriteOut::Wait] {
            for (offset, len) in [(0, 0), (0, 100_000), (4096, 1), (1 << 40, 5), (u64::MAX, 9)] {
                write_out(&file, offset, len, how).unwrap();
            }
        }
        assert_eq!(file.metadata().unwrap().len(), 100_000);
    }
}
