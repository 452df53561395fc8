//! An open store, as what reads and what writes share it: its parts, opening and closing.
//!
//! Owns: [`Inner`], with [`LogFile`] and [`GaveBack`]. In its files: when a checkpoint runs
//! (`checkpoints`), the log file (`log_file`), the `unique` counter (`uniques`), hints between
//! transactions (`cursors`).

mod beside;
pub(crate) mod catalog;
mod checkpoint_policy;
pub(crate) mod cursors;
pub(crate) mod deferred;
pub(crate) mod format;
pub(crate) mod give_back;
mod home;
pub(crate) mod key;
mod log_file;
pub(crate) mod options;
mod root_check;
pub(crate) mod sums;
mod tuning;
mod uniques;

pub(crate) use beside::{open_beside, open_held};
pub use options::Options;
pub use tuning::Tuning;

use crate::engine::cursors::Cursors;
use crate::engine::deferred::Deferred;
use crate::engine::sums::Sums;
use crate::log::{Log, LogStart, place};
use crate::metrics::{Event, Scrubbed};
use crate::space::{Allocator, holds_pages};
use crate::txn::{self, Beside, Cause, Pager, Recovered, Volume};
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::PageKind;
use holdall_core::space_dir::SpaceLayout;
use holdall_core::superblock::Superblock;
use holdall_core::{Error, Lsn, PageNo, Result, root_page};
use holdall_io::{Disk, Storage, watch_forks};
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock, Weak};

/// The least that a closed file keeps for a log, if the disk has no more.
const LEAST_RESERVE: u64 = 32 << 10;

/// The smallest log that is made, and what a closed file keeps for it.
const LEAST_LOG: u64 = 64 << 10;

/// What the last round of giving free space back could not do. Nothing is lost by it: the space
/// is free, and the store works as before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct GaveBack {
    /// The file system cannot punch holes: only the free end of the file is given back. Known once
    /// a round has tried since the opening.
    pub cannot_punch: bool,
    /// Free runs that keep their blocks because a call failed. The next round tries them again.
    pub failed_runs: u64,
    /// Bytes of these runs.
    pub failed_bytes: u64,
    /// What failed last, with its cause; `None` if nothing did.
    pub failure: Option<String>,
}

impl GaveBack {
    /// Whether all was done that this file system can.
    pub fn is_complete(&self) -> bool {
        self.failure.is_none()
    }
}

/// The store's log, from its recovery or its making on.
#[derive(Debug, Default)]
pub(crate) struct LogFile {
    disk: Mutex<Option<Arc<dyn Disk>>>,
    /// Deferred commits went into files that no name of the store leads to.
    astray: AtomicBool,
}

impl LogFile {
    fn new(disk: Option<Arc<dyn Disk>>) -> Self {
        Self { disk: Mutex::new(disk), astray: AtomicBool::new(false) }
    }

    /// The log's file; None if there is none, or none that matters.
    fn get(&self) -> Option<Arc<dyn Disk>> {
        self.disk.lock().clone()
    }

    /// Lets go of it: its blocks go back once its name is gone.
    fn take(&self) -> Option<Arc<dyn Disk>> {
        self.disk.lock().take()
    }

    fn set(&self, disk: Arc<dyn Disk>) {
        *self.disk.lock() = Some(disk);
    }
}

/// What failed while no caller waited for it.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<(u64, Option<String>)>);

impl Failures {
    /// Counts one more.
    pub(crate) fn note(&self, what: &str, e: &Error) {
        let why = e.to_string();
        Event::Failure { what, why: &why }.tell();
        let mut all = self.0.lock();
        *all = (all.0 + 1, Some(format!("{what}: {why}")));
    }

    /// How many there were, and the last one.
    pub(crate) fn all(&self) -> (u64, Option<String>) {
        self.0.lock().clone()
    }
}

/// Requests to the store's own threads.
#[derive(Debug, Default)]
pub(crate) struct BackgroundRequests {
    pub(crate) checkpoint: bool,
    pub(crate) flush: bool,
    /// There may be free space to give back.
    pub(crate) spare: bool,
    /// A collection was dropped and is to be emptied.
    pub(crate) drops: bool,
    /// Memory for pages may be moved to huge pages.
    pub(crate) memory: bool,
    pub(crate) stop: bool,
}

/// Empties about the given number of sparse pages; returns whether there was one.
pub(crate) type Compactor = fn(&Arc<Inner>, u64) -> Result<bool>;

/// What all handles of an open store share.
#[derive(Debug)]
pub struct Inner {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) pager: Arc<Pager>,
    pub(crate) alloc: Arc<Allocator>,
    pub(crate) layout: SpaceLayout,
    pub(crate) root: PageNo,
    /// The recovery epoch: versions of objects are of it.
    pub(crate) epoch: u32,
    pub(crate) options: Options,
    pub(crate) read_only: bool,
    pub(crate) recovered: Recovered,
    pub(crate) sums: Option<Box<Sums>>,
    pub(crate) cursors: Mutex<Cursors>,
    pub(crate) requests: Arc<(Mutex<BackgroundRequests>, Condvar)>,
    pub(crate) deferred: Deferred,
    log_file: LogFile,
    closed: AtomicBool,
    log_short: AtomicBool,
    /// The checkpointing thread is to look for free space.
    spare_told: AtomicBool,
    /// The file system cannot punch holes.
    cannot_punch: AtomicBool,
    /// The last round of giving space back failed, and punched nothing.
    gives_in_vain: AtomicBool,
    /// What that round could not do.
    gave_back: Mutex<GaveBack>,
    /// Empties sparse pages, by transactions of the layer above.
    pub(crate) compactor: OnceLock<Compactor>,
    /// Where bringing pages home goes on.
    home_from: AtomicU64,
    /// What failed in the background.
    pub(crate) failures: Failures,
    /// What scrubs have read.
    pub(crate) scrubbed: Scrubbed,
    next_unique: AtomicU64,
    unique_ceiling: AtomicU64,
    process: u32,
}

/// What an opening found beside the pages.
struct Parts {
    recovered: Recovered,
    sums: Option<Box<Sums>>,
    read_only: bool,
}

impl Parts {
    /// Of a store that another process writes.
    fn read_only() -> Self {
        Self { recovered: Recovered::default(), sums: None, read_only: true }
    }
}

/// A pager over a volume whose state is the one at `start`.
fn pager(volume: Volume, options: &Options, start: Lsn) -> Pager {
    let sb = volume.superblock();
    let log = Log::new(LogStart {
        store_id: sb.store_id,
        epoch: sb.epoch,
        start,
        capacity: sb.log_bytes,
        checkpoint: sb.sequence,
    });
    // Limits count pages of the file's size.
    Pager::new(volume, log, options.clone().page_size(sb.page_size as usize).limits())
}

impl Inner {
    /// Opens a store: superblocks, recovery if needed, then nothing is read before it is
    /// used. `reader`: only to be read, of storage that takes what recovery writes. Cost after a
    /// clean close: two reads, constant.
    pub(crate) fn open(
        storage: Arc<dyn Storage>,
        options: &Options,
        reader: Option<Beside>,
    ) -> Result<Arc<Self>> {
        watch_forks();
        let read_only = reader.is_some();
        let slots = format::read_slots(&*storage, options)?;
        if slots.read_only && !read_only {
            let detail = "the store may only be read by this build".into();
            return Err(Error::Unsupported { detail });
        }
        let volume = Volume::new(storage.volume(), slots.best.clone(), slots.older);
        refuse_short(&*storage, &slots.best)?;
        let recovered = txn::recover(&*storage, &volume)?;
        let sb = volume.superblock();
        let sums = options.debug_sums.then(|| Sums::open(&*storage, &sb.store_id, read_only));
        let parts = Parts { recovered, sums: sums.transpose()?.map(Box::new), read_only };
        let mut pager = pager(volume, options, sb.replay);
        if let Some(beside) = reader {
            pager = pager.beside(beside);
        }
        let inner = Self::assemble(storage, pager, options, parts)?;
        if !read_only {
            // From here on others can follow what is committed.
            inner.pager.volume.disk.show_durable(Some(sb.replay.0));
        }
        Ok(inner)
    }

    /// The store over a pager that sees its newest state.
    fn assemble(
        storage: Arc<dyn Storage>,
        pager: Pager,
        options: &Options,
        parts: Parts,
    ) -> Result<Arc<Self>> {
        let Parts { mut recovered, sums, read_only } = parts;
        let log_file = LogFile::new(recovered.log.take());
        let mut sb = pager.volume.superblock();
        let layout = SpaceLayout::new(sb.page_size as usize, sb.space_pages)?;
        let pager = Arc::new(pager);
        let root = pager.newest(sb.root, PageKind::Root)?;
        if pager.is_held() {
            // It may name spaces of later states.
            sb.spaces = sb.spaces.min(root_page::spaces(&root));
        }
        let length = storage.volume().len();
        let length = length.map_err(|e| Error::io("reading the volume's length", e))?;
        pager.volume.note_len(length);
        let pages = length / layout.page_size() as u64;
        let clean = is_clean(&sb, &recovered) && pager.is_alone();
        let holds = |space| holds_pages(&pager, &layout, space);
        root_check::check(&root, &sb, &layout, (pages, clean), holds)?;
        pager.set_images(root_page::images(&root));
        let geometry = (pages, root_page::spaces(&root), sb.holes);
        // Limits count pages of the file's size.
        let options = options.clone().page_size(layout.page_size());
        let alloc =
            Arc::new(Allocator::new(pager.clone(), layout, geometry, options.space_limits()));
        let inner = Arc::new(Self {
            storage,
            pager,
            alloc,
            layout,
            root: sb.root,
            epoch: sb.epoch,
            options,
            read_only,
            recovered,
            sums,
            cursors: Mutex::default(),
            requests: Arc::default(),
            deferred: Deferred::default(),
            log_file,
            closed: AtomicBool::new(false),
            log_short: AtomicBool::new(false),
            spare_told: AtomicBool::new(false),
            cannot_punch: AtomicBool::new(false),
            gives_in_vain: AtomicBool::new(false),
            gave_back: Mutex::default(),
            compactor: OnceLock::new(),
            home_from: AtomicU64::new(0),
            failures: Failures::default(),
            scrubbed: Scrubbed::default(),
            next_unique: AtomicU64::new(sb.unique_ceiling),
            unique_ceiling: AtomicU64::new(sb.unique_ceiling),
            process: std::process::id(),
        });
        let store: Weak<Self> = Arc::downgrade(&inner);
        inner.pager.serve(store);
        Ok(inner)
    }

    /// Whether the superblock names all that is in use: the store was closed, and nothing was
    /// committed since.
    pub(crate) fn is_clean(&self) -> bool {
        // Another process that writes may have made the file longer already.
        self.pager.is_alone()
            && !self.pager.log.attached()
            && is_clean(&self.pager.volume.superblock(), &self.recovered)
    }

    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Invalid`] if the store was closed; [`Error::Forked`].
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        if self.closed.load(SeqCst) {
            return Err(Error::Invalid("the store is closed; open it again".into()));
        }
        self.check_process()
    }

    /// As [`Horizon::check_fork`](crate::cache::horizon::Horizon::check_fork), and sees also a
    /// child that was made past the C library. Cost: a system call.
    ///
    /// # Errors
    /// [`Error::Forked`] in a process forked from the one that opened the store.
    pub(crate) fn check_process(&self) -> Result<()> {
        self.pager.horizon.check_fork()?;
        if std::process::id() == self.process { Ok(()) } else { Err(Error::Forked) }
    }

    /// Asks the thread that empties dropped collections to do so.
    pub(crate) fn ask_to_empty(&self) {
        let (requests, wake) = &*self.requests;
        requests.lock().drops = true;
        wake.notify_all();
    }

    /// Remembers why a background thread failed, so that the next commit says so.
    pub(crate) fn note_background_error(&self, what: &str, e: &Error) {
        self.failures.note(what, e);
        match e {
            // A failed sync of the volume is passed on to the log as it is.
            Error::Poisoned(_) => drop(self.pager.check_poison()),
            Error::Io { .. } => self.pager.log.set_poison(&e.to_string()),
            _ => {}
        }
    }

    /// Whether this process opened it for writing, and has not closed it.
    pub(crate) fn is_open_for_writing(&self) -> bool {
        !self.read_only && !self.closed.load(SeqCst) && std::process::id() == self.process
    }

    /// Whether closing has anything to do.
    pub(crate) fn needs_close(&self) -> bool {
        self.is_open_for_writing() && self.pager.log.attached()
    }

    /// Closes: all durable and in place, the log gone, the file cut to what is in use and a reserve
    /// of 64 KiB or, on XFS, of 320 KiB. Afterwards the store can be read but not written. If its
    /// name leads elsewhere all this is done to its own file, and returned as an error. Cost: a
    /// checkpoint, two superblocks.
    pub(crate) fn close(&self) -> Result<()> {
        if self.read_only || std::process::id() != self.process {
            return Ok(());
        }
        // Nobody commits between the checkpoint and the end of the log.
        let _writer = self.pager.lock_writer()?;
        if self.closed.swap(true, SeqCst) {
            return Ok(());
        }
        self.alloc.shut();
        let fail = |e| txn::io_error("closing the store", e);
        if !self.has_log_to_remove()? {
            return Ok(());
        }
        self.checkpoint(Cause::Maintenance)?;
        self.pager.free_scratch();
        // What is not given back stays free: no reason to leave the store unclosed.
        if let Err(e @ Error::Poisoned(_)) = self.give_back_at_close() {
            return Err(e);
        }
        let keep = self.alloc.pages_in_use()?;
        let spaces = self.alloc.stats().spaces;
        let unique = self.next_unique.load(SeqCst);
        for _ in 0..2 {
            // Both copies alike: either alone then opens the store.
            self.pager.volume.write_superblock(|sb| {
                sb.log_required = false;
                sb.volume_pages = keep;
                sb.spaces = spaces;
                let lost = u64::from(mutation::is(Mutation::R12Close));
                sb.unique_ceiling = unique.max(1 + lost) - lost;
            })?;
        }
        let named = place::check_names(&*self.storage, None);
        self.pager.log.detach();
        if let Some(log) = self.log_file.take() {
            self.storage.remove_log(&*log).map_err(fail)?;
        }
        if named.is_ok() {
            self.storage.sync_dir().map_err(fail)?;
        }
        self.cut_to(keep * self.layout.page_size() as u64).and(named)
    }

    /// Gives the file the length of what is in use, and of a log: on a full disk the next one
    /// is made of that, so that objects can be deleted.
    fn cut_to(&self, in_use: u64) -> Result<()> {
        let fail = |e| txn::io_error("cutting the file", e);
        let disk = &self.pager.volume.disk;
        // Free pages behind the last one in use may have been punched out.
        let holes = self.pager.volume.superblock().holes;
        let fill = |len| if holes { disk.fill_holes(in_use, len) } else { Ok(()) };
        let mut log = LEAST_LOG + self.storage.room_of_log_name();
        loop {
            let length = in_use.saturating_add(log).min(self.options.max_bytes).max(in_use);
            disk.truncate(length).map_err(fail)?;
            match disk.grow(length).and_then(|()| fill(length - in_use)).map_err(fail) {
                // Another file may have taken what the log left; a part may be left.
                Err(Error::Full(_)) if log > LEAST_RESERVE => log /= 2,
                Err(Error::Full(_)) => return Ok(()),
                result => return result,
            }
        }
    }
}

/// Whether the store was closed, and its log held nothing.
fn is_clean(sb: &Superblock, recovered: &Recovered) -> bool {
    !sb.log_required && recovered.commits == 0
}

fn refuse_short(storage: &dyn Storage, sb: &Superblock) -> Result<()> {
    let have = storage.volume().len().map_err(|e| Error::io("reading the volume's length", e))?;
    let want = sb.volume_pages * u64::from(sb.page_size);
    if have < want {
        let detail = format!("the file has {have} bytes, {want} were written: it was cut short");
        return Err(Error::corrupt(storage.name(), detail));
    }
    Ok(())
}
