//! What lies below an open directory, and never anything outside it.
//!
//! Owns: [`open`]. A path is followed from the directory on, and no part of it may be a link: what
//! is put in the place of a directory meanwhile leads nowhere. No descriptor is kept for the
//! directories on the way, so that depth costs none; and only what lies below counts against the
//! longest path of the system, in pieces that it takes.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::files::{self, DIRECTORY};
use crate::name;

/// Bytes of a path given to the system at a time, if its parts allow that.
const PATH_BYTES_AT_ONCE: usize = 2048;

/// Opens what lies at `below`; an empty path is the directory itself. Cost: a call for each 2 KiB
/// of path, or for each of its parts if the system cannot follow a path without links.
///
/// # Errors
/// Those of the system; a link on the way or at the end is one.
pub fn open(root: &OwnedFd, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    follow(root, below, flags, &step)
}

/// Size, kind and times of what lies at `below`.
pub fn data(root: &OwnedFd, below: &Path) -> io::Result<Metadata> {
    File::from(open(root, below, LOOK)?).metadata()
}

/// Opens a file whatever its rights, if the system can, and does not wait for pipes.
#[cfg(any(target_os = "linux", target_os = "android"))]
const LOOK: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const LOOK: OFlags = OFlags::NONBLOCK;

type Step<'s> = &'s dyn Fn(&OwnedFd, &[u8], OFlags) -> io::Result<OwnedFd>;

fn follow(root: &OwnedFd, below: &Path, flags: OFlags, step: Step<'_>) -> io::Result<OwnedFd> {
    let path = name::bytes(below.as_os_str());
    let mut rest = path.strip_suffix(b"/").unwrap_or(path);
    if rest.is_empty() {
        rest = b".";
    }
    if rest.split(|byte| *byte == b'/').any(|part| part == b"..") {
        return Err(Errno::XDEV.into());
    }
    let always = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut held: Option<OwnedFd> = None;
    loop {
        let dir = held.as_ref().unwrap_or(root);
        let (piece, after) = cut(rest);
        let Some(after) = after else { return step(dir, piece, flags | always) };
        let next = step(dir, piece, DIRECTORY | always)?;
        held = Some(next);
        rest = after;
    }
}

/// A piece from the front of a path, and what follows the slash behind it.
fn cut(path: &[u8]) -> (&[u8], Option<&[u8]>) {
    if path.len() <= PATH_BYTES_AT_ONCE {
        return (path, None);
    }
    let is_slash = |byte: &u8| *byte == b'/';
    let head = path.get(..PATH_BYTES_AT_ONCE).unwrap_or_default();
    let last = head.iter().rposition(is_slash);
    match last.or_else(|| path.iter().position(is_slash)) {
        Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..)),
        None => (path, None),
    }
}

/// Follows some parts in one call.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn step(dir: &OwnedFd, piece: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    use rustix::fs::ResolveFlags;
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(dir, piece, flags, Mode::empty(), how) {
        // Unknown to the system, not allowed, or it could not be sure: each part then.
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => parts(dir, piece, flags),
        other => Ok(other?),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn step(dir: &OwnedFd, piece: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    parts(dir, piece, flags)
}

/// Follows parts one by one.
fn parts(dir: &OwnedFd, piece: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let between = DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut held: Option<OwnedFd> = None;
    let mut left = piece.split(|byte| *byte == b'/').peekable();
    while let Some(part) = left.next() {
        let flags = if left.peek().is_some() { between } else { flags };
        let next = rustix::fs::openat(held.as_ref().unwrap_or(dir), part, flags, Mode::empty())?;
        held = Some(next);
    }
    held.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// Opens the file at `below` if it is a regular one; no pipe is waited for.
///
/// # Errors
/// Those of the system; something else than a file in its place is one.
pub fn open_regular(root: &OwnedFd, below: &Path) -> io::Result<(File, Metadata)> {
    let changed = || {
        let what = "it is not a regular file any more, or a directory above it is a link now";
        io::Error::other(what)
    };
    let file = match open(root, below, OFlags::RDONLY | OFlags::NONBLOCK) {
        Ok(file) => File::from(file),
        Err(e) => {
            return Err(match Errno::from_io_error(&e) {
                Some(Errno::LOOP | Errno::NXIO | Errno::NOTDIR) => changed(),
                _ => e,
            });
        }
    };
    let data = file.metadata()?;
    if data.is_file() { Ok((file, data)) } else { Err(changed()) }
}

/// Opens the directory at `below` to read it.
///
/// # Errors
/// As [`open`].
pub fn open_listing(root: &OwnedFd, below: &Path) -> io::Result<File> {
    match open(root, below, OFlags::RDONLY | OFlags::DIRECTORY) {
        Ok(dir) => Ok(dir.into()),
        Err(e) => match Errno::from_io_error(&e) {
            Some(Errno::LOOP | Errno::NOTDIR) => {
                Err(io::Error::other("it, or a directory above it, is a link now"))
            }
            _ => Err(e),
        },
    }
}

/// The nine permission bits of the directory at `below`, if one is there.
pub fn directory_bits(root: &OwnedFd, below: &Path) -> Option<u32> {
    let found = data(root, below).ok().filter(Metadata::is_dir)?;
    Some(files::mode(&found) & 0o777)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::open_directory;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    /// Both ways to follow a path.
    const WAYS: [Step<'static>; 2] = [&step, &parts];

    fn text(root: &OwnedFd, below: &str, way: Step<'_>) -> io::Result<String> {
        let mut text = String::new();
        let file = follow(root, Path::new(below), OFlags::RDONLY, way)?;
        File::from(file).read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn no_link_is_followed_on_the_way_or_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("in/d")).unwrap();
        std::fs::create_dir(at("out")).unwrap();
        std::fs::write(at("in/d/f"), "inside").unwrap();
        std::fs::write(at("out/f"), "outside").unwrap();
        symlink(at("out"), at("in/link")).unwrap();
        symlink("../../out/f", at("in/d/up")).unwrap();
        let root = open_directory(&at("in")).unwrap();
        for way in WAYS {
            assert_eq!(text(&root, "d/f", way).unwrap(), "inside");
            for bad in ["link/f", "d/up", "none/f"] {
                assert!(text(&root, bad, way).is_err(), "{bad}");
            }
        }
        assert_eq!(directory_bits(&root, Path::new("link")), None);
        assert_eq!(directory_bits(&root, Path::new("d/")), directory_bits(&root, Path::new("d")));
        assert!(directory_bits(&root, Path::new("")).is_some());
        // The directory itself may be moved: the descriptor leads to it.
        std::fs::rename(at("in"), at("moved")).unwrap();
        symlink(at("out"), at("in")).unwrap();
        for way in WAYS {
            assert_eq!(text(&root, "d/f", way).unwrap(), "inside");
        }
    }

    #[test]
    fn paths_may_be_longer_than_the_system_takes() {
        let dir = tempfile::tempdir().unwrap();
        let root = open_directory(dir.path()).unwrap();
        let part = "d".repeat(200);
        let mut path = String::new();
        for _ in 0..30 {
            let parent = follow(&root, Path::new(&path), DIRECTORY, &step).unwrap();
            rustix::fs::mkdirat(&parent, &part, Mode::from_raw_mode(0o755)).unwrap();
            path += &format!("{part}/");
        }
        for way in WAYS {
            assert!(path.len() > 6000 && follow(&root, Path::new(&path), DIRECTORY, way).is_ok());
        }
    }

    #[test]
    fn what_takes_a_files_place_is_not_opened_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("dir")).unwrap();
        std::fs::write(at("file"), "x").unwrap();
        symlink(at("file"), at("link")).unwrap();
        symlink(at("dir"), at("dirlink")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(at("fifo")).status();
        assert!(made.unwrap().success());
        let root = open_directory(dir.path()).unwrap();
        assert_eq!(open_regular(&root, Path::new("file")).unwrap().1.len(), 1);
        for name in ["link", "fifo", "dir", "dirlink/x"] {
            let error = open_regular(&root, Path::new(name)).unwrap_err().to_string();
            assert!(error.contains("not a regular file any more"), "{error}");
        }
        assert!(open_listing(&root, Path::new("dirlink")).is_err());
    }
}
