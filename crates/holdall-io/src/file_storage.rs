//! A store in files of the operating system: [`FileStorage`].
//!
//! Owns the lock: `flock` on the volume, exclusive for writing and shared for reading, held as
//! long as the volume's disk lives. The lock covers the log too. `flock` belongs to the open file,
//! so that a second open in the same process is refused like one in another process.
//!
//! The log lies at the volume's real path (symbolic links resolved) with `-log` appended; a hard
//! link would hide it from an open under the other name, so that a volume must have one name.
//! What lies at the log's path is opened only if it is a regular file itself: a link there
//! could have any file of the user written over.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bounds::read_only;
use crate::file::Access;
use crate::open::{directory, is_at, named, open, open_itself};
use crate::{Disk, FileDisk, FileId, Storage};

/// A volume in a file, and its log in the file beside it.
#[derive(Debug)]
pub struct FileStorage {
    volume: Arc<FileDisk>,
    access: Access,
    path: PathBuf,
    log_path: PathBuf,
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
        let file = open(path, OpenOptions::new().read(true).write(true).create_new(true))?;
        Self::locked(file, path, Access::ReadWrite)
    }

    /// Opens the volume at `path` and locks it: alone for [`Access::ReadWrite`], together with
    /// other readers for [`Access::ReadOnly`].
    ///
    /// # Errors
    /// `NotFound`; `IsADirectory`; `InvalidInput` if it is not a regular file; `WouldBlock` if it
    /// is locked by another open, in this process or another.
    pub fn open(path: impl AsRef<Path>, access: Access) -> io::Result<Self> {
        let path = path.as_ref();
        let write = access == Access::ReadWrite;
        let file = open(path, OpenOptions::new().read(true).write(write))?;
        Self::locked(file, path, access)
    }

    fn locked(file: File, path: &Path, access: Access) -> io::Result<Self> {
        let locked = match access {
            Access::ReadOnly => file.try_lock_shared(),
            Access::ReadWrite => file.try_lock(),
        };
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("{}: the store is already open elsewhere", path.display());
                return Err(io::Error::new(io::ErrorKind::WouldBlock, message));
            }
            Err(TryLockError::Error(e)) => return Err(named(path, &e)),
        }
        // Two names for one volume must lead to one log.
        let path = fs::canonicalize(path).map_err(|e| named(path, &e))?;
        if !is_at(&file, &path).map_err(|e| named(&path, &e))? {
            let message = format!("{}: was replaced while it was opened", path.display());
            return Err(io::Error::other(message));
        }
        let mut log_path = OsString::from(&path);
        log_path.push("-log");
        Ok(Self {
            volume: Arc::new(FileDisk::new(file, access).with_direct()),
            access,
            path,
            log_path: log_path.into(),
            opened: Instant::now(),
        })
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

    fn log(&self, file: File) -> FileDisk {
        FileDisk::new(file, self.access).with_direct()
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.access == Access::ReadOnly { Err(read_only()) } else { Ok(()) }
    }
}

impl Storage for FileStorage {
    fn volume(&self) -> Arc<dyn Disk> {
        self.volume.clone()
    }

    fn open_log(&self) -> io::Result<Option<Arc<dyn Disk>>> {
        let write = self.access == Access::ReadWrite;
        match open_itself(&self.log_path, OpenOptions::new().read(true).write(write)) {
            Ok(file) => Ok(Some(Arc::new(self.log(file)))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn create_log(&self) -> io::Result<Arc<dyn Disk>> {
        self.check_writable()?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = open_itself(&self.log_path, &mut options)?;
        // Not by the opening: only now is it known that this is a file to be emptied.
        file.set_len(0).map_err(|e| named(&self.log_path, &e))?;
        Ok(Arc::new(self.log(file)))
    }

    fn remove_log(&self) -> io::Result<()> {
        self.check_writable()?;
        match fs::remove_file(&self.log_path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(named(&self.log_path, &e)),
            _ => Ok(()),
        }
    }

    fn is_log_place(&self, dir: FileId, name: &OsStr) -> io::Result<bool> {
        if self.log_path.file_name() != Some(name) {
            return Ok(false);
        }
        let own = self.log_path.parent().unwrap_or(Path::new("/"));
        let found = own.metadata().map_err(|e| named(own, &e))?;
        Ok(FileId::of(&found) == dir)
    }

    fn sync_dir(&self) -> io::Result<()> {
        if self.access == Access::ReadOnly {
            return Ok(());
        }
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(|e| named(dir, &e))
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn now(&self) -> Duration {
        self.opened.elapsed()
    }
}
