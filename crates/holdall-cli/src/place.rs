//! Where a path given for input or output leads: to a file, or to a descriptor that the command
//! was started with.
//!
//! Owns no state. `/dev/stdout`, `/dev/fd/3` and links to them are open already: such a stream
//! is used as it is, with its position and its way of appending. Opened by its name it would be
//! another one of the same file.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::own::directory;
use crate::streams;

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
    let path = dir.join(number.to_string());
    // The next descriptor that is opened here could get the number of one that is not there.
    path.symlink_metadata()?;
    if streams::is_stand_in(dir, number) {
        return Err(Errno::BADF.into());
    }
    duplicate(dir, number).or_else(|error| match Errno::from_io_error(&error) {
        // Not known to the system, or not allowed here.
        Some(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => reopened(&path, number, wanted),
        _ => Err(error),
    })
}

/// The same stream, of this process or of another.
#[cfg(target_os = "linux")]
fn duplicate(dir: &Path, number: i32) -> io::Result<File> {
    use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
    let process = dir.iter().nth(2).and_then(OsStr::to_str).and_then(|pid| pid.parse().ok());
    let process = process.and_then(Pid::from_raw).ok_or(Errno::NOSYS)?;
    let process = pidfd_open(process, PidfdFlags::empty())?;
    Ok(File::from(pidfd_getfd(process, number, PidfdGetfdFlags::empty())?))
}

/// Elsewhere the name in `/dev/fd` opens the descriptor itself.
#[cfg(not(target_os = "linux"))]
fn duplicate(_: &Path, _: i32) -> io::Result<File> {
    Err(Errno::NOSYS.into())
}

/// Opens the file of a descriptor once more. Output goes to its end, so that nothing is written
/// over; input begins where the descriptor stands.
fn reopened(path: &Path, number: i32, wanted: Use) -> io::Result<File> {
    let write = wanted == Use::Write;
    let mut options = OpenOptions::new();
    options.read(!write).append(write).custom_flags(OFlags::NOCTTY.bits() as i32);
    let mut file = options.open(path)?;
    if !write && file.metadata()?.is_file() {
        file.seek(SeekFrom::Start(position(path, number).unwrap_or(0)))?;
    }
    Ok(file)
}

fn position(path: &Path, number: i32) -> Option<u64> {
    let info = path.parent()?.with_file_name("fdinfo").join(number.to_string());
    let text = std::fs::read_to_string(info).ok()?;
    text.lines().find_map(|line| line.strip_prefix("pos:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_shared_is_opened_again_at_its_place() {
        use std::io::{Read, Write};
        use std::os::fd::AsRawFd;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"one two").unwrap();
        file.seek(SeekFrom::Start(4)).unwrap();
        let number = file.as_raw_fd();
        let path = Path::new("/proc/self/fd").canonicalize().unwrap().join(number.to_string());
        let mut rest = String::new();
        reopened(&path, number, Use::Read).unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "two");
        reopened(&path, number, Use::Write).unwrap().write_all(b" three").unwrap();
        rest.clear();
        file.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "two three");
    }

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
