//! A directory that an export writes into.
//!
//! Owns: [`Dir`], its rights while it is written into, and its mode afterwards. A directory that
//! the export makes is its owner's only until it is left, if it has a mode; one that is there and
//! that its owner must not write into can be written into meanwhile. Its mode is then that of the
//! objects below it, the bits that all of them name; if none does, the one it had.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;

use holdall::FileId;
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, RawMode, Stat};

use super::claims::{Claims, folds};
use crate::dirs::Dirs;
use crate::replacement::{changes_to, masked};
use crate::{leftovers, own};

/// A directory on the way.
pub struct Dir {
    /// Its descriptor; `None` while too many others are open.
    pub fd: Option<Rc<OwnedFd>>,
    /// Which one it is.
    pub id: FileId,
    /// Its name in the one above.
    pub name: OsString,
    /// Whether the export made it.
    pub is_new: bool,
    /// The names in it, if different ones may be the same.
    pub claims: Option<Claims>,
    /// The bits it gets when it is left.
    bits: Option<u32>,
    /// The bits it had, if they were changed to write into it.
    before: Option<u32>,
    /// Whether it had a mode that nobody knows any more.
    is_hidden: bool,
}

/// The mode to make a directory with.
pub fn first_mode(modes: &Dirs, above: usize) -> u32 {
    if modes.bits(above).is_some() || modes.hides(above) { 0o700 } else { 0o777 }
}

impl Dir {
    /// A directory that is open; a new one takes names for the same as the one above does.
    pub fn new(
        fd: OwnedFd,
        name: OsString,
        is_new: bool,
        above: Option<&Self>,
    ) -> io::Result<Self> {
        let id = own::id(&rustix::fs::fstat(&fd)?);
        let mut dir = Self {
            fd: None,
            id,
            name,
            is_new,
            claims: None,
            bits: None,
            before: None,
            is_hidden: false,
        };
        if !is_new {
            dir.make_writable(&fd);
        }
        let folds = match above.filter(|_| is_new) {
            Some(above) => above.claims.is_some(),
            None => folds(&fd),
        };
        let mut claims = folds.then(Claims::default);
        if !is_new {
            // One that cannot be read has nothing that could be removed.
            let _ = leftovers::list(&fd, &mut |name| {
                if let Some(claims) = &mut claims {
                    claims.note(name);
                }
            });
        }
        dir.claims = claims;
        dir.fd = Some(Rc::new(fd));
        Ok(dir)
    }

    /// Takes over what an object in it, or `above` levels below it, says of its mode.
    pub fn learn(&mut self, modes: &Dirs, above: usize) {
        self.bits = match (self.bits, modes.bits(above)) {
            (Some(one), Some(other)) => Some(one & other),
            (one, other) => one.or(other),
        };
        self.is_hidden |= modes.hides(above);
    }

    /// What lies under `name`, if anything; a link is not followed.
    pub fn find(&self, name: &OsStr) -> Option<Stat> {
        let fd = self.fd.as_ref()?;
        rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Nothing was written under the name claimed last.
    pub fn give_back(&mut self, name: &OsStr) {
        if let Some(claims) = &mut self.claims {
            claims.give_back(name);
        }
    }

    /// Lets its owner write into it. If that is not possible, what is written says so.
    fn make_writable(&mut self, fd: &OwnedFd) {
        let wanted = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
        if rustix::fs::accessat(fd, c".", wanted, AtFlags::EACCESS).is_ok() {
            return;
        }
        let Ok(found) = rustix::fs::fstat(fd) else { return };
        let bits: u32 = Mode::from_raw_mode(found.st_mode).bits() as _;
        if change(fd, bits | 0o700).is_ok() {
            self.before = Some(bits);
        }
    }

    /// Gives it its bits; those beside the nine stay.
    pub fn set_bits(&self) -> io::Result<()> {
        let hidden = (self.is_new && self.is_hidden).then_some(0o700);
        let Some(bits) = self.bits.or(self.before).or(hidden) else { return Ok(()) };
        let fd = self.fd.as_ref().ok_or(io::ErrorKind::NotFound)?;
        if mode(fd)? & 0o777 == bits & 0o777 {
            return Ok(());
        }
        changes_to(bits, || mode(fd), || change(fd, (mode(fd)? & 0o7000) | (bits & 0o777)))
    }

    /// As [`Dir::set_bits`] for the root of an export, which was made for its owner only.
    pub fn set_root_bits(&mut self) -> io::Result<()> {
        if self.is_new && !self.is_hidden && self.bits.is_none() {
            self.bits = Some(masked(0o777));
            // A file system without such bits has its own rules.
            let _ = self.set_bits();
            return Ok(());
        }
        self.set_bits()
    }
}

fn mode(fd: &OwnedFd) -> io::Result<u32> {
    // Its type differs from system to system.
    Ok(Mode::from_raw_mode(rustix::fs::fstat(fd)?.st_mode).bits() as _)
}

/// Changes the mode of a directory that is open for paths only, and perhaps must not be read.
fn change(fd: &OwnedFd, bits: u32) -> io::Result<()> {
    let mode = Mode::from_raw_mode(bits as RawMode);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if let Ok(readable) = rustix::fs::openat(fd, c".", flags, Mode::empty()) {
        return Ok(rustix::fs::fchmod(File::from(readable), mode)?);
    }
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    Ok(rustix::fs::chmodat(CWD, path, mode, AtFlags::empty())?)
}
