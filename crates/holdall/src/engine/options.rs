//! What a user can set when creating or opening a store.

use crate::space;
use crate::txn::Limits;
use holdall_core::buddy::MAX_SPACE_PAGES;
use holdall_core::log_format::BLOCK;
use holdall_core::space_dir::{MIN_SPACE_PAGES, SpaceLayout};
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
/// What is said under "creation" is fixed in the file, all else holds for one opening.
#[derive(Debug, Clone)]
#[must_use = "options do nothing before a store is opened with them"]
pub struct Options {
    pub(crate) page_size: usize,
    pub(crate) space_pages: Option<u32>,
    cache_bytes: usize,
    pub(crate) dirty_pages: usize,
    old_version_bytes: usize,
    pub(crate) pinned_bytes: Option<u64>,
    pub(crate) log_bytes: u64,
    log_data_bytes: usize,
    map_reads: bool,
    direct_reads: bool,
    pub(crate) growth_bytes: u64,
    space_factor: f64,
    spare_bytes: u64,
    pub(crate) max_bytes: u64,
    pub(crate) background: bool,
    pub(crate) auto_checkpoint: bool,
    pub(crate) defer: Duration,
    first_log_bytes: u64,
    pub(crate) most_placements: usize,
    pub(crate) most_trees: usize,
    pub(crate) debug_sums: bool,
    pub(crate) store_id: Option<[u8; 16]>,
}

impl Default for Options {
    /// The defaults; those chosen by measurement are in docs/design.md.
    fn default() -> Self {
        Self {
            page_size: 8192,
            space_pages: None,
            cache_bytes: 96 << 20,
            dirty_pages: 8192,
            old_version_bytes: 32 << 20,
            pinned_bytes: None,
            log_bytes: 32 << 20,
            log_data_bytes: 128 << 10,
            map_reads: true,
            direct_reads: true,
            growth_bytes: 256 << 10,
            space_factor: 1.1,
            spare_bytes: 1 << 20,
            max_bytes: u64::MAX,
            background: true,
            auto_checkpoint: true,
            defer: Duration::from_millis(200),
            first_log_bytes: FIRST_LOG_BYTES,
            most_placements: MOST_PLACEMENTS,
            most_trees: MOST_TREES,
            debug_sums: false,
            store_id: None,
        }
    }
}

/// What an application may choose.
impl Options {
    /// Bytes of pages kept in memory; beside them up to 2 % of it to find them. Default: 96 MiB;
    /// at most 1 TiB.
    /// Raise it where more than that of small objects is read again and again. Data of large
    /// objects stays with the operating system's page cache.
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Blocks that the file may take for each byte stored, once maintenance has caught up: the
    /// store's contract on space (docs/design.md). Default: 1.1; at least 1.03. A larger factor
    /// leaves more free space to the next writes, and less work for maintenance.
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
    /// oldest one is given up, and its reads fail with
    /// [`Error::SnapshotTooOld`](crate::Error::SnapshotTooOld). Default: 256 MiB or the bytes in
    /// use, whichever is more. Where a writer finds no other space, [`Options::max_bytes`]
    /// reached or the disk full, snapshots are given up earlier: writers never wait for them.
    pub fn pinned_bytes(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.pinned_bytes = bytes.into();
        self
    }

    /// Bytes of old page versions kept for snapshots before the oldest one is given up. Default:
    /// 32 MiB. Raise it where snapshots stay open long beside writers.
    pub fn old_version_bytes(mut self, bytes: usize) -> Self {
        self.old_version_bytes = bytes;
        self
    }

    /// Whether reads of large objects that hit the page cache are copied from a read-only
    /// mapping of the file instead of by calls. Default: true. Only what the system has in its
    /// cache is touched, as it said at most a quarter of a second before. A page that it drops
    /// in that time and the device then fails to read, or a file that another program makes
    /// shorter, ends the process with `SIGBUS` where a call returns an error: turn it off where
    /// that may happen (a file system over a network). Takes addresses of up to twice the file,
    /// and the part of the page cache that was touched counts as memory of the process.
    /// Without effect except on Linux with 64 bits, and where the file cannot be mapped.
    pub fn map_reads(mut self, on: bool) -> Self {
        self.map_reads = on;
        self
    }

    /// Whether reads of 256 KiB and more of large objects go past the page cache where
    /// what they read is not there and was not read since it was written or the store opened,
    /// those of more than 1 MiB by three threads, two of them made for the call. Default: true.
    /// What is read once then takes no memory from what is read often, and costs half the
    /// processor time; what is read again comes into the cache the second time, and from there
    /// the third. Turn it off where many short-lived processes read the same large objects.
    /// Without effect except on Linux with 64 bits, and where the file system does not offer it.
    pub fn direct_reads(mut self, on: bool) -> Self {
        self.direct_reads = on;
        self
    }

    /// Whether threads of the store's own run checkpoints and flush deferred commits. Default:
    /// true. Without them calls of the store do it, which makes runs repeatable.
    pub fn background(mut self, on: bool) -> Self {
        self.background = on;
        self
    }
}

/// What the engine's measurements chose, for experiments and tests.
impl Options {
    /// Creation: pages of a buddy space, 64 to 32,768. Default: the largest that fits.
    pub fn space_pages(mut self, pages: impl Into<Option<u32>>) -> Self {
        self.space_pages = pages.into();
        self
    }

    /// Pages that may wait in memory for a checkpoint; also what one transaction may change
    /// of existing pages. Default: 8,192; from 16 to 2³⁰.
    pub fn dirty_pages(mut self, pages: usize) -> Self {
        self.dirty_pages = pages;
        self
    }

    /// Largest size of the log file in bytes, 64 KiB to 1 TiB. Default: 32 MiB. It begins smaller and grows when
    /// it is short: to 4 MiB or a 64th of the volume, and beyond that for a commit that needs it.
    pub fn log_bytes(mut self, bytes: u64) -> Self {
        self.log_bytes = bytes;
        self
    }

    /// New pages, and new data of large objects, of a commit up to this many bytes pass through
    /// the log. Default: 128 KiB; at most 1 GiB. More is written once, in place, and synced while the log is;
    /// beyond 32 MiB before it (docs/recovery.md, "What is synced when"). While a checkpoint
    /// runs, up to eight times as much data of large objects passes through the log.
    pub fn log_data_bytes(mut self, bytes: usize) -> Self {
        self.log_data_bytes = bytes;
        self
    }

    /// Least step in bytes by which the file grows, at most 1 TiB. Default: 256 KiB. Never more than
    /// the file has, or 1 MiB where that is more: a small store stays small.
    pub fn growth_bytes(mut self, bytes: u64) -> Self {
        self.growth_bytes = bytes;
        self
    }

    /// Free bytes that keep their blocks, whatever the store holds. Default: 1 MiB.
    pub fn spare_bytes(mut self, bytes: u64) -> Self {
        self.spare_bytes = bytes;
        self
    }

    /// Whether checkpoints start by themselves. Default: true.
    pub fn auto_checkpoint(mut self, on: bool) -> Self {
        self.auto_checkpoint = on;
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

    /// Bytes of a new log file, before it grows: what the first commit after an opening writes
    /// more than later ones. A test sets it; the default serves a command that makes one edit.
    #[doc(hidden)]
    pub fn first_log_bytes(mut self, bytes: u64) -> Self {
        self.first_log_bytes = bytes;
        self
    }

    /// Collections for which it is remembered where their next objects go; each takes up to 3 KiB
    /// of memory. A test sets it.
    #[doc(hidden)]
    pub fn most_placements(mut self, collections: usize) -> Self {
        self.most_placements = collections;
        self
    }

    /// Spaces whose free pages are kept in memory, by up to 6 KiB each. A test sets it; by default
    /// those of 1 TiB, at pages of 8 KiB.
    #[doc(hidden)]
    pub fn most_trees(mut self, spaces: usize) -> Self {
        self.most_trees = spaces;
        self
    }

    /// Creation: the 16 bytes that tell this store from others; drawn unless a test sets them.
    #[doc(hidden)]
    pub fn store_id(mut self, id: impl Into<Option<[u8; 16]>>) -> Self {
        self.store_id = id.into();
        self
    }
}

/// What a superblock can name of a log, and far more than any other option makes sense for.
const MOST_BYTES: u64 = 1 << 40;
/// Pages of 4 KiB in 4 TiB.
const MOST_DIRTY_PAGES: u64 = 1 << 30;
/// A commit's data in memory.
const MOST_LOG_DATA: u64 = 1 << 30;
/// A day, in milliseconds.
const MOST_DEFER: u64 = 86_400_000;
/// Less than this no store has.
const LEAST_MAX_BYTES: u64 = 128 << 10;

fn bounded(option: &str, value: u64, least: u64, most: u64) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let bound = if value < least { format!("at least {least}") } else { format!("at most {most}") };
    Err(Error::Invalid(format!("{option} is {value}: it must be {bound}")))
}

/// The most pages of a space whose directory fits into a page.
fn space_pages_within(page_size: usize) -> u32 {
    let fits = |pages: &u32| SpaceLayout::new(page_size, *pages).is_ok();
    (MIN_SPACE_PAGES..=MAX_SPACE_PAGES).rev().find(fits).unwrap_or(MIN_SPACE_PAGES)
}

/// Collections remembered.
const MOST_PLACEMENTS: usize = 256;
/// Trees of free pages in memory.
const MOST_TREES: usize = 4096;

/// Size of a log when it is made.
const FIRST_LOG_BYTES: u64 = 32 << 10;

impl Options {
    /// Checks the options, each against its bounds. Creating and opening do it before they touch
    /// a file.
    ///
    /// # Errors
    /// [`Error::Invalid`] naming the option, its value and the bound.
    pub fn check(&self) -> Result<()> {
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
        if let Some(pages) = self.space_pages
            && SpaceLayout::new(self.page_size, pages).is_err()
        {
            let most = space_pages_within(self.page_size);
            bounded("space_pages", pages.into(), MIN_SPACE_PAGES.into(), most.into())?;
        }
        bounded("cache_bytes", self.cache_bytes as u64, 0, MOST_BYTES)?;
        bounded("dirty_pages", self.dirty_pages as u64, 16, MOST_DIRTY_PAGES)?;
        bounded("log_bytes", self.log_bytes, 16 * BLOCK as u64, MOST_BYTES)?;
        bounded("first_log_bytes", self.first_log_bytes, 8 * BLOCK as u64, MOST_BYTES)?;
        bounded("log_data_bytes", self.log_data_bytes as u64, 0, MOST_LOG_DATA)?;
        bounded("growth_bytes", self.growth_bytes, 0, MOST_BYTES)?;
        bounded("max_bytes", self.max_bytes, LEAST_MAX_BYTES, u64::MAX)?;
        bounded("defer in ms", self.defer.as_millis().try_into().unwrap_or(u64::MAX), 0, MOST_DEFER)
    }

    /// The log's size when it is made.
    pub(crate) fn initial_log_bytes(&self) -> u64 {
        self.log_bytes.min(self.first_log_bytes) / BLOCK as u64 * BLOCK as u64
    }

    /// The log's largest size within `most` bytes.
    pub(crate) fn log_bytes_within(&self, most: u64) -> u64 {
        self.log_bytes.min(most) / BLOCK as u64 * BLOCK as u64
    }

    pub(crate) fn space_limits(&self) -> space::Limits {
        space::Limits {
            growth_bytes: self.growth_bytes,
            max_bytes: self.max_bytes,
            spare_bytes: self.spare_bytes,
            // The other half is for what is less than whole: pages, runs too short.
            spare_share: (self.space_factor - 1.0) / 2.0,
            most_trees: self.most_trees,
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            cache_bytes: self.cache_bytes,
            dirty_pages: self.dirty_pages,
            old_version_bytes: self.old_version_bytes,
            log_data_bytes: self.log_data_bytes,
            map_reads: self.map_reads,
            direct_reads: self.direct_reads,
        }
    }
}
