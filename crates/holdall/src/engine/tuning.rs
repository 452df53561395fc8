//! What the engine's measurements chose, for experiments and tests.

use holdall_core::buddy::MAX_SPACE_PAGES;
use holdall_core::log_format::BLOCK;
use holdall_core::space_dir::{MIN_SPACE_PAGES, SpaceLayout};
use holdall_core::{Error, Result};
use std::time::SystemTime;

/// What a superblock can name of a log, and far more than any other option makes sense for.
pub(super) const MOST_BYTES: u64 = 1 << 40;
/// Pages of 4 KiB in 4 TiB.
const MOST_DIRTY_PAGES: u64 = 1 << 30;
/// A commit's data in memory.
const MOST_LOG_DATA: u64 = 1 << 30;

/// Refuses a value outside its bounds.
pub(super) fn bounded(option: &str, value: u64, least: u64, most: u64) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let bound = if value < least { format!("at least {least}") } else { format!("at most {most}") };
    Err(Error::Invalid(format!("{option} is {value}: it must be {bound}")))
}

/// Settings that measurements chose: an application leaves them alone. See
/// [`Options::tuning`](crate::Options::tuning).
#[derive(Debug, Clone)]
#[must_use = "it is set by Options::tuning"]
pub struct Tuning {
    pub(crate) space_pages: Option<u32>,
    pub(crate) dirty_pages: Option<usize>,
    pub(crate) transaction_bytes: Option<usize>,
    pub(crate) checksum_bytes: usize,
    pub(crate) log_bytes: u64,
    pub(crate) log_data_bytes: usize,
    pub(crate) growth_bytes: u64,
    pub(crate) spare_bytes: u64,
    pub(crate) auto_checkpoint: bool,
    pub(crate) first_log_bytes: u64,
    pub(crate) most_placements: usize,
    pub(crate) most_trees: usize,
    pub(crate) small_objects: u64,
    pub(crate) small_bytes: u64,
    pub(crate) store_id: Option<[u8; 16]>,
    /// The first epoch and the first number of an object, of a store that follows on another.
    pub(crate) begins: Option<(u32, u64)>,
    clock: fn() -> u64,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            space_pages: None,
            dirty_pages: None,
            transaction_bytes: None,
            checksum_bytes: 2 << 20,
            log_bytes: 64 << 20,
            log_data_bytes: 128 << 10,
            growth_bytes: 256 << 10,
            spare_bytes: 1 << 20,
            auto_checkpoint: true,
            first_log_bytes: 32 << 10,
            most_placements: 256,
            most_trees: 4096,
            small_objects: 1000,
            small_bytes: 64 << 10,
            store_id: None,
            begins: None,
            clock: system_time,
        }
    }
}

impl Tuning {
    /// Creation: pages of a buddy space, 64 to 32,768. Default: the largest that fits.
    pub fn space_pages(mut self, pages: impl Into<Option<u32>>) -> Self {
        self.space_pages = pages.into();
        self
    }

    /// Pages that may wait in memory for a checkpoint, from 16 to 2³⁰. Default: half of the cache's,
    /// from 8,192 to 16,384.
    pub fn dirty_pages(mut self, pages: usize) -> Self {
        self.dirty_pages = Some(pages);
        self
    }

    /// Bytes of changed pages that a transaction keeps in memory, and the versions before them
    /// beside; at most 1 GiB. Default: a quarter of the cache, at least 32 MiB. It never holds more
    /// than half of `dirty_pages` and three quarters of `log_bytes`. What is beyond is written
    /// before the commit.
    pub fn transaction_bytes(mut self, bytes: usize) -> Self {
        self.transaction_bytes = Some(bytes);
        self
    }

    /// Bytes of checksums of new data that a transaction keeps in memory, and each object that is
    /// staged, four for each 4 KiB; at most 1 GiB. Default: 2 MiB. What is beyond lies in the file.
    pub fn checksum_bytes(mut self, bytes: usize) -> Self {
        self.checksum_bytes = bytes;
        self
    }

    /// Largest size of the log file in bytes, 64 KiB to 1 TiB. Default: 64 MiB, which a commit may
    /// take. It begins smaller and grows under a load, at most to half of
    /// [`Options::cache_bytes`](crate::Options::cache_bytes) and to 32 MiB or what
    /// [`Options::space_factor`](crate::Options::space_factor) allows of the volume. Once nobody
    /// has committed for a second it becomes small again.
    pub fn log_bytes(mut self, bytes: u64) -> Self {
        self.log_bytes = bytes;
        self
    }

    /// New pages, and new data of large objects, of a commit up to this many bytes pass through
    /// the log. Default: 128 KiB; at most 1 GiB. More is written once, in place, and synced while
    /// the log is; beyond 32 MiB before it (docs/recovery.md, "What is synced when").
    pub fn log_data_bytes(mut self, bytes: usize) -> Self {
        self.log_data_bytes = bytes;
        self
    }

    /// Least step in bytes by which the file grows, at most 1 TiB. Default: 256 KiB; mostly it
    /// grows by what [`Options::space_factor`](crate::Options::space_factor) leaves free. Never more
    /// than the file has, or 1 MiB if that is more: a small store stays small.
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

    /// Objects, and bytes of their records, up to which collections lie in shared pages. Large ones
    /// become small again below a quarter. A test sets it. Default: 1,000 and 64 KiB, or less if
    /// more could not move in one transaction.
    #[doc(hidden)]
    pub fn small_collections(mut self, objects: u64, bytes: u64) -> Self {
        (self.small_objects, self.small_bytes) = (objects, bytes);
        self
    }

    /// What gives the time, in milliseconds since 1970 UTC; the system's unless a test sets
    /// another.
    #[doc(hidden)]
    pub fn clock(mut self, clock: fn() -> u64) -> Self {
        self.clock = clock;
        self
    }

    /// Creation: the 16 bytes that identify this store; drawn unless a test sets them.
    #[doc(hidden)]
    pub fn store_id(mut self, id: impl Into<Option<[u8; 16]>>) -> Self {
        self.store_id = id.into();
        self
    }
}

/// The system's time in milliseconds since 1970 UTC; 1 if its clock stands before.
fn system_time() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// The most pages of a space whose directory fits into a page.
fn space_pages_within(page_size: usize) -> u32 {
    let fits = |pages: &u32| SpaceLayout::new(page_size, *pages).is_ok();
    (MIN_SPACE_PAGES..=MAX_SPACE_PAGES).rev().find(fits).unwrap_or(MIN_SPACE_PAGES)
}

impl Tuning {
    /// # Errors
    /// [`holdall_core::Error::Invalid`] naming the setting, its value and the bound.
    pub(super) fn check(&self, page_size: usize) -> Result<()> {
        if let Some(pages) = self.space_pages
            && SpaceLayout::new(page_size, pages).is_err()
        {
            let most = space_pages_within(page_size);
            bounded("space_pages", pages.into(), MIN_SPACE_PAGES.into(), most.into())?;
        }
        if let Some(pages) = self.dirty_pages {
            bounded("dirty_pages", pages as u64, 16, MOST_DIRTY_PAGES)?;
        }
        bounded("log_bytes", self.log_bytes, 16 * BLOCK as u64, MOST_BYTES)?;
        bounded("first_log_bytes", self.first_log_bytes, 8 * BLOCK as u64, MOST_BYTES)?;
        bounded("log_data_bytes", self.log_data_bytes as u64, 0, MOST_LOG_DATA)?;
        if let Some(bytes) = self.transaction_bytes {
            bounded("transaction_bytes", bytes as u64, 0, MOST_LOG_DATA)?;
        }
        bounded("checksum_bytes", self.checksum_bytes as u64, 0, MOST_LOG_DATA)?;
        bounded("growth_bytes", self.growth_bytes, 0, MOST_BYTES)
    }

    /// The time in milliseconds since 1970 UTC, never 0.
    pub(crate) fn now(&self) -> u64 {
        (self.clock)().max(1)
    }

    /// The log's size when it is made.
    pub(crate) fn initial_log_bytes(&self) -> u64 {
        self.log_bytes.min(self.first_log_bytes) / BLOCK as u64 * BLOCK as u64
    }

    /// The log's largest size within `most` bytes.
    pub(crate) fn log_bytes_within(&self, most: u64) -> u64 {
        self.log_bytes.min(most) / BLOCK as u64 * BLOCK as u64
    }
}
