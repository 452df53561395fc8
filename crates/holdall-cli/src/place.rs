//! Where a path given for input or output leads: to a file, or to a descriptor that the command
//! was started with.
//!
//! Owns no state. `/dev/stdout`, `/dev/fd/3` and links to them are open already: such a stream
//! is used as it is, with its position and its way of appending. Opened by its name it would be
//! another one of the same file.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::own::directory;

/// As many links in a row as the system follows.
const MOST_LINKS: usize = 40;

/// What a path leads to.
pub enum Place {
    /// A stream that is open.
    Descriptor(File),
    /// A path, its last part no link.
    Path(PathBuf),
}

/// What a stream is wanted for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Input.
    Read,
    /// Output.
    Write,
}

/// Follows `path`. To be called before a command opens files of its own, which would have
/// descriptors that the user did not mean.
pub fn find(path: &Path, wanted: Use) -> io::Result<Place> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let dir = directory(&path).to_owned();
        if let (Some(name), Ok(real)) = (path.file_name(), dir.canonicalize())
            && let Some(number) = number(&real, name)
        {
            return descriptor(&real, number, wanted).map(Place::Descriptor);
        }
        match path.symlink_metadata() {
            Ok(link) if link.is_symlink() => path = dir.join(path.read_link()?),
            _ => return Ok(Place::Path(path)),
        }
    }
    Err(Errno::LOOP.into())
}

/// The number of the descriptor that `name` is in `dir`, a path without links.
fn number(dir: &Path, name: &OsStr) -> Option<i32> {
    let parts: Option<Vec<&str>> = dir.iter().skip(1).map(OsStr::to_str).collect();
    let (["dev", "fd"] | ["proc", _, "fd"] | ["proc", _, "task", _, "fd"]) = parts?.as_slice()
    else {
        return None;
    };
    name.to_str()?.parse().ok()
}

fn descriptor(dir: &Path, number: i32, wanted: Use) -> io::Result<File> {
    let is_ours = |own: &str| Path::new(own).canonicalize().is_ok_and(|own| own == dir);
    if !is_ours("/dev/fd") && !is_ours("/proc/thread-self/fd") {
        return reopened(dir, number, wanted);
    }
    let standard = match number {
        0 => io::stdin().as_fd().try_clone_to_owned(),
        1 => io::stdout().as_fd().try_clone_to_owned(),
        2 => io::stderr().as_fd().try_clone_to_owned(),
        _ => {
            return duplicate(number).or_else(|error| match Errno::from_io_error(&error) {
                // Not known to the system, or not allowed here.
                Some(Errno::NOSYS | Errno::PERM) => reopened(dir, number, wanted),
                _ => Err(error),
            });
        }
    };
    standard.map(File::from)
}

#[cfg(target_os = "linux")]
fn duplicate(number: i32) -> io::Result<File> {
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
    let this = pidfd_open(getpid(), PidfdFlags::empty())?;
    Ok(File::from(pidfd_getfd(this, number, PidfdGetfdFlags::empty())?))
}

/// Elsewhere the name in `/dev/fd` opens the descriptor itself.
#[cfg(not(target_os = "linux"))]
fn duplicate(_: i32) -> io::Result<File> {
    Err(Errno::NOSYS.into())
}

/// Opens the file of a descriptor once more, at its place and in its way of appending. What
/// cannot be told of it is taken so that nothing is written over.
fn reopened(dir: &Path, number: i32, wanted: Use) -> io::Result<File> {
    let info = dir.parent().map(|process| process.join("fdinfo").join(number.to_string()));
    let text = info.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let field = |key: &str| {
        text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
    };
    let flags = field("flags").and_then(|octal| u32::from_str_radix(octal, 8).ok());
    let at = field("pos").and_then(|digits| digits.parse().ok());
    let write = wanted == Use::Write;
    let append = write && flags.is_none_or(|flags| flags & OFlags::APPEND.bits() != 0);
    let mut options = OpenOptions::new();
    options.read(!write).write(write).custom_flags(OFlags::NOCTTY.bits() as i32);
    let mut file = options.append(append).open(dir.join(number.to_string()))?;
    if let Some(at) = at.filter(|_| !append)
        && file.metadata()?.is_file()
    {
        file.seek(SeekFrom::Start(at))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_descriptors_have_them() {
        let number = |dir: &str, name: &str| super::number(Path::new(dir), OsStr::new(name));
        assert_eq!(number("/proc/12/fd", "3"), Some(3));
        assert_eq!(number("/proc/12/task/13/fd", "0"), Some(0));
        assert_eq!(number("/dev/fd", "1"), Some(1));
        for (dir, name) in [("/proc/12", "3"), ("/tmp/fd", "3"), ("/dev/fd", "x"), ("/", "1")] {
            assert_eq!(number(dir, name), None, "{dir}/{name}");
        }
    }
}
