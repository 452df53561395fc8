//! The directories that an export writes into.
//!
//! Owns: [`Tree`], the open directories from the root to the one at work. Names come in byte order:
//! all below one directory follow each other, so that a directory that was left is not entered
//! again under the same name. One that is met again has another name, and the file system takes the
//! two for the same (`claims`).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use holdall::{FileId, Store};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};

use super::Problem;
use super::claims::Claims;
use crate::replacement::set_bits;
use crate::{files, name, own};

/// An open directory.
pub struct Dir {
    /// Its descriptor, for what is done in it.
    pub fd: Rc<OwnedFd>,
    id: FileId,
    name: OsString,
    /// Whether the export made it.
    is_new: bool,
    /// The names used in it, where different ones may be the same.
    claims: Option<Claims>,
    /// The bits it gets when it is left.
    bits: Option<u32>,
}

/// A directory whose mode could not be set: its path, why.
pub type Unset = (PathBuf, io::Error);

/// The way from the root to the directory at work.
pub struct Tree<'s> {
    store: &'s Store,
    root: PathBuf,
    way: Vec<Dir>,
    /// Directories that did not get their mode, until somebody takes them.
    pub unset: Vec<Unset>,
}

impl Dir {
    fn of(fd: OwnedFd, name: OsString, is_new: bool, bits: Option<u32>) -> io::Result<Self> {
        let id = own::id(&rustix::fs::fstat(&fd)?);
        let fd = Rc::new(fd);
        let claims = Claims::of(&fd)?;
        Ok(Self { fd, id, name, is_new, claims, bits })
    }

    /// What lies under `name`, if anything; a link is not followed.
    fn find(&self, name: &OsStr) -> Option<Stat> {
        rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Claims a name, which must not be another one of what this export has written.
    fn claim(&mut self, name: &OsStr, path: &Path) -> Result<(), Problem> {
        let Some(claims) = &mut self.claims else { return Ok(()) };
        let Some(other) = claims.claim(name).map_err(|e| Problem::system(&e, path))? else {
            return Ok(());
        };
        Err(Problem::This(format!(
            "{} is the same as {} in this file system, which was exported before: export into a \
             directory that keeps them apart",
            name::escape(name::bytes(name)),
            name::escape(name::bytes(&other)),
        )))
    }

    /// Nothing was written under the name claimed last.
    pub fn give_back(&mut self, name: &OsStr) {
        if let Some(claims) = &mut self.claims {
            claims.give_back(name);
        }
    }

    fn readable(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.fd, c".", flags, Mode::empty())?)
    }

    /// Gives it its bits; those beside the nine stay.
    fn set_bits(&self) -> io::Result<()> {
        let Some(bits) = self.bits else { return Ok(()) };
        let file = File::from(self.readable()?);
        set_bits(&file, bits, files::mode(&file.metadata()?))
    }
}

impl<'s> Tree<'s> {
    /// A tree at `root`, which the export made or not.
    pub fn new(store: &'s Store, root: PathBuf, is_new: bool) -> io::Result<Self> {
        let dir = Dir::of(files::open_directory(&root)?, OsString::new(), is_new, None)?;
        Ok(Self { store, root, way: vec![dir], unset: Vec::new() })
    }

    /// Goes to the directory `below` the root, made where it is missing; none on the way may be a
    /// link. `modes` are those of the last directories of the way.
    pub fn enter(&mut self, below: &Path, modes: &[u32]) -> Result<(), Problem> {
        let parts: Vec<&OsStr> = below.iter().collect();
        let here = self.way.iter().skip(1).zip(&parts);
        let common = here.take_while(|(dir, part)| dir.name == **part).count();
        while self.way.len() > common + 1 {
            self.leave();
        }
        // One more than there are directories: the first is the root's.
        let mode = |at: usize| modes.iter().rev().nth(parts.len() - at).copied();
        for (at, dir) in self.way.iter_mut().enumerate() {
            // The root is the user's own, unless the export made it.
            if at > 0 || dir.is_new {
                dir.bits = dir.bits.or(mode(at));
            }
        }
        for (at, part) in parts.iter().enumerate().skip(common) {
            self.go_down(part, mode(at + 1))?;
        }
        Ok(())
    }

    /// The directory that was entered last.
    pub fn dir(&mut self) -> Result<&mut Dir, Problem> {
        self.way.last_mut().ok_or_else(|| Problem::This("the export has ended".into()))
    }

    fn go_down(&mut self, part: &OsStr, bits: Option<u32>) -> Result<(), Problem> {
        let path = self.way.iter().skip(1).map(|dir| &dir.name);
        let path = self.root.join(path.collect::<PathBuf>()).join(part);
        let store = self.store;
        let dir = self.dir()?;
        refuse_log_place(store, dir, part)?;
        let failed = |e: &io::Error| Problem::system(e, &path);
        dir.claim(part, &path)?;
        let found = dir.find(part);
        // Writable until it is left.
        let mode = bits.map_or(0o777, |bits| bits & 0o777 | 0o700);
        let entered = files::enter_directory(&dir.fd, part, mode);
        let (inner, is_new) = entered.map_err(|e| {
            dir.give_back(part);
            let what = match found.as_ref().map(kind) {
                Some(FileType::Symlink) => "a link",
                Some(found) if found != FileType::Directory => "a file",
                _ => return failed(&e),
            };
            let path = path.display();
            Problem::This(format!("{path} is {what} where a directory is needed"))
        })?;
        let inner = Dir::of(inner, part.to_owned(), is_new, bits).map_err(|e| failed(&e))?;
        self.way.push(inner);
        Ok(())
    }

    /// Refuses to write a file `name` where something else lies, and where the store does.
    pub fn refuse(&mut self, name: &OsStr, path: &Path) -> Result<(), Problem> {
        let store = self.store;
        let dir = self.dir()?;
        refuse_log_place(store, dir, name)?;
        if let Ok(found) = rustix::fs::statat(&dir.fd, name, AtFlags::empty())
            && store.is_own_file(own::id(&found))?
        {
            let why = "a file of the store has that name: export into another directory";
            return Err(Problem::This(why.into()));
        }
        if dir.find(name).is_some_and(|found| kind(&found).is_dir()) {
            return Err(Problem::This("there is a directory of that name".into()));
        }
        dir.claim(name, path)
    }

    fn leave(&mut self) {
        let path: PathBuf = self.way.iter().skip(1).map(|dir| &dir.name).collect();
        if let Some(Err(e)) = self.way.pop().map(|dir| dir.set_bits()) {
            self.unset.push((path, e));
        }
    }

    /// Leaves all directories.
    pub fn end(&mut self) {
        while !self.way.is_empty() {
            self.leave();
        }
    }
}

fn refuse_log_place(store: &Store, dir: &Dir, name: &OsStr) -> Result<(), Problem> {
    if store.is_log_place(dir.id, name)? {
        let why = "the store's log belongs there: export into another directory";
        return Err(Problem::This(why.into()));
    }
    Ok(())
}

fn kind(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}
