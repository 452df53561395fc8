//! Old versions of pages that open snapshots read, beyond the memory that they may have.
//!
//! Owns: [`OldVersions`], which of them lie in *scratch*: runs of the volume that are reserved in
//! memory alone. No sync and no bitmap knows of them, so a crash leaves nothing (docs/recovery.md,
//! "Snapshots"). Memory: about 64 bytes for a version.
//!
//! Invariants: a version is found here before the pool drops it. It serves those states that see it:
//! from its own LSN on, before that of the version that followed. What a checkpoint or a new
//! snapshot may need stays in the pool. A run is given back once no snapshot is old enough for any
//! of it; a reader looks at its snapshot after the read.

use super::Pager;
use crate::cache::page_read::read_image;
use crate::cache::pool::OldVersion;
use holdall_core::mutation::{self, Mutation};
use holdall_core::{Error, Lsn, PageNo, PageRef, PageRun, Result};
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Versions are written in runs of at most this many bytes.
const RUN_BYTES: usize = 1 << 20;

/// Where a version lies, and which one followed it.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: PageNo,
    until: Lsn,
}

#[derive(Debug, Default)]
struct Scratch {
    /// By page and LSN.
    versions: BTreeMap<(PageNo, Lsn), Place>,
    /// By the newest state that reads any of its versions.
    runs: BinaryHeap<Reverse<(Lsn, PageRun)>>,
    pages: usize,
    /// What lies in each run, by its first page.
    held: BTreeMap<PageNo, Vec<(PageNo, Lsn)>>,
}

/// The old versions of an open store that lie in scratch.
#[derive(Debug, Default)]
pub(super) struct OldVersions {
    scratch: Mutex<Scratch>,
    /// Pages of its runs.
    pages: AtomicUsize,
    /// Where the last look at the pool ended.
    shard: AtomicUsize,
    written: AtomicU64,
}

impl OldVersions {
    /// Where the version of `page` lies that a state at `lsn` sees.
    fn find(&self, page: PageNo, lsn: Lsn) -> Option<PageNo> {
        if self.pages.load(Relaxed) == 0 {
            return None;
        }
        let scratch = self.scratch.lock();
        let (_, place) = scratch.versions.range((page, Lsn(0))..=(page, lsn)).next_back()?;
        (lsn < place.until).then_some(place.at)
    }

    /// Versions written since the store was opened.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    fn enter(&self, run: PageRun, versions: &[OldVersion]) {
        self.written.fetch_add(versions.len() as u64, Relaxed);
        let mut scratch = self.scratch.lock();
        let mut upto = Lsn(0);
        for (at, v) in (run.start.0..).zip(versions) {
            let place = Place { at: PageNo(at), until: v.until };
            scratch.versions.insert((v.page, v.lsn), place);
            upto = upto.max(v.until);
        }
        scratch.runs.push(Reverse((upto, run)));
        scratch.held.insert(run.start, versions.iter().map(|v| (v.page, v.lsn)).collect());
        scratch.pages += run.len as usize;
        self.pages.store(scratch.pages, Relaxed);
    }

    /// Takes out a run of which no state from `oldest` on reads anything.
    fn take_free(&self, oldest: Lsn) -> Option<PageRun> {
        let mut scratch = self.scratch.lock();
        let Reverse((upto, run)) = scratch.runs.peek().copied()?;
        if upto > oldest && !mutation::is(Mutation::R38Freed) {
            return None;
        }
        scratch.runs.pop();
        for key in scratch.held.remove(&run.start).unwrap_or_default() {
            scratch.versions.remove(&key);
        }
        scratch.pages -= run.len as usize;
        self.pages.store(scratch.pages, Relaxed);
        Some(run)
    }
}

impl Pager {
    /// The version of `page` that a state at `lsn` sees, if it lies in scratch. The caller looks at
    /// its snapshot afterwards. Cost: a page read.
    ///
    /// # Errors
    /// [`holdall_core::Error::Io`], [`holdall_core::Error::Corrupt`].
    pub(super) fn old_version(&self, page: PageNo, lsn: Lsn) -> Option<Result<PageRef>> {
        let at = self.old.find(page, lsn)?;
        Some(read_image(&*self.volume.disk, self.page_size(), (page, at)))
    }

    /// Bytes of old versions that lie in scratch.
    pub fn scratch_bytes(&self) -> u64 {
        (self.old.pages.load(Relaxed) * self.page_size()) as u64
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
                Ok(true) => {}
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
            let Some(run) = store.reserve_scratch(left.len() as u64)? else { return Ok(false) };
            let (now, later) = left.split_at((run.len as usize).min(left.len()));
            // A page may have had another life that is in memory still.
            let forgotten = (run.start.0..run.end()).all(|no| self.pool.forget(PageNo(no)));
            let bytes: Vec<u8> = now.iter().flat_map(|v| v.bytes.iter().copied()).collect();
            let written = self.volume.write_pages(run.start, &bytes);
            if !forgotten || written.is_err() {
                store.give_scratch_back(run);
                return match written {
                    Err(e) if !matches!(e, Error::Full(_)) => Err(e),
                    _ => Ok(false),
                };
            }
            if !mutation::is(Mutation::R38Entered) {
                self.old.enter(run, now);
            }
            self.pool.drop_old(now);
            left = later;
        }
        Ok(true)
    }

    /// Gives back scratch that no snapshot needs any more. Cost: mostly the look at one number.
    pub fn free_scratch(&self) {
        if self.old.pages.load(Relaxed) == 0 {
            return;
        }
        let Some(store) = self.housekeeping() else { return };
        let oldest = self.horizon.oldest();
        while let Some(run) = self.old.take_free(oldest) {
            store.give_scratch_back(run);
        }
    }
}
