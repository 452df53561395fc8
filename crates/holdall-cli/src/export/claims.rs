//! Which names a file system takes for one.
//!
//! Owns: [`Claims`], the names in a directory that takes different ones for the same (capitals,
//! ways of writing a letter, dots at the end). Whether two names are one is decided by the file
//! system itself; its numbers of files need not be trusted, which some give anew for each name. A
//! name under which nothing lies is free. For one under which something lies in another spelling, a
//! directory is made for a moment, with a file of that name in it: each known name that leads to
//! this file is the same. Memory: the names of the directories on the way.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::files;
use crate::leftovers::{hold, with_free_name};

/// Since when something lies under a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    /// Before the export.
    Before,
    /// The export has written it.
    Now,
}

/// The names in one directory.
#[derive(Default)]
pub struct Claims {
    names: BTreeMap<OsString, Since>,
}

/// What may be done about a name.
pub enum Claim {
    /// To be written.
    Free,
    /// Claimed before.
    Own,
    /// Another name of what this export has written under that one.
    Same(OsString),
    /// Another name of something that is there, and which nobody knows.
    Taken,
}

const NEW: OFlags = OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::CLOEXEC);
const PRIVATE: Mode = Mode::from_raw_mode(0o600);

fn is_there(dir: &OwnedFd, name: &OsStr) -> bool {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// Whether `dir` takes different names for one. `false` also if no file can be made: then none
/// is exported either.
pub fn folds(dir: &OwnedFd) -> bool {
    // A letter that not every file system can have, then one that it can.
    ["\u{e9}", "e"].into_iter().any(|letter| {
        let make = |name: &str| rustix::fs::openat(dir, name, NEW, PRIVATE);
        let Ok((file, name)) = with_free_name(letter, make) else { return false };
        hold(&file);
        let others = [name.to_uppercase(), name.replace(letter, "e\u{301}"), format!("{name}.")];
        let folds = others.iter().any(|other| *other != name && is_there(dir, other.as_ref()));
        // What stays is removed by a later export.
        let _ = rustix::fs::unlinkat(dir, name, AtFlags::empty());
        folds
    })
}

impl Claims {
    /// Notes a name that was there before.
    pub fn note(&mut self, name: &[u8]) {
        if let Some(name) = files::os_string(name) {
            self.names.insert(name, Since::Before);
        }
    }

    /// Claims a name in `dir`, if it is not another one of what is known. Cost: a look at the name;
    /// if something lies there in another spelling, a look at each name known.
    pub fn claim(&mut self, dir: &OwnedFd, name: &OsStr) -> io::Result<Claim> {
        let known = self.names.get(name);
        if known == Some(&Since::Now) {
            return Ok(Claim::Own);
        }
        if known.is_none() && is_there(dir, name) {
            let Some(other) = self.other(dir, name)? else { return Ok(Claim::Taken) };
            if self.names.get(&other) == Some(&Since::Now) {
                return Ok(Claim::Same(other));
            }
            self.names.remove(&other);
        }
        self.names.insert(name.to_owned(), Since::Now);
        Ok(Claim::Free)
    }

    /// Nothing was written under a name that was claimed.
    pub fn give_back(&mut self, name: &OsStr) {
        if let Some(since) = self.names.get_mut(name) {
            *since = Since::Before;
        }
    }

    /// The known name that `name` is another one of.
    fn other(&self, dir: &OwnedFd, name: &OsStr) -> io::Result<Option<OsString>> {
        let make = |made: &str| rustix::fs::mkdirat(dir, made, Mode::from_raw_mode(0o700));
        let ((), made) = with_free_name("", make)?;
        let found = self.other_in(dir, OsStr::new(&made), name);
        let _ = rustix::fs::unlinkat(dir, &made, AtFlags::REMOVEDIR);
        found
    }

    fn other_in(&self, dir: &OwnedFd, made: &OsStr, name: &OsStr) -> io::Result<Option<OsString>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let inner = rustix::fs::openat(dir, made, flags, Mode::empty())?;
        hold(&inner);
        match rustix::fs::openat(&inner, name, NEW, PRIVATE) {
            Ok(_) | Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
        let is_same = |known: &&OsString| is_there(&inner, known);
        // Those that are alike first: mostly capitals make the difference.
        let plain = |name: &OsStr| name.to_string_lossy().to_lowercase();
        let wanted = plain(name);
        let alike = self.names.keys().filter(|known| plain(known) == wanted).find(is_same);
        let found = alike.or_else(|| self.names.keys().find(is_same)).cloned();
        let _ = rustix::fs::unlinkat(&inner, name, AtFlags::empty());
        Ok(found)
    }
}
