//! A transaction that allocates: pages and segments in, one commit out.
//!
//! Owns: what the transaction has reserved and freed, until the commit writes it into the
//! directories in one batch (Iyengar §2.5) or the end of the transaction gives it back.

use super::checksums::Checksums;
use super::compose::Origins;
use super::freed::FreedRuns;
use super::{Allocator, Class, Lowering, Near, Staged, apply, segment_io, spaces};
use crate::images::NodeWrite;
use crate::txn::direct::Given;
use crate::txn::{PageTx, Pager, Waiting};
use holdall_core::RunSet;
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::PageKind;
use holdall_core::{Error, Lsn, PageNo, PageRead, PageRef, PageRun, PageWrite, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A segment run that the transaction adds.
#[derive(Debug)]
pub(super) struct NewSegment {
    pub(super) run: PageRun,
    pub(super) checksums: Vec<u32>,
    pub(super) owner: u64,
}

/// Bytes of a checksum, and those of a segment beside its checksums.
const CHECKSUM_BYTES: usize = size_of::<u32>();
const SEGMENT_BYTES: usize = 128;
/// Pages released within a transaction that are given back before its end.
const REUSE_PAGES: u64 = 64;

/// A write transaction over pages and segments. Dropped without commit, it leaves nothing.
#[derive(Debug)]
pub struct SpaceTx {
    pub(super) pages: PageTx,
    pub(super) alloc: Arc<Allocator>,
    pub(super) root: PageNo,
    /// Pages reserved one by one or in extents.
    pub(super) mine: RunSet,
    /// Pages of segments that it adds.
    pub(super) new_segments: RunSet,
    /// Of these, by first page, those whose checksums are in no info page yet.
    pub(super) segments: BTreeMap<u64, NewSegment>,
    /// Memory that those take.
    checksum_bytes: usize,
    pub(super) freed: FreedRuns,
    /// Directories of the spaces that it gives up.
    gone: Vec<PageRun>,
    /// Spaces given up before that come again with the directories that they had.
    pub(super) again: Vec<u32>,
    /// Pages both added and freed here: given back once nothing of them is being written.
    released: Vec<PageRun>,
    released_pages: u64,
    /// By how many pages more, or fewer, lie elsewhere.
    pub(super) image_delta: i64,
    /// Pages in memory from which on it asks for room again; 0 unless there was none.
    pub(super) room_from: usize,
    /// What it allocated is being entered into the directories.
    pub(super) settled: bool,
    class: Class,
    /// Whether it changed anything for another reason than to make more free than it takes.
    grows: bool,
    /// Pages that it takes lie before the second of these; from the first on is none free.
    below: Option<(u64, u64)>,
    finished: bool,
}

impl SpaceTx {
    /// Begins, taking the writer's lock. `root` is the root page.
    ///
    /// # Errors
    /// As [`PageTx::begin`].
    pub fn begin(
        pager: &Arc<Pager>,
        alloc: &Arc<Allocator>,
        root: PageNo,
        waiting: &Waiting,
    ) -> Result<Self> {
        Ok(Self {
            pages: PageTx::begin(pager, waiting)?,
            alloc: alloc.clone(),
            root,
            mine: RunSet::default(),
            new_segments: RunSet::default(),
            segments: BTreeMap::new(),
            checksum_bytes: 0,
            freed: FreedRuns::default(),
            gone: Vec::new(),
            again: Vec::new(),
            released: Vec::new(),
            released_pages: 0,
            image_delta: 0,
            room_from: 0,
            settled: false,
            class: Class::Pages,
            grows: false,
            below: None,
            finished: false,
        })
    }

    /// The allocator.
    pub fn alloc(&self) -> &Arc<Allocator> {
        &self.alloc
    }

    /// Says that this thread runs the transaction now.
    #[inline]
    pub fn run_here(&self) {
        self.pages.run_here();
    }

    /// The pager.
    pub fn pager(&self) -> &Arc<Pager> {
        self.pages.pager()
    }

    /// The root page.
    pub fn root(&self) -> PageNo {
        self.root
    }

    /// Of whom its requests for space are.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Says of whom its requests are from now on.
    pub fn set_class(&mut self, class: Class) {
        self.class = class;
    }

    /// All is done but to enter what changed: that is of whom the changes were.
    pub fn wind_up(&mut self) {
        self.class = self.image_class();
    }

    /// Of whom its requests for images are: only what removes may have the reserve for them.
    pub(super) fn image_class(&self) -> Class {
        if self.grows { Class::Pages } else { Class::Shrink }
    }

    /// From here on it takes single pages before page `line` only: it moves what lies behind.
    pub fn keep_below(&mut self, line: PageNo) {
        self.below = Some((0, line.0));
    }

    /// Moves the pages of checksums that `low` takes. Cost: a look at all directories.
    ///
    /// # Errors
    /// As [`Lowering::page`], after which the transaction must be aborted.
    pub fn lower_info_pages(&mut self, low: &mut Lowering) -> Result<()> {
        apply::lower_info_pages(self, low)
    }

    /// Gives up the last spaces, as far as they hold their directories alone (rule 39). Returns
    /// whether there are any. Cost: a look at each.
    ///
    /// # Errors
    /// Those of page access, after which the transaction must be aborted.
    pub fn give_up_spaces(&mut self) -> Result<bool> {
        self.gone = spaces::give_up(self)?;
        Ok(!self.gone.is_empty())
    }

    /// Takes over staged data; its runs are allocated when the transaction commits. `owner`
    /// is a hint kept with the first page of each run.
    ///
    /// # Errors
    /// Those of writing what the transaction freed again; the data is given back with it.
    pub fn adopt(&mut self, mut staged: Staged, owner: u64) -> Result<Vec<PageRun>> {
        self.reuse_released()?;
        let runs = staged.take_runs();
        let page_size = self.page_size() as u64;
        runs.iter().for_each(|run| self.new_segments.insert(*run));
        let mut bytes = staged.bytes.as_deref();
        let mut origins = staged.origins.as_deref().map(Origins::new);
        for run in &runs {
            self.add_checksums(*run, owner, &mut staged.checksums)?;
            let Some(left) = &mut bytes else {
                self.pages.add_segment(run.start, Given::Written);
                continue;
            };
            let (part, rest) = left.split_at((run.len as usize * self.page_size()).min(left.len()));
            *left = rest;
            let given = match &mut origins {
                Some(origins) => Given::Composed(part, origins.parts(part, page_size)),
                None => Given::Bytes(part),
            };
            self.pages.add_segment(run.start, given);
        }
        if let Some(bytes) = staged.bytes.take().filter(|_| staged.unwritten) {
            self.hold(&runs, bytes);
        }
        Ok(runs)
    }

    /// Adds the checksums of `run`, the next of `all`. Cost: none, or what [`SpaceTx::enter_now`]
    /// costs for each 2 GiB of data.
    fn add_checksums(&mut self, run: PageRun, owner: u64, all: &mut Checksums) -> Result<()> {
        let units = self.page_size() / super::UNIT;
        let most = self.pager().limits().checksum_bytes;
        let step = (most / CHECKSUM_BYTES / units).max(1) as u64;
        let mut at = run.start.0;
        while at < run.end() {
            let len = step.min(run.end() - at);
            let checksums = all.take(len as usize * units)?;
            self.checksum_bytes += checksums.len() * CHECKSUM_BYTES + SEGMENT_BYTES;
            let owner = if at == run.start.0 { owner } else { 0 };
            let part = PageRun::new(PageNo(at), len);
            self.segments.insert(at, NewSegment { run: part, checksums, owner });
            at += len;
            if self.checksum_bytes > most {
                self.enter_now()?;
            }
        }
        Ok(())
    }

    /// Enters checksums into their info pages before the commit: memory has no room for more. The
    /// commit cannot list the data, so it is synced first (rule 13). Cost: an info page for each
    /// stretch of new segments.
    fn enter_now(&mut self) -> Result<()> {
        let class = std::mem::replace(&mut self.class, Class::Shrink);
        let entered = apply::enter_segments(self);
        self.class = class;
        entered?;
        self.segments.clear();
        self.checksum_bytes = 0;
        self.pages.sync_first();
        Ok(())
    }

    /// Sees to it that `bytes`, those of `runs`, are written before the commit. Cost: none but
    /// the write if there is one run.
    fn hold(&mut self, runs: &[PageRun], mut bytes: Vec<u8>) {
        for run in runs.iter().rev() {
            let before = bytes.len().saturating_sub(run.len as usize * self.page_size());
            let part =
                if before == 0 { std::mem::take(&mut bytes) } else { bytes.split_off(before) };
            self.pages.hold(run.start, part);
        }
    }

    /// Frees segment pages, old ones or ones that this transaction added.
    ///
    /// # Errors
    /// None now; a page that is free already makes the commit fail.
    pub fn free_segment(&mut self, run: PageRun) -> Result<()> {
        let mut old = vec![run];
        let own: Vec<PageRun> = self.new_segments.overlapping(run.start.0, run.end()).collect();
        for part in own {
            // Logged bytes of pages given back could land on their next owner's data.
            if !mutation::is(Mutation::R13LoggedFree) {
                self.pages.leave_the_log();
            }
            self.forget_checksums(part)?;
            self.new_segments.remove(part);
            self.release(part);
            old = old.into_iter().flat_map(|r| cut(r, part.start.0, part.end())).collect();
        }
        old.into_iter().try_for_each(|run| self.freed.add(run, true))
    }

    /// Forgets the checksums of `run`, which this transaction added and gives back.
    fn forget_checksums(&mut self, run: PageRun) -> Result<()> {
        let units = self.page_size() / super::UNIT;
        let before = self.segments.range(..run.start.0).next_back().map(|(start, _)| *start);
        let inside = self.segments.range(run.start.0..run.end()).map(|(start, _)| *start);
        let touched: Vec<u64> = before.into_iter().chain(inside).collect();
        let mut entered = vec![run];
        for start in touched {
            let Some(seg) = self.segments.remove(&start) else { continue };
            let (from, to) = (start.max(run.start.0), seg.run.end().min(run.end()));
            if from >= to {
                self.segments.insert(start, seg);
                continue;
            }
            entered = entered.into_iter().flat_map(|r| cut(r, from, to)).collect();
            for (a, b) in [(seg.run.start.0, from), (to, seg.run.end())] {
                if a < b {
                    let at = (a - seg.run.start.0) as usize * units;
                    let n = (b - a) as usize * units;
                    let part = NewSegment {
                        run: PageRun::new(PageNo(a), b - a),
                        checksums: seg.checksums[at..at + n].to_vec(),
                        owner: seg.owner,
                    };
                    self.segments.insert(a, part);
                }
            }
        }
        entered.into_iter().try_for_each(|run| apply::uncount_segment(self, run))
    }

    /// Gives a run back later: some of it may be on its way to its place.
    pub(super) fn release(&mut self, run: PageRun) {
        self.released.push(run);
        self.released_pages += run.len;
    }

    /// Gives back what was released, once that is much, so that a transaction of many small
    /// edits does not take new pages for each.
    ///
    /// # Errors
    /// Those of the writes that have to end before; the commit then fails too.
    fn reuse_released(&mut self) -> Result<()> {
        if self.released_pages < REUSE_PAGES {
            return Ok(());
        }
        self.pages.write_held()?;
        self.released_pages = 0;
        for run in self.released.drain(..) {
            self.alloc.unreserve(run)?;
        }
        Ok(())
    }

    /// The checksum of a unit that this transaction wrote itself, if it did.
    fn own_checksum(&self, unit: u64) -> Option<u32> {
        let units = (self.page_size() / super::UNIT) as u64;
        let page = unit / units;
        let (_, seg) = self.segments.range(..=page).next_back()?;
        let at = unit.checked_sub(seg.run.start.0 * units)?;
        seg.checksums.get(usize::try_from(at).ok()?).copied()
    }

    /// Reads segment data, this transaction's own included; see
    /// [`read_segment`](super::read_segment).
    ///
    /// # Errors
    /// As [`read_segment`](super::read_segment).
    pub fn read_segment(&self, start: PageNo, offset: u64, buf: &mut [u8]) -> Result<()> {
        if self.new_segments.pages() > 0 {
            self.pages.write_held()?;
        }
        let disk = self.pager().volume.disk.clone();
        let own = |unit| self.own_checksum(unit);
        let layout = self.alloc.layout();
        let source = segment_io::Source { pages: self, layout, own: &own };
        let how = segment_io::ReadHow::default();
        segment_io::read(&source, (&*disk, how), start, offset, buf)
    }

    /// Refuses to write a page where none can be: its number may come from a damaged page.
    fn check_place(&self, page: PageNo, kind: PageKind) -> Result<()> {
        if page.0 >= self.alloc.volume_pages() {
            return Err(Error::page(page, "lies beyond the end of the file"));
        }
        let layout = self.alloc.layout();
        let (space, index) = layout.split(page)?;
        if kind != PageKind::SpaceDir && layout.fixed_pages(space).any(|i| i == index) {
            return Err(Error::page(page, format!("is at a fixed place, cannot be {kind:?}")));
        }
        Ok(())
    }

    /// Whether nothing was changed, allocated or freed.
    pub fn is_unchanged(&self) -> bool {
        self.pages.is_unchanged() && self.freed.is_empty() && self.new_segments.pages() == 0
    }

    /// Pages that it has copied or made.
    pub fn changed_pages(&self) -> usize {
        self.pages.changed_pages()
    }

    /// Commits. Returns the LSN, durable once the log has synced it, and what still holds the
    /// writer's lock, for what must change before the next transaction begins.
    ///
    /// # Errors
    /// Before anything is installed, whatever fails; everything is given back.
    pub fn commit(mut self) -> Result<(Lsn, Installed)> {
        // Info pages: the figures of fullness count on them.
        self.class = Class::Shrink;
        let spaces = apply::write_directories(&mut self)?;
        let new = self.segments.values().map(|s| (s.run, s.checksums.as_slice()));
        self.pages.choose_way(new);
        let end = self.mine.iter().chain(self.new_segments.iter()).map(PageRun::end).max();
        self.pages.ends_at(PageNo(end.unwrap_or(0)));
        if !mutation::is(Mutation::R39Waits) {
            self.freed.add_directories(std::mem::take(&mut self.gone));
        }
        let before = self.alloc.hold_freed(&self.freed, spaces);
        match self.pages.commit() {
            Ok(lsn) => {
                let allocated: Vec<PageRun> =
                    self.mine.iter().chain(self.new_segments.iter()).collect();
                self.alloc.committed(lsn, &allocated, &self.freed, spaces);
                self.finished = true;
                Ok((lsn, Installed(self)))
            }
            Err(e) => {
                if !mutation::is(Mutation::R09TooLarge) {
                    self.alloc.unhold_freed(&self.freed, before);
                }
                Err(e)
            }
        }
    }
}

/// A transaction that has happened; the writer's lock is held until it is dropped.
#[derive(Debug)]
pub struct Installed(#[expect(dead_code, reason = "kept for its drop")] SpaceTx);

/// What is left of `run` without pages `from..to`.
fn cut(run: PageRun, from: u64, to: u64) -> Vec<PageRun> {
    let parts = [(run.start.0, from.min(run.end())), (to.max(run.start.0), run.end())];
    parts.into_iter().filter(|(a, b)| a < b).map(|(a, b)| PageRun::new(PageNo(a), b - a)).collect()
}

impl Drop for SpaceTx {
    fn drop(&mut self) {
        // Nothing may still be on its way to pages that others can have from here on.
        self.pages.abandon_writes();
        let mut back = std::mem::take(&mut self.released);
        let all = mutation::is(Mutation::R09Reservations) && self.freed.is_empty();
        if !self.finished || all {
            back.extend(self.mine.iter());
            back.extend(self.new_segments.iter());
        }
        for run in back {
            // As in staging: a contradiction only keeps pages reserved until the close.
            let _ = self.alloc.unreserve(run);
        }
    }
}

impl PageRead for SpaceTx {
    fn page_size(&self) -> usize {
        self.pages.pager().page_size()
    }

    fn page(&self, page: PageNo, kind: PageKind) -> Result<PageRef> {
        self.pages.page(page, kind)
    }

    fn with_page<T>(
        &self,
        page: PageNo,
        kind: PageKind,
        f: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        self.pages.with_page(page, kind, f)
    }
}

impl PageWrite for SpaceTx {
    fn page_mut(&mut self, page: PageNo, kind: PageKind) -> Result<&mut [u8]> {
        self.grows |= self.class != Class::Shrink;
        if !self.pages.holds(page) {
            self.make_room()?;
            self.touch(page, kind)?;
        }
        self.pages.page_mut(page, kind)
    }

    fn alloc_run(&mut self, want: u64, near: Option<PageNo>) -> Result<PageRun> {
        self.reuse_released()?;
        if let Some((from, line)) = self.below {
            let run = self.alloc.reserve_below(from, line, 1)?.ok_or_else(|| {
                Error::Full(format!("no page is free before page {line} of the file"))
            })?;
            self.below = Some((run.start.0, line));
            self.mine.insert(run);
            return Ok(run);
        }
        let run =
            self.alloc.reserve_pages(want, near.map_or(Near::Anywhere, Near::Page), self.class)?;
        self.mine.insert(run);
        Ok(run)
    }

    fn format(&mut self, page: PageNo, kind: PageKind, owner: u64) -> Result<&mut [u8]> {
        self.check_place(page, kind)?;
        self.make_room()?;
        if !self.mine.contains(page) {
            self.drop_image(page)?;
        }
        self.pages.format(page, kind, owner)
    }

    fn free_page(&mut self, page: PageNo) -> Result<()> {
        if !self.mine.contains(page) {
            self.drop_image(page)?;
        }
        self.free_node(page)
    }
}
