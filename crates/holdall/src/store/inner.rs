//! An open store: opening, checkpoints, closing.
//!
//! Owns: [`Inner`], shared by the store's handles, its readers and its threads; the `unique`
//! counter; the transient placement state of each collection.

use super::deferred::Deferred;
use super::{Options, format};
use crate::handle::HandleCursor;
use crate::log::place::{self, Found};
use crate::log::{self, Log, LogStart};
use crate::pager::{self, Housekeeping, Pager, Recovered, Volume};
use crate::space::{Allocator, SpaceStats};
use holdall_core::log_format::BLOCK;
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::PageKind;
use holdall_core::placement::Placement;
use holdall_core::space_dir::SpaceLayout;
use holdall_core::superblock::Superblock;
use holdall_core::{Error, PageNo, Result, root_page};
use holdall_io::{Disk, Storage};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Weak};

/// Transient state that survives transactions but not aborted ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Cursors {
    pub(super) handles: HandleCursor,
    pub(super) placements: BTreeMap<u32, Placement>,
}

/// Requests to the store's own threads.
#[derive(Debug, Default)]
pub(super) struct BackgroundRequests {
    pub(super) checkpoint: bool,
    pub(super) flush: bool,
    pub(super) stop: bool,
}

/// What all handles of an open store share.
#[derive(Debug)]
pub struct Inner {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) pager: Arc<Pager>,
    pub(crate) alloc: Arc<Allocator>,
    pub(crate) layout: SpaceLayout,
    pub(crate) root: PageNo,
    /// The recovery epoch: versions of objects are of it.
    pub(super) epoch: u32,
    pub(super) options: Options,
    pub(super) read_only: bool,
    pub(super) recovered: Recovered,
    pub(super) cursors: Mutex<Cursors>,
    pub(super) wishes: Arc<(Mutex<BackgroundRequests>, Condvar)>,
    pub(super) deferred: Deferred,
    closed: AtomicBool,
    log_short: AtomicBool,
    next_unique: AtomicU64,
    unique_ceiling: AtomicU64,
    process: u32,
}

/// `unique` numbers taken out of the superblock at a time, at first and at most.
const FIRST_UNIQUES: u64 = 1 << 12;
const MOST_UNIQUES: u64 = 1 << 20;
/// A log that proves short grows by this factor.
const LOG_GROWTH: u64 = 4;
/// A log that is only used up soon may take this share of the volume; one that is too small
/// for a commit takes what it needs.
const LOG_SHARE: u64 = 64;
/// That share's least.
const LOG_LEAST: u64 = 4 << 20;
/// The smallest log that is made, and what a closed file keeps for it.
const LEAST_LOG: u64 = 64 << 10;
/// Freed space that snapshots may hold in a store with less data than this.
const LEAST_PINNED: u64 = 256 << 20;

/// Bytes of deferred commits not yet written that are worth a write of their own.
const MUCH_BYTES: u64 = 1 << 20;

impl Inner {
    /// Opens a store: superblocks, recovery where needed, then nothing is read before it is
    /// used. Cost after a clean close: two reads, constant.
    pub(super) fn open(
        storage: Arc<dyn Storage>,
        options: &Options,
        read_only: bool,
    ) -> Result<Arc<Self>> {
        let disk = storage.volume();
        let slots = format::read_slots(&*storage, options)?;
        if slots.read_only && !read_only {
            let detail = "the store may only be read by this build".into();
            return Err(Error::Unsupported { detail });
        }
        let volume = Volume::new(disk.clone(), slots.best.clone());
        refuse_short(&*storage, &slots.best)?;
        let recovered = pager::recover(&*storage, &volume)?;
        let sb = volume.superblock();
        let layout = SpaceLayout::new(sb.page_size as usize, sb.space_pages)?;
        let log = Log::new(LogStart {
            store_id: sb.store_id,
            epoch: sb.epoch,
            start: sb.replay,
            capacity: sb.log_bytes,
            checkpoint: sb.sequence,
        });
        let pager = Arc::new(Pager::new(volume, log, options.limits()));
        let root = pager.newest(sb.root, PageKind::Root)?;
        let length = disk.len().map_err(|e| Error::io("reading the volume's length", e))?;
        pager.volume.note_len(length);
        let pages = length / layout.page_size() as u64;
        let spaces = root_page::spaces(&root);
        let (step, most) = (options.growth_bytes, options.max_bytes);
        let alloc = Arc::new(Allocator::new(pager.clone(), layout, (pages, spaces), step, most));
        let options = options.clone().page_size(layout.page_size());
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
            cursors: Mutex::default(),
            wishes: Arc::default(),
            deferred: Deferred::default(),
            closed: AtomicBool::new(false),
            log_short: AtomicBool::new(false),
            next_unique: AtomicU64::new(sb.unique_ceiling),
            unique_ceiling: AtomicU64::new(sb.unique_ceiling),
            process: std::process::id(),
        });
        let store: Weak<Self> = Arc::downgrade(&inner);
        inner.pager.serve(store);
        Ok(inner)
    }

    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Invalid`] where the store was closed or belongs to the
    /// process that forked this one.
    pub(super) fn check_writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        if self.closed.load(SeqCst) {
            return Err(Error::Invalid("the store is closed; open it again".into()));
        }
        self.check_process()
    }

    /// # Errors
    /// [`Error::Invalid`] in a process forked from the one that opened the store.
    pub(super) fn check_process(&self) -> Result<()> {
        if std::process::id() != self.process {
            let text = "the store was opened by another process; open it after the fork";
            return Err(Error::Invalid(text.into()));
        }
        Ok(())
    }

    fn start_log(&self) -> Result<()> {
        let fail = |e| pager::io_error("creating the log file", e);
        let sb = self.pager.volume.superblock();
        if sb.log_required
            && let Some(disk) = self.storage.open_log().map_err(fail)?
            && disk.len().map_err(fail)? >= sb.log_bytes
        {
            // Recovery has raised the epoch and moved the LSN: what it holds is of no account.
            return self.pager.log.attach(disk, sb.log_bytes);
        }
        let disk = self.empty_log()?;
        let mut capacity = self.options.initial_log_bytes();
        let mut reserve = true;
        // On a full disk a small log still lets objects be deleted.
        while let Err(e) = log::prepare_file(&*disk, capacity) {
            disk.truncate(0).map_err(fail)?;
            let less = capacity / 4 / BLOCK as u64 * BLOCK as u64;
            match e {
                Error::Full(_) if less >= LEAST_LOG => capacity = less,
                Error::Full(_) if std::mem::take(&mut reserve) => {
                    self.alloc.cut_tail()?;
                    capacity = LEAST_LOG.min(self.options.log_bytes);
                }
                e => return Err(e),
            }
        }
        self.storage.sync_dir().map_err(fail)?;
        let volume = &self.pager.volume;
        let named = volume.write_superblock(|sb| {
            sb.log_required = true;
            sb.log_bytes = capacity;
        });
        // Both copies alike: the older one would look for the log elsewhere, or not at all.
        let written = named.and_then(|_| volume.write_superblock(|_| {})).inspect_err(|e| {
            // What a failed write left may ask for this log: no next try may empty it.
            self.pager.log.set_poison(&e.to_string());
        })?;
        self.pager.log.attach(disk, capacity)?;
        self.pager.log.note_checkpoint(written.sequence);
        Ok(())
    }

    /// A log file without a byte in it. Only this store's own is emptied.
    fn empty_log(&self) -> Result<Arc<dyn Disk>> {
        let fail = |e| pager::io_error("creating the log file", e);
        match place::look(&*self.storage, Some(&self.pager.volume.superblock().store_id))? {
            Found::Nothing => {}
            Found::Blank(disk) => {
                disk.truncate(0).map_err(fail)?;
                return Ok(disk);
            }
            Found::Own(..) => {
                // A crash halfway through emptying it could leave what looks like nobody's.
                self.storage.remove_log().map_err(fail)?;
                self.storage.sync_dir().map_err(fail)?;
            }
            Found::Foreign(what) => return Err(place::wrong(&*self.storage, what)),
        }
        self.storage.create_log().map_err(fail)
    }

    /// Makes the log larger, but no larger than `most`; no commit can happen meanwhile, since
    /// the writer's lock is held.
    fn grow_log(&self, most: u64) -> Result<()> {
        let old = self.pager.log.usage().capacity;
        let new = old.saturating_mul(LOG_GROWTH).min(self.options.log_bytes_within(most));
        // Not for a little: each growth costs a checkpoint.
        if new < old * 2 {
            return Ok(());
        }
        self.checkpoint()?;
        let fail = |e| pager::io_error("growing the log file", e);
        let Some(disk) = self.storage.open_log().map_err(fail)? else { return Ok(()) };
        if !self.pager.log.is_empty() {
            return Ok(());
        }
        match log::prepare_file(&*disk, new) {
            Ok(()) => {}
            // The smaller log goes on serving.
            Err(Error::Full(_)) => return Ok(()),
            Err(e) => return Err(e),
        }
        for _ in 0..2 {
            // Both copies alike, as after recovery. Half done, the next crash might look for
            // commits at other places than they were written to.
            if let Err(e) = self.pager.volume.write_superblock(|sb| sb.log_bytes = new) {
                self.pager.log.set_poison(&e.to_string());
                return Err(e);
            }
        }
        self.pager.log.attach(disk, new)
    }

    /// A number no object of this store ever had. Now and then one superblock write.
    pub(super) fn take_unique(&self) -> Result<u32> {
        let n = self.next_unique.fetch_add(1, SeqCst);
        let ceiling = self.unique_ceiling.load(SeqCst);
        if n >= ceiling {
            // A share of those given out, so that neither loads nor crashes waste many.
            let more = (n / 8).clamp(FIRST_UNIQUES, MOST_UNIQUES);
            if !mutation::is(Mutation::R12Ceiling) {
                self.pager.volume.write_superblock(|sb| sb.unique_ceiling = n + more)?;
            }
            // Both copies: an older one, should this one be damaged, must not bring back numbers
            // given out since (rule 12).
            if !mutation::is(Mutation::R12Both) {
                let written = self.pager.volume.write_superblock(|_| {})?;
                self.pager.log.note_checkpoint(written.sequence);
            }
            self.unique_ceiling.store(n + more, SeqCst);
        }
        // The low 32 bits: an OID would have to be kept through four billion creations to
        // meet a slot's new owner with the same number.
        Ok(n as u32)
    }

    /// Asks the flushing thread to make deferred commits durable.
    pub(super) fn ask_for_flush(&self) {
        let (wishes, wake) = &*self.wishes;
        wishes.lock().flush = true;
        wake.notify_all();
    }

    /// Notes when the newest commit was made, for the age of snapshots.
    pub(super) fn note_time(&self) {
        let horizon = &self.pager.horizon;
        horizon.note_time(horizon.newest(), self.storage.now());
    }

    /// After a deferred commit: sees to it that it becomes durable in time.
    pub(super) fn after_deferred(&self) -> Result<()> {
        self.note_time();
        if self.deferred.is_flushed_by_thread() {
            self.ask_for_flush();
        } else {
            self.deferred.waits(self.storage.now());
            if self.pager.log.usage().unwritten > MUCH_BYTES {
                self.flush_deferred()?;
            }
        }
        self.after_commit()
    }

    /// Makes deferred commits durable whose time is over, where no thread does. Called at the
    /// begin of every call of the store. Cost: mostly the look at one number.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    #[inline]
    pub(super) fn flush_overdue(&self) -> Result<()> {
        if self.deferred.any_waits()
            && self.deferred.is_overdue(self.storage.now(), self.options.defer)
        {
            self.flush_deferred()?;
        }
        Ok(())
    }

    fn flush_deferred(&self) -> Result<()> {
        // Before the flush: a commit that comes meanwhile waits anew.
        self.deferred.flushing();
        self.pager.flush()
    }

    /// Remembers why a background thread failed, so that the next commit says so.
    pub(super) fn note_background_error(&self, e: &Error) {
        match e {
            // A failed sync of the volume is passed on to the log as it is.
            Error::Poisoned(_) => drop(self.pager.check_poison()),
            Error::Io { .. } => self.pager.log.set_poison(&e.to_string()),
            _ => {}
        }
    }

    /// Whether closing has anything to do.
    pub(super) fn needs_close(&self) -> bool {
        !self.read_only
            && !self.closed.load(SeqCst)
            && self.pager.log.attached()
            && std::process::id() == self.process
    }

    fn fill_superblock(&self, space: &SpaceStats, sb: &mut Superblock) {
        // A checkpoint that overlaps the close must not name a length that the close cuts.
        if !self.closed.load(SeqCst) {
            sb.volume_pages = space.volume_pages;
            sb.spaces = space.spaces;
        }
    }

    /// Makes all commits durable and brings them home.
    pub(super) fn checkpoint(&self) -> Result<()> {
        self.checkpoint_with(&mut || {})
    }

    pub(super) fn checkpoint_with(&self, between: &mut dyn FnMut()) -> Result<()> {
        if !self.pager.log.attached() {
            return Ok(());
        }
        self.check_process()?;
        self.pager.flush()?;
        let mut run = self.pager.begin_checkpoint()?;
        // Before the sync of the pages: a length named later might not be durable yet.
        let space = self.alloc.stats();
        loop {
            between();
            if run.step(&|sb| self.fill_superblock(&space, sb))? {
                break;
            }
        }
        let lsn = run.lsn();
        drop(run);
        self.alloc.checkpointed(lsn)
    }

    /// After a commit: asks for a checkpoint, or runs it, where one is due.
    pub(super) fn after_commit(&self) -> Result<()> {
        if let Err(e) = self.bound_pinned() {
            // As below: the commit has happened.
            self.note_background_error(&e);
        }
        if !self.options.auto_checkpoint || !self.wants_checkpoint() {
            return Ok(());
        }
        let log = self.pager.log.usage();
        if log.used * 2 > log.capacity {
            self.log_short.store(true, SeqCst);
        }
        if self.options.background {
            let (wishes, wake) = &*self.wishes;
            wishes.lock().checkpoint = true;
            wake.notify_all();
        } else if let Err(e) = self.checkpoint() {
            // The commit has happened: the next one meets the cause, as with a thread.
            self.note_background_error(&e);
            if mutation::is(Mutation::R09AfterCommit) {
                return Err(e);
            }
        }
        Ok(())
    }

    /// Keeps what snapshots hold of freed space within [`Options::pinned_bytes`], by giving up
    /// the oldest ones.
    fn bound_pinned(&self) -> Result<()> {
        let size = self.layout.page_size() as u64;
        let most = |space: &SpaceStats| match self.options.pinned_bytes {
            Some(bytes) => bytes / size,
            None => space.live_pages().max(LEAST_PINNED / size),
        };
        let space = self.alloc.stats();
        // More waits than is pinned: mostly this is all.
        if space.waiting_pages <= most(&space) {
            return Ok(());
        }
        while self.alloc.pinned_pages() > most(&self.alloc.stats()) {
            if !self.alloc.expire_oldest()? {
                break;
            }
        }
        Ok(())
    }

    /// Whether a checkpoint is due: for the log's or the pool's sake, or for space.
    pub(super) fn wants_checkpoint(&self) -> bool {
        let space = self.alloc.stats();
        // Space waiting to be freed is kept a small share of the store.
        let waiting = space.waiting_pages * 32 > space.volume_pages
            && space.waiting_pages * self.layout.page_size() as u64 > (4 << 20);
        waiting && self.alloc.has_new_waiting() || self.pager.wants_checkpoint()
    }

    /// Closes: all durable and home, the log gone, the file cut to what is in use and a reserve
    /// of 64 KiB. Afterwards the store can be read but not written. Cost: a checkpoint, two superblocks.
    pub(super) fn close(&self) -> Result<()> {
        if self.read_only || std::process::id() != self.process {
            return Ok(());
        }
        // Nobody commits between the checkpoint and the end of the log.
        let _writer = self.pager.lock_writer()?;
        if self.closed.swap(true, SeqCst) {
            return Ok(());
        }
        let fail = |e| pager::io_error("closing the store", e);
        if !self.has_log_to_remove()? {
            return Ok(());
        }
        self.checkpoint()?;
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
        self.pager.log.detach();
        self.storage.remove_log().map_err(fail)?;
        self.storage.sync_dir().map_err(fail)?;
        self.cut_to(keep * self.layout.page_size() as u64)
    }

    /// Gives the file the length of what is in use, and of a log: on a full disk the next one
    /// is made of that, so that objects can be deleted.
    fn cut_to(&self, in_use: u64) -> Result<()> {
        let fail = |e| pager::io_error("cutting the file", e);
        let disk = &self.pager.volume.disk;
        let length = in_use.saturating_add(LEAST_LOG).min(self.options.max_bytes).max(in_use);
        if disk.len().map_err(fail)? >= length {
            return disk.truncate(length).map_err(fail);
        }
        match disk.grow(length).map_err(fail) {
            // Whoever took what the log left has it.
            Err(Error::Full(_)) => Ok(()),
            result => result,
        }
    }

    /// Whether a log of this store lies beside it. One that the superblock names is marked as
    /// the store's first: after a crash in the midst of closing nothing names it any more.
    fn has_log_to_remove(&self) -> Result<bool> {
        let (storage, sb) = (&*self.storage, self.pager.volume.superblock());
        // Without a commit since a recovery the log is not attached but still there; and a
        // crash may have left one that nothing needs.
        let required = self.pager.log.attached() || sb.log_required;
        if required && self.pager.log.groups() > 0 {
            return Ok(true);
        }
        let found = place::look(storage, Some(&sb.store_id))?;
        if required
            && matches!(found, Found::Foreign(_))
            && let Some(disk) = place::open(storage)?
        {
            // All that was in it was torn.
            log::sign(&*disk, &sb)?;
        }
        Ok(required || matches!(found, Found::Own(..) | Found::Blank(_)))
    }
}

impl Housekeeping for Inner {
    /// Gives the log a file, lets it grow, waits for a checkpoint where too much is dirty.
    fn before_write(&self) -> Result<()> {
        self.check_writable()?;
        if !self.pager.log.attached() {
            self.start_log()?;
        }
        if self.log_short.swap(false, SeqCst) {
            let share = self.alloc.volume_pages() * self.layout.page_size() as u64 / LOG_SHARE;
            self.grow_log(share.max(LOG_LEAST))?;
        }
        let full = || self.pager.dirty_pages() >= self.options.dirty_pages;
        // Mostly the checkpoint under way is enough, and half the wait of one behind it.
        if full() {
            self.pager.await_checkpoint();
        }
        if full() {
            self.checkpoint()?;
        }
        Ok(())
    }

    fn make_log_room(&self) -> Result<()> {
        self.log_short.store(true, SeqCst);
        // As before a write; where it is not enough the commit asks again.
        if self.pager.await_checkpoint() { Ok(()) } else { self.checkpoint() }
    }

    fn enlarge_log(&self) -> Result<bool> {
        let before = self.pager.log.usage().capacity;
        self.grow_log(u64::MAX)?;
        Ok(self.pager.log.usage().capacity > before)
    }

    fn free_waiting(&self) -> Result<()> {
        self.checkpoint()
    }
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
