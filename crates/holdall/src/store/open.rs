//! Creating and opening stores, in files and on other storage.

use super::current::Current;
use super::{Store, threads};
use crate::engine::Inner;
use crate::engine::{Options, format};
use crate::log::place::IN_USE;
use crate::txn::{Wait, Waiting, no_inodes};
use holdall_core::{Error, Result};
use holdall_io::{Access, FileStorage, Locked, MemoryStorage, Storage, is_out_of_inodes};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Times that an opening finds no store, and the creation finds one, before it says so.
const MOST_TRIES: u32 = 100;
/// Pauses between looks at a file that others have locked.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// So long a creation, or the end of a process, may take before what it leaves counts.
const MAKING: Duration = Duration::from_secs(1);

impl Options {
    /// Creates a store in a new file, or in one that is empty or that a crash left of a
    /// creation. Nothing that is a log may lie beside it. With [`Options::wait`] it waits for
    /// others who have such a file open.
    ///
    /// # Errors
    /// [`Error::Exists`] if the file is there, [`Error::WrongLog`] if something else lies
    /// in the log's place, [`Error::Invalid`] for impossible options, [`Error::Full`],
    /// [`Error::NoRoom`], [`Error::Io`].
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Store> {
        self.create_within(path.as_ref(), &self.begin_waiting())
    }

    fn create_within(&self, path: &Path, waiting: &Waiting) -> Result<Store> {
        format::check_creation(self)?;
        self.wait_for(waiting, || self.create_now(path))
    }

    fn create_now(&self, path: &Path) -> Result<Store> {
        let storage = match FileStorage::create(path) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                return match FileStorage::open(path, Access::ReadWrite) {
                    Ok(storage) => self.create_on(Arc::new(storage)),
                    // It may be in the making.
                    Err(locked) if self.waits() && locked.kind() == ErrorKind::WouldBlock => {
                        Err(open_error(path, locked))
                    }
                    Err(_) => Err(open_error(path, e)),
                };
            }
            other => other.map_err(|e| open_error(path, e))?,
        };
        let storage = Arc::new(storage);
        self.create_on(storage.clone()).inspect_err(|_| {
            // What was made of it is no store; the name must not stay taken. As long as it is
            // locked nobody else can make one of it.
            let _ = storage.remove_volume();
        })
    }

    /// Opens a store. Only one handle in one process can have it open for writing: others get
    /// [`Error::Locked`], which names who has it, after [`Options::wait`].
    ///
    /// # Errors
    /// [`Error::Invalid`] for impossible options, [`Error::NotFound`], [`Error::NotAStore`],
    /// [`Error::Unfinished`], [`Error::Locked`], [`Error::NoLog`], [`Error::WrongLog`],
    /// [`Error::NoRoom`], [`Error::Unsupported`], [`Error::Corrupt`], [`Error::Io`];
    /// [`Error::Cancelled`] if [`Options::cancel`] ended a wait.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Store> {
        self.open_within(path.as_ref(), &self.begin_waiting())
    }

    fn open_within(&self, path: &Path, waiting: &Waiting) -> Result<Store> {
        self.check()?;
        self.wait_for(waiting, || {
            let storage = FileStorage::open(path, Access::ReadWrite);
            self.open_on(Arc::new(storage.map_err(|e| open_error(path, e))?))
        })
    }

    /// Opens a store, or creates it if the file is missing. A file that holds nothing stays as
    /// it is, since a store may have been there: only [`Options::create`] makes one of it.
    ///
    /// # Errors
    /// As [`Options::open`] and [`Options::create`].
    pub fn open_or_create(&self, path: impl AsRef<Path>) -> Result<Store> {
        self.open_or_create_and_tell(path).map(|(store, _)| store)
    }

    /// As [`Options::open_or_create`]; also returns whether this call created the store.
    ///
    /// # Errors
    /// As [`Options::open_or_create`].
    pub fn open_or_create_and_tell(&self, path: impl AsRef<Path>) -> Result<(Store, bool)> {
        let path = path.as_ref();
        let (waiting, mut tries) = (self.begin_waiting(), 1..MOST_TRIES);
        loop {
            match self.open_within(path, &waiting) {
                Err(Error::NotFound(_)) => {}
                other => return Ok((other?, false)),
            }
            match self.create_within(path, &waiting) {
                // Somebody was faster.
                Err(Error::Exists(_)) if tries.next().is_some() => {}
                other => return Ok((other?, true)),
            }
        }
    }

    /// Opens a store for reading beside others, one of which may write. Nobody is kept out, and nothing is
    /// written, so that the right to read the two files is enough. While another process writes,
    /// each [`Store::read`] sees the newest state that it made durable; an older one, held while the
    /// writer's checkpoints pass it, ends with [`Error::SnapshotTooOld`] where its pages were used
    /// again. After a crash the log is replayed in memory.
    ///
    /// # Errors
    /// As [`Options::open`]; [`Error::Locked`] if a writer was opening the store for ten seconds.
    pub fn open_read_only(&self, path: impl AsRef<Path>) -> Result<Store> {
        self.check()?;
        let path = path.as_ref();
        self.wait_for(&self.begin_waiting(), || {
            let storage = FileStorage::open(path, Access::ReadOnly);
            self.open_read_only_on(Arc::new(storage.map_err(|e| open_error(path, e))?))
        })
    }

    fn waits(&self) -> bool {
        self.wait != Wait::Not
    }

    /// Opens, again and again as long as others have the file locked and the wait is not over.
    fn wait_for(&self, waiting: &Waiting, open: impl Fn() -> Result<Store>) -> Result<Store> {
        let (begun, mut tries) = (Instant::now(), 0);
        loop {
            match open() {
                Err(e) if self.waits() && passes(&e, begun.elapsed()) => {
                    waiting.check()?;
                    if waiting.is_over() {
                        return Err(e);
                    }
                    std::thread::sleep(waiting.slice(pause(tries)));
                    tries += 1;
                }
                opened => return opened,
            }
        }
    }

    fn begin_waiting(&self) -> Waiting {
        Waiting::begin(self.wait, self.cancel.as_ref())
    }

    /// Creates a store in memory, which is gone with its last handle.
    ///
    /// ```
    /// let store = holdall::Options::default().max_bytes(4 << 20).create_in_memory()?;
    /// store.write(|tx| tx.put("a", b"1"))?;
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] for impossible options.
    pub fn create_in_memory(&self) -> Result<Store> {
        self.create_on(Arc::new(MemoryStorage::new()))
    }

    /// Creates a store on any storage that holds none.
    ///
    /// # Errors
    /// As [`Options::create`].
    pub fn create_on(&self, storage: Arc<dyn Storage>) -> Result<Store> {
        format::make(&*storage, self)?;
        self.open_on(storage)
    }

    /// Opens a store on any storage.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open_on(&self, storage: Arc<dyn Storage>) -> Result<Store> {
        self.check()?;
        let inner = Inner::open(storage, self, None)?;
        let threads = self.background.then(|| threads::Threads::start(&inner));
        Ok(Store::from_inner(inner, threads, None))
    }

    /// Opens a store on any storage for reading only.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open_read_only_on(&self, storage: Arc<dyn Storage>) -> Result<Store> {
        self.check()?;
        let current = Current::open(storage, self)?;
        Ok(Store::from_inner(current.last(), None, Some(Arc::new(current))))
    }
}

/// Whether an opening may go well a little later.
fn passes(e: &Error, waited: Duration) -> bool {
    match e {
        Error::Locked { .. } => true,
        // It is in the making, or its creation was cut short.
        Error::Unfinished { .. } => waited < MAKING,
        // A process that ends lets go of the volume before the log.
        Error::WrongLog { detail, .. } => detail == IN_USE && waited < MAKING,
        _ => false,
    }
}

/// Longer from try to try, and different for those who began together.
fn pause(tries: u32) -> Duration {
    let most = LONGEST_PAUSE.min(SHORTEST_PAUSE.saturating_mul(1 << tries.min(5)));
    let drawn = RandomState::new().build_hasher().finish() % 1024;
    most / 2 + most * drawn as u32 / 2048
}

/// Says what a user can do about a file that cannot be opened.
pub(crate) fn open_error(path: &Path, e: std::io::Error) -> Error {
    let shown = path.display().to_string();
    match e.kind() {
        _ if is_out_of_inodes(&e) => no_inodes(&format!("creating {shown}"), &e),
        ErrorKind::NotFound => Error::NotFound(format!("store {shown}")),
        ErrorKind::AlreadyExists => Error::Exists(format!("file {shown}")),
        ErrorKind::WouldBlock => {
            let locked = e.get_ref().and_then(|inner| inner.downcast_ref::<Locked>());
            let opener = locked.and_then(|locked| locked.by.as_ref());
            let by = opener.map_or("another process or handle".into(), ToString::to_string);
            Error::Locked { path: shown, by, process: opener.map(|opener| opener.process) }
        }
        ErrorKind::IsADirectory => {
            Error::NotAStore { path: shown, detail: "it is a directory".into() }
        }
        ErrorKind::InvalidInput => {
            Error::NotAStore { path: shown, detail: "it is not a regular file".into() }
        }
        ErrorKind::StorageFull => Error::Full(format!("creating {shown}")),
        // It names the path itself.
        _ => Error::io("opening the store", e),
    }
}
