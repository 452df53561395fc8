//! Files that are written whole or not at all, and the rights they get.
//!
//! Owns: [`Replacement`] (a file without a name, or with a temporary one beside its target, put in
//! its target's place at the end), and the mask of the user's new files.
//!
//! Nobody but its owner may open a file before it is finished: what it will hold may be private.
//! If the system has files without a name, a command that is killed leaves nothing behind.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::sync::OnceLock;

use holdall_io::rights::{PRIVATE, give_as};
use rustix::fs::{AtFlags, Mode, OFlags, RawMode};
use rustix::io::Errno;

use crate::files::{self, open_directory};
use crate::leftovers::{hold, with_free_name};

/// A file being written that will take its target's place.
pub struct Replacement {
    file: Option<File>,
    dir: Rc<OwnedFd>,
    /// Its name so far, if it has one.
    temporary: Option<String>,
    target: OsString,
}

impl Replacement {
    /// Starts a file beside `target`.
    pub fn beside(target: &Path) -> io::Result<Self> {
        let name = target.file_name().ok_or(ErrorKind::InvalidInput)?;
        let dir = target.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."));
        Self::begin(Rc::new(open_directory(dir)?), name)
    }

    /// Starts a file that will be `target` in `dir`.
    pub fn begin(dir: Rc<OwnedFd>, target: &OsStr) -> io::Result<Self> {
        let target = target.to_owned();
        if let Some(file) = nameless(&dir) {
            return Ok(Self { file: Some(file), dir, temporary: None, target });
        }
        Self::named(dir, target)
    }

    /// If the system has no files without a name.
    fn named(dir: Rc<OwnedFd>, target: OsString) -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let make = |name: &str| rustix::fs::openat(&dir, name, flags, PRIVATE);
        let (file, name) = with_free_name("", make)?;
        hold(&file);
        Ok(Self { file: Some(file.into()), dir, temporary: Some(name), target })
    }

    /// The file to write to.
    pub fn file(&mut self) -> io::Result<&mut File> {
        self.file.as_mut().ok_or_else(|| io::Error::other("the file is finished"))
    }

    /// Puts the file in its target's place.
    pub fn finish(mut self) -> io::Result<()> {
        if self.temporary.is_none() && self.is_linked()? {
            self.file = None;
            return Ok(());
        }
        let Some(temporary) = &self.temporary else { return Ok(()) };
        rustix::fs::renameat(&self.dir, temporary, &self.dir, &self.target)?;
        self.file = None;
        Ok(())
    }

    /// Gives the nameless file its target's name, if that is free; else a temporary one.
    fn is_linked(&mut self) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(true) };
        match link(file, &self.dir, &self.target) {
            Ok(()) => return Ok(true),
            Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
        hold(file.as_fd());
        let ((), name) = with_free_name("", |name| link(file, &self.dir, OsStr::new(name)))?;
        self.temporary = Some(name);
        Ok(false)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if self.file.take().is_some()
            && let Some(temporary) = &self.temporary
        {
            // A temporary that cannot be removed does no harm beyond its room.
            let _ = rustix::fs::unlinkat(&self.dir, temporary, AtFlags::empty());
        }
    }
}

/// A file in `dir` without a name, if the system has such and can name it later.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn nameless(dir: &OwnedFd) -> Option<File> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    // Whatever is wrong with the directory, the next attempt says.
    let file = File::from(rustix::fs::openat(dir, c".", flags, PRIVATE).ok()?);
    std::fs::symlink_metadata(descriptor(&file)).ok().map(|_| file)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn nameless(_: &OwnedFd) -> Option<File> {
    None
}

fn link(file: &File, dir: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::linkat(rustix::fs::CWD, descriptor(file), dir, name, AtFlags::SYMLINK_FOLLOW)
}

fn descriptor(file: &File) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// The bits of `wanted` that the user lets new files have. To be called first by a thread that is
/// alone: the system returns its mask only by setting another one.
pub fn masked(wanted: u32) -> u32 {
    static MASK: OnceLock<u32> = OnceLock::new();
    let mask = MASK.get_or_init(|| {
        let mask = rustix::process::umask(PRIVATE);
        rustix::process::umask(mask);
        mask.bits() as u32
    });
    wanted & 0o777 & !mask
}

/// Gives `file` the rights of the file it replaces; if there is none those of a new file, of
/// which `mode` is the original's, as `cp` does.
pub fn set_rights(file: &File, replaced: Option<&Metadata>, mode: Option<u32>) -> io::Result<()> {
    match replaced {
        Some(replaced) => give_as(file, replaced),
        None => {
            let bits = masked(mode.unwrap_or(0o666));
            // A file system without such bits has its own rules.
            let _ = set_bits(file, bits, 0);
            Ok(())
        }
    }
}

/// Sets the nine permission bits of a file, and of the three beside them those that `kept` has.
pub fn set_bits(file: &File, bits: u32, kept: u32) -> io::Result<()> {
    let mode = (bits & 0o777) | (kept & 0o7000);
    let now = || Ok(files::mode(&file.metadata()?));
    if now()? == mode {
        return Ok(());
    }
    let set = || Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode as RawMode))?);
    changes_to(bits, now, set)
}

/// Sets permission bits and checks that they are there.
pub fn changes_to(
    bits: u32,
    now: impl Fn() -> io::Result<u32>,
    set: impl Fn() -> io::Result<()>,
) -> io::Result<()> {
    let bits = bits & 0o777;
    set()?;
    // Some file systems say yes and change nothing.
    match now()? & 0o777 {
        found if found == bits => Ok(()),
        found => Err(io::Error::other(format!("the file system makes {found:o} of {bits:o}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn modes(dir: &Path) -> Vec<(OsString, u32)> {
        let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
        entries.map(|e| (e.file_name(), e.metadata().unwrap().mode() & 0o7777)).collect()
    }

    #[test]
    fn an_unfinished_file_is_its_owners_and_then_gone() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        let mut new = Replacement::beside(&target).unwrap();
        new.file().unwrap().write_all(b"private").unwrap();
        assert_eq!(new.file().unwrap().metadata().unwrap().mode() & 0o7777, 0o600);
        assert!(modes(dir.path()).iter().all(|(_, mode)| *mode == 0o600));
        drop(new);
        assert_eq!(modes(dir.path()), []);
    }

    #[test]
    fn a_finished_file_takes_its_place_with_its_rights() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        let write = |text: &[u8], mode| {
            let mut new = Replacement::beside(&target).unwrap();
            let old = fs::metadata(&target).ok();
            new.file().unwrap().write_all(text).unwrap();
            set_rights(new.file().unwrap(), old.as_ref(), mode).unwrap();
            new.finish().unwrap();
            assert_eq!(fs::read(&target).unwrap(), text);
            modes(dir.path())
        };
        assert_eq!(write(b"one", Some(0o4600)), [("a".into(), masked(0o600))]);
        fs::set_permissions(&target, fs::Permissions::from_mode(0o604)).unwrap();
        assert_eq!(write(b"two", Some(0o777)), [("a".into(), 0o604)]);
    }

    #[test]
    fn a_named_temporary_is_its_owners_too() {
        let dir = tempfile::tempdir().unwrap();
        let at = open_directory(dir.path()).unwrap();
        let new = Replacement::named(Rc::new(at), "a".into()).unwrap();
        let found = modes(dir.path());
        assert!(found.len() == 1 && found[0].1 == 0o600, "{found:?}");
        new.finish().unwrap();
        assert_eq!(modes(dir.path()), [("a".into(), 0o600)]);
    }
}
