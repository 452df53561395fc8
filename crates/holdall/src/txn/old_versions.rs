//! Old versions of pages that open snapshots read, beyond the memory that they may have.
//!
//! Owns: [`OldVersions`], which of them lie in *scratch*: runs of the volume that are reserved in
//! memory alone. No sync and no bitmap knows of them, so a crash leaves nothing (docs/recovery.md,
//! "Images and scratch"). What leads to them is a [`ScratchMap`], mostly in scratch too.
//!
//! Invariants: a version is found here before the pool drops it. It serves those states that see it:
//! from its own LSN on, before that of the version that followed. What a checkpoint or a new
//! snapshot may need stays in the pool. A run is given back once no snapshot is old enough for any
//! of it; a reader looks at its snapshot after the read.

use super::scratch_map::{self, Piece, Place, ScratchMap, ScratchPages};
use super::{Housekeeping, Pager};
use crate::cache::page_read::read_masked;
use crate::cache::pool::OldVersion;
use holdall_core::mutation::{self, Mutation};
use holdall_core::{Error, Lsn, PageNo, PageRef, PageRun, Result, page};
use parking_lot::RwLock;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Versions are written in runs of at most this many bytes.
const RUN_BYTES: usize = 1 << 20;
/// Memory holds an entry of the map for each 512 bytes that old versions may take.
const MAP_SHARE: usize = 512;
/// Entries of the map that may always be in memory.
const LEAST_MAP: usize = 32;

#[derive(Debug, Default)]
struct Scratch {
    map: ScratchMap,
    /// By the newest state that reads any of its versions.
    runs: BinaryHeap<Reverse<(Lsn, PageRun)>>,
    pages: usize,
}

/// The old versions of an open store that lie in scratch.
#[derive(Debug, Default)]
pub(super) struct OldVersions {
    scratch: RwLock<Scratch>,
    /// Pages of its runs.
    pages: AtomicUsize,
    /// Where the last look at the pool ended.
    shard: AtomicUsize,
    written: AtomicU64,
}

impl OldVersions {
    /// Where the version of `page` lies that a state at `lsn` sees.
    fn find(&self, pager: &Pager, page: PageNo, lsn: Lsn) -> Result<Option<PageNo>> {
        if self.pages.load(Relaxed) == 0 {
            return Ok(None);
        }
        let scratch = self.scratch.read();
        scratch.map.find(&*pager.volume.disk, pager.page_size(), page, lsn)
    }

    /// Versions written since the store was opened.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    fn enter(&self, run: PageRun, versions: &[OldVersion]) {
        self.written.fetch_add(versions.len() as u64, Relaxed);
        let mut scratch = self.scratch.write();
        let mut upto = Lsn(0);
        for (at, v) in (run.start.0..).zip(versions) {
            scratch.map.insert((v.page, v.lsn), Place { at: PageNo(at), until: v.until });
            upto = upto.max(v.until);
        }
        scratch.runs.push(Reverse((upto, run)));
        scratch.pages += run.len as usize;
        self.pages.store(scratch.pages, Relaxed);
    }

    /// Takes out the runs of which no state from `oldest` on reads anything, and the pieces of the
    /// map that led to them alone.
    fn take_free(&self, oldest: Lsn) -> (Vec<PageRun>, Vec<Arc<Piece>>) {
        let (mut runs, mut scratch) = (Vec::new(), self.scratch.write());
        let all = mutation::is(Mutation::R38Freed);
        while let Some(Reverse((upto, run))) = scratch.runs.peek().copied() {
            if !all && upto > oldest {
                break;
            }
            scratch.runs.pop();
            scratch.pages -= run.len as usize;
            runs.push(run);
        }
        let empty = scratch.pages == 0;
        self.pages.store(scratch.pages, Relaxed);
        let pieces = scratch.map.take_free(oldest, empty);
        (runs, pieces)
    }
}

/// Scratch of an open store.
struct Pages<'a> {
    pager: &'a Pager,
    store: &'a dyn Housekeeping,
}

impl ScratchPages for Pages<'_> {
    fn reserve(&self, pages: u64) -> Result<Option<PageRun>> {
        let Some(run) = self.store.reserve_scratch(pages)? else { return Ok(None) };
        // A page may have had another life that is in memory still.
        if (run.start.0..run.end()).all(|no| self.pager.pool.forget(PageNo(no))) {
            return Ok(Some(run));
        }
        self.store.give_scratch_back(run);
        Ok(None)
    }

    fn write(&self, at: PageNo, bytes: &[u8]) -> Result<()> {
        self.pager.volume.write_pages(at, bytes)
    }

    fn give_back(&self, run: PageRun) {
        self.store.give_scratch_back(run);
    }
}

impl Pager {
    /// The version of `page` that a state at `lsn` sees, if it lies in scratch. The caller looks at
    /// its snapshot afterwards. Cost: a page read.
    ///
    /// # Errors
    /// [`holdall_core::Error::Io`], [`holdall_core::Error::Corrupt`].
    pub(super) fn old_version(&self, page: PageNo, lsn: Lsn) -> Option<Result<PageRef>> {
        match self.old.find(self, page, lsn) {
            Ok(at) => Some(read_masked(&*self.volume.disk, self.page_size(), (page, at?))),
            Err(e) => Some(Err(e)),
        }
    }

    /// Bytes of old versions that lie in scratch.
    pub fn scratch_bytes(&self) -> u64 {
        let scratch = self.old.scratch.read();
        (scratch.pages as u64 + scratch.map.pages()) * self.page_size() as u64
    }

    /// Keeps old versions in memory within their budget: what only open snapshots read is written
    /// to scratch, and without room for that the oldest snapshot is given up.
    pub(super) fn bound_old_versions(&self) {
        self.free_scratch();
        let budget = self.limits.old_version_bytes / self.page_size();
        if self.pool.old_versions() <= budget {
            return;
        }
        for _ in 0..=self.pool.shards() {
            if self.pool.old_versions() <= budget {
                return;
            }
            // A snapshot of the newest durable state holds nothing that others do not.
            let visible = self.horizon.visible();
            if self.horizon.oldest_snapshot().is_none_or(|oldest| oldest >= visible) {
                self.pool.prune(&self.needed());
                return;
            }
            match self.spill_old_versions() {
                // What of the map does not leave memory now does at another time.
                Ok(true) => drop(self.bound_scratch_map()),
                Ok(false) => {
                    self.horizon.give_up_oldest();
                    self.pool.prune(&self.needed());
                }
                // They stay in memory until the next commit, which tries again.
                Err(_) => return,
            }
        }
    }

    /// Writes a run of old versions to scratch. Returns whether there was room.
    fn spill_old_versions(&self) -> Result<bool> {
        let most = (RUN_BYTES / self.page_size()).max(1);
        let shard = self.old.shard.fetch_add(1, Relaxed);
        let (needed, new) =
            (self.needed(), self.horizon.needed_by_new(|| self.log.visible_points()));
        let mut versions = self.pool.old_of(shard, &needed, &new);
        while !versions.is_empty() {
            let rest = versions.split_off(most.min(versions.len()));
            if !self.write_scratch(&versions)? {
                return Ok(false);
            }
            versions = rest;
        }
        Ok(true)
    }

    fn write_scratch(&self, versions: &[OldVersion]) -> Result<bool> {
        let Some(store) = self.housekeeping() else { return Ok(false) };
        let mut left = versions;
        while !left.is_empty() {
            let pages = Pages { pager: self, store: &*store };
            let Some(run) = pages.reserve(left.len() as u64)? else { return Ok(false) };
            let (now, later) = left.split_at((run.len as usize).min(left.len()));
            let mut bytes: Vec<u8> = now.iter().flat_map(|v| v.bytes.iter().copied()).collect();
            // A reader elsewhere whose state has an image of the page there must not take it for that.
            if !mutation::is(Mutation::R38Masked) {
                bytes.chunks_mut(self.page_size()).for_each(page::mask);
            }
            if let Err(e) = pages.write(run.start, &bytes) {
                pages.give_back(run);
                return if matches!(e, Error::Full(_)) { Ok(false) } else { Err(e) };
            }
            if !mutation::is(Mutation::R38Entered) {
                self.old.enter(run, now);
            }
            self.pool.drop_old(now);
            left = later;
        }
        Ok(true)
    }

    /// Keeps the map of what lies in scratch within its share of memory. Nothing of it is lost if that
    /// fails: it stays in memory.
    fn bound_scratch_map(&self) -> Result<()> {
        let Some(store) = self.housekeeping() else { return Ok(()) };
        let scratch = Pages { pager: self, store: &*store };
        let (disk, size) = (&*self.volume.disk, self.page_size());
        let (most, oldest) = (self.limits.old_version_bytes / MAP_SHARE, self.horizon.oldest());
        let Some(young) = self.old.scratch.read().map.young(most.max(LEAST_MAP), oldest) else {
            return Ok(());
        };
        let entries = young.iter().map(|entry| Ok(*entry));
        match scratch_map::write(entries, 0, size, &scratch)? {
            Some(piece) => self.old.scratch.write().map.push(Some(piece)),
            None => return Ok(()),
        }
        loop {
            let Some(old) = self.old.scratch.read().map.to_merge() else { return Ok(()) };
            let Some(piece) = scratch_map::merge(&old, oldest, (disk, size), &scratch)? else {
                return Ok(());
            };
            self.old.scratch.write().map.replace(&old, piece);
            old.iter().for_each(|piece| piece.give_back(&scratch));
        }
    }

    /// Gives back scratch that no snapshot needs any more. Cost: mostly the look at one number.
    pub fn free_scratch(&self) {
        if self.old.pages.load(Relaxed) == 0 {
            return;
        }
        let Some(store) = self.housekeeping() else { return };
        let oldest = self.horizon.oldest();
        let (runs, pieces) = self.old.take_free(oldest);
        let scratch = Pages { pager: self, store: &*store };
        pieces.iter().for_each(|piece| piece.give_back(&scratch));
        runs.into_iter().for_each(|run| scratch.give_back(run));
    }
}
