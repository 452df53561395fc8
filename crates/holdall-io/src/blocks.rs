//! Blocks of a file: reserved or written, and given back in its midst. Owns no state.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::fs::FallocateFlags;
#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::io::Errno;

/// Writes all bytes, however many calls that takes.
pub(crate) fn write_all(file: &File, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                bytes = &bytes[n..];
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(full_kind(e)),
        }
    }
    Ok(())
}

/// An exhausted quota is a full disk to us.
pub(crate) fn full_kind(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::QuotaExceeded {
        io::Error::new(io::ErrorKind::StorageFull, error)
    } else {
        error
    }
}

/// Gives the range real blocks; the file grows where it reaches past the end.
///
/// # Errors
/// Those of the system; "not supported" if the file system cannot.
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

/// Whether the file lies in a file system of which it is known that it punches holes. What stands
/// for others (FUSE) or depends on a server (NFS) is not.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn can_punch(file: &File) -> bool {
    /// ext2 to ext4, XFS, Btrfs, tmpfs, F2FS, ZFS, bcachefs, OCFS2, Ceph; numbers of `statfs`.
    const PUNCH: [u64; 9] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x0102_1994,
        0xf2f5_2010,
        0x2fc1_2fc1,
        0xca45_1a4e,
        0x7461_636f,
        0x00c3_6400,
    ];
    // The type of the number differs from machine to machine; all of these fit 32 bits.
    rustix::fs::fstatfs(file)
        .is_ok_and(|found| PUNCH.contains(&(found.f_type as u64 & 0xffff_ffff)))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn can_punch(_file: &File) -> bool {
    false
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

/// Bytes that are written at a time if nothing can be reserved.
const ZEROS_AT_ONCE: usize = 256 << 10;

/// Real blocks behind the end by writing zeros.
///
/// # Errors
/// Those of the system; some of the range may then be written.
pub(crate) fn write_zeros(file: &File, from: u64, to: u64) -> io::Result<()> {
    let zeros = vec![0; ZEROS_AT_ONCE];
    let mut at = from;
    while at < to {
        let n = (to - at).min(ZEROS_AT_ONCE as u64);
        write_all(file, at, &zeros[..n as usize])?;
        at += n;
    }
    Ok(())
}

/// Real blocks within the length by writing what is stored there, zeros in a hole, once more.
/// Nobody else may write there meanwhile. Cost: the range is read and written.
///
/// # Errors
/// As [`write_zeros`].
pub(crate) fn write_back(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let mut buffer = vec![0; len.min(ZEROS_AT_ONCE as u64) as usize];
    let end = offset.saturating_add(len);
    let mut at = offset;
    while at < end {
        let part = &mut buffer[..(end - at).min(ZEROS_AT_ONCE as u64) as usize];
        file.read_exact_at(part, at)?;
        write_all(file, at, part)?;
        at += part.len() as u64;
    }
    Ok(())
}
