//! Files that get their name once they are whole: [`NewFile`].
//!
//! Owns the name that such a file has before. Nobody but its owner may open it until it has the rights
//! of what it is a copy of. A file of the same name is never replaced.

use crate::rights::{PRIVATE, give_as};
use crate::{Access, FileDisk};
use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

/// A file in the making; dropped, it is gone.
#[derive(Debug)]
pub struct NewFile {
    directory: File,
    temporary: OsString,
    target: OsString,
    path: PathBuf,
    file: File,
    published: bool,
}

impl NewFile {
    /// Begins a file that will be `target`.
    ///
    /// # Errors
    /// `AlreadyExists` if something has that name; `InvalidInput` if it is none; those of the
    /// operating system.
    pub fn begin(target: &Path) -> io::Result<Self> {
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let parent = target.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."));
        let directory = File::open(parent)?;
        if rustix::fs::statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let drawn = RandomState::new().build_hasher().finish();
        let temporary: OsString = format!(".holdall-{drawn:016x}").into();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&directory, &temporary, flags, PRIVATE)?.into();
        let path = parent.join(&temporary);
        Ok(Self { directory, temporary, target: name, path, file, published: false })
    }

    /// The file as a disk.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn disk(&self) -> io::Result<FileDisk> {
        Ok(FileDisk::new(self.file.try_clone()?, Access::ReadWrite))
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Where it lies until it is published.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it the rights of another file, makes it durable, and gives it its name.
    ///
    /// # Errors
    /// `AlreadyExists` if something has got that name meanwhile; those of the operating system.
    pub fn publish(mut self, like: Option<&Metadata>) -> io::Result<()> {
        if let Some(like) = like {
            give_as(&self.file, like)?;
        }
        self.file.sync_all()?;
        let dir = &self.directory;
        match rename_anew(dir, &self.temporary, &self.target) {
            // A file system that cannot promise not to replace: a second name does.
            Err(Errno::INVAL | Errno::NOSYS) => {
                let flags = AtFlags::empty();
                rustix::fs::linkat(dir, &self.temporary, dir, &self.target, flags)?;
                rustix::fs::unlinkat(dir, &self.temporary, flags)?;
            }
            renamed => renamed?,
        }
        self.published = true;
        self.directory.sync_all()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.published {
            // A name that nobody else knows.
            let _ = rustix::fs::unlinkat(&self.directory, &self.temporary, AtFlags::empty());
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_anew(dir: &File, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    rustix::fs::renameat_with(dir, from, dir, to, rustix::fs::RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_anew(_: &File, _: &OsStr, _: &OsStr) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn it_has_its_name_once_it_is_whole_and_replaces_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a");
        let names = || std::fs::read_dir(dir.path()).unwrap().count();
        drop(NewFile::begin(&target).unwrap());
        assert_eq!(names(), 0);
        let new = NewFile::begin(&target).unwrap();
        let late = NewFile::begin(&target).unwrap();
        new.file().write_all(b"x").unwrap();
        assert!(!target.exists());
        new.publish(None).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"x");
        assert_eq!(late.publish(None).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(NewFile::begin(&target).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!((std::fs::read(&target).unwrap(), names()), (b"x".to_vec(), 1));
    }
}
