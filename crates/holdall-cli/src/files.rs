//! Files outside the store: how they are opened and copied, and their attributes.
//!
//! Owns: the attributes `mtime`, `ctime` and `mode`.
//!
//! A directory is held open while something is done in it, and named no second time: what is
//! put in its place meanwhile changes nothing.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use holdall::{Attributes, Error};
use rustix::fs::{Mode, OFlags, RawMode};
use rustix::io::Errno;

use crate::time;

pub use holdall::MTIME;
/// Attribute: permission bits of the file, octal text.
pub const MODE: &str = "mode";
/// Attribute: when anything about the file last changed, nanoseconds since 1970, if that is not
/// its `mtime`. 0 if the file was too young when it was read for its times to be trusted.
pub const CTIME: &str = "ctime";
/// Objects up to this many bytes are held in memory whole; larger ones are streamed.
pub const IN_MEMORY: u64 = 4 << 20;
/// Bytes moved at a time when streaming.
pub const CHUNK: usize = 1 << 20;

/// For what is done in a directory the right to search it is enough.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// Opens the directory `path`.
pub fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, DIRECTORY, Mode::empty())?)
}

/// Opens the directory `name` in `dir`, made with the bits `mode` if it is missing; a link is no
/// directory. Says whether it was made.
pub fn enter_directory(dir: impl AsFd, name: &OsStr, mode: u32) -> io::Result<(OwnedFd, bool)> {
    let is_new = match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(mode as RawMode)) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(e) => return Err(e.into()),
    };
    let flags = DIRECTORY | OFlags::NOFOLLOW;
    Ok((rustix::fs::openat(&dir, name, flags, Mode::empty())?, is_new))
}

/// When the file was last changed, nanoseconds since 1970.
pub fn mtime(data: &Metadata) -> Option<i128> {
    data.modified().ok().map(time::to_nanos)
}

/// When anything about the file last changed, nanoseconds since 1970.
pub fn ctime(data: &Metadata) -> i128 {
    i128::from(data.ctime()) * 1_000_000_000 + i128::from(data.ctime_nsec())
}

/// Permission bits and the three beside them.
pub fn mode(data: &Metadata) -> u32 {
    data.permissions().mode() & 0o7777
}

/// The mode among `attributes`, if it can be read.
pub fn stored_mode(attributes: &Attributes) -> Option<u32> {
    attributes.get(MODE).and_then(|text| parse_mode(text))
}

/// Reads octal digits.
pub fn parse_mode(text: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(text).ok()?, 8).ok()
}

/// A part of a path from its bytes; `None` if the system cannot have it.
#[cfg(unix)]
pub fn os_string(part: &[u8]) -> Option<OsString> {
    use std::os::unix::ffi::OsStrExt;
    Some(OsStr::from_bytes(part).to_owned())
}

/// A part of a path from its bytes; `None` if the system cannot have it.
#[cfg(not(unix))]
pub fn os_string(part: &[u8]) -> Option<OsString> {
    std::str::from_utf8(part).ok().map(|text| OsStr::new(text).to_owned())
}

/// Which side of a copy failed.
pub enum CopyError {
    /// Reading the source.
    Read(io::Error),
    /// Writing the target.
    Write(io::Error),
}

/// Copies at most `limit` bytes in chunks, calling `moved` with each chunk's size.
pub fn copy(
    from: &mut impl Read,
    to: &mut impl Write,
    limit: u64,
    moved: &mut dyn FnMut(u64),
) -> Result<u64, CopyError> {
    let mut buffer = vec![0; usize::try_from(limit).unwrap_or(CHUNK).clamp(1, CHUNK)];
    let mut total = 0;
    while total < limit {
        let want = usize::try_from(limit - total).unwrap_or(CHUNK).min(buffer.len());
        let Some(room) = buffer.get_mut(..want) else { break };
        let got = match from.read(room) {
            Ok(0) => break,
            Ok(got) => got,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return Err(CopyError::Read(e)),
        };
        to.write_all(room.get(..got).unwrap_or_default()).map_err(CopyError::Write)?;
        total += got as u64;
        moved(got as u64);
    }
    Ok(total)
}

/// The store's error inside an error of an object's reader or writer.
pub fn store_error(error: io::Error) -> Error {
    error.downcast::<Error>().unwrap_or_else(|other| Error::io("move an object's bytes", other))
}
