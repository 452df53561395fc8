//! Files outside the store: replaced whole or not at all, and their attributes.
//!
//! Owns: [`Replacement`] (a temporary file beside its target, renamed over it at the end,
//! removed if it comes to nothing), and the attributes `mtime` and `mode`.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use holdall::{Attributes, Error};

use crate::time;

/// Attribute: when the content was last changed, nanoseconds since 1970 as decimal text.
pub const MTIME: &str = "mtime";
/// Attribute: permission bits of the file, octal text.
pub const MODE: &str = "mode";
/// Objects up to this many bytes are held in memory whole; larger ones are streamed.
pub const IN_MEMORY: u64 = 4 << 20;
/// Bytes moved at a time when streaming.
pub const CHUNK: usize = 1 << 20;

/// A file being written under a temporary name in its target's directory.
pub struct Replacement {
    file: Option<File>,
    temporary: PathBuf,
    target: PathBuf,
}

impl Replacement {
    /// Starts a temporary file beside `target`.
    pub fn begin(target: &Path) -> io::Result<Self> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            let name = format!(".holdall-{}-{number}.tmp", std::process::id());
            let temporary = target.with_file_name(name);
            match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                Ok(file) => {
                    return Ok(Self { file: Some(file), temporary, target: target.into() });
                }
                // Left by a killed process that had our number: take the next name.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
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
        fs::rename(&self.temporary, &self.target).inspect_err(|_| self.discard())?;
        drop(file);
        Ok(())
    }

    fn discard(&self) {
        // A temporary that cannot be removed does no harm beyond its room.
        let _ = fs::remove_file(&self.temporary);
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

/// The store's error inside an error of an object's reader or writer.
pub fn store_error(error: io::Error) -> Error {
    error.downcast::<Error>().unwrap_or_else(|other| Error::io("move an object's bytes", other))
}
