//! Files outside the store: replaced whole or not at all, and their attributes.
//!
//! Owns: [`Replacement`] (a temporary file beside its target, renamed over it at the end,
//! removed if it comes to nothing), and the attributes `mtime` and `mode`.
//!
//! A directory is held open while something is done in it, and named no second time: what is
//! put in its place meanwhile changes nothing.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdall::{Attributes, Error, Object};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::time;

/// Attribute: when the content was last changed, nanoseconds since 1970 as decimal text.
pub const MTIME: &str = "mtime";
/// Attribute: permission bits of the file, octal text.
pub const MODE: &str = "mode";
/// Objects up to this many bytes are held in memory whole; larger ones are streamed.
pub const IN_MEMORY: u64 = 4 << 20;
/// Bytes moved at a time when streaming.
pub const CHUNK: usize = 1 << 20;

/// Opens what lies at `path` if it is a regular file; no link is followed, no pipe waited for.
pub fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let changed = || io::Error::other("it is not a regular file any more");
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::LOOP | Errno::NXIO) => return Err(changed()),
        Err(e) => return Err(e.into()),
    };
    let data = file.metadata()?;
    if data.is_file() { Ok((file, data)) } else { Err(changed()) }
}

/// For what is done in a directory the right to search it is enough.
#[cfg(any(target_os = "linux", target_os = "android"))]
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// Opens the directory `path`.
pub fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, DIRECTORY, Mode::empty())?)
}

/// Opens the directory `name` in `dir`, made if it is missing; a link is no directory.
pub fn enter_directory(dir: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(e) => return Err(e.into()),
    }
    Ok(rustix::fs::openat(&dir, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?)
}

/// A file being written under a temporary name in its target's directory.
pub struct Replacement {
    file: Option<File>,
    dir: Rc<OwnedFd>,
    temporary: String,
    target: OsString,
}

impl Replacement {
    /// Starts a temporary file beside `target`.
    pub fn beside(target: &Path) -> io::Result<Self> {
        let name = target.file_name().ok_or(ErrorKind::InvalidInput)?;
        let dir = target.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."));
        Self::begin(Rc::new(open_directory(dir)?), name)
    }

    /// Starts a temporary file that will be `target` in `dir`.
    pub fn begin(dir: Rc<OwnedFd>, target: &OsStr) -> io::Result<Self> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        loop {
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            let temporary = format!(".holdall-{}-{number}.tmp", std::process::id());
            match rustix::fs::openat(&dir, &temporary, flags, Mode::from_raw_mode(0o666)) {
                Ok(file) => {
                    let file = Some(File::from(file));
                    return Ok(Self { file, dir, temporary, target: target.into() });
                }
                // Left by a killed process that had our number: take the next name.
                Err(Errno::EXIST) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// The file to write to.
    pub fn file(&mut self) -> io::Result<&mut File> {
        self.file.as_mut().ok_or_else(|| io::Error::other("the file is finished"))
    }

    /// Puts the file in its target's place.
    pub fn finish(mut self) -> io::Result<()> {
        let file = self.file.take();
        rustix::fs::renameat(&self.dir, &self.temporary, &self.dir, &self.target)
            .inspect_err(|_| self.discard())?;
        drop(file);
        Ok(())
    }

    fn discard(&self) {
        // A temporary that cannot be removed does no harm beyond its room.
        let _ = rustix::fs::unlinkat(&self.dir, &self.temporary, AtFlags::empty());
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            self.discard();
        }
    }
}

/// The attributes import stores: `mtime` and, on Unix, `mode`.
pub fn attributes(data: &Metadata) -> Attributes {
    let mut attributes = Attributes::new();
    if let Some(nanos) = mtime(data) {
        attributes.insert(MTIME.into(), nanos.to_string().into_bytes());
    }
    if let Some(mode) = mode(data) {
        attributes.insert(MODE.into(), format!("{mode:o}").into_bytes());
    }
    attributes
}

/// When the file was last changed, nanoseconds since 1970.
pub fn mtime(data: &Metadata) -> Option<i128> {
    data.modified().ok().map(time::to_nanos)
}

#[cfg(unix)]
fn mode(data: &Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    Some(data.permissions().mode() & 0o7777)
}

#[cfg(not(unix))]
fn mode(_: &Metadata) -> Option<u32> {
    None
}

/// Gives `file` the time and permission bits among `attributes`; what cannot be read is left.
///
/// Only the nine permission bits are restored: a store from elsewhere must not be able to
/// make a program that runs as another user.
pub fn restore(file: &File, attributes: &Attributes) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(mode) = attributes.get(MODE).and_then(|text| parse_mode(text)) {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(fs::Permissions::from_mode(mode & 0o777))?;
    }
    let mtime = attributes.get(MTIME).and_then(|text| time::parse(text));
    if let Some(time) = mtime.and_then(time::from_nanos) {
        file.set_modified(time)?;
    }
    Ok(())
}

#[cfg(unix)]
fn parse_mode(text: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(text).ok()?, 8).ok()
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

/// Copies the bytes `range` of an object into a file that is empty. What was never written
/// becomes a hole of the file, and costs neither time nor room.
pub fn copy_with_holes(
    object: &mut Object,
    range: Range<u64>,
    to: &mut File,
    moved: &mut dyn FnMut(u64),
) -> Result<u64, CopyError> {
    let read = |e: Error| CopyError::Read(e.into());
    let mut at = range.start;
    while at < range.end {
        let hole = object.hole(at..range.end).map_err(read)?.unwrap_or(range.end..range.end);
        if at < hole.start {
            object.seek(SeekFrom::Start(at)).map_err(CopyError::Read)?;
            to.seek(SeekFrom::Start(at - range.start)).map_err(CopyError::Write)?;
            copy(object.by_ref(), to, hole.start - at, moved)?;
        }
        moved(hole.end - hole.start);
        at = hole.end;
    }
    to.set_len(range.end - range.start).map_err(CopyError::Write)?;
    Ok(range.end - range.start)
}

/// The store's error inside an error of an object's reader or writer.
pub fn store_error(error: io::Error) -> Error {
    error.downcast::<Error>().unwrap_or_else(|other| Error::io("move an object's bytes", other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_a_files_place_is_not_opened_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link, fifo) =
            (dir.path().join("file"), dir.path().join("link"), dir.path().join("fifo"));
        fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        assert_eq!(open_regular(&file).unwrap().1.len(), 1);
        for path in [&link, &fifo, &dir.path().to_owned()] {
            let error = open_regular(path).unwrap_err().to_string();
            assert!(error.contains("not a regular file any more"), "{error}");
        }
    }
}
