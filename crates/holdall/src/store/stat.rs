//! Figures of a store.

use super::{Fullness, Store};
use crate::cache::horizon::OpenSnapshot;
use crate::cache::thread_name;
use crate::engine::GaveBack;
use crate::engine::catalog::{Known, Root, large, page_of};
use crate::sharing::{Shared, Sharing};
use crate::txn::{Checkpoints, Elsewhere, Pager};
use holdall_core::collection_entry::{Counts, Entry, NumberKey};
use holdall_core::heap_page::max_record;
use holdall_core::page::PageKind;
use holdall_core::space_dir::SpaceDir;
use holdall_core::{Error, PageNo, PageRead, PageRef, Result, root_page, superblock};
use std::ops::Bound;
use std::time::Duration;

/// An open snapshot, and what it keeps from being used again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ReaderStat {
    /// How long ago the state that it sees was replaced.
    pub age: Duration,
    /// The thread that opened it: its name, or a number that this process has given it.
    pub thread: String,
    /// Bytes of freed pages that it may read. Younger snapshots may need some of them too.
    pub pinned_bytes: u64,
}

impl ReaderStat {
    fn all(store: &Store) -> Vec<Self> {
        let (inner, now) = (&store.inner, store.inner.storage.now());
        let (horizon, size) = (&inner.pager.horizon, inner.layout.page_size() as u64);
        let newest = horizon.newest();
        let mut open = horizon.open_snapshots();
        open.retain(|snapshot| snapshot.lsn < newest);
        open.sort_unstable();
        let one = |snapshot: OpenSnapshot| Self {
            age: horizon.age(snapshot.lsn, now),
            thread: thread_name(snapshot.thread).map_or_else(
                || format!("thread number {}, which has ended", snapshot.thread),
                |name| name.to_string(),
            ),
            pinned_bytes: inner.alloc.pinned_since(snapshot.lsn) * size,
        };
        open.into_iter().map(one).collect()
    }
}

/// Figures of one collection.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct CollectionStat {
    /// Its name.
    pub name: String,
    /// Objects in it.
    pub objects: u64,
    /// Sum of their sizes in bytes.
    pub logical_bytes: u64,
    /// Used share of its heap pages; of a small one that of the pages which all small ones share.
    pub heap_utilization: f64,
    /// Whether it is small: it takes bytes of pages that it shares with others.
    pub small: bool,
}

/// Figures of a store.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct StoreStat {
    /// Objects.
    pub objects: u64,
    /// Sum of their sizes in bytes.
    pub logical_bytes: u64,
    /// Bytes of blocks the volume file really takes.
    pub file_bytes: u64,
    /// Bytes of blocks the log file really takes.
    pub log_file_bytes: u64,
    /// `logical_bytes` ÷ `file_bytes`.
    pub utilization: f64,
    /// Used share of all heap pages.
    pub heap_utilization: f64,
    /// Bytes of pages in use.
    pub used_bytes: u64,
    /// Bytes that copies would take if they shared no segments.
    pub shared_bytes: u64,
    /// Bytes of pages that are free.
    pub free_bytes: u64,
    /// Of these the ones that take no blocks of the file system: they were given back.
    pub hole_bytes: u64,
    /// What the last round of giving free space back could not do.
    pub gave_back: GaveBack,
    /// Bytes freed that wait for a checkpoint or a snapshot.
    pub waiting_bytes: u64,
    /// Bytes of a page.
    pub page_size: usize,
    /// Pages of a buddy space.
    pub space_pages: u32,
    /// Buddy spaces.
    pub spaces: u32,
    /// How full it is.
    pub fullness: Fullness,
    /// Bytes of the freed ones that only snapshots keep.
    pub pinned_bytes: u64,
    /// The open snapshots that see older states than the newest, the oldest first.
    pub readers: Vec<ReaderStat>,
    /// Each collection.
    pub collections: Vec<CollectionStat>,
    /// Everything up to here is in place: replay would begin here.
    pub checkpoint_lsn: u64,
    /// Everything up to here survives a crash.
    pub durable_lsn: u64,
    /// Bytes of log in use.
    pub log_used: u64,
    /// Bytes of the log.
    pub log_capacity: u64,
    /// Checkpoints since the store was opened, by cause.
    pub checkpoints: Checkpoints,
    /// Pages newer in memory than in place.
    pub dirty_pages: u64,
    /// Old page versions kept in memory for snapshots.
    pub old_versions: u64,
    /// What lies elsewhere: pages of large transactions, old versions beyond memory.
    pub elsewhere: Elsewhere,
    /// Recoveries so far, plus one.
    pub epoch: u32,
    /// Version of the file format.
    pub format_version: u32,
    /// Commits replayed when the store was opened; 0 after a clean close.
    pub replayed_commits: u64,
    /// Pages that they changed.
    pub replayed_pages: u64,
    /// Bytes of log that they took.
    pub replayed_log_bytes: u64,
    /// Bytes of pages reserved by transactions and staged data.
    pub reserved_bytes: u64,
    /// Bytes of pages in memory, old versions included.
    pub cached_page_bytes: u64,
    /// Pages read from the file since the store was opened.
    pub page_misses: u64,
}

/// The figures. Those that are read from pages are of one state; it is read again if it was
/// given up for writers, and at last with the writers kept out.
pub(crate) fn stat(store: &Store) -> Result<StoreStat> {
    let pager = &store.inner.pager;
    let readers = ReaderStat::all(store);
    for _ in 0..MOST_TRIES {
        let reader = store.read_newest()?;
        match stat_of(store, &readers, &*reader.state) {
            Err(Error::SnapshotTooOld { .. }) => {}
            result => return result,
        }
    }
    // A transaction of this thread keeps the others out as well.
    let _writer = if pager.holds_writer() { None } else { Some(pager.lock_writer()?) };
    stat_of(store, &readers, &NewestPages(pager))
}

/// States that are begun with before writers have to wait.
const MOST_TRIES: u32 = 8;

/// The newest installed pages: one state as long as nobody commits.
struct NewestPages<'a>(&'a Pager);

impl PageRead for NewestPages<'_> {
    fn page_size(&self) -> usize {
        self.0.page_size()
    }

    fn page(&self, page: PageNo, kind: PageKind) -> Result<PageRef> {
        self.0.newest(page, kind)
    }
}

/// Collections by name, and how full all heap pages are.
struct Heaps {
    collections: Vec<CollectionStat>,
    /// Bytes used, and all bytes.
    used: u64,
    capacity: u64,
    fullness: Fullness,
}

impl Heaps {
    /// Adds a heap file; returns how full it is. Counters of damaged pages may be anything.
    fn add(&mut self, (used, all): (u64, u64)) -> f64 {
        self.fullness.add_heap(used, all);
        self.used = self.used.saturating_add(used);
        self.capacity = self.capacity.saturating_add(all);
        share(used, all)
    }

    /// Those of a state. Cost: the nodes of the catalog, and a page for each large collection.
    fn of<R: PageRead>(state: &R, root: &Root) -> Result<Self> {
        let size = state.page_size();
        let fullness = Fullness { page_size: size, ..Fullness::default() };
        let mut all = Self { collections: Vec::new(), used: 0, capacity: 0, fullness };
        let shared = all.add(root.shared(state)?.1.utilization(size));
        for entry in root.entries.iter(state, Bound::Unbounded) {
            let (key, value) = entry?;
            let Known { number, name, entry } = Known::decode(&key, &value)?;
            let (objects, logical_bytes, heap_utilization, small) = match entry {
                Entry::Small(Counts { objects, logical_bytes, .. }) => {
                    (objects, logical_bytes, shared, true)
                }
                Entry::Large(page) => {
                    let c = large(state, number, page)?;
                    (c.objects, c.logical_bytes(&name)?, all.add(c.heap.utilization(size)), false)
                }
            };
            let stat = CollectionStat { name, objects, logical_bytes, heap_utilization, small };
            all.collections.push(stat);
        }
        for entry in root.drops.iter(state, Bound::Unbounded) {
            let (key, value) = entry?;
            let (number, _) = NumberKey::split(&key)?;
            all.add(large(state, number, page_of(&value)?)?.heap.utilization(size));
        }
        all.collections.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }
}

fn stat_of<R: PageRead>(store: &Store, readers: &[ReaderStat], state: &R) -> Result<StoreStat> {
    let inner = &store.inner;
    let heaps = Heaps::of(state, &Root::load(state, inner.root)?)?;
    let Heaps { collections, used, capacity, mut fullness } = heaps;
    let images = state.with_page(inner.root, PageKind::Root, |b| Ok(root_page::image_count(b)))?;
    let space = inner.alloc.stats();
    let size = state.page_size() as u64;
    let pages = pages(store, space.spaces)?;
    let allocated = pages.allocated;
    add_pages(&mut fullness, store, &pages, capacity);
    let free = space.volume_pages.saturating_sub(allocated.saturating_add(space.waiting_pages));
    let disk = &inner.pager.volume.disk;
    let file_bytes = disk.allocated().map_err(|e| Error::io("asking for the file's blocks", e))?;
    let log = inner.pager.log.usage();
    let sb = inner.pager.volume.superblock();
    let pool = inner.pager.pool_stats();
    let logical_bytes = collections.iter().map(|c| c.logical_bytes).fold(0, u64::saturating_add);
    Ok(StoreStat {
        objects: collections.iter().map(|c| c.objects).fold(0, u64::saturating_add),
        logical_bytes,
        file_bytes,
        log_file_bytes: inner.log_file_bytes(),
        utilization: logical_bytes as f64 / file_bytes.max(1) as f64,
        heap_utilization: share(used, capacity),
        used_bytes: allocated * size,
        shared_bytes: saved_pages(state, inner.root)?.saturating_mul(size),
        free_bytes: free * size,
        hole_bytes: (space.volume_pages * size).saturating_sub(file_bytes).min(free * size),
        gave_back: inner.gave_back(),
        waiting_bytes: space.waiting_pages * size,
        page_size: state.page_size(),
        space_pages: inner.layout.space_pages(),
        spaces: space.spaces,
        fullness,
        pinned_bytes: inner.alloc.pinned_pages() * size,
        readers: readers.to_vec(),
        collections,
        checkpoint_lsn: sb.replay.0,
        durable_lsn: log.durable.0,
        log_used: log.used,
        log_capacity: log.capacity,
        checkpoints: inner.pager.checkpoints(),
        dirty_pages: pool.dirty,
        old_versions: pool.old_versions,
        elsewhere: inner.pager.elsewhere(images),
        epoch: sb.epoch,
        format_version: superblock::VERSION,
        replayed_commits: inner.recovered.commits,
        replayed_pages: inner.recovered.pages,
        replayed_log_bytes: inner.recovered.log_bytes,
        reserved_bytes: space.reserved_pages * size,
        cached_page_bytes: pool.pages * size,
        page_misses: pool.misses,
    })
}

fn share(used: u64, all: u64) -> f64 {
    if all == 0 { 1.0 } else { used as f64 / all as f64 }
}

/// Pages that sharing saves: those of all references but the first.
fn saved_pages<R: PageRead>(pages: &R, root: PageNo) -> Result<u64> {
    let sharing = Sharing::load(pages, root)?;
    let mut saved = 0_u64;
    for entry in sharing.tree.iter(pages, Bound::Unbounded) {
        let (key, value) = entry?;
        let Shared { run, references } = Shared::decode(&key, &value)?;
        saved = saved.saturating_add(run.len.saturating_mul(references - 1));
    }
    Ok(saved)
}

/// Pages by what the directories say of them.
#[derive(Default)]
struct Pages {
    allocated: u64,
    segment: u64,
    /// Checksum pages.
    info: u64,
}

fn pages(store: &Store, spaces: u32) -> Result<Pages> {
    let inner = &store.inner;
    let mut all = Pages::default();
    for space in 0..spaces {
        let bytes = inner.pager.newest(inner.layout.dir_page(space), PageKind::SpaceDir)?;
        let dir = SpaceDir::open(inner.layout, space, &*bytes)?;
        all.allocated += u64::from(dir.count_allocated());
        for stretch in 0..inner.layout.stretches() {
            all.segment += u64::from(dir.segment_pages(stretch)?);
            all.info += u64::from(!dir.info_page(stretch)?.is_none());
        }
    }
    Ok(all)
}

/// Adds all that directories hold. `capacity`: bytes that all formatted heap pages hold.
fn add_pages(full: &mut Fullness, store: &Store, pages: &Pages, capacity: u64) {
    let (inner, layout) = (&store.inner, &store.inner.layout);
    let size = layout.page_size() as u64;
    let bound = inner.options.max_bytes;
    full.reserve_bytes = inner.alloc.reserve_bytes();
    full.limit_bytes = if bound == u64::MAX { inner.alloc.volume_pages() * size } else { bound };
    // What the rest of the volume will need of its own: directories, checksum pages.
    let (n, most) = (u64::from(layout.space_pages()), full.limit_bytes / size);
    let (whole, last) = (most / n * (1 + u64::from(layout.stretches())), most % n);
    let own = whole + u64::from(last > 0) + last.div_ceil(u64::from(layout.stretch_pages()));
    let there = pages.info + u64::from(inner.alloc.stats().spaces);
    let heap = capacity / max_record(layout.page_size()) as u64;
    let other = pages.allocated.saturating_sub(pages.segment.saturating_add(heap));
    let metadata = other.saturating_add(own.saturating_sub(there));
    full.metadata_bytes = metadata.saturating_mul(size);
    full.stored_bytes = full.stored_bytes.saturating_add(pages.segment.saturating_mul(size));
    if bound == u64::MAX {
        // Records may fill their pages to more than what counts as filled.
        let all = full.stored_bytes.saturating_add(full.metadata_bytes);
        full.limit_bytes = full.limit_bytes.max(all);
    }
}
