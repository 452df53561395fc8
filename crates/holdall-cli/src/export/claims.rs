//! Which names a file system takes for one.
//!
//! Owns: [`Claims`]. In a directory that takes different names for one (capitals, ways of writing
//! a letter, dots at the end), each name that is used is first claimed: a file of that name, which
//! holds the name, is made in a directory of its own beside the exported files. Whether two names
//! are one is so decided by the file system itself; its numbers of files need not be trusted,
//! which some give anew for each name. Cost there: a small file for each exported one.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::files;
use crate::name;
use crate::replacement::with_free_name;

/// The names used in one directory.
pub struct Claims {
    dir: Rc<OwnedFd>,
    /// The directory of claims and its name.
    inner: OwnedFd,
    name: String,
    used: Vec<OsString>,
}

/// Whether `dir` takes different names for one. `false` also where no file can be made: then none
/// is exported either.
fn folds(dir: &OwnedFd) -> bool {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o600);
    // A name that not every file system can have, then one that it can.
    ["\u{e9}", "e"].into_iter().any(|letter| {
        let lettered = |name: &str| format!("{name}{letter}");
        let make = |name: &str| rustix::fs::openat(dir, lettered(name), flags, mode);
        let Ok((_, name)) = with_free_name(make) else { return false };
        let others =
            [name.to_uppercase() + letter, name.clone() + "e\u{301}", lettered(&name) + "."];
        let found = |name: &String| rustix::fs::statat(dir, name, AtFlags::empty()).is_ok();
        let folds = others.iter().any(found);
        // What stays does no harm.
        let _ = rustix::fs::unlinkat(dir, lettered(&name), AtFlags::empty());
        folds
    })
}

impl Claims {
    /// Claims for the names in `dir`; `None` where different names are different files.
    pub fn of(dir: &Rc<OwnedFd>) -> io::Result<Option<Self>> {
        if !folds(dir) {
            return Ok(None);
        }
        let mode = Mode::from_raw_mode(0o700);
        let ((), name) = with_free_name(|name| rustix::fs::mkdirat(dir, name, mode))?;
        let (inner, _) = files::enter_directory(dir, OsStr::new(&name), 0o700)?;
        Ok(Some(Self { dir: dir.clone(), inner, name, used: Vec::new() }))
    }

    /// Claims a name, or says which one it is another name of.
    pub fn claim(&mut self, name: &OsStr) -> io::Result<Option<OsString>> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.inner, name, flags, Mode::from_raw_mode(0o600)) {
            Ok(file) => {
                self.used.push(name.to_owned());
                std::fs::File::from(file).write_all(name::bytes(name))?;
                Ok(None)
            }
            Err(Errno::EXIST) => self.holder(name).map(Some),
            Err(e) => Err(e.into()),
        }
    }

    /// The name under which `name` was claimed.
    fn holder(&self, name: &OsStr) -> io::Result<OsString> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.inner, name, flags, Mode::empty())?;
        let mut text = Vec::new();
        std::fs::File::from(file).read_to_end(&mut text)?;
        Ok(files::os_string(&text).unwrap_or_else(|| name.to_owned()))
    }

    /// Gives the name claimed last back: nothing was written under it.
    pub fn give_back(&mut self, name: &OsStr) {
        if self.used.last().is_some_and(|last| last == name) {
            self.used.pop();
            let _ = rustix::fs::unlinkat(&self.inner, name, AtFlags::empty());
        }
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        // What stays does no harm beyond its room.
        for name in &self.used {
            let _ = rustix::fs::unlinkat(&self.inner, name, AtFlags::empty());
        }
        let _ = rustix::fs::unlinkat(&self.dir, &self.name, AtFlags::REMOVEDIR);
    }
}
