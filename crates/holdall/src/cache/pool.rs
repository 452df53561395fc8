//! The buffer pool: page versions in memory within a budget.
//!
//! Owns: frames (a page's versions, and which of them is in place), loading, eviction.
//! Knows nothing of the log or of transactions; LSNs come from outside.
//!
//! Threads: shards, each a reader-writer lock; the index repeats their newest versions for
//! readers, who so take no lock; a miss is loaded outside the lock by one thread while others
//! wait for it. Invariants: only a sole version that equals what is in place is
//! evicted (rule 19); of older versions only those somebody needs are kept (rule 20).

use super::holder::Holder;
use super::horizon::Needed;
use super::index::{Index, Pin};
use super::layout_hints::LayoutHints;
use super::page_hash::PageHash;
use super::page_read::{near, read_by};
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::{self, PageKind};
use holdall_core::{Error, Lsn, PageMemory, PageNo, PageRef, Result};
use holdall_io::Disk;
use parking_lot::{Condvar, Mutex, RwLock, RwLockWriteGuard};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

#[derive(Debug, Clone)]
struct Version {
    lsn: Lsn,
    bytes: PageRef,
}

#[derive(Debug)]
struct Frame {
    newest: Version,
    /// The versions before it, oldest first.
    older: Vec<Version>,
    /// LSN of the version in place.
    in_place: Lsn,
    used: AtomicBool,
}

impl Frame {
    fn dirty(&self) -> bool {
        self.newest.lsn != self.in_place
    }

    /// Notes a use for the clock.
    fn touch(&self) {
        // Only if it changes: readers share the line.
        if !self.used.load(Relaxed) {
            self.used.store(true, Relaxed);
        }
    }

    fn at(&self, lsn: Lsn) -> Option<&Version> {
        if self.newest.lsn <= lsn {
            return Some(&self.newest);
        }
        self.older.iter().rev().find(|v| v.lsn <= lsn)
    }

    /// Drops versions that nobody needs; the newest always stays. Returns how many.
    fn prune(&mut self, needed: &Needed) -> usize {
        let before = self.older.len();
        let mut until = self.newest.lsn;
        let mut kept = before;
        // From the newest on, what stays gathers at the end.
        for i in (0..before).rev() {
            let lsn = self.older[i].lsn;
            if needed.keeps(lsn, until) {
                kept -= 1;
                self.older.swap(i, kept);
            }
            until = lsn;
        }
        self.older.drain(..kept);
        before - self.older.len()
    }
}

#[derive(Debug, Default)]
struct Frames {
    map: HashMap<u64, Frame, PageHash>,
    /// Clock of page numbers for eviction; may name pages that are gone.
    clock: Vec<u64>,
    hand: usize,
}

/// On its own lines of the processors' caches: every read writes to the lock.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    frames: RwLock<Frames>,
    loading: Mutex<HashSet<u64>>,
    loaded: Condvar,
}

/// Who reads: what the pool asks when a page was not in memory.
pub(crate) trait Reading {
    /// Which old versions must stay.
    fn needed(&self) -> Needed;

    /// The version of `page` that a state at `lsn` sees, if it was written elsewhere to make room
    /// in memory.
    fn old_version(&self, page: PageNo, lsn: Lsn) -> Option<Result<PageRef>>;

    /// Whether the reader's state is still held: a page of a state given up may have been
    /// reused while it was read, and must not be published.
    fn is_live(&self) -> bool;
}

/// A version of a page that is not the newest.
#[derive(Debug, Clone)]
pub(crate) struct OldVersion {
    pub(crate) page: PageNo,
    pub(crate) lsn: Lsn,
    /// LSN of the version that follows it.
    pub(crate) until: Lsn,
    pub(crate) bytes: PageRef,
}

/// Counters of a pool.
#[derive(Debug, Clone, Copy, Default)]
pub struct PoolStats {
    /// Pages read from disk.
    pub misses: u64,
    /// Pages in memory.
    pub pages: u64,
    /// Pages whose newest version is not in place.
    pub dirty: u64,
    /// Versions kept beside the newest ones.
    pub old_versions: u64,
}

/// The pool of an open store.
#[derive(Debug)]
pub struct Pool {
    disk: Arc<dyn Disk>,
    /// The newest version of each frame, unless another page took its place.
    index: Index,
    /// Where things lie in pages.
    pub(crate) hints: LayoutHints,
    shards: Box<[Shard]>,
    shard_pages: usize,
    dirty: AtomicI64,
    old_versions: AtomicI64,
    misses: AtomicU64,
    /// How often what another process wrote in places was taken over.
    advances: AtomicU64,
    /// The process that holds the only state that is read, and has what is in place no more.
    holder: Option<Arc<dyn Holder>>,
    /// Memory for its pages; the last, so that it is dropped behind them.
    pub(crate) memory: PageMemory,
}

impl Pool {
    /// A pool of about `budget` bytes, at least one page.
    pub fn new(disk: Arc<dyn Disk>, page_size: usize, budget: usize) -> Self {
        let pages = (budget / page_size).max(1);
        let shards = if pages >= 1024 { 64 } else { 1 };
        Self {
            disk,
            memory: PageMemory::new(page_size),
            index: Index::new(pages, page_size),
            hints: LayoutHints::new(pages),
            shards: (0..shards).map(|_| Shard::default()).collect(),
            shard_pages: pages / shards,
            dirty: AtomicI64::new(0),
            old_versions: AtomicI64::new(0),
            misses: AtomicU64::new(0),
            advances: AtomicU64::new(0),
            holder: None,
        }
    }

    /// What the places have no more comes from `holder` from here on.
    pub fn ask(&mut self, holder: Arc<dyn Holder>) {
        self.holder = Some(holder);
    }

    fn shard(&self, page: PageNo) -> &Shard {
        // By the place in the index, which so has one lock.
        let mixed = (self.index.pair(page) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        // Their number is a power of two.
        &self.shards[mixed as usize & (self.shards.len() - 1)]
    }

    /// The version of `page` that a reader at `lsn` sees, and its kind checked. `reading`
    /// is asked only on a miss. Cost: one page read on a miss.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`]; [`Error::SnapshotTooOld`] if no version that
    /// old is left.
    pub fn get(
        &self,
        page: PageNo,
        kind: PageKind,
        lsn: Lsn,
        reading: &dyn Reading,
    ) -> Result<PageRef> {
        let found = match self.find((page, page, kind), lsn, reading) {
            // What is in place may be newer, or torn by a write under way.
            Err(e) => reading.old_version(page, lsn).unwrap_or(Err(e)),
            found => found,
        };
        let bytes = found?;
        page::of_kind(&bytes, page, kind)?;
        Ok(bytes)
    }

    /// As [`Pool::get`], of a page of `kind`, or any, that lies at `image`; in memory it is kept as
    /// that page, and found with a lock.
    ///
    /// # Errors
    /// As [`Pool::get`]; [`Error::Corrupt`] if another page lies there.
    pub fn get_image(
        &self,
        (page, image): (PageNo, PageNo),
        kind: Option<PageKind>,
        lsn: Lsn,
        reading: &dyn Reading,
    ) -> Result<PageRef> {
        let around = kind.unwrap_or(PageKind::Images);
        let bytes = self.find((image, page, around), lsn, reading)?;
        if page::address(&bytes) != page {
            return Err(Error::page(image, format!("does not hold the image of page {page}")));
        }
        kind.map_or(Ok(()), |kind| page::of_kind(&bytes, page, kind))?;
        Ok(bytes)
    }

    /// The newest version of a page in memory, where a reader at `lsn` sees it: without a lock
    /// and without counting a reference. `None` says nothing; [`Pool::get`] answers.
    #[inline]
    pub fn peek<'p>(&self, page: PageNo, lsn: Lsn, pin: &'p Pin) -> Option<&'p [u8]> {
        self.index.get(page, lsn, pin)
    }

    /// See [`super::Pinned::prefetch_entry`].
    #[inline]
    pub fn prefetch_entry(&self, page: PageNo) {
        self.index.prefetch_entry(page);
    }

    /// See [`super::Pinned::prefetch`].
    #[inline]
    pub fn prefetch(&self, page: PageNo, bytes: Range<usize>) {
        self.index.prefetch(page, bytes);
    }

    fn cached(&self, shard: &Shard, page: PageNo, lsn: Lsn) -> Option<Result<PageRef>> {
        let frames = shard.frames.read();
        let frame = frames.map.get(&page.0)?;
        frame.touch();
        Some(frame.at(lsn).map(|v| v.bytes.clone()).ok_or_else(gone))
    }

    fn find(
        &self,
        (page, address, kind): (PageNo, PageNo, PageKind),
        lsn: Lsn,
        reading: &dyn Reading,
    ) -> Result<PageRef> {
        if let Some(found) = self.index.share(page, lsn) {
            return Ok(found);
        }
        let shard = self.shard(page);
        loop {
            if let Some(found) = self.cached(shard, page, lsn) {
                return found;
            }
            let mut loading = shard.loading.lock();
            if loading.insert(page.0) {
                break;
            }
            shard.loaded.wait(&mut loading);
        }
        // Published between the look and the claim, perhaps.
        let result = self.cached(shard, page, lsn);
        let load = || self.load(shard, (page, address, kind), lsn, reading);
        let result = result.unwrap_or_else(load);
        shard.loading.lock().remove(&page.0);
        shard.loaded.notify_all();
        result
    }

    fn load(
        &self,
        shard: &Shard,
        (page, address, kind): (PageNo, PageNo, PageKind),
        lsn: Lsn,
        reading: &dyn Reading,
    ) -> Result<PageRef> {
        self.misses.fetch_add(1, Relaxed);
        let (disk, advances) = (&*self.disk, self.advances.load(SeqCst));
        let how = |at, to: &mut [u8]| disk.read_near(at, to, near(kind));
        let read = read_by(self.memory.zeroed(), (page, address), how);
        if !read.as_ref().is_ok_and(|bytes| page::lsn(bytes) <= lsn)
            && let Some(found) = self.cached(shard, page, lsn)
        {
            // A commit and a checkpoint overtook the read: the version is in memory now.
            return found;
        }
        let bytes = match (read, &self.holder) {
            (Ok(bytes), _) if page::lsn(&bytes) <= lsn => bytes,
            // In place it is newer, or torn by a write under way.
            (_, Some(holder)) if page == address && !mutation::is(Mutation::R42Ask) => {
                super::holder::page(&**holder, (address, kind), lsn)?
            }
            // An image stays as it is while the state is held; what lies in place is older.
            (_, Some(holder)) if !holder.is_held() => return Err(gone()),
            (Err(e), _) => return Err(e),
            (Ok(bytes), _) => {
                // A snapshot given up meets this legitimately; its owner distinguishes the two.
                let own = page::lsn(&bytes);
                let detail = format!("has LSN {own}, newer than the state {lsn} being read");
                return Err(Error::page(page, detail));
            }
        };
        let own = page::lsn(&bytes);
        // Before the shard's lock: it asks the log, whose lock a committer holds over ours.
        let needed = reading.needed();
        let mut frames = shard.frames.write();
        if let Some(frame) = frames.map.get(&page.0) {
            // A commit installed the page while it was read: its version is the newer one.
            return frame.at(lsn).map(|v| v.bytes.clone()).ok_or_else(gone);
        }
        if !reading.is_live() {
            return Err(gone());
        }
        if self.advances.load(SeqCst) != advances && !mutation::is(Mutation::R41Late) {
            // Another process may have put another page there since; this reader's it was.
            return Ok(bytes);
        }
        let version = Version { lsn: own, bytes: bytes.clone() };
        let (older, used) = (Vec::new(), AtomicBool::new(false));
        let frame = Frame { newest: version, older, in_place: own, used };
        frames.map.insert(page.0, frame);
        frames.clock.push(page.0);
        self.index.publish(page, None, &bytes);
        self.evict(&mut frames, &needed, page);
        Ok(bytes)
    }

    fn evict(&self, frames: &mut RwLockWriteGuard<'_, Frames>, needed: &Needed, keep: PageNo) {
        let mut steps = 2 * frames.clock.len();
        // A pool full of dirty pages would be swept in vain at every miss: look at a few.
        steps = steps.min(256);
        while frames.map.len() > self.shard_pages && steps > 0 {
            steps -= 1;
            if frames.hand >= frames.clock.len() {
                frames.hand = 0;
            }
            let hand = frames.hand;
            let Some(&no) = frames.clock.get(hand) else { return };
            let Some(frame) = frames.map.get_mut(&no) else {
                frames.clock.swap_remove(hand);
                continue;
            };
            if !frame.older.is_empty() {
                let dropped = frame.prune(needed);
                self.old_versions.fetch_sub(dropped as i64, Relaxed);
            }
            let newest = &frame.newest.bytes;
            let used = self.index.take_used(PageNo(no), newest) | frame.used.swap(false, Relaxed);
            let dirty = frame.dirty() && !mutation::is(Mutation::R19Dirty);
            if used || dirty || no == keep.0 || !frame.older.is_empty() {
                frames.hand += 1;
            } else {
                self.index.withdraw(PageNo(no), newest);
                frames.map.remove(&no);
                frames.clock.swap_remove(hand);
            }
        }
    }

    /// Publishes a version. `in_place`: it is there already. `needed`: which older versions
    /// must stay; the version just replaced stays in any case, since readers may be opening
    /// at it.
    /// `base` is that version: if its frame was evicted since it was read, it is in place
    /// and comes back, because the frame now hides what is in place from those readers.
    pub fn install(
        &self,
        page: PageNo,
        (lsn, bytes): (Lsn, PageRef),
        base: Option<&PageRef>,
        in_place: bool,
        needed: &Needed,
    ) {
        let shard = self.shard(page);
        let mut guard = shard.frames.write();
        let frames = &mut *guard;
        let new = Version { lsn, bytes };
        let (was_dirty, old) = match frames.map.entry(page.0) {
            Entry::Occupied(mut entry) => {
                let frame = entry.get_mut();
                let (was_dirty, dropped) = (frame.dirty(), frame.prune(needed));
                self.index.publish(page, Some(&frame.newest.bytes), &new.bytes);
                frame.older.push(std::mem::replace(&mut frame.newest, new));
                if in_place {
                    frame.in_place = lsn;
                }
                (was_dirty, 1 - dropped as i64)
            }
            Entry::Vacant(place) => {
                frames.clock.push(page.0);
                self.index.publish(page, None, &new.bytes);
                let base = base.map(|b| Version { lsn: page::lsn(b), bytes: b.clone() });
                let before = base.as_ref().map_or(Lsn(0), |b| b.lsn);
                let older: Vec<Version> = base.into_iter().collect();
                let old = older.len() as i64;
                let (in_place, used) = (if in_place { lsn } else { before }, AtomicBool::new(true));
                place.insert(Frame { newest: new, older, in_place, used });
                (false, old)
            }
        };
        let delta = i64::from(!in_place) - i64::from(was_dirty);
        self.dirty.fetch_add(delta, Relaxed);
        self.old_versions.fetch_add(old, Relaxed);
        if frames.map.len() > self.shard_pages {
            self.evict(&mut guard, needed, page);
        }
    }

    /// Forgets a page that is free: what it held is needed by nobody (rule 16 has passed).
    /// Returns whether it did: not if its newest version is not in place, since a checkpoint
    /// under way would bring that there, over what is put there meanwhile.
    pub fn forget(&self, page: PageNo) -> bool {
        let mut frames = self.shard(page).frames.write();
        let dirty = frames.map.get(&page.0).is_some_and(Frame::dirty);
        if !dirty {
            self.remove(&mut frames, page);
        }
        !dirty
    }

    /// As [`Pool::forget`], also if its newest version is not in place: another process has put a
    /// newer page there.
    pub fn discard(&self, page: PageNo) {
        self.remove(&mut self.shard(page).frames.write(), page);
    }

    fn remove(&self, frames: &mut Frames, page: PageNo) {
        if let Some(frame) = frames.map.remove(&page.0) {
            self.index.withdraw(page, &frame.newest.bytes);
            self.old_versions.fetch_sub(frame.older.len() as i64, Relaxed);
            self.dirty.fetch_sub(i64::from(frame.dirty()), Relaxed);
        }
        if frames.clock.len() > 2 * frames.map.len() + 64 {
            // Names of forgotten pages gather only here; eviction clears its own.
            frames.clock = frames.map.keys().copied().collect();
            frames.hand = 0;
        }
    }

    /// What another process wrote is about to be taken over: what is being read now is not kept.
    pub fn begin_advance(&self) {
        self.advances.fetch_add(1, SeqCst);
    }

    /// As [`Pool::forget`], for all pages that `gone` says. Cost: a look at every frame.
    pub fn forget_those(&self, gone: impl Fn(PageNo) -> bool) -> bool {
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(shard.frames.read().map.keys().map(|no| PageNo(*no)).filter(|no| gone(*no)));
        }
        all.into_iter().all(|no| self.forget(no))
    }

    /// Pages with a version at or below `lsn` newer than in place, sorted, with that version.
    pub fn dirty_at(&self, lsn: Lsn) -> Vec<(PageNo, Lsn, PageRef)> {
        let mut out = Vec::new();
        for shard in &self.shards {
            let frames = shard.frames.read();
            for (no, frame) in &frames.map {
                let passed_over =
                    |v: &Version| mutation::is(Mutation::R14Newest) && v.lsn != frame.newest.lsn;
                let due = |v: &&Version| frame.dirty() && v.lsn > frame.in_place && !passed_over(v);
                if let Some(v) = frame.at(lsn).filter(due) {
                    out.push((PageNo(*no), v.lsn, v.bytes.clone()));
                }
            }
        }
        out.sort_unstable_by_key(|(no, ..)| *no);
        out
    }

    /// Notes that version `lsn` of `page` is in place and drops what nobody needs.
    pub fn flushed_in_place(&self, page: PageNo, lsn: Lsn, needed: &Needed) {
        let mut frames = self.shard(page).frames.write();
        let Some(frame) = frames.map.get_mut(&page.0) else { return };
        let was_dirty = frame.dirty();
        frame.in_place = frame.in_place.max(lsn);
        let now = i64::from(frame.dirty()) - i64::from(was_dirty);
        self.dirty.fetch_add(now, Relaxed);
        let dropped = frame.prune(needed);
        self.old_versions.fetch_sub(dropped as i64, Relaxed);
    }

    /// Drops old versions everywhere that nobody needs. Cost: one look at every frame.
    pub fn prune(&self, needed: &Needed) {
        for shard in &self.shards {
            let mut frames = shard.frames.write();
            let dropped: usize = frames.map.values_mut().map(|f| f.prune(needed)).sum();
            self.old_versions.fetch_sub(dropped as i64, Relaxed);
        }
    }

    /// Number of its shards.
    pub(crate) fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Drops what nobody needs in a shard, any number of which means one, and returns those of its
    /// old versions that open snapshots alone need: not those of `new`. In order of pages. Cost: a
    /// look at its frames.
    pub(crate) fn old_of(&self, shard: usize, needed: &Needed, new: &Needed) -> Vec<OldVersion> {
        let mut frames = self.shards[shard % self.shards.len()].frames.write();
        let (mut found, mut dropped) = (Vec::new(), 0);
        for (no, frame) in frames.map.iter_mut().filter(|(_, f)| !f.older.is_empty()) {
            dropped += frame.prune(needed);
            // From the oldest on: what stays in memory is newer than what is elsewhere.
            for (i, v) in frame.older.iter().enumerate() {
                let until = frame.older.get(i + 1).map_or(frame.newest.lsn, |next| next.lsn);
                if new.keeps(v.lsn, until) {
                    break;
                }
                let (page, lsn, bytes) = (PageNo(*no), v.lsn, v.bytes.clone());
                found.push(OldVersion { page, lsn, until, bytes });
            }
        }
        self.old_versions.fetch_sub(dropped as i64, Relaxed);
        found.sort_unstable_by_key(|v| (v.page, v.lsn));
        found
    }

    /// Drops these versions, which are found elsewhere now.
    pub(crate) fn drop_old(&self, versions: &[OldVersion]) {
        for v in versions {
            let mut frames = self.shard(v.page).frames.write();
            let Some(frame) = frames.map.get_mut(&v.page.0) else { continue };
            let before = frame.older.len();
            frame.older.retain(|older| older.lsn != v.lsn);
            self.old_versions.fetch_sub((before - frame.older.len()) as i64, Relaxed);
        }
    }

    /// The newest version of a page that lies in its place or is to, if it is in memory.
    pub fn newest_in_memory(&self, page: PageNo) -> Option<PageRef> {
        let frames = self.shard(page).frames.read();
        frames.map.get(&page.0).map(|frame| frame.newest.bytes.clone())
    }

    /// LSNs of the newest version of a page and of the one in place; `None` if the page is
    /// not in memory, so that its newest version is in place.
    pub fn in_place_state(&self, page: PageNo) -> Option<(Lsn, Lsn)> {
        let frames = self.shard(page).frames.read();
        frames.map.get(&page.0).map(|frame| (frame.newest.lsn, frame.in_place))
    }

    /// The kind of a page whose newest version is not in place; `None` of any other.
    pub fn dirty_kind(&self, page: PageNo) -> Option<PageKind> {
        let frames = self.shard(page).frames.read();
        let frame = frames.map.get(&page.0).filter(|frame| frame.dirty())?;
        page::kind(&frame.newest.bytes)
    }

    /// Number of pages whose newest version is not in place.
    pub fn dirty_pages(&self) -> usize {
        self.dirty.load(Relaxed).max(0) as usize
    }

    /// Number of versions kept beside the newest ones.
    pub fn old_versions(&self) -> usize {
        self.old_versions.load(Relaxed).max(0) as usize
    }

    /// Counters.
    pub fn stats(&self) -> PoolStats {
        PoolStats {
            misses: self.misses.load(Relaxed),
            pages: self.shards.iter().map(|s| s.frames.read().map.len() as u64).sum(),
            dirty: self.dirty_pages() as u64,
            old_versions: self.old_versions() as u64,
        }
    }
}

/// No version is left for a snapshot that was given up; its owner says how old it was.
#[cold]
fn gone() -> Error {
    Error::SnapshotTooOld { age: std::time::Duration::ZERO }
}
