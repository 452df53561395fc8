//! A store's file in the making, from pages.
//!
//! Owns: [`StoreFile`]; what superblock such a store gets (rule 62).

use super::state::{Sink, State};
use crate::engine::format;
use crate::txn::io_error;
use holdall_core::log_format::BLOCK;
use holdall_core::mark::Mark;
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::PageKind;
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::superblock::{SLOT_AT, Stamp, Superblock};
use holdall_core::{Error, Lsn, PageNo, Result, page, root_page};
use holdall_io::{Disk, WriteOut};

/// Bytes after which the device is set to work.
const WRITE_OUT: u64 = 8 << 20;
/// Free runs from here on are given back, in bytes.
const LEAST_HOLE: u64 = 64 << 10;

/// The file of a store that is put together.
pub(super) struct StoreFile<'d> {
    disk: &'d dyn Disk,
    page_size: u64,
    /// What the page cache holds since the device was last set to work.
    late: std::ops::Range<u64>,
    before: std::ops::Range<u64>,
}

impl Sink for StoreFile<'_> {
    fn put(&mut self, first: PageNo, bytes: &[u8]) -> Result<()> {
        let at = first.0 * self.page_size;
        let what = || format!("writing pages from {first} of the new store");
        self.disk.write_at(at, bytes).map_err(|e| io_error(what(), e))?;
        let end = at + bytes.len() as u64;
        if self.late.is_empty() || at < self.late.start {
            self.late = at..end;
        }
        self.late.end = self.late.end.max(end);
        if self.late.end - self.late.start < WRITE_OUT {
            return Ok(());
        }
        // What came before is waited for, so that the page cache holds little of it dirty.
        let late = std::mem::replace(&mut self.late, end..end);
        for (part, how) in [(&late, WriteOut::Start), (&self.before, WriteOut::Wait)] {
            let written = self.disk.write_out(part.start, part.end - part.start, how);
            written.map_err(|e| io_error(what(), e))?;
        }
        self.before = late;
        Ok(())
    }
}

impl<'d> StoreFile<'d> {
    /// An empty one.
    pub(super) fn new(disk: &'d dyn Disk, page_size: u32) -> Self {
        Self { disk, page_size: page_size.into(), late: 0..0, before: 0..0 }
    }

    /// Makes it a store: all pages of its state are there. What is free is given back where that can
    /// be done. Nothing is synced.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the directories of the new store are none; [`Error::Full`],
    /// [`Error::Io`].
    pub(super) fn finish(&mut self, sb: &Superblock) -> Result<()> {
        let failed = |e| io_error("finishing the new store", e);
        self.punch_free(sb)?;
        let end = sb.volume_pages * self.page_size;
        self.disk.truncate(end).map_err(failed)?;
        if self.disk.len().map_err(failed)? < end {
            // The last page in use may hold nothing yet.
            self.disk
                .write_at(end - self.page_size, &vec![0; self.page_size as usize])
                .map_err(failed)?;
        }
        for n in 0..2 {
            let sb = Superblock { sequence: sb.sequence + n, ..sb.clone() };
            let slot = SLOT_AT[Superblock::slot_of(sb.sequence)];
            self.disk.write_at(slot, &sb.encode()).map_err(failed)?;
        }
        Ok(())
    }

    /// What an earlier state had in use is free now.
    fn punch_free(&self, sb: &Superblock) -> Result<()> {
        let layout = SpaceLayout::new(sb.page_size as usize, sb.space_pages)?;
        let least = u32::try_from(LEAST_HOLE / self.page_size).unwrap_or(1).max(1);
        let file = self.disk.len().map_err(|e| io_error("finishing the new store", e))?;
        for space in 0..sb.spaces {
            let no = layout.dir_page(space);
            let mut bytes = vec![0; layout.page_size()];
            let read = self.disk.read_at(no.0 * self.page_size, &mut bytes);
            read.map_err(|e| Error::io(format!("reading page {no} of the new store"), e))?;
            if page::check(&bytes, no)? != PageKind::SpaceDir {
                return Err(Error::page(no, "is no directory in the new store"));
            }
            let dir = SpaceDir::open(layout, space, &bytes[..])?;
            let mut at = 0;
            while let Some(start) = (at..layout.space_pages()).find(|i| !dir.is_allocated(*i)) {
                at = (start..layout.space_pages())
                    .find(|i| dir.is_allocated(*i))
                    .unwrap_or(layout.space_pages());
                let from = layout.page_at(space, start).0 * self.page_size;
                let len = (u64::from(at - start) * self.page_size).min(file.saturating_sub(from));
                if at - start >= least && len > 0 {
                    let punched = self.disk.punch(from, len - len % 4096);
                    if !punched.map_err(|e| io_error("giving free pages back", e))? {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }
}

/// The superblock of a store that holds `state` alone.
///
/// # Errors
/// Those of reading the state's directories; as [`raised`].
pub(super) fn superblock(state: &State<'_>, mark: Option<Mark>, time: u64) -> Result<Superblock> {
    // Read after the snapshot was opened: what was given out in it lies below the ceiling.
    let now = state.pager().volume.superblock();
    let (_, volume_pages) = state.in_use()?;
    let sb = Superblock {
        log_required: false,
        holes: true,
        volume_pages,
        spaces: root_page::spaces(&state.root),
        stamp: mark.map(|mark| Stamp { mark, time }),
        ..now
    };
    raised(sb, state.read.snapshot.lsn())
}

/// A superblock for another life of a store whose state at `lsn` is all in place: no block of a log,
/// and no version of an object, of any other life is taken for one of this.
///
/// # Errors
/// [`Error::TooLarge`] after some hundred thousand lives.
pub(super) fn raised(sb: Superblock, lsn: Lsn) -> Result<Superblock> {
    if mutation::is(Mutation::R62Ahead) {
        return Ok(Superblock { replay: Lsn(lsn.0 & !(BLOCK as u64 - 1)), ..sb });
    }
    // The other life raises its epoch by one at each recovery.
    let drawn = format::draw_id();
    let epochs = 1 + u32::from(u16::from_le_bytes([drawn[0], drawn[1]]));
    let epoch = sb.epoch.checked_add(epochs).filter(|epoch| *epoch < u32::MAX - 2);
    let epoch = epoch.ok_or_else(|| Error::TooLarge("the store's epoch has no room".into()))?;
    let newest = lsn.max(sb.replay).max(sb.in_place).0;
    let replay = Lsn((newest / BLOCK as u64 + 1) * BLOCK as u64 + sb.log_bytes);
    let incarnation = sb.incarnation.saturating_add(1);
    Ok(Superblock { incarnation, epoch, replay, in_place: replay, sequence: sb.sequence + 2, ..sb })
}
