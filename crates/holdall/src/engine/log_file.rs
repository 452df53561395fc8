//! The log file beside the volume: made at the first commit, grown when it is short.

use super::Inner;
use crate::log;
use crate::log::place::{self, Found};
use crate::txn;
use holdall_core::log_format::BLOCK;
use holdall_core::{Error, Result};
use holdall_io::Disk;
use std::sync::Arc;

/// A log that proves short grows by this factor.
const LOG_GROWTH: u64 = 4;
/// The smallest log that is made, and what a closed file keeps for it.
pub(super) const LEAST_LOG: u64 = 64 << 10;

impl Inner {
    pub(super) fn start_log(&self) -> Result<()> {
        let fail = |e| txn::io_error("creating the log file", e);
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
    pub(super) fn empty_log(&self) -> Result<Arc<dyn Disk>> {
        let fail = |e| txn::io_error("creating the log file", e);
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
    pub(super) fn grow_log(&self, most: u64) -> Result<()> {
        let old = self.pager.log.usage().capacity;
        let new = old.saturating_mul(LOG_GROWTH).min(self.options.log_bytes_within(most));
        // Not for a little: each growth costs a checkpoint.
        if new < old * 2 {
            return Ok(());
        }
        self.checkpoint()?;
        let fail = |e| txn::io_error("growing the log file", e);
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

    /// Whether a log of this store lies beside it. One that the superblock names is marked as
    /// the store's first: after a crash in the midst of closing nothing names it any more.
    pub(super) fn has_log_to_remove(&self) -> Result<bool> {
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
