//! The range arithmetic and the errors that all backends share.
//!
//! Owns no state. Backends call these, so that it gives the same
//! kinds of errors for the same calls.

use std::io;

/// The largest length of a disk, in bytes: what a signed 64-bit file offset can express.
pub const MAX_LEN: u64 = i64::MAX as u64;

/// The end of `len` bytes at `offset` for a write.
///
/// # Errors
/// `InvalidInput` if no file can be so long.
pub fn write_end(offset: u64, len: usize) -> io::Result<u64> {
    offset.checked_add(len as u64).filter(|&end| end <= MAX_LEN).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{len} bytes at offset {offset} end past the largest length of a file"),
        )
    })
}

/// Refuses a length that no file can have.
///
/// # Errors
/// `InvalidInput`.
pub fn check_len(len: u64) -> io::Result<()> {
    write_end(len, 0).map(|_| ())
}

/// The end of a read, which must not be past `len`.
///
/// # Errors
/// `UnexpectedEof`.
pub fn read_end(offset: u64, wanted: usize, len: u64) -> io::Result<u64> {
    offset
        .checked_add(wanted as u64)
        .filter(|&end| end <= len)
        .ok_or_else(|| past_the_end(offset, wanted, len))
}

/// The error of a read past the end.
pub fn past_the_end(offset: u64, wanted: usize, len: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!("read of {wanted} bytes at offset {offset} past the end at {len}"),
    )
}

/// The error of a change through a read-only open.
pub fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "the store was opened read-only")
}

/// The error of a disk that cannot be `len` bytes long.
pub fn full(len: u64) -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, format!("no space for a length of {len} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_at_the_limits() {
        assert_eq!(write_end(MAX_LEN, 0).unwrap(), MAX_LEN);
        assert_eq!(write_end(MAX_LEN, 1).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(write_end(u64::MAX, 1).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(check_len(MAX_LEN + 1).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(read_end(3, 4, 7).unwrap(), 7);
        assert_eq!(read_end(3, 5, 7).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(read_end(u64::MAX, 1, 7).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
