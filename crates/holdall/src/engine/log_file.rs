//! The log file beside the volume: made at the first commit, grown when it is short.
//!
//! Owns: no state; [`LogFile`](super::LogFile) is the store's. The log is known by its file, not by
//! its name, which may lead to another store's log once somebody renames the open store.

use super::give_back::GiveBack;
use super::{Inner, LEAST_LOG, LEAST_RESERVE};
use crate::log;
use crate::log::place::{self, LogPlace};
use crate::txn::{self, Cause, Wait, Waiting};
use holdall_core::log_format::BLOCK;
use holdall_core::mutation::{self, Mutation};
use holdall_core::{Error, Result};
use holdall_io::Disk;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

/// A log that proves short grows by this factor.
const LOG_GROWTH: u64 = 16;
/// The part of the volume that the log of an idle store may take.
const IDLE_SHARE: u64 = 64;
/// The part of what is free on the disk by which a log may grow for speed alone.
const DISK_SHARE: u64 = 8;
/// What a store on a full disk gives back for its log.
#[derive(Debug, Clone, Copy)]
enum Room {
    /// What a close leaves behind the last page in use.
    Tail,
    /// Blocks of free pages.
    FreePages,
}

impl Inner {
    /// Before a commit that somebody waits for, and after deferred ones became durable: looks
    /// whether they can be found.
    ///
    /// # Errors
    /// [`Error::Moved`].
    pub(crate) fn check_names(&self) -> Result<()> {
        let log = self.log_file.get();
        let checked = place::check_names(&*self.storage, log.as_deref());
        self.log_file.astray.store(checked.is_err(), SeqCst);
        checked
    }

    /// As [`Inner::check_names`], if the last look found something wrong.
    pub(super) fn check_names_again(&self) -> Result<()> {
        if self.log_file.astray.load(SeqCst) { self.check_names() } else { Ok(()) }
    }

    /// Bytes of blocks of the log.
    pub(crate) fn log_file_bytes(&self) -> u64 {
        self.log_file.get().and_then(|disk| disk.allocated().ok()).unwrap_or(0)
    }

    /// Makes the log, if there is none yet, before data that is staged without the writer's lock
    /// takes the room that it needs. If another transaction runs, that one has made it.
    ///
    /// # Errors
    /// As for a transaction that begins.
    pub(crate) fn start_log_early(&self) -> Result<()> {
        if self.pager.log.attached() || self.pager.holds_writer() {
            return Ok(());
        }
        match txn::PageTx::begin(&self.pager, &Waiting::begin(Wait::Not, None)) {
            Ok(_) | Err(Error::Busy(_)) => Ok(()),
            Err(e) => Err(e),
        }
    }

    pub(super) fn start_log(&self) -> Result<()> {
        let fail = |e| txn::io_error("creating the log file", e);
        let sb = self.pager.volume.superblock();
        let recovered = self.log_file.get().filter(|_| sb.log_required);
        place::check_names(&*self.storage, recovered.as_deref())?;
        if let Some(disk) = recovered
            && disk.len().map_err(fail)? >= sb.log_bytes
        {
            // Recovery has raised the epoch and moved the LSN: what it holds is of no account.
            return self.pager.log.attach(disk, sb.log_bytes);
        }
        let (disk, capacity) = self.make_log()?;
        self.storage.sync_dir().map_err(fail)?;
        if let Err(e) = place::check_names(&*self.storage, Some(&*disk)) {
            // Renamed while the log was made: it lies beside another store now.
            self.storage.remove_log(&*disk).map_err(fail)?;
            return Err(e);
        }
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
        self.pager.log.attach(disk.clone(), capacity)?;
        self.log_file.set(disk);
        self.pager.log.note_checkpoint(written.sequence);
        Ok(())
    }

    /// A new log, prepared. On a full disk a small one, for which the store gives back what it
    /// keeps for this, and then free space: with a log objects can be deleted.
    fn make_log(&self) -> Result<(Arc<dyn Disk>, u64)> {
        let mut room = [Room::Tail, Room::FreePages].into_iter();
        let disk = loop {
            match self.empty_log() {
                Err(Error::Full(why)) => self.free_room(room.next(), why)?,
                made => break made?,
            }
        };
        let mut capacity = self.options.tuning.initial_log_bytes();
        while let Err(e) = log::prepare_file(&*disk, 0..capacity) {
            let less = capacity / 4 / BLOCK as u64 * BLOCK as u64;
            let freed = match e {
                Error::Full(_) if less >= LEAST_LOG => {
                    capacity = less;
                    Ok(())
                }
                Error::Full(why) => match room.next() {
                    None if capacity > LEAST_RESERVE => {
                        capacity = LEAST_RESERVE;
                        Ok(())
                    }
                    next => {
                        capacity = LEAST_LOG.min(self.options.tuning.log_bytes);
                        self.free_room(next, why)
                    }
                },
                e => Err(e),
            };
            // Before the next try, whose room what was written of it may take.
            let emptied = disk.truncate(0).map_err(|e| txn::io_error("creating the log file", e));
            if let Err(e) = freed.and(emptied) {
                // A name that leads to nothing is worth no error of its own.
                let _ = self.storage.remove_log(&*disk);
                return Err(e);
            }
        }
        self.pad_log(&*disk)?;
        Ok((disk, capacity))
    }

    /// Has the log take at least the room that a close needs for the reserve of the next one:
    /// its removal frees it, however full the disk is by then.
    fn pad_log(&self, disk: &dyn Disk) -> Result<()> {
        match disk
            .grow(self.least_log_file())
            .map_err(|e| txn::io_error("creating the log file", e))
        {
            Err(Error::Full(_)) => Ok(()),
            result => result,
        }
    }

    fn least_log_file(&self) -> u64 {
        (LEAST_LOG + self.storage.room_of_log_name()).min(self.options.max_bytes)
    }

    /// Makes room for a log on a full disk; `lacks` says what was missing.
    ///
    /// # Errors
    /// [`Error::NoRoom`] if all was given back before; those of giving back.
    fn free_room(&self, room: Option<Room>, lacks: String) -> Result<()> {
        let freed = match room {
            Some(Room::Tail) => self.alloc.cut_tail(),
            Some(Room::FreePages) => self.give_back(GiveBack::FOR_LOG).map(drop),
            None => {
                let need = 2 * LEAST_LOG + self.storage.room_of_log_name();
                let log = place::name(&*self.storage);
                return Err(Error::NoRoom {
                    what: format!("{log} cannot be made, without which nothing can be changed"),
                    lacks,
                    advice: format!("free {} KiB on the disk, then delete objects", need >> 10),
                });
            }
        };
        match freed {
            // A file system that copies what is written has none for the superblock either.
            Err(Error::Full(_)) => Ok(()),
            result => result,
        }
    }

    /// A new log file. Only what is blank or this store's own gives way to it, and by its name: a
    /// crash halfway through emptying a file could leave what looks like nobody's, and a blank
    /// one may be the new log of a store that was just renamed.
    fn empty_log(&self) -> Result<Arc<dyn Disk>> {
        let fail = |e| txn::io_error("creating the log file", e);
        match place::examine(&*self.storage, Some(&self.pager.volume.superblock().store_id))? {
            LogPlace::Nothing => {}
            LogPlace::Blank(disk) | LogPlace::Own(disk, _) => {
                self.storage.remove_log(&*disk).map_err(fail)?;
                self.storage.sync_dir().map_err(fail)?;
            }
            LogPlace::Foreign(what) => return Err(place::wrong(&*self.storage, what)),
        }
        // What was read of it at the opening.
        drop(self.log_file.take());
        self.storage.create_log().map_err(fail)
    }

    /// Makes the log larger, but no larger than `most`; no commit can happen meanwhile, since
    /// the writer's lock is held.
    ///
    /// # Errors
    /// [`Error::Full`], and the smaller log goes on serving.
    pub(super) fn grow_log(&self, most: u64) -> Result<()> {
        let old = self.pager.log.usage().capacity;
        let mut new =
            old.saturating_mul(LOG_GROWTH).min(self.options.tuning.log_bytes_within(most));
        // Not for a little: each growth costs a checkpoint.
        if new < old * 2 {
            return Ok(());
        }
        self.checkpoint(Cause::Log)?;
        let Some(disk) = self.pager.log.disk() else { return Ok(()) };
        if !self.pager.log.is_empty() {
            return Ok(());
        }
        while let Err(e) = log::prepare_file(&*disk, old..new) {
            // What was written of it is no use to anybody.
            disk.truncate(old).map_err(|e| txn::io_error("cutting the log file", e))?;
            new = new / 2 / BLOCK as u64 * BLOCK as u64;
            if !matches!(e, Error::Full(_)) || new < old * 2 {
                return Err(e);
            }
        }
        self.resize_log(disk, new)?;
        self.ask_to_give_back();
        Ok(())
    }

    /// Names the size of the empty log in both superblocks, then uses it.
    fn resize_log(&self, disk: Arc<dyn Disk>, bytes: u64) -> Result<()> {
        for _ in 0..2 - usize::from(mutation::is(Mutation::R32Both)) {
            // Both copies alike, as after recovery. Half done, the next crash might look for
            // commits at other places than they were written to.
            if let Err(e) = self.pager.volume.write_superblock(|sb| sb.log_bytes = bytes) {
                self.pager.log.set_poison(&e.to_string());
                return Err(e);
            }
        }
        self.pager.log.attach(disk, bytes)
    }

    /// What the log of a store takes in which nobody writes.
    fn idle_log_bytes(&self) -> u64 {
        let share = self.alloc.volume_pages() * self.layout.page_size() as u64 / IDLE_SHARE;
        let tuning = &self.options.tuning;
        tuning.log_bytes_within(share.max(tuning.initial_log_bytes()))
    }

    /// The largest log for speed alone: what it takes is room that the volume lacks on a small disk.
    pub(super) fn log_bytes_for_disk(&self) -> u64 {
        let now = self.pager.log.usage().capacity;
        let free = self.pager.volume.disk.room().ok().flatten();
        free.map_or(u64::MAX, |free| now.saturating_add(free / DISK_SHARE))
    }

    /// Whether a load made the log much larger than it stays.
    pub(crate) fn has_large_log(&self) -> bool {
        let log = &self.pager.log;
        log.attached() && log.usage().capacity > 2 * self.idle_log_bytes()
    }

    /// Makes a log that a load made grow smaller again, unless a transaction runs. Cost: a
    /// checkpoint, two superblocks.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Io`].
    pub(crate) fn shrink_log(&self) -> Result<()> {
        let Some(_writer) = self.pager.try_lock_writer() else { return Ok(()) };
        if self.closed.load(SeqCst) || !self.has_large_log() {
            return Ok(());
        }
        self.checkpoint(Cause::Maintenance)?;
        let Some(disk) = self.pager.log.disk().filter(|_| self.pager.log.is_empty()) else {
            return Ok(());
        };
        let bytes = self.idle_log_bytes();
        // A file that stays too long harms nobody.
        let cut = || drop(disk.truncate(bytes.max(self.least_log_file())));
        if mutation::is(Mutation::R32Cut) {
            cut();
        }
        self.resize_log(disk.clone(), bytes)?;
        // Only now: until both superblocks name the new end, a crash may look behind it.
        cut();
        Ok(())
    }

    /// Whether a log of this store lies beside it. One that the superblock names is marked as
    /// the store's first: after a crash in the midst of closing nothing names it any more.
    pub(super) fn has_log_to_remove(&self) -> Result<bool> {
        let sb = self.pager.volume.superblock();
        // Without a commit since a recovery the log is not attached but still there; and a
        // crash may have left one that nothing needs.
        let required = self.pager.log.attached() || sb.log_required;
        if required && self.pager.log.groups() > 0 {
            return Ok(true);
        }
        if required {
            if let Some(disk) = self.log_file.get()
                && matches!(
                    place::examine_disk(disk.clone(), Some(&sb.store_id))?,
                    LogPlace::Foreign(_)
                )
            {
                // All that was in it was torn.
                log::sign(&*disk, &sb)?;
            }
            return Ok(true);
        }
        if place::check_names(&*self.storage, None).is_err() {
            return Ok(false);
        }
        match place::examine(&*self.storage, Some(&sb.store_id))? {
            LogPlace::Own(disk, _) | LogPlace::Blank(disk) => {
                self.log_file.set(disk);
                Ok(true)
            }
            LogPlace::Nothing | LogPlace::Foreign(_) => Ok(false),
        }
    }
}
