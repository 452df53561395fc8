//! Transactions on the pages of one volume: snapshots, commits, checkpoints and recovery.
//!
//! Owns: [`Pager`], which ties page cache, log and volume together; the writer's lock.
//! Layers above see snapshots ([`Snapshot`]) and page transactions ([`PageTx`]).
//!
//! Invariants and the argument for crash safety: docs/recovery.md.

mod beside;
mod causes;
mod checkpoint;
pub mod direct;
#[cfg(test)]
mod fixture;
mod housekeeping;
mod imaged;
mod old_versions;
mod pinned;
mod recovery;
mod scratch_map;
mod snapshot;
mod tx;
mod tx_pages;
mod volume;
mod writer_lock;

pub use crate::log::{io_error, no_inodes};
pub use beside::{Beside, has_writer};
pub use causes::{Cause, Checkpoints};
pub use housekeeping::Housekeeping;
pub use imaged::Elsewhere;
pub use pinned::{MOST_EXPECTED, Pinned};
pub use recovery::{Recovered, Remade, recover, remake, without_log};
pub use snapshot::{SharedState, Snapshot};
pub use tx::{Cold, PageTx};
pub use volume::{Slots, Volume, newest_superblock, read_slots};
pub use writer_lock::{Cancel, Wait, Waiting};

use crate::cache::horizon::{Horizon, Needed, Registration};
use crate::cache::pool::{Pool, PoolStats, Reading};
use crate::images::Images;
use crate::log::Log;
use crate::metrics::{Distribution, Looks, Recorder};
use direct::{Copied, WriteBehind};
use holdall_core::page::PageKind;
use holdall_core::{Busy, Error, Lsn, PageMemory, PageNo, PageRef, Result};
use housekeeping::Above;
use imaged::{Places, Trees};
use old_versions::OldVersions;
use parking_lot::Mutex;
use std::sync::Arc;
use writer_lock::Writer;

/// Bytes of a log that are left to commits while a checkpoint runs.
const LOG_ROOM: u64 = 8 << 20;
/// Looks at a page that is newer in place each time, before that is taken for damage.
const MOST_TRIES: u32 = 8;

/// Limits of a pager.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of pages kept in memory, of which dirty ones stay in any case.
    pub cache_bytes: usize,
    /// Pages that may differ from what is in place before a writer must wait for a checkpoint.
    pub dirty_pages: usize,
    /// Bytes of old page versions kept for snapshots.
    pub old_version_bytes: usize,
    /// Pages that a transaction holds in memory, at least two; it writes others before its commit.
    pub transaction_pages: usize,
    /// Checksums of new segment data that a transaction, or a put before it, holds in memory.
    pub checksum_bytes: usize,
    /// New pages and segment bytes of a commit beyond this go straight to its place and are synced
    /// while the log is, instead of passing through it (docs/recovery.md, "What is synced when").
    pub log_data_bytes: usize,
    /// Whether segment data in the page cache is read through a mapping of the file.
    pub map_reads: bool,
    /// Whether long reads of segment data new to that cache go past it.
    pub direct_reads: bool,
}

/// Pages of an open store.
#[derive(Debug)]
pub struct Pager {
    pool: Pool,
    /// The redo log.
    pub log: Log,
    /// Open snapshots.
    pub horizon: Horizon,
    /// The volume file.
    pub volume: Volume,
    /// New data on its way to it.
    pub behind: WriteBehind,
    limits: Limits,
    writer: Writer,
    checkpointing: Mutex<()>,
    checkpoints: Mutex<Checkpoints>,
    /// What replay would copy within the volume.
    copied: Mutex<Copied>,
    above: Above,
    trees: Trees,
    old: OldVersions,
    /// Lookups of objects.
    pub looks: Looks,
    checkpoint_times: Recorder,
    /// Who else may write, if this process only reads.
    beside: Option<Beside>,
}

impl Pager {
    /// Nanoseconds that transactions waited for others.
    pub fn writer_waits(&self) -> Distribution {
        self.writer.waits()
    }

    /// Nanoseconds of checkpoints.
    pub fn checkpoint_times(&self) -> Distribution {
        self.checkpoint_times.load()
    }

    /// A pager over a recovered volume; `log` begins where replay would.
    pub fn new(volume: Volume, log: Log, limits: Limits) -> Self {
        let start = log.durable();
        Self {
            pool: Pool::new(volume.disk.clone(), volume.page_size(), limits.cache_bytes),
            log,
            horizon: Horizon::new(start),
            volume,
            behind: WriteBehind::default(),
            limits,
            writer: Writer::default(),
            checkpointing: Mutex::new(()),
            checkpoints: Mutex::default(),
            copied: Mutex::default(),
            above: Above::default(),
            trees: Trees::default(),
            old: OldVersions::default(),
            looks: Looks::default(),
            checkpoint_times: Recorder::default(),
            beside: None,
        }
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> usize {
        self.volume.page_size()
    }

    /// Opens a snapshot of the newest durable commit. Never waits for a transaction.
    pub fn snapshot(self: &Arc<Self>) -> Snapshot {
        self.hold(self.horizon.open(), None)
    }

    /// As [`Pager::snapshot`], sharing what an earlier snapshot found if its state is the
    /// same. With `newest`, of the newest installed commit, which a crash may still lose.
    pub fn snapshot_after(
        self: &Arc<Self>,
        newest: bool,
        last: Option<&Arc<SharedState>>,
    ) -> Snapshot {
        let open = if newest { self.horizon.open_newest() } else { self.horizon.open() };
        self.hold(open, last)
    }

    fn hold(
        self: &Arc<Self>,
        registration: Registration,
        last: Option<&Arc<SharedState>>,
    ) -> Snapshot {
        let lsn = registration.lsn;
        let seen = match last {
            Some(seen) if seen.lsn == lsn && Arc::ptr_eq(&seen.pager, self) => seen.clone(),
            _ => Arc::new(SharedState { lsn, pager: self.clone() }),
        };
        // After the registration: the tree of its state is not forgotten any more.
        let images = self.trees.at(lsn);
        Snapshot { registration, seen, images }
    }

    /// The page of the state at `lsn`, which nobody can take away and whose tree is `images`.
    fn get(&self, images: Images, page: PageNo, kind: PageKind, lsn: Lsn) -> Result<PageRef> {
        Places { pager: self, lsn, reading: &LatestState(self) }.find(images, page, kind)
    }

    fn needed(&self) -> Needed {
        self.horizon.needed(|| self.log.visible_points())
    }

    /// A page as an open snapshot at `lsn` sees it: the root or a directory, which always lie in
    /// their places. If the snapshot is closed meanwhile, an error or any version up to it.
    ///
    /// # Errors
    /// As [`Pager::newest`].
    pub fn page_of_state(&self, page: PageNo, kind: PageKind, lsn: Lsn) -> Result<PageRef> {
        self.pool.get(page, kind, lsn, &StateOf(self))
    }

    /// The newest installed version of a page, wherever it lies.
    ///
    /// # Errors
    /// As [`PageRead::page`](holdall_core::PageRead::page).
    pub fn newest(&self, page: PageNo, kind: PageKind) -> Result<PageRef> {
        let mut tries = 0;
        loop {
            tries += 1;
            let newest = self.horizon.newest();
            match self.get(self.trees.at(newest), page, kind, newest) {
                // A commit replaced the version between the two looks, and nobody kept it.
                Err(Error::SnapshotTooOld { .. }) => {}
                // The same, if a checkpoint has brought the newer one in place.
                Err(_) if tries < MOST_TRIES && self.horizon.newest() != newest => {}
                result => return result,
            }
        }
    }

    /// Waits until commit `lsn` is durable, and makes it visible to new snapshots.
    ///
    /// # Errors
    /// [`holdall_core::Error::Poisoned`].
    pub fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        self.log.wait_durable(lsn, &self.volume, |durable| self.horizon.set_visible(durable))
    }

    /// Makes all commits so far durable and visible.
    ///
    /// # Errors
    /// [`holdall_core::Error::Poisoned`].
    pub fn flush(&self) -> Result<()> {
        self.log.flush(&self.volume, |durable| self.horizon.set_visible(durable))
    }

    /// LSNs of the newest version of a page and of the one in place, for verification; `None`
    /// if the page is not in memory, so that its newest version is in place.
    pub fn in_place_state(&self, page: PageNo) -> Option<(Lsn, Lsn)> {
        self.pool.in_place_state(page)
    }

    /// Whether the newest version of a page in its place waits in memory for a checkpoint.
    pub fn is_dirty(&self, page: PageNo) -> bool {
        self.in_place_state(page).is_some_and(|(newest, in_place)| newest != in_place)
    }

    /// The kind of a page whose newest version waits in memory for a checkpoint.
    pub fn waiting_kind(&self, page: PageNo) -> Option<PageKind> {
        self.pool.dirty_kind(page)
    }

    /// Pages whose newest version is not in place.
    pub fn dirty_pages(&self) -> usize {
        self.pool.dirty_pages()
    }

    /// Memory that the pool's pages lie in.
    pub fn memory(&self) -> &PageMemory {
        &self.pool.memory
    }

    /// Counters of the pool.
    pub fn pool_stats(&self) -> PoolStats {
        self.pool.stats()
    }

    /// Keeps all transactions out for as long as the value lives; waits for a running one.
    ///
    /// # Errors
    /// [`holdall_core::Error::Busy`] if this thread runs one.
    pub fn lock_writer(&self) -> Result<impl Drop + use<>> {
        self.writer.lock(&Waiting::default())
    }

    /// As [`Pager::lock_writer`], if no transaction runs; `None` if one does, of this thread too.
    pub fn try_lock_writer(&self) -> Option<impl Drop + use<>> {
        self.writer.lock(&Waiting::begin(Wait::Not, None)).ok()
    }

    /// Who keeps transactions out; None if nobody does.
    pub fn writer(&self) -> Option<Busy> {
        self.writer.holder()
    }

    /// Whether this thread runs a transaction that has the writer's lock.
    pub fn holds_writer(&self) -> bool {
        self.writer.is_mine()
    }

    /// Why a checkpoint should begin, if one should: the log has no more than 8 MiB or half of it
    /// left, the dirty limit is half used, or replay would have to copy much more than the log
    /// holds.
    pub fn wants_checkpoint(&self) -> Option<Cause> {
        let log = self.log.usage();
        if log.used > log.capacity - LOG_ROOM.min(log.capacity / 2) {
            return Some(Cause::Log);
        }
        if self.dirty_pages() * 2 > self.limits.dirty_pages {
            return Some(Cause::DirtyPages);
        }
        self.copied.lock().is_much(log.capacity).then_some(Cause::Copies)
    }

    /// Checkpoints since the store was opened.
    pub fn checkpoints(&self) -> Checkpoints {
        *self.checkpoints.lock()
    }

    /// # Errors
    /// [`holdall_core::Error::Poisoned`] once a log write, log sync or volume sync failed.
    pub fn check_poison(&self) -> Result<()> {
        if let Some(why) = self.volume.poison() {
            self.log.set_poison(&why);
        }
        self.log.check_poison()
    }
}

/// Reads a state that an open snapshot sees, to learn which pages it has in use.
struct StateOf<'a>(&'a Pager);

impl Reading for StateOf<'_> {
    fn needed(&self) -> Needed {
        self.0.needed()
    }

    fn old_version(&self, page: PageNo, lsn: Lsn) -> Option<Result<PageRef>> {
        self.0.old_version(page, lsn)
    }

    fn is_live(&self) -> bool {
        true
    }
}

/// Reads the newest state, which nobody can take away.
struct LatestState<'a>(&'a Pager);

impl Reading for LatestState<'_> {
    fn needed(&self) -> Needed {
        self.0.needed()
    }

    /// The newest state's versions never leave memory before they are in place.
    fn old_version(&self, _: PageNo, _: Lsn) -> Option<Result<PageRef>> {
        None
    }

    fn is_live(&self) -> bool {
        true
    }
}
