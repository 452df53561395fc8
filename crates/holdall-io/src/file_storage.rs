//! A store in files of the operating system: [`FileStorage`].
//!
//! Owns the lock: an exclusive `flock` on the volume, held as long as the disk of a volume that may
//! be written lives. `flock` belongs to the open file, so that a second open in the same process is
//! refused like one in another process. The log is locked alike: a copy of the volume, put at its
//! name, must not take the log of the store that was renamed away. Who only reads locks nothing.
//!
//! Names are used with what they lead to: the directory is kept open, and a name is removed only
//! if it leads to the file that is meant.
//!
//! The log lies at the volume's real path (symbolic links resolved) with `-log` appended; a hard
//! link would hide it from an open under the other name, so that a volume must have one name.
//! What lies at the log's path is opened only if it is a regular file itself: a link there
//! could have any file of the user written over.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::OFlags;

use crate::blocks::full_kind;
use crate::bounds::read_only;
use crate::directory::Directory;
use crate::file::{Access, is_full};
use crate::open::{directory, named, open};
use crate::opener::{self, Opener};
use crate::rights;
use crate::room::{self, not_made};
use crate::{Astray, Disk, FileDisk, FileId, Storage};

/// How often, and how long after one another, a file just made is tried to be locked.
const MOST_TRIES: u32 = 100;
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// A volume in a file, and its log in the file beside it.
#[derive(Debug)]
pub struct FileStorage {
    volume: Arc<FileDisk>,
    access: Access,
    directory: Directory,
    path: PathBuf,
    log_path: PathBuf,
    /// The log as last opened or created, while somebody uses it.
    log: Mutex<Weak<FileDisk>>,
    opened: Instant,
}

impl FileStorage {
    /// Creates an empty volume at `path` and locks it. Its name is not durable before
    /// [`Storage::sync_dir`]. What lies beside it in the log's place is not looked at.
    ///
    /// # Errors
    /// `AlreadyExists`; `IsADirectory`; `WouldBlock` if another process was faster in locking it.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            return Err(directory(path));
        }
        let file = open(path, OpenOptions::new().read(true).write(true).create_new(true));
        let file = file.map_err(|e| match full_kind(e) {
            e if is_full(&e) => not_made(path, e, || rustix::fs::statvfs(parent(path))),
            e => e,
        })?;
        // Who opened it in between finds nothing in it, and lets go of it at once, or makes a
        // store of it.
        for _ in 0..MOST_TRIES {
            match FileDisk::lock(&file, Access::ReadWrite) {
                Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_TRIES),
                _ => break,
            }
        }
        let created = Self::locked(file, path, Access::ReadWrite)?;
        match created.volume.len()? {
            0 => Ok(created),
            _ => Err(io::ErrorKind::AlreadyExists.into()),
        }
    }

    /// Opens the volume at `path` and, for [`Access::ReadWrite`], locks it.
    ///
    /// # Errors
    /// `NotFound`; `IsADirectory`; `InvalidInput` if it is not a regular file; `WouldBlock` if it
    /// is to be written and locked by another open, in this process or another.
    pub fn open(path: impl AsRef<Path>, access: Access) -> io::Result<Self> {
        let path = path.as_ref();
        let write = access == Access::ReadWrite;
        for _ in 1..MOST_TRIES {
            let file = open(path, OpenOptions::new().read(true).write(write))?;
            match Self::locked(file, path, access) {
                // Who had it locked has removed it meanwhile.
                Err(e) if Replaced::is_cause_of(&e) => {}
                other => return other,
            }
        }
        let file = open(path, OpenOptions::new().read(true).write(write))?;
        Self::locked(file, path, access)
    }

    fn locked(file: File, path: &Path, access: Access) -> io::Result<Self> {
        lock(&file, path, access, "the store is already open elsewhere")?;
        // Two names for one volume must lead to one log.
        let path = fs::canonicalize(path).map_err(|e| named(path, &e))?;
        let mut log_path = OsString::from(&path);
        log_path.push("-log");
        let volume = Arc::new(FileDisk::new(file, access).with_direct());
        if access == Access::ReadWrite {
            opener::announce(volume.file());
            // It is being opened.
            volume.show_durable(Some(0));
        }
        let storage = Self {
            volume,
            access,
            directory: Directory::open(path.parent().unwrap_or(Path::new("/")))?,
            path,
            log_path: log_path.into(),
            log: Mutex::default(),
            opened: Instant::now(),
        };
        if !storage.directory.leads_to(name_of(&storage.path), &*storage.volume)? {
            return Err(io::Error::other(Replaced(storage.path)));
        }
        Ok(storage)
    }

    /// The volume's real path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The log's path, whether or not there is a log.
    #[must_use]
    pub fn log_path(&self) -> &Path {
        &self.log_path
    }

    /// Removes the volume's name if it leads to the volume still: for a creation that failed.
    ///
    /// # Errors
    /// Those of the operating system; `PermissionDenied` if opened read-only.
    pub fn remove_volume(&self) -> io::Result<()> {
        self.check_writable()?;
        self.directory.remove(name_of(&self.path), &*self.volume)
    }

    /// The disk of the log that was opened; the one in use if it is the same file.
    fn log(&self, file: File) -> io::Result<Arc<FileDisk>> {
        let mut last = self.log.lock();
        let id = FileId::from_metadata(&file.metadata().map_err(|e| named(&self.log_path, &e))?);
        if let Some(used) = last.upgrade()
            && used.file_id()? == Some(id)
        {
            return Ok(used);
        }
        let held = "the log is used by another open store";
        lock(&file, &self.log_path, self.access, held)?;
        let disk = Arc::new(FileDisk::new(file, self.access).with_direct());
        // Beside a writer of the volume it is that one's.
        if self.access == Access::ReadOnly && !self.volume.is_locked()? && disk.is_locked()? {
            let (path, by) = (self.log_path.clone(), None);
            return Err(io::Error::new(io::ErrorKind::WouldBlock, Locked { path, held, by }));
        }
        *last = Arc::downgrade(&disk);
        Ok(disk)
    }

    /// Gives a new file beside the volume the volume's owner and mode: who may use the one may
    /// use the other, and nobody else. If the system refuses that, the file stays its maker's.
    fn give_rights(&self, file: &File) {
        let _ = self.volume.metadata().and_then(|volume| rights::give_as(file, &volume));
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.access == Access::ReadOnly { Err(read_only()) } else { Ok(()) }
    }
}

impl Storage for FileStorage {
    fn volume(&self) -> Arc<dyn Disk> {
        self.volume.clone()
    }

    fn has_writer(&self) -> io::Result<bool> {
        if self.access == Access::ReadWrite { Ok(false) } else { self.volume.is_locked() }
    }

    fn open_log(&self) -> io::Result<Option<Arc<dyn Disk>>> {
        let flags = match self.access {
            Access::ReadOnly => OFlags::RDONLY,
            Access::ReadWrite => OFlags::RDWR,
        };
        match self.directory.open_file(name_of(&self.log_path), flags) {
            Ok(file) => Ok(Some(self.log(file)?)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn create_log(&self) -> io::Result<Arc<dyn Disk>> {
        self.check_writable()?;
        // A log that could not be removed would be in the way of every later one.
        self.directory.refuse_append_only()?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file = self.directory.open_file(name_of(&self.log_path), flags)?;
        self.give_rights(&file);
        Ok(self.log(file)?)
    }

    fn room_of_log_name(&self) -> u64 {
        room::of_new_file(self.volume.file())
    }

    fn remove_log(&self, log: &dyn Disk) -> io::Result<()> {
        self.check_writable()?;
        self.directory.remove(name_of(&self.log_path), log)
    }

    fn astray(&self, log: Option<&dyn Disk>) -> Option<Astray> {
        // What is not known is no evidence: a process may have given up the right to look.
        let lost = |path, disk| matches!(self.directory.leads_to(name_of(path), disk), Ok(false));
        if lost(&self.path, &*self.volume) {
            let deleted = self.volume.is_deleted();
            return Some(if deleted { Astray::VolumeDeleted } else { Astray::VolumeMoved });
        }
        log.is_some_and(|log| lost(&self.log_path, log)).then_some(Astray::Log)
    }

    fn log_id(&self) -> io::Result<Option<FileId>> {
        self.directory.file_at(name_of(&self.log_path))
    }

    fn is_log_place(&self, dir: FileId, name: &OsStr) -> io::Result<bool> {
        Ok(name == name_of(&self.log_path) && self.directory.id()? == dir)
    }

    fn sync_dir(&self) -> io::Result<()> {
        if self.access == Access::ReadOnly { Ok(()) } else { self.directory.sync() }
    }

    fn open_sums(&self, create: bool) -> io::Result<Option<Arc<dyn Disk>>> {
        let flags = match self.access {
            Access::ReadOnly => OFlags::RDONLY,
            Access::ReadWrite if create => OFlags::RDWR | OFlags::CREATE,
            Access::ReadWrite => OFlags::RDWR,
        };
        let mut name = OsString::from(name_of(&self.path));
        name.push("-sums");
        match self.directory.open_file(&name, flags) {
            Ok(file) => {
                if create {
                    self.give_rights(&file);
                }
                Ok(Some(Arc::new(FileDisk::new(file, self.access))))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn now(&self) -> Duration {
        self.opened.elapsed()
    }
}

/// The directory of a path that may be relative.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The last part of the path of a file.
fn name_of(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}

/// A file that somebody else has locked.
#[derive(Debug)]
pub struct Locked {
    path: PathBuf,
    held: &'static str,
    /// Who, as far as the system tells.
    pub by: Option<Opener>,
}

impl fmt::Display for Locked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.held)?;
        self.by.as_ref().map_or(Ok(()), |by| write!(f, ", by {by}"))
    }
}

impl std::error::Error for Locked {}

/// The file at a path is another one than that which was opened.
#[derive(Debug)]
struct Replaced(PathBuf);

impl Replaced {
    fn is_cause_of(e: &io::Error) -> bool {
        e.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

impl fmt::Display for Replaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: was replaced while it was opened", self.0.display())
    }
}

impl std::error::Error for Replaced {}

fn lock(file: &File, path: &Path, access: Access, held: &'static str) -> io::Result<()> {
    match FileDisk::lock(file, access) {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let (path, by) = (path.to_owned(), opener::of(file));
            Err(io::Error::new(io::ErrorKind::WouldBlock, Locked { path, held, by }))
        }
        Err(TryLockError::Error(e)) => Err(named(path, &e)),
    }
}
