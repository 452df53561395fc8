//! Counting what a disk is asked to do, and its time in the cost model of the papers.
//!
//! Owns counters beside any disk ([`CountedDisk`]) or storage ([`CountedStorage`]). The model is
//! Biliris §3.3 and §4.1: a seek (33 ms, rotation included) each time the disk is accessed to
//! fetch or write a segment, and a transfer of whole pages at 1 KiB per ms. Only calls that
//! succeed count. Threads: one short mutex per set of counters.

use std::fmt;
use std::io;
use std::ops::Sub;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use holdall_io::{Astray, Disk, FileId, Storage, WriteOut};

/// Which access is a seek.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeekRule {
    /// Every read and every write (Biliris §4.1).
    #[default]
    EveryAccess,
    /// A read or write that does not begin where the last one on the same disk ended.
    WhenNotSequential,
}

/// What accesses cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostModel {
    /// Milliseconds per seek.
    pub seek_ms: f64,
    /// Milliseconds to transfer 1 KiB.
    pub ms_per_kib: f64,
    /// Bytes of a page, the unit of transfer; taken as at least 1.
    pub page_size: u32,
    /// Which access is a seek.
    pub seeks: SeekRule,
}

impl Default for CostModel {
    /// The values of Biliris §4.1: 33 ms, 1 KiB per ms, pages of 4 KiB, each access a seek.
    fn default() -> Self {
        Self { seek_ms: 33.0, ms_per_kib: 1.0, page_size: 4096, seeks: SeekRule::EveryAccess }
    }
}

impl CostModel {
    /// The time of these accesses in milliseconds. Syncs are free, as in the paper.
    #[must_use]
    pub fn time_ms(&self, stats: &DiskStats) -> f64 {
        let pages = stats.pages_read + stats.pages_written;
        let kib = pages as f64 * f64::from(self.page_size.max(1)) / 1024.0;
        stats.seeks as f64 * self.seek_ms + kib * self.ms_per_kib
    }
}

/// Counters; the difference of two is what happened between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// Calls of `read_at`.
    pub reads: u64,
    /// Calls of `write_at`.
    pub writes: u64,
    /// Seeks by the model's rule.
    pub seeks: u64,
    /// Pages that the reads touched, each call on its own.
    pub pages_read: u64,
    /// Pages that the writes touched, each call on its own.
    pub pages_written: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Calls of `sync`.
    pub syncs: u64,
    /// All calls, also those for the length, growing and hints.
    pub calls: u64,
}

impl DiskStats {
    fn combine(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            reads: f(self.reads, other.reads),
            writes: f(self.writes, other.writes),
            seeks: f(self.seeks, other.seeks),
            pages_read: f(self.pages_read, other.pages_read),
            pages_written: f(self.pages_written, other.pages_written),
            bytes_read: f(self.bytes_read, other.bytes_read),
            bytes_written: f(self.bytes_written, other.bytes_written),
            syncs: f(self.syncs, other.syncs),
            calls: f(self.calls, other.calls),
        }
    }
}

impl Sub for DiskStats {
    type Output = Self;

    /// What happened since `earlier`; zero if a reset lies between.
    fn sub(self, earlier: Self) -> Self {
        self.combine(earlier, u64::saturating_sub)
    }
}

impl std::ops::Add for DiskStats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.combine(other, u64::saturating_add)
    }
}

impl fmt::Display for DiskStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} seeks; {} reads, {} pages, {} bytes; {} writes, {} pages, {} bytes; {} syncs; {} calls",
            self.seeks,
            self.reads,
            self.pages_read,
            self.bytes_read,
            self.writes,
            self.pages_written,
            self.bytes_written,
            self.syncs,
            self.calls
        )
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Read,
    Write,
    Sync,
    Other,
}

/// The counters of one file.
#[derive(Debug)]
struct Counters {
    model: CostModel,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    stats: DiskStats,
    /// Where the last access ended.
    head: Option<u64>,
}

impl Counters {
    fn new(model: CostModel) -> Arc<Self> {
        Arc::new(Self { model, state: Mutex::default() })
    }

    fn count(&self, kind: Kind, offset: u64, len: usize) {
        let mut state = self.state.lock();
        state.stats.calls += 1;
        if let Kind::Sync = kind {
            state.stats.syncs += 1;
        }
        if !matches!(kind, Kind::Read | Kind::Write) || len == 0 {
            return;
        }
        let len = len as u64;
        let page = u64::from(self.model.page_size.max(1));
        let pages = (offset + len - 1) / page - offset / page + 1;
        let sequential = state.head == Some(offset);
        if self.model.seeks == SeekRule::EveryAccess || !sequential {
            state.stats.seeks += 1;
        }
        state.head = Some(offset + len);
        let stats = &mut state.stats;
        if let Kind::Read = kind {
            stats.reads += 1;
            stats.pages_read += pages;
            stats.bytes_read += len;
        } else {
            stats.writes += 1;
            stats.pages_written += pages;
            stats.bytes_written += len;
        }
    }
}

/// Any disk, with its accesses counted.
#[derive(Debug)]
pub struct CountedDisk {
    disk: Arc<dyn Disk>,
    counters: Arc<Counters>,
}

impl CountedDisk {
    /// Counts the accesses to `disk` by `model`.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, model: CostModel) -> Self {
        Self { disk, counters: Counters::new(model) }
    }

    /// The counters.
    #[must_use]
    pub fn stats(&self) -> DiskStats {
        self.counters.state.lock().stats
    }

    /// Sets the counters to zero and forgets where the last access ended.
    pub fn reset(&self) {
        *self.counters.state.lock() = State::default();
    }

    /// The time of all accesses since the last reset, in milliseconds of the model.
    #[must_use]
    pub fn time_ms(&self) -> f64 {
        self.model().time_ms(&self.stats())
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> CostModel {
        self.counters.model
    }

    fn counted<T>(
        &self,
        kind: Kind,
        offset: u64,
        len: usize,
        result: io::Result<T>,
    ) -> io::Result<T> {
        if result.is_ok() {
            self.counters.count(kind, offset, len);
        }
        result
    }

    fn other<T>(&self, result: io::Result<T>) -> io::Result<T> {
        self.counted(Kind::Other, 0, 0, result)
    }
}

impl Disk for CountedDisk {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let len = buf.len();
        self.counted(Kind::Read, offset, len, self.disk.read_at(offset, buf))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.counted(Kind::Write, offset, bytes.len(), self.disk.write_at(offset, bytes))
    }

    fn sync(&self) -> io::Result<()> {
        self.counted(Kind::Sync, 0, 0, self.disk.sync())
    }

    fn len(&self) -> io::Result<u64> {
        self.other(self.disk.len())
    }

    fn file_id(&self) -> io::Result<Option<FileId>> {
        self.disk.file_id()
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        self.other(self.disk.grow(len))
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.other(self.disk.truncate(len))
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.other(self.disk.punch(offset, len))
    }

    fn can_punch(&self) -> bool {
        self.disk.can_punch()
    }

    fn fill_holes(&self, offset: u64, len: u64) -> io::Result<()> {
        self.other(self.disk.fill_holes(offset, len))
    }

    fn allocated(&self) -> io::Result<u64> {
        self.other(self.disk.allocated())
    }

    fn room(&self) -> io::Result<Option<u64>> {
        self.disk.room()
    }

    fn write_out(&self, offset: u64, len: u64, how: WriteOut) -> io::Result<()> {
        self.other(self.disk.write_out(offset, len, how))
    }

    fn show_durable(&self, position: Option<u64>) {
        self.disk.show_durable(position);
    }

    fn shown_durable(&self) -> Option<u64> {
        self.disk.shown_durable()
    }

    fn read_hint(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.other(self.disk.read_hint(offset, len))
    }
}

/// Any storage, with the accesses to its two files counted apart. All logs it ever opens share
/// one set of counters.
#[derive(Debug)]
pub struct CountedStorage {
    storage: Arc<dyn Storage>,
    volume: Arc<CountedDisk>,
    log: Arc<Counters>,
}

impl CountedStorage {
    /// Counts the accesses to `storage` by `model`.
    #[must_use]
    pub fn new(storage: Arc<dyn Storage>, model: CostModel) -> Self {
        let volume = Arc::new(CountedDisk::new(storage.volume(), model));
        Self { storage, volume, log: Counters::new(model) }
    }

    /// The volume's counters.
    #[must_use]
    pub fn volume_stats(&self) -> DiskStats {
        self.volume.stats()
    }

    /// The log's counters.
    #[must_use]
    pub fn log_stats(&self) -> DiskStats {
        self.log.state.lock().stats
    }

    /// The counters of both files together.
    #[must_use]
    pub fn stats(&self) -> DiskStats {
        self.volume_stats() + self.log_stats()
    }

    /// Sets all counters to zero.
    pub fn reset(&self) {
        self.volume.reset();
        *self.log.state.lock() = State::default();
    }

    /// The time of all accesses since the last reset, in milliseconds of the model.
    #[must_use]
    pub fn time_ms(&self) -> f64 {
        self.volume.model().time_ms(&self.stats())
    }

    fn log_disk(&self, disk: Arc<dyn Disk>) -> Arc<dyn Disk> {
        Arc::new(CountedDisk { disk, counters: self.log.clone() })
    }
}

impl Storage for CountedStorage {
    fn volume(&self) -> Arc<dyn Disk> {
        self.volume.clone()
    }

    fn has_writer(&self) -> io::Result<bool> {
        self.storage.has_writer()
    }

    fn open_log(&self) -> io::Result<Option<Arc<dyn Disk>>> {
        Ok(self.storage.open_log()?.map(|disk| self.log_disk(disk)))
    }

    fn create_log(&self) -> io::Result<Arc<dyn Disk>> {
        Ok(self.log_disk(self.storage.create_log()?))
    }

    fn remove_log(&self, log: &dyn Disk) -> io::Result<()> {
        self.storage.remove_log(log)
    }

    fn astray(&self, log: Option<&dyn Disk>) -> Option<Astray> {
        self.storage.astray(log)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.storage.sync_dir()
    }

    fn open_sums(&self, create: bool) -> io::Result<Option<Arc<dyn Disk>>> {
        self.storage.open_sums(create)
    }

    fn name(&self) -> String {
        self.storage.name()
    }

    fn now(&self) -> Duration {
        self.storage.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SparseDisk;
    use holdall_io::MemoryStorage;

    const PAGE: u64 = 4096;

    fn disk(model: CostModel) -> CountedDisk {
        let disk = SparseDisk::new();
        disk.grow(100 << 30).unwrap();
        CountedDisk::new(Arc::new(disk), model)
    }

    /// The example of Biliris §4.1: 12 KiB in one access 45 ms, in three 111 ms.
    #[test]
    fn the_papers_example() {
        let disk = disk(CostModel::default());
        disk.read_at(50 << 30, &mut [0; 3 * PAGE as usize]).unwrap();
        assert_eq!(disk.time_ms(), 45.0);
        let before = disk.stats();
        for page in 0..3 {
            disk.write_at(page * PAGE, &[1; PAGE as usize]).unwrap();
        }
        let stats = disk.stats() - before;
        assert_eq!(disk.model().time_ms(&stats), 111.0);
        assert_eq!((stats.writes, stats.seeks, stats.pages_written), (3, 3, 3));
        assert_eq!((stats.reads, stats.bytes_written), (0, 3 * PAGE));
        disk.reset();
        assert_eq!((disk.stats(), disk.time_ms()), (DiskStats::default(), 0.0));
    }

    #[test]
    fn sequential_accesses_seek_once() {
        let seeks = SeekRule::WhenNotSequential;
        let disk = disk(CostModel { seeks, ..CostModel::default() });
        disk.write_at(0, &[1; 100]).unwrap();
        disk.read_at(100, &mut [0; 100]).unwrap();
        assert_eq!(disk.stats().seeks, 1);
        disk.read_at(100, &mut [0; 100]).unwrap();
        assert_eq!(disk.stats().seeks, 2);
    }

    #[test]
    fn pages_that_a_range_touches_and_failures() {
        let disk = disk(CostModel::default());
        disk.read_at(PAGE - 1, &mut [0; 2]).unwrap();
        assert_eq!((disk.stats().pages_read, disk.stats().bytes_read), (2, 2));
        disk.read_at(u64::MAX, &mut [0; 2]).unwrap_err();
        disk.read_at(0, &mut []).unwrap();
        assert_eq!((disk.stats().reads, disk.stats().seeks), (1, 1));
        disk.sync().unwrap();
        disk.len().unwrap();
        assert_eq!((disk.stats().syncs, disk.stats().calls), (1, 4));
        assert!(disk.stats().to_string().starts_with("1 seeks; 1 reads, 2 pages, 2 bytes; 0 wr"));
    }

    #[test]
    fn a_storage_counts_both_files_apart() {
        let storage = CountedStorage::new(Arc::new(MemoryStorage::new()), CostModel::default());
        storage.volume().write_at(0, b"abc").unwrap();
        storage.create_log().unwrap().write_at(0, b"log").unwrap();
        storage.open_log().unwrap().unwrap().sync().unwrap();
        assert_eq!((storage.volume_stats().writes, storage.volume_stats().syncs), (1, 0));
        assert_eq!((storage.log_stats().writes, storage.log_stats().syncs), (1, 1));
        assert_eq!(storage.stats().bytes_written, 6);
        assert_eq!(storage.time_ms(), 74.0);
        storage.reset();
        assert_eq!(storage.stats(), DiskStats::default());
    }
}
