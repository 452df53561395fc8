//! A reader beside a process that may write: which state it sees, and what it believes.
//!
//! Owns: [`Beside`]. The reader locks nothing and writes nothing, so that it can cost the writer
//! nothing. It reads the log from the replay position on as far as the writer shows that it is
//! durable, and takes the pages that the log makes into memory. All else it reads in place and
//! checks: a page by its LSN, segment data by the checksums of its own state (rule 40).
//!
//! Invariants: no page is in memory that the state does not have there (rule 41). What contradicts
//! the state is damage only if no checkpoint has passed the state meanwhile.

use super::recovery::replay::{Replay, raw_page};
use super::volume::newest_superblock;
use super::{Pager, StateOf};
use crate::cache::holder::Holder;
use crate::images::Images;
use crate::log::{self, Expect, Followed};
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::{self, PageKind};
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::superblock::Superblock;
use holdall_core::{Error, Lsn, PageNo, PageRef, Result, root_page};
use holdall_io::{Disk, Storage};
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// How often a superblock is read that a writer writes at the same time, and the time between.
const MOST_LOOKS: u32 = 8;
const BETWEEN_LOOKS: Duration = Duration::from_micros(200);

/// What a reader knows of the files that others may write.
#[derive(Debug)]
pub struct Beside {
    /// The files as they are.
    storage: Arc<dyn Storage>,
    /// The superblock that the state was read under.
    superblock: Superblock,
    /// None: nobody had it open for writing. Recovery, in memory, then made the state.
    log: Option<Mutex<Part>>,
    /// The state that it sees.
    upto: AtomicU64,
    /// When the volume was written last, if it was looked at since.
    at_rest: RwLock<Option<(Duration, u64)>>,
    /// The writer, if it holds the state for this reader: it never goes on to another then.
    holder: Option<Arc<dyn Holder>>,
}

/// The log as far as it was read.
#[derive(Debug)]
struct Part {
    disk: Option<Arc<dyn Disk>>,
    /// From where the next part begins.
    expect: Expect,
    /// Checksum of the last group.
    previous: Option<u32>,
    /// Whether the writer shows what is durable.
    shown: bool,
    /// The replay position that is known.
    replay: Lsn,
}

impl Beside {
    /// A store that nobody wrote when it was opened with this superblock.
    pub fn alone(storage: Arc<dyn Storage>, superblock: Superblock) -> Self {
        let (upto, at_rest) = (AtomicU64::new(0), RwLock::default());
        Self { storage, superblock, log: None, upto, at_rest, holder: None }
    }

    /// A store that another process has open for writing. Nothing of its log is read yet.
    ///
    /// # Errors
    /// [`Error::NoLog`] if it needs a log that is missing, [`Error::WrongLog`], [`Error::Io`].
    pub fn writer(storage: Arc<dyn Storage>, superblock: Superblock) -> Result<Self> {
        let sb = &superblock;
        let disk = match sb.log_required {
            true => Some(log::place::needed(&*storage)?),
            false => None,
        };
        let expect = Expect::of(sb);
        let part = Part { disk, expect, previous: None, shown: false, replay: sb.replay };
        let upto = AtomicU64::new(sb.replay.0);
        let (log, at_rest) = (Some(Mutex::new(part)), RwLock::default());
        Ok(Self { storage, superblock, log, upto, at_rest, holder: None })
    }

    /// As [`Beside::writer`], of a state that the writer holds for this reader.
    ///
    /// # Errors
    /// As [`Beside::writer`].
    pub fn held(
        storage: Arc<dyn Storage>,
        superblock: Superblock,
        holder: Arc<dyn Holder>,
    ) -> Result<Self> {
        Ok(Self { holder: Some(holder), ..Self::writer(storage, superblock)? })
    }

    /// The superblock as it is now.
    fn now(&self) -> Result<Option<Superblock>> {
        newest_superblock(&*self.storage.volume())
    }

    /// Whether somebody has written the store since nobody had it open for writing.
    fn is_written(&self) -> Result<bool> {
        let at_rest = self.storage.volume().at_rest();
        if at_rest.is_some() && *self.at_rest.read() == at_rest {
            return Ok(false);
        }
        let written = self.now()?.is_none_or(|sb| sb.sequence != self.superblock.sequence);
        // What was read since is as it is for as long as that stays the same.
        *self.at_rest.write() = at_rest.filter(|_| !written);
        Ok(written)
    }

    /// Whether a checkpoint or a recovery has passed the state at `lsn`: pages that it needs may
    /// have been written over.
    fn is_past(&self, lsn: Lsn) -> bool {
        if let Some(holder) = &self.holder {
            return !holder.is_held();
        }
        let was = &self.superblock;
        for _ in 0..MOST_LOOKS {
            if let Ok(Some(sb)) = self.now() {
                return match self.log {
                    None => sb.sequence != was.sequence,
                    Some(_) => sb.epoch != was.epoch || sb.replay.max(sb.in_place) > lsn,
                };
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        false
    }
}

impl Pager {
    /// Reads beside others that may write.
    pub fn beside(mut self, beside: Beside) -> Self {
        // A mapping of a file that others may cut would end the process.
        self.limits.map_reads = false;
        if let Some(holder) = &beside.holder {
            self.pool.ask(holder.clone());
        }
        self.beside = Some(beside);
        self
    }

    /// Whether the process that writes holds the only state that is seen here.
    pub fn is_held(&self) -> bool {
        self.beside.as_ref().is_some_and(|beside| beside.holder.is_some())
    }

    /// Whether nobody else had the store open for writing when it was opened.
    pub fn is_alone(&self) -> bool {
        self.beside.as_ref().is_none_or(|beside| beside.log.is_none())
    }

    /// What an error means that a read of the state at `lsn` met: what contradicts the state is no
    /// damage if others may have written there since.
    #[cold]
    pub(crate) fn judge(&self, e: Error, lsn: Lsn) -> Error {
        match &self.beside {
            Some(beside) if matches!(e, Error::Corrupt { .. }) && beside.is_past(lsn) => {
                let age = self.horizon.age(lsn, beside.storage.now());
                Error::SnapshotTooOld { age }
            }
            _ => e,
        }
    }

    /// Whether others may have written over pages that the state at `lsn` needs.
    pub fn is_past(&self, lsn: Lsn) -> bool {
        self.beside.as_ref().is_some_and(|beside| beside.is_past(lsn))
    }

    /// Whether a state newer than the one seen here is known to be durable; not if nobody else can
    /// write. Cost: a system call, or two reads in the first second after a write.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn is_behind(&self) -> Result<bool> {
        let Some(beside) = &self.beside else { return Ok(false) };
        match &beside.log {
            // Who only opened it for writing has written nothing.
            None => beside.is_written(),
            Some(_) => {
                let shown = beside.storage.volume().shown_durable();
                Ok(shown.is_none_or(|at| at != beside.upto.load(SeqCst)))
            }
        }
    }

    /// Goes on to the newest state that the writer shows to be durable. `false`: there is no way
    /// there from here, and the store has to be opened again. Cost: a read of the new part of the
    /// log, and of those pages it changes that are not in memory.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn advance(&self) -> Result<bool> {
        let Some(Beside { log: Some(part), storage, .. }) = &self.beside else { return Ok(false) };
        let mut part = part.lock();
        let upto = match storage.volume().shown_durable() {
            // It ended, or another opens the store.
            None if part.shown || !has_writer(&**storage)? => return Ok(false),
            Some(at) if at < part.expect.from.0 => return Ok(false),
            shown => shown.map(Lsn),
        };
        part.shown = upto.is_some();
        self.follow(&mut part, upto)
    }

    /// Goes on to the state at `lsn`, which the writer holds. `false`: as for [`Pager::advance`].
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn advance_to(&self, lsn: Lsn) -> Result<bool> {
        match &self.beside {
            Some(Beside { log: Some(part), .. }) => self.follow(&mut part.lock(), Some(lsn)),
            _ => Ok(false),
        }
    }

    fn follow(&self, part: &mut Part, upto: Option<Lsn>) -> Result<bool> {
        let found = match &part.disk {
            Some(disk) => log::follow(&**disk, &part.expect, part.previous, upto)?,
            None if upto.is_none_or(|upto| upto == part.expect.from) => return Ok(true),
            None => None,
        };
        let Some(found) = found else { return Ok(false) };
        if found.groups.is_empty() {
            return Ok(true);
        }
        match self.take_over(part, &found) {
            // What others write at the same time looks like damage; if it is, the next opening
            // says so.
            Err(Error::Corrupt { .. } | Error::SnapshotTooOld { .. }) => Ok(false),
            result => result,
        }
    }

    /// Takes what the log makes into memory. The order matters: the log was read, so a checkpoint
    /// that allowed the reuse of anything in it is in the superblock that is read now.
    fn take_over(&self, part: &mut Part, found: &Followed) -> Result<bool> {
        let Some(beside) = &self.beside else { return Ok(false) };
        let (from, was) = (part.expect.from, &beside.superblock);
        let Some(sb) = beside.now()? else { return Ok(false) };
        let same = sb.epoch == was.epoch && sb.log_bytes == part.expect.capacity;
        let passed = sb.replay > from && !mutation::is(Mutation::R41Passed);
        if !same || passed {
            return Ok(false);
        }
        let needed = self.needed();
        if sb.replay > part.replay {
            for (no, lsn, _) in self.pool.dirty_at(sb.replay) {
                self.pool.flushed_in_place(no, lsn, &needed);
            }
            part.replay = sb.replay;
        }
        self.pool.begin_advance();
        self.install_groups(found, from, &sb)?;
        (part.expect.from, part.previous) = (found.end, found.last);
        self.show(found.end, &sb)?;
        beside.upto.store(found.end.0, SeqCst);
        Ok(true)
    }

    fn install_groups(&self, found: &Followed, from: Lsn, sb: &Superblock) -> Result<()> {
        let replay = Replay::unchecked(&self.volume, &found.groups, sb.log_bytes)?;
        let layout = SpaceLayout::new(sb.page_size as usize, sb.space_pages)?;
        let leads = |no: PageNo| no == sb.root || is_directory(&layout, no);
        // First what says which pages are others now: these do not make the versions that follow.
        for no in replay.changed().filter(|no| leads(*no)) {
            let before = self.before(no, sb.root, from);
            self.install_change(&replay, no, from)?;
            if !self.forget_reused(&layout, (no, sb.root), before, (from, &replay))? {
                return Err(Error::page(no, "gave away pages that wait for a checkpoint"));
            }
        }
        replay
            .changed()
            .filter(|no| !leads(*no))
            .try_for_each(|no| self.install_change(&replay, no, from))
    }

    /// The root or a directory as the state at `from` has it; `None` if there is none.
    fn before(&self, no: PageNo, root: PageNo, from: Lsn) -> Option<PageRef> {
        let kind = if no == root { PageKind::Root } else { PageKind::SpaceDir };
        self.pool.get(no, kind, from, &StateOf(self)).ok()
    }

    /// Installs the version of a page that the log makes from what the state at `from` has.
    fn install_change(&self, replay: &Replay<'_>, no: PageNo, from: Lsn) -> Result<()> {
        let mut base = self.pool.newest_in_memory(no);
        let known = base.is_some();
        let mut bytes = PageRef::zeroed(self.page_size());
        let to = bytes.get_mut().ok_or_else(|| Error::page(no, "buffer is shared"))?;
        let lsn = replay.make(&self.volume, no, to, &mut |to| {
            match &base {
                Some(base) => to.copy_from_slice(base),
                None => {
                    raw_page(&self.volume, no, to)?;
                    // Torn or newer it makes the same, and serves no reader.
                    let whole = page::check(to, no).is_ok() && page::lsn(to) <= from;
                    base = whole.then(|| PageRef::from(&*to));
                }
            }
            Ok(())
        })?;
        let base = base.filter(|_| !known);
        self.pool.install(no, (lsn, bytes), base.as_ref(), false, &self.needed());
        Ok(())
    }

    /// Forgets what memory has of pages that this directory, or the root, gave to others since
    /// `from`, and of info pages made anew: the writer may have put those in their places without
    /// its log. What was in use at `from` and is freed since has not been used again, or a
    /// superblock would have passed `from`. Returns whether it forgot all.
    fn forget_reused(
        &self,
        layout: &SpaceLayout,
        (no, root): (PageNo, PageNo),
        before: Option<PageRef>,
        (from, replay): (Lsn, &Replay<'_>),
    ) -> Result<bool> {
        let Some(now) = self.pool.newest_in_memory(no) else { return Ok(true) };
        let pages = u64::from(layout.space_pages());
        // These may be what the log has just made.
        let leads = |page| page == root || is_directory(layout, page);
        if no == root {
            let old = before.map_or(0, |page| root_page::spaces(&page));
            let more = root_page::spaces(&now) > old;
            let gone = |page: PageNo| page.0 >= u64::from(old) * pages && !leads(page);
            return Ok(!more || self.pool.forget_those(gone));
        }
        let (space, _) = layout.split(no)?;
        let Some(before) = before else {
            let first = u64::from(space) * pages;
            let all = first..first + pages;
            return Ok(self.pool.forget_those(|page| all.contains(&page.0) && !leads(page)));
        };
        let (before, now) =
            (SpaceDir::open(*layout, space, &*before)?, SpaceDir::open(*layout, space, &*now)?);
        self.discard_info_pages(layout, (&before, &now), replay)?;
        let mut all = true;
        for index in 0..layout.space_pages() {
            let given = now.last_change(layout.granule_of(index))? > from
                && now.is_allocated(index)
                && !before.is_allocated(index);
            if given && !mutation::is(Mutation::R41Forget) {
                all &= self.pool.forget(layout.page_at(space, index));
            }
        }
        Ok(all)
    }

    /// An info page of a stretch without segments was made anew in its place (rule 22), unless the
    /// log says how it changed. The writer had its last version in place, perhaps before a
    /// superblock said so.
    fn discard_info_pages(
        &self,
        layout: &SpaceLayout,
        (before, now): (&SpaceDir<&[u8]>, &SpaceDir<&[u8]>),
        replay: &Replay<'_>,
    ) -> Result<()> {
        for stretch in 0..layout.stretches() {
            let anew = before.segment_pages(stretch)? == 0 && now.segment_pages(stretch)? > 0;
            let info = now.info_page(stretch)?;
            if anew && !replay.changes(info) && !mutation::is(Mutation::R41Info) {
                self.pool.discard(info);
            }
        }
        Ok(())
    }

    /// Makes the state at `end` the one that new snapshots see.
    fn show(&self, end: Lsn, sb: &Superblock) -> Result<()> {
        let root = self.pool.get(sb.root, PageKind::Root, end, &StateOf(self))?;
        let images = Images { root: root_page::images(&root) };
        if self.trees.newest() != images {
            self.trees.push(end, images, &self.horizon);
        }
        self.log.follow(end);
        self.horizon.set_newest(end);
        if let Some(beside) = &self.beside {
            self.horizon.note_time(end, beside.storage.now());
        }
        self.horizon.set_visible(end);
        let budget = self.limits.old_version_bytes / self.page_size();
        if self.pool.old_versions() > budget {
            self.pool.prune(&self.needed());
        }
        // Nothing can be written elsewhere from here.
        while self.pool.old_versions() > budget
            && self.horizon.oldest_snapshot().is_some_and(|oldest| oldest < end)
        {
            self.horizon.give_up_oldest();
            self.pool.prune(&self.needed());
        }
        Ok(())
    }
}

/// Whether another process has the store open for writing.
///
/// # Errors
/// [`Error::Io`].
pub fn has_writer(storage: &dyn Storage) -> Result<bool> {
    storage.has_writer().map_err(|e| Error::io("looking for a process that writes", e))
}

fn is_directory(layout: &SpaceLayout, no: PageNo) -> bool {
    layout.split(no).is_ok_and(|(space, _)| layout.dir_page(space) == no)
}

#[cfg(test)]
mod tests {
    use crate::cache::pool::Pool;
    use crate::txn::{Pager, StateOf, fixture};
    use holdall_core::page::{self, PageKind};
    use holdall_core::{Lsn, PageNo};
    use holdall_io::{Disk, MemoryDisk};
    use parking_lot::Mutex;
    use std::io;
    use std::sync::{Arc, Weak};

    /// A disk on which, while a page is read, a newer state is taken over.
    #[derive(Debug, Default)]
    struct Overtaken {
        disk: MemoryDisk,
        pager: Mutex<Weak<Pager>>,
    }

    impl Disk for Overtaken {
        fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
            self.disk.read_at(offset, buf)?;
            if let Some(pager) = self.pager.lock().upgrade() {
                pager.pool.begin_advance();
                pager.pool.forget(PageNo(1));
            }
            Ok(())
        }

        fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            self.disk.write_at(offset, bytes)
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }

        fn len(&self) -> io::Result<u64> {
            self.disk.len()
        }

        fn grow(&self, len: u64) -> io::Result<()> {
            self.disk.grow(len)
        }

        fn truncate(&self, len: u64) -> io::Result<()> {
            self.disk.truncate(len)
        }

        fn allocated(&self) -> io::Result<u64> {
            self.disk.allocated()
        }
    }

    #[test]
    fn a_page_read_while_a_newer_state_is_taken_over_is_not_kept() {
        const SIZE: usize = 4096;
        let mut bytes = vec![0; 2 * SIZE];
        page::format(&mut bytes[SIZE..], PageKind::Heap, PageNo(1), 1);
        page::seal(&mut bytes[SIZE..], Lsn(0));
        let disk = Arc::new(Overtaken::default());
        disk.write_at(0, &bytes).unwrap();
        let pager = Arc::new(fixture::pager(disk.clone(), SIZE));
        let read = || pager.pool.get(PageNo(1), PageKind::Heap, Lsn(0), &StateOf(&pager));
        let held = |pool: &Pool| pool.newest_in_memory(PageNo(1)).is_some();
        *disk.pager.lock() = Arc::downgrade(&pager);
        assert_eq!(&*read().unwrap(), &bytes[SIZE..], "this reader's it was");
        assert!(!held(&pager.pool));
        *disk.pager.lock() = Weak::new();
        read().unwrap();
        assert!(held(&pager.pool));
    }
}
