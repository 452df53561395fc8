//! The directories that an export writes into.
//!
//! Owns: [`Tree`], the directories from the root to the one at work. Names come in byte order: all
//! below one directory follow each other, so that a directory that was left is not entered again
//! under the same name. One that is met again has another name, and the file system takes the two
//! for the same (`claims`). Descriptors: the root's and those of the last directories, a fixed
//! number; a directory whose one was closed is opened again from the root on, without links.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use holdall::Store;
use rustix::fs::{AtFlags, FileType, Stat};

use super::Problem;
use super::claims::Claim;
use super::dir::{Dir, first_mode};
use crate::dirs::Dirs;
use crate::files::DIRECTORY;
use crate::{below, files, name, own};

/// Directories that are held open beside the root.
const MOST_OPEN: usize = 32;

/// A directory whose mode could not be set: its path, why.
pub type Unset = (PathBuf, io::Error);

/// The way from the root to the directory at work.
pub struct Tree<'s> {
    /// The store, if it is in a file.
    store: Option<&'s Store>,
    root: PathBuf,
    way: Vec<Dir>,
    /// Directories that did not get their mode, until somebody takes them.
    pub unset: Vec<Unset>,
}

impl<'s> Tree<'s> {
    /// A tree at `root`, which the export made or not.
    pub fn new(store: Option<&'s Store>, root: PathBuf, is_new: bool) -> io::Result<Self> {
        let dir = Dir::new(files::open_directory(&root)?, OsString::new(), is_new, None)?;
        Ok(Self { store, root, way: vec![dir], unset: Vec::new() })
    }

    /// Goes to the directory `below` the root, made if it is missing; none on the way may be a
    /// link. `modes` is what the object says of the directories.
    pub fn enter(&mut self, below: &Path, modes: &Dirs) -> Result<(), Problem> {
        let parts: Vec<&OsStr> = below.iter().collect();
        let here = self.way.iter().skip(1).zip(&parts);
        let common = here.take_while(|(dir, part)| dir.name == **part).count();
        while self.way.len() > common + 1 {
            self.leave();
        }
        // One more than there are parts: the first is the root's.
        for (at, dir) in self.way.iter_mut().enumerate() {
            // The root is the user's own, unless the export made it.
            if at > 0 || dir.is_new {
                dir.learn(modes, parts.len() - at);
            }
        }
        for (at, part) in parts.iter().enumerate().skip(common) {
            self.go_down(part, modes, parts.len() - at - 1)?;
        }
        Ok(())
    }

    /// The directory that was entered last.
    pub fn dir(&mut self) -> Result<&mut Dir, Problem> {
        self.way.last_mut().ok_or_else(ended)
    }

    /// Its descriptor.
    pub fn fd(&mut self) -> Result<Rc<OwnedFd>, Problem> {
        let last = self.way.len().saturating_sub(1);
        self.open(last).map_err(|e| Problem::system(&e, &self.path(last)))
    }

    /// Opens a directory on the way again, if it was closed.
    fn open(&mut self, at: usize) -> io::Result<Rc<OwnedFd>> {
        let names: PathBuf = self.way.iter().take(at + 1).skip(1).map(|dir| &dir.name).collect();
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let root = self.way.first().and_then(|dir| dir.fd.clone()).ok_or_else(missing)?;
        let dir = self.way.get_mut(at).ok_or_else(missing)?;
        if let Some(fd) = &dir.fd {
            return Ok(fd.clone());
        }
        let fd = Rc::new(below::open(&root, &names, DIRECTORY)?);
        dir.fd = Some(fd.clone());
        Ok(fd)
    }

    fn path(&self, at: usize) -> PathBuf {
        let names = self.way.iter().take(at + 1).skip(1).map(|dir| &dir.name);
        self.root.join(names.collect::<PathBuf>())
    }

    fn go_down(&mut self, part: &OsStr, modes: &Dirs, above: usize) -> Result<(), Problem> {
        let path = self.path(self.way.len()).join(part);
        let fd = self.fd()?;
        refuse_place(self.store, self.dir()?, part)?;
        let is_claimed = self.claim(part, &path)?;
        let dir = self.dir()?;
        let found = dir.find(part);
        let failed = |e: &io::Error| Problem::system(e, &path);
        let entered = files::enter_directory(&*fd, part, first_mode(modes, above));
        let (inner, is_new) = entered.map_err(|e| {
            if is_claimed {
                dir.give_back(part);
            }
            let what = match found.as_ref().map(kind) {
                Some(FileType::Symlink) => "a link",
                Some(found) if found != FileType::Directory => "a file",
                _ => return failed(&e),
            };
            let path = path.display();
            Problem::This(format!("{path} is {what} where a directory is needed"))
        })?;
        let mut inner =
            Dir::new(inner, part.to_owned(), is_new, Some(&*dir)).map_err(|e| failed(&e))?;
        inner.learn(modes, above);
        self.way.push(inner);
        // The root stays open.
        let far = self.way.len().checked_sub(MOST_OPEN + 1).filter(|at| *at > 0);
        if let Some(dir) = far.and_then(|at| self.way.get_mut(at)) {
            dir.fd = None;
        }
        Ok(())
    }

    /// Refuses to write a file `name` where something else lies, and where the store does.
    pub fn refuse(&mut self, name: &OsStr, path: &Path) -> Result<(), Problem> {
        let fd = self.fd()?;
        let store = self.store;
        let dir = self.dir()?;
        refuse_place(store, dir, name)?;
        if let Ok(found) = rustix::fs::statat(&fd, name, AtFlags::empty())
            && let Some(store) = store
            && store.is_own_file(own::id(&found))?
        {
            let why = "a file of the store has that name: export into another directory";
            return Err(Problem::This(why.into()));
        }
        if dir.find(name).is_some_and(|found| kind(&found).is_dir()) {
            return Err(Problem::This("there is a directory of that name".into()));
        }
        self.claim(name, path).map(drop)
    }

    /// Claims a name, which must not be another one of what this export has written. Whether that
    /// is new.
    fn claim(&mut self, name: &OsStr, path: &Path) -> Result<bool, Problem> {
        let fd = self.fd()?;
        let Some(claims) = &mut self.dir()?.claims else { return Ok(true) };
        let shown = name::escape(name::bytes(name));
        let why = match claims.claim(&fd, name).map_err(|e| Problem::system(&e, path))? {
            Claim::Free => return Ok(true),
            Claim::Own => return Ok(false),
            Claim::Taken => "another name of something that is there".to_owned(),
            Claim::Same(other) => {
                let other = name::escape(name::bytes(&other));
                format!("the same as {other} in this file system, which was exported before")
            }
        };
        let what = "export into a directory that keeps them apart";
        Err(Problem::This(format!("{shown} is {why}: {what}")))
    }

    fn leave(&mut self) {
        let last = self.way.len().saturating_sub(1);
        let opened = self.open(last);
        let path: PathBuf = self.way.iter().skip(1).map(|dir| &dir.name).collect();
        let Some(mut dir) = self.way.pop() else { return };
        let is_root = self.way.is_empty();
        let set = if is_root { dir.set_root_bits() } else { dir.set_bits() };
        if let Err(e) = opened.and(set) {
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

fn ended() -> Problem {
    Problem::This("the export has ended".into())
}

fn refuse_place(store: Option<&Store>, dir: &Dir, name: &OsStr) -> Result<(), Problem> {
    if let Some(store) = store
        && let Some(what) = own::place_in(store, dir.id, name)?
    {
        let why = format!("the store's {what} belongs there: export into another directory");
        return Err(Problem::This(why));
    }
    Ok(())
}

fn kind(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}
