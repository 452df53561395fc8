//! Opening files so that nothing but a regular file is ever opened, and none by a detour.
//!
//! Owns no state. What lies at a path is asked of the open file, not before it is opened: in
//! between, another could be put there. A pipe does not make the caller wait for its other end.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::io::Errno;

/// Opens the regular file at `path`; a symbolic link leads on to its target.
///
/// # Errors
/// `IsADirectory`; `InvalidInput` for what is no regular file; those of the operating system.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    checked(path, options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path))
}

/// The opened file, if it is a regular one.
///
/// # Errors
/// As [`open`].
pub(crate) fn checked(path: &Path, opened: io::Result<File>) -> io::Result<File> {
    let file = opened.map_err(|e| match Errno::from_io_error(&e) {
        Some(Errno::LOOP) => unfit(path, "is a symbolic link, not a regular file"),
        // A socket, or a device that nothing drives.
        Some(Errno::NXIO) => unfit(path, "is not a regular file"),
        _ => named(path, &e),
    })?;
    let kind = file.metadata().map_err(|e| named(path, &e))?.file_type();
    if kind.is_dir() {
        return Err(directory(path));
    }
    if kind.is_file() { Ok(file) } else { Err(unfit(path, "is not a regular file")) }
}

/// The error of a directory if a file is meant.
pub(crate) fn directory(path: &Path) -> io::Error {
    let message = format!("{}: is a directory, not a store", path.display());
    io::Error::new(io::ErrorKind::IsADirectory, message)
}

fn unfit(path: &Path, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {what}", path.display()))
}

/// The error with the path in its message.
pub(crate) fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
