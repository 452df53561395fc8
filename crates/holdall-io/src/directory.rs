//! The directory that a store's files lie in, kept open: [`Directory`].
//!
//! Owns a descriptor, from which every name is looked up: the directory may be renamed, and the
//! process change its root, and the names still lead to the same files.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::open::{checked, named};
use crate::rights::PRIVATE;
use crate::room::not_made;
use crate::{Disk, FileId};

/// Names are only looked up in it, which needs no right to list them.
#[cfg(any(target_os = "linux", target_os = "android"))]
const KEPT: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const KEPT: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// Which file a name leads to, and its kind. It asks for no times: a Linux that counts them finely
/// gives a file whose times were asked for a new time at its next write, and with it a part of
/// the file system's journal at its next sync (measured: 40 % of a durable put).
#[cfg(target_os = "linux")]
fn identity(at: &OwnedFd, name: &OsStr) -> Result<(FileId, FileType), Errno> {
    use rustix::fs::{StatxFlags, makedev, statx};
    let wanted = StatxFlags::INO | StatxFlags::TYPE;
    let found = match statx(at, name, AtFlags::SYMLINK_NOFOLLOW, wanted) {
        Err(Errno::NOSYS) => return identity_by_stat(at, name),
        found => found?,
    };
    let device = makedev(found.stx_dev_major, found.stx_dev_minor);
    let id = FileId { device, inode: found.stx_ino };
    Ok((id, FileType::from_raw_mode(found.stx_mode.into())))
}

#[cfg(not(target_os = "linux"))]
use identity_by_stat as identity;

fn identity_by_stat(at: &OwnedFd, name: &OsStr) -> Result<(FileId, FileType), Errno> {
    let found = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let id = file_id(found.st_dev, found.st_ino);
    Ok((id, FileType::from_raw_mode(found.st_mode)))
}

/// Of what the system says of a file; some number devices by signed numbers.
fn file_id(device: impl Into<i128>, inode: u64) -> FileId {
    FileId { device: device.into() as u64, inode }
}

/// An open directory. Names are single parts of a path.
#[derive(Debug)]
pub(crate) struct Directory {
    at: OwnedFd,
    /// Where it lay when it was opened, for messages.
    path: PathBuf,
}

impl Directory {
    /// Opens the directory at `path`.
    ///
    /// # Errors
    /// Those of the operating system.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let at = retry_on_intr(|| rustix::fs::open(path, KEPT, Mode::empty()));
        let at = at.map_err(|e| named(path, &e.into()))?;
        Ok(Self { at, path: path.to_owned() })
    }

    /// Which directory it is.
    ///
    /// # Errors
    /// Those of the operating system.
    pub(crate) fn id(&self) -> io::Result<FileId> {
        let found = rustix::fs::fstat(&self.at).map_err(|e| named(&self.path, &e.into()))?;
        Ok(file_id(found.st_dev, found.st_ino))
    }

    /// Opens the regular file of this name, which only its owner may use if `flags` have it
    /// made; a symbolic link is refused like anything else that is no regular file.
    ///
    /// # Errors
    /// `IsADirectory`; `InvalidInput` for what is no regular file; those of the operating system.
    pub(crate) fn open_file(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = retry_on_intr(|| rustix::fs::openat(&self.at, name, flags, PRIVATE));
        let path = self.path.join(name);
        match opened {
            Err(e @ (Errno::NOSPC | Errno::DQUOT)) => {
                Err(not_made(&path, e.into(), || rustix::fs::fstatvfs(&self.at)))
            }
            opened => checked(&path, opened.map(File::from).map_err(io::Error::from)),
        }
    }

    /// Whether the name, not followed if it is a link, leads to the file of `disk`.
    ///
    /// # Errors
    /// Those of the operating system but `NotFound`; `Unsupported` if `disk` is no file.
    pub(crate) fn leads_to(&self, name: &OsStr, disk: &dyn Disk) -> io::Result<bool> {
        let own = disk.file_id()?.ok_or(io::ErrorKind::Unsupported)?;
        Ok(self.stat(name)?.is_some_and(|(id, _)| id == own))
    }

    /// The regular file that the name, not followed if it is a link, leads to.
    ///
    /// # Errors
    /// Those of the operating system.
    pub(crate) fn file_at(&self, name: &OsStr) -> io::Result<Option<FileId>> {
        Ok(self.stat(name)?.filter(|(_, kind)| *kind == FileType::RegularFile).map(|(id, _)| id))
    }

    fn stat(&self, name: &OsStr) -> io::Result<Option<(FileId, FileType)>> {
        match identity(&self.at, name) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(named(&self.path.join(name), &e.into())),
        }
    }

    /// Removes the name if it leads to the file of `disk`. POSIX has no call that does both in
    /// one step: a file that somebody puts there in between loses its name.
    ///
    /// # Errors
    /// As [`Directory::leads_to`].
    pub(crate) fn remove(&self, name: &OsStr, disk: &dyn Disk) -> io::Result<()> {
        if !self.leads_to(name, disk)? {
            return Ok(());
        }
        match rustix::fs::unlinkat(&self.at, name, AtFlags::empty()) {
            Err(e) if e != Errno::NOENT => Err(named(&self.path.join(name), &e.into())),
            _ => Ok(()),
        }
    }

    /// Refuses a directory of which the system keeps every name (`chattr +a`).
    ///
    /// # Errors
    /// `PermissionDenied`.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn refuse_append_only(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // A file system without such flags, or a directory that may not be read, keeps none.
        let flags = rustix::fs::openat(&self.at, c".", flags, Mode::empty())
            .and_then(rustix::fs::ioctl_getflags);
        if !flags.is_ok_and(|flags| flags.contains(rustix::fs::IFlags::APPEND)) {
            return Ok(());
        }
        let path = self.path.display();
        let what = format!("{path}: files can be made there, and not removed (chattr +a)");
        Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn refuse_append_only(&self) -> io::Result<()> {
        Ok(())
    }

    /// Makes changes of its names durable.
    ///
    /// # Errors
    /// Those of the operating system.
    pub(crate) fn sync(&self) -> io::Result<()> {
        // What is kept open may be for looking up names only.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let here = retry_on_intr(|| rustix::fs::openat(&self.at, c".", flags, Mode::empty()));
        let synced = here.map_err(io::Error::from).and_then(|here| File::from(here).sync_all());
        synced.map_err(|e| named(&self.path, &e))
    }
}
