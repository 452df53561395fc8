//! What a user can set when creating or opening a store.

use super::tuning::{MOST_BYTES, Tuning, bounded};
use crate::space;
use crate::txn::{Cancel, Limits, Wait};
use holdall_core::{Error, Result, page};
use std::time::Duration;

/// How a store is created and opened; what is not set has its default.
///
/// ```
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let path = dir.path().join("photos.holdall");
/// let store = holdall::Store::builder().cache_bytes(256 << 20).open_or_create(&path)?;
/// # store.close()?;
/// # Ok::<(), holdall::Error>(())
/// ```
///
/// What stands under "creation" is fixed in the file, all else holds for one opening.
#[derive(Debug, Clone)]
#[must_use = "options do nothing before a store is opened with them"]
pub struct Options {
    pub(crate) page_size: usize,
    cache_bytes: usize,
    old_version_bytes: usize,
    pub(crate) pinned_bytes: Option<u64>,
    map_reads: bool,
    direct_reads: bool,
    space_factor: f64,
    pub(crate) max_bytes: u64,
    pub(crate) background: bool,
    pub(crate) defer: Duration,
    pub(crate) debug_sums: bool,
    pub(crate) wait: Wait,
    pub(crate) cancel: Option<Cancel>,
    pub(crate) tuning: Tuning,
}

impl Default for Options {
    /// The defaults; those chosen by measurement are in docs/design.md.
    fn default() -> Self {
        Self {
            page_size: 8192,
            cache_bytes: 96 << 20,
            old_version_bytes: 32 << 20,
            pinned_bytes: None,
            map_reads: true,
            direct_reads: true,
            space_factor: 1.1,
            max_bytes: u64::MAX,
            background: true,
            defer: Duration::from_millis(200),
            debug_sums: false,
            wait: Wait::Not,
            cancel: None,
            tuning: Tuning::default(),
        }
    }
}

/// What an application may choose.
impl Options {
    /// Bytes of pages kept in memory; beside them up to 2 % of it to find them. Default: 96 MiB;
    /// at most 1 TiB.
    /// Raise it if more than that of small objects is read again and again. Data of large
    /// objects stays with the operating system's page cache.
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Blocks that the file may take for each byte stored, once maintenance has caught up: the
    /// store's contract on space (docs/design.md). Default: 1.1; at least 1.03. A larger factor
    /// leaves more free space to the next writes, lets more of what was freed wait for a checkpoint,
    /// and gives a small store a larger log under a load: replacing objects of some KiB at 2.0 is
    /// about 10 % faster and writes a sixth less.
    pub fn space_factor(mut self, factor: f64) -> Self {
        self.space_factor = factor;
        self
    }

    /// Largest size of the file in bytes, at least 128 KiB; a creation needs the pages of an empty
    /// store. Default: none.
    pub fn max_bytes(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.max_bytes = bytes.into().unwrap_or(u64::MAX);
        self
    }

    /// Creation: bytes of a page, a power of two from 4,096 to 65,536. Default: 8,192. Larger
    /// pages suit objects of some KiB, and cost more in the log for each small change.
    pub fn page_size(mut self, bytes: usize) -> Self {
        self.page_size = bytes;
        self
    }

    /// How long a deferred commit may stay undurable, at most a day. Default: 200 ms. Without
    /// [`Options::background`] the first call of the store after that time makes it durable, so
    /// one that nobody calls keeps it longer; closing always makes it durable.
    pub fn defer(mut self, time: Duration) -> Self {
        self.defer = time;
        self
    }

    /// Bytes of freed space that open snapshots may keep from being used again; beyond, the
    /// oldest one that keeps any is given up, and its reads fail with
    /// [`Error::SnapshotTooOld`](crate::Error::SnapshotTooOld). Default: `None`, no bound: a
    /// snapshot may be of any age. If a writer finds no other space, [`Options::max_bytes`]
    /// reached or the disk full, snapshots are given up earlier: writers never wait for them.
    pub fn pinned_bytes(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.pinned_bytes = bytes.into();
        self
    }

    /// Bytes of old page versions that memory keeps for snapshots. Default: 32 MiB. What is beyond
    /// is written to free pages of the file, where it takes space until the snapshots are closed.
    pub fn old_version_bytes(mut self, bytes: usize) -> Self {
        self.old_version_bytes = bytes;
        self
    }

    /// Whether reads of large objects that hit the page cache are copied from a read-only
    /// mapping of the file instead of by calls. Default: true. Only what the system has in its
    /// cache is touched, as it reported at most a quarter of a second before. A page that it drops
    /// in that time and the device then fails to read, or a file that another program makes
    /// shorter, ends the process with `SIGBUS`, not with an error of a call: turn it off if
    /// that may happen (a file system over a network). Takes addresses of up to twice the file,
    /// and the part of the page cache that was touched counts as memory of the process.
    /// Without effect except on Linux with 64 bits, and if the file cannot be mapped.
    pub fn map_reads(mut self, on: bool) -> Self {
        self.map_reads = on;
        self
    }

    /// Whether reads of 256 KiB and more of large objects go past the page cache if
    /// what they read is not there and was not read since it was written or the store opened,
    /// those of more than 1 MiB by three threads, two of them made for the call. Default: true.
    /// What is read once then takes no memory from what is read often, and costs half the
    /// processor time; what is read again comes into the cache the second time, and from there
    /// the third. Turn it off if many short-lived processes read the same large objects.
    /// Without effect except on Linux with 64 bits, and if the file system does not offer it.
    pub fn direct_reads(mut self, on: bool) -> Self {
        self.direct_reads = on;
        self
    }

    /// Whether a sum of each object's bytes at each of its versions is kept beside the store, in
    /// `STORE-sums`, and [`Store::verify`](crate::Store::verify) compares with it. Default: false.
    /// Checksums of segment data are of places: they do not tell old bytes in the place of newer
    /// ones, sums do. Whole objects are summed as the caller gives them. Edits and parts copied
    /// cost much more: the object is read before, held against its sum, and read again at the
    /// commit, up to 1 GiB of it; longer ones get no sum. The file grows by 48 bytes for each
    /// change, is read at the opening and kept in memory. Opened read-only, a store without sums
    /// is [`Error::NotFound`](crate::Error::NotFound). The file belongs to this store file: a
    /// copy of the store put in its place does not fit it any more.
    pub fn debug_sums(mut self, on: bool) -> Self {
        self.debug_sums = on;
        self
    }

    /// How long an opening or a creation waits for others that have the file open: a
    /// [`Wait`] or a [`Duration`]. Default: not. It looks again every 1 to 20 ms, so that who waits
    /// longest need not be first. A handle of this process counts as another's:
    /// [`Wait::Forever`] waits for it too.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// # let path = dir.path().join("photos.holdall");
    /// let store = holdall::Options::default().wait(Duration::from_secs(5)).create(&path)?;
    /// let second = holdall::Options::default().wait(Duration::from_millis(10)).open(&path);
    /// assert!(matches!(second, Err(holdall::Error::Locked { .. })));
    /// # Ok::<(), holdall::Error>(())
    /// ```
    pub fn wait(mut self, wait: impl Into<Wait>) -> Self {
        self.wait = wait.into();
        self
    }

    /// Ends the wait of an opening when it is set. Default: none.
    pub fn cancel(mut self, cancel: impl Into<Option<Cancel>>) -> Self {
        self.cancel = cancel.into();
        self
    }

    /// Whether threads of the store's own run checkpoints and flush deferred commits. Default:
    /// true. Without them calls of the store do it, which makes runs repeatable.
    pub fn background(mut self, on: bool) -> Self {
        self.background = on;
        self
    }

    /// Sets what is for experiments and tests.
    ///
    /// ```
    /// let options = holdall::Options::default().tuning(|t| t.dirty_pages(256).log_bytes(1 << 20));
    /// # let _ = options;
    /// ```
    pub fn tuning(mut self, set: impl FnOnce(Tuning) -> Tuning) -> Self {
        self.tuning = set(self.tuning);
        self
    }
}

/// A day, in milliseconds.
const MOST_DEFER: u64 = 86_400_000;
/// A log that commits fill may grow to this, whatever the cache has.
const LEAST_LOG_FOR_LOAD: u64 = 4 << 20;
/// The same, whatever the volume has, if the cache allows it.
const LOG_FOR_LOAD: u64 = 32 << 20;
/// Pages that may be dirty if the cache has few or many: replay reads and writes the latter in a
/// third of a second (docs/design.md).
const DIRTY_PAGES: [usize; 2] = [1 << 13, 1 << 14];
/// Bytes of changed pages that a transaction may keep in memory, however small the cache is.
const LEAST_TRANSACTION: usize = 32 << 20;
/// Less than this no store has.
const LEAST_MAX_BYTES: u64 = 128 << 10;

impl Options {
    /// Checks the options, each against its bounds. Creating and opening do it before they touch
    /// a file.
    ///
    /// # Errors
    /// [`Error::Invalid`] naming the option, its value and the bound.
    pub(crate) fn check(&self) -> Result<()> {
        if !page::valid_page_size(self.page_size) {
            let size = self.page_size;
            let text =
                format!("page size {size} (page_size) is not a power of two from 4096 to 65536");
            return Err(Error::Invalid(text));
        }
        // Written so that what is no number is refused too.
        if !(1.03..=1000.0).contains(&self.space_factor) {
            let factor = self.space_factor;
            let text = format!("space_factor is {factor}: it must be from 1.03 to 1000");
            return Err(Error::Invalid(text));
        }
        bounded("cache_bytes", self.cache_bytes as u64, 0, MOST_BYTES)?;
        self.tuning.check(self.page_size)?;
        bounded("max_bytes", self.max_bytes, LEAST_MAX_BYTES, u64::MAX)?;
        bounded("defer in ms", self.defer.as_millis().try_into().unwrap_or(u64::MAX), 0, MOST_DEFER)
    }

    /// What the log of a volume of this many bytes may grow to because commits fill it: half as
    /// much as the cache has, and 32 MiB or what [`Options::space_factor`] allows of the volume.
    pub(crate) fn log_bytes_for_load(&self, volume: u64) -> u64 {
        let space = (volume as f64 * (self.space_factor - 1.0)) as u64;
        let cache = (self.cache_bytes as u64 / 2).max(LEAST_LOG_FOR_LOAD);
        cache.min(space.max(LOG_FOR_LOAD))
    }

    /// The part of the volume that may wait for a checkpoint to be free.
    pub(crate) fn waiting_share(&self) -> f64 {
        (self.space_factor - 1.0) / 3.2
    }

    pub(crate) fn space_limits(&self) -> space::Limits {
        space::Limits {
            growth_bytes: self.tuning.growth_bytes,
            max_bytes: self.max_bytes,
            spare_bytes: self.tuning.spare_bytes,
            // The other half is for what is less than whole: pages, runs too short.
            spare_share: (self.space_factor - 1.0) / 2.0,
            most_trees: self.tuning.most_trees,
        }
    }

    /// Pages that may be dirty: half of the cache, unless told.
    fn dirty_pages(&self) -> usize {
        let [least, most] = DIRTY_PAGES;
        let half = self.cache_bytes / 2 / self.page_size;
        self.tuning.dirty_pages.unwrap_or(half.clamp(least, most))
    }

    /// Pages that a transaction holds: as many as fit its bytes, a checkpoint's limit, and three
    /// quarters of the log, which takes what differs in those that stay until the commit.
    fn transaction_pages(&self) -> usize {
        let (size, log) = (self.page_size, self.tuning.log_bytes.min(usize::MAX as u64) as usize);
        let usual = (self.cache_bytes / 4).max(LEAST_TRANSACTION);
        let bytes = self.tuning.transaction_bytes.unwrap_or(usual).min(log / 4 * 3);
        (bytes / size).min(self.dirty_pages() / 2).max(2)
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            cache_bytes: self.cache_bytes,
            dirty_pages: self.dirty_pages(),
            transaction_pages: self.transaction_pages(),
            checksum_bytes: self.tuning.checksum_bytes,
            old_version_bytes: self.old_version_bytes,
            log_data_bytes: self.tuning.log_data_bytes,
            map_reads: self.map_reads,
            direct_reads: self.direct_reads,
        }
    }
}
