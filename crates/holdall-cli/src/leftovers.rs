//! Temporary names: those that commands make, and those that were left when one was killed.
//!
//! Owns: the form of the names, and which of them nobody uses any more. A temporary bears the
//! number of its process, and its maker holds a lock on it. It is removed when no such process is
//! there and the lock is free: a process of another machine or container may have the same number.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::files;

const HEAD: &[u8] = b".holdall-";
const TAIL: &[u8] = b".tmp";

/// Calls `make` with temporary names until one is free. `mark` is a letter in the name, or nothing.
///
/// # Errors
/// That of `make`.
pub fn with_free_name<T>(
    mark: &str,
    make: impl Fn(&str) -> rustix::io::Result<T>,
) -> io::Result<(T, String)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!(".holdall-{}-{number}{mark}.tmp", std::process::id());
        match make(&name) {
            Ok(made) => return Ok((made, name)),
            // Left by a killed process that had our number: take the next name.
            Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Whether a file of this name is a temporary one.
pub fn is_temporary(name: &[u8]) -> bool {
    maker(name).is_some()
}

/// The number of the process that made a temporary.
fn maker(name: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(name.strip_prefix(HEAD)?.strip_suffix(TAIL)?).ok()?;
    let (process, rest) = text.split_once('-')?;
    let mark = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_number = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
    let is_ours = is_number && mark.len() < rest.len() && mark.chars().count() <= 1;
    process.parse().ok().filter(|_| is_ours)
}

/// Locks what this process has made, so that others leave it alone.
pub fn hold(made: impl AsFd) {
    // If there are no locks the process's number is enough.
    let _ = rustix::fs::flock(made, FlockOperation::NonBlockingLockExclusive);
}

/// Calls `each` with the names in `dir`, and removes the temporaries among them that are left over.
/// What cannot be removed stays: it does no harm beyond its room.
///
/// # Errors
/// Those of reading the directory.
pub fn list(dir: &OwnedFd, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listing = rustix::fs::openat(dir, c".", flags, Mode::empty())?;
    let mut left = Vec::new();
    for entry in Dir::read_from(&listing)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        match maker(name) {
            _ if matches!(name, b"." | b"..") => {}
            Some(process) if !is_alive(process) => left.push(name.to_vec()),
            Some(_) => {}
            None => each(name),
        }
    }
    for name in left.iter().filter_map(|name| files::os_string(name)) {
        let _ = remove(dir, &name);
    }
    Ok(())
}

fn is_alive(process: i32) -> bool {
    Pid::from_raw(process).is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

fn remove(dir: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let found = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    // Another answer says that there are no locks there.
    if rustix::fs::flock(&found, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
    {
        return Ok(());
    }
    match FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode) {
        FileType::RegularFile => rustix::fs::unlinkat(dir, name, AtFlags::empty()),
        FileType::Directory => {
            for entry in Dir::read_from(&found)? {
                let entry = entry?;
                // A directory in it, as the two dots, is not removed so.
                let _ = rustix::fs::unlinkat(&found, entry.file_name(), AtFlags::empty());
            }
            rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::open_directory;

    #[test]
    fn temporaries_are_known_by_their_names() {
        let (_, made) = with_free_name("é", |_| Ok(())).unwrap();
        for name in [".holdall-12-0.tmp", ".holdall-1-99e.tmp", &made] {
            assert!(is_temporary(name.as_bytes()), "{name}");
        }
        for name in [
            "holdall-1-2.tmp",
            ".holdall-1-2.tmpx",
            ".holdall-1-.tmp",
            ".holdall--2.tmp",
            ".holdall-x-2.tmp",
            ".holdall-1-2ab.tmp",
            ".holdall-+1-2.tmp",
            ".holdall.tmp",
        ] {
            assert!(!is_temporary(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn what_nobody_uses_any_more_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let dead = child.id();
        child.wait().unwrap();
        let name = |pid: u32, number: u32| format!(".holdall-{pid}-{number}.tmp");
        let (left, held) = (name(dead, 1), name(dead, 2));
        let (folder, living) = (name(dead, 3), name(std::process::id(), 4));
        for file in [&left, &held, &living, &"user".to_owned()] {
            std::fs::write(at(file), "x").unwrap();
        }
        std::fs::create_dir(at(&folder)).unwrap();
        std::fs::write(at(&folder).join("claim"), "x").unwrap();
        std::os::unix::fs::symlink("user", at(&name(dead, 5))).unwrap();
        let lock: OwnedFd = std::fs::File::open(at(&held)).unwrap().into();
        hold(&lock);
        let mut names = Vec::new();
        list(&open_directory(dir.path()).unwrap(), &mut |name| names.push(name.to_vec())).unwrap();
        assert_eq!(names, [b"user"]);
        let there = |name: &str| at(name).symlink_metadata().is_ok();
        assert!(!there(&left) && !there(&folder));
        assert!(there(&held) && there(&living) && there("user") && there(&name(dead, 5)));
    }
}
