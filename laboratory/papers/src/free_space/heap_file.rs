//! A heap file: objects in slotted pages, placed by an algorithm, changed by transactions.
//!
//! Owns the volume, the algorithm and the active transactions. Several transactions may be
//! active, their calls coming one at a time in any order; an object created or deleted by one is
//! locked for the others. Space that a deletion frees stays reserved until its transaction ends
//! (McAuliffe §3.3): [`Release`] says when the inventory hears of it. Undo is kept in memory;
//! there is no log, so a file survives a [`HeapFile::flush`], not a crash.
//!
//! Invariant: between calls the inventory has the bucket of every page by its free bytes, those
//! reserved included (lazy) or not (eager). Threads: none.

use super::algorithm::{Algorithm, Cause, Change, Kind, Request};
use super::buckets::{EMPTY, UNALLOCATED};
use super::page::{self, PageMut, RESERVATIONS, SLOT};
use super::volume::{Looks, Purpose, Volume};
use crate::kit::error::{Error, Result};
use crate::kit::pool::{Pool, PoolStats};
use crate::mutation::{Mutation, is};
use holdall_io::Disk;
use std::sync::Arc;

/// When space freed by a deletion is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// The inventory learns it at the deletion; who comes to the page later finds out whether the
    /// deleter has ended.
    Lazy,
    /// The deleter comes back to each page at commit, and the inventory learns then. Pages
    /// that are empty then leave the file.
    Eager,
}

/// How a file is kept.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Bytes of a page, 1024 to 32768.
    pub page_size: usize,
    /// Frames of the buffer pool.
    pub pool_pages: usize,
    /// Pages the volume has for data.
    pub max_pages: u32,
    /// When reserved space is released.
    pub release: Release,
}

impl Default for Options {
    /// The paper's: 8 KiB, 1000 frames, a volume of 2.1 GB, lazy.
    fn default() -> Self {
        Self {
            page_size: 8192,
            pool_pages: 1000,
            max_pages: (2_100_000_000_u64 / 8192) as u32,
            release: Release::Lazy,
        }
    }
}

/// Where an object is: it never moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rid {
    /// Page of the file.
    pub page: u32,
    /// Slot on it.
    pub slot: u16,
}

/// A transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TxId(u64);

/// What happened to a file so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Objects created.
    pub created: u64,
    /// Objects deleted.
    pub deleted: u64,
    /// Pages that refused an object because its free space was reserved.
    pub collisions: u64,
    /// Pages that refused although nothing was reserved: the algorithm knew wrongly.
    pub misled: u64,
    /// Pages of the inventory looked at.
    pub looks: Looks,
    /// Pages read and written.
    pub pool: PoolStats,
}

#[derive(Debug)]
enum Undo {
    Create(Rid),
    Delete(Rid, Vec<u8>),
}

impl Undo {
    fn rid(&self) -> Rid {
        match self {
            Self::Create(rid) | Self::Delete(rid, _) => *rid,
        }
    }
}

#[derive(Debug)]
struct Tx {
    id: u64,
    undo: Vec<Undo>,
}

/// The file.
#[derive(Debug)]
pub struct HeapFile {
    pub(super) volume: Volume,
    algorithm: Box<dyn Algorithm>,
    release: Release,
    active: Vec<Tx>,
    next_tx: u64,
    counters: Counters,
    refused: Vec<u32>,
}

impl HeapFile {
    /// The file on `disk`; an empty disk is an empty file. Reads the inventory.
    /// Errors: those of the disk; [`Error::Corrupt`]; [`Error::Misuse`] for a page size that cannot
    /// be.
    pub fn open(disk: Arc<dyn Disk>, options: Options, kind: Kind) -> Result<Self> {
        if !(1024..=32768).contains(&options.page_size) || !options.page_size.is_multiple_of(8) {
            return Err(Error::Misuse("page size must be 1024 to 32768"));
        }
        let pool = Pool::new(disk, options.page_size, options.pool_pages);
        let mut volume = Volume::open(pool, options.max_pages)?;
        let next_tx = volume.next_tx()?;
        let algorithm = kind.build(volume.buckets());
        let mut this = Self {
            volume,
            algorithm,
            release: options.release,
            active: Vec::new(),
            next_tx,
            counters: Counters::default(),
            refused: Vec::new(),
        };
        this.algorithm.load(&mut this.volume)?;
        Ok(this)
    }

    /// Goes on with another algorithm, which begins without state. The pool stays as it is.
    pub fn switch(&mut self, kind: Kind) -> Result<()> {
        self.algorithm = kind.build(self.volume.buckets());
        self.algorithm.load(&mut self.volume)
    }

    /// Writes everything to the disk.
    /// Errors: those of the disk; [`Error::Misuse`] while a transaction is active.
    #[cfg(test)]
    pub fn close(mut self) -> Result<()> {
        self.flush()
    }

    /// Writes everything to the disk and goes on.
    pub fn flush(&mut self) -> Result<()> {
        if !self.active.is_empty() {
            return Err(Error::Misuse("a transaction is active"));
        }
        self.volume.flush(self.next_tx)
    }

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        let (looks, pool) = (self.volume.looks(), self.volume.pool_stats());
        Counters { looks, pool, ..self.counters }
    }

    /// Pages of the file.
    pub fn pages(&self) -> u32 {
        self.volume.file_pages()
    }

    /// Usable bytes of a page.
    pub fn usable(&self) -> usize {
        self.volume.buckets().usable()
    }

    /// Bytes of transient memory of the algorithm.
    pub fn algorithm_memory(&self) -> usize {
        self.algorithm.memory()
    }

    /// Begins a transaction.
    /// Errors: [`Error::Misuse`] if five are active already.
    pub fn begin(&mut self) -> Result<TxId> {
        if self.active.len() == RESERVATIONS {
            return Err(Error::Misuse("five transactions are active"));
        }
        let id = self.next_tx;
        self.next_tx += 1;
        self.active.push(Tx { id, undo: Vec::new() });
        Ok(TxId(id))
    }

    fn find(&self, tx: TxId) -> Result<usize> {
        let at = self.active.iter().position(|t| t.id == tx.0);
        at.ok_or(Error::Misuse("the transaction is not active"))
    }

    /// Creates an object for `tx`.
    /// Errors: [`Error::Size`]; [`Error::Full`], after which the file is as before; those of the
    /// disk.
    pub fn create(&mut self, tx: TxId, object: &[u8]) -> Result<Rid> {
        let at = self.find(tx)?;
        let need = object.len() + SLOT;
        if object.is_empty() || need > self.usable() {
            return Err(Error::Size(object.len()));
        }
        self.refused.clear();
        let rid = loop {
            let request = Request { need, refused: &self.refused };
            let Some(page) = self.algorithm.choose(&request, &mut self.volume)? else {
                let page = self.add_page()?;
                let placed = self.place(tx, page, object)?;
                break placed.ok_or_else(|| Error::Corrupt("an empty page refused".to_owned()))?;
            };
            if let Some(rid) = self.place(tx, page, object)? {
                break rid;
            }
            self.refused.push(page);
            self.algorithm.refused(page);
        };
        self.active[at].undo.push(Undo::Create(rid));
        self.counters.created += 1;
        Ok(rid)
    }

    fn add_page(&mut self) -> Result<u32> {
        let page = self.volume.allocate()?;
        let no = self.volume.disk_page(page);
        let pool = self.volume.pool();
        let frame = pool.fix_new(no)?;
        PageMut::init(pool.bytes_mut(frame), no);
        self.volume.set_bucket(page, EMPTY)?;
        let free = self.usable();
        let change = Change { page, old: UNALLOCATED, new: EMPTY, free, cause: Cause::Added };
        self.algorithm.changed(&change);
        Ok(page)
    }

    /// Puts an object on a page if it takes it.
    fn place(&mut self, tx: TxId, page: u32, object: &[u8]) -> Result<Option<Rid>> {
        let no = self.volume.disk_page(page);
        let active = &self.active;
        let pool = self.volume.pool();
        let frame = pool.fix(no, Purpose::Create)?;
        let was_dirty = pool.is_dirty(frame);
        let mut view = PageMut::new(pool.bytes_mut(frame), no)?;
        let purged = view.purge(|id| active.iter().any(|t| t.id == id));
        if let Some(slot) = view.insert(tx.0, object) {
            let free = self.told(frame);
            self.tell(page, free, Cause::Created)?;
            return Ok(Some(Rid { page, slot }));
        }
        if view.free() >= object.len() + SLOT {
            self.counters.collisions += 1;
        } else {
            self.counters.misled += 1;
        }
        if !purged && !was_dirty {
            pool.unchanged(frame);
        }
        Ok(None)
    }

    /// Free bytes of a page as the inventory is to have them.
    pub(super) fn told(&mut self, frame: u32) -> usize {
        let page = PageMut::view(self.volume.pool().bytes_kept(frame));
        match self.release {
            Release::Lazy => page.free(),
            Release::Eager => page.available(0),
        }
    }

    fn tell(&mut self, page: u32, free: usize, cause: Cause) -> Result<()> {
        let new = self.volume.buckets().of(free);
        let old = self.volume.set_bucket(page, new)?;
        self.algorithm.changed(&Change { page, old, new, free, cause });
        Ok(())
    }

    /// Deletes an object for `tx`, and gives its bytes.
    /// Errors: [`Error::Misuse`] if there is none; [`Error::Locked`]; those of the disk.
    pub fn delete(&mut self, tx: TxId, rid: Rid) -> Result<&[u8]> {
        let at = self.find(tx)?;
        let others = self.active.iter().filter(|t| t.id != tx.0);
        if others.flat_map(|t| &t.undo).any(|step| step.rid() == rid) {
            return Err(Error::Locked);
        }
        if rid.page >= self.volume.pages() {
            return Err(Error::Misuse("no such object"));
        }
        let (frame, mut view) = self.volume.page(rid.page, Purpose::Delete)?;
        view.purge(|id| self.active.iter().any(|t| t.id == id));
        let mut kept = Vec::new();
        view.delete(tx.0, rid.slot, &mut kept)?;
        if self.release == Release::Lazy && !is(Mutation::LazyTold) {
            let free = self.told(frame);
            self.tell(rid.page, free, Cause::Deleted)?;
        }
        self.counters.deleted += 1;
        let undo = &mut self.active[at].undo;
        undo.push(Undo::Delete(rid, kept));
        match undo.last() {
            Some(Undo::Delete(_, kept)) => Ok(kept),
            _ => Ok(&[]),
        }
    }

    /// The bytes of an object, or `None` if there is none.
    pub fn read(&mut self, rid: Rid) -> Result<Option<&[u8]>> {
        if rid.page >= self.volume.pages() {
            return Ok(None);
        }
        let no = self.volume.disk_page(rid.page);
        let pool = self.volume.pool();
        let frame = pool.fix(no, Purpose::Read)?;
        let bytes = pool.bytes(frame);
        Ok(if page::is_page(bytes, no) { page::record(bytes, rid.slot) } else { None })
    }

    /// Gives all objects to `visit`, page by page.
    #[cfg(test)]
    pub fn scan(&mut self, mut visit: impl FnMut(Rid, &[u8])) -> Result<()> {
        for page in 0..self.volume.pages() {
            if self.volume.bucket(page)? == UNALLOCATED {
                continue;
            }
            let no = self.volume.disk_page(page);
            let pool = self.volume.pool();
            let frame = pool.fix(no, Purpose::Read)?;
            for (slot, record) in page::records(pool.bytes(frame)) {
                visit(Rid { page, slot }, record);
            }
        }
        Ok(())
    }

    /// Ends `tx`; what it did stays.
    /// Errors: [`Error::Misuse`] if it is not active; those of the disk.
    pub fn commit(&mut self, tx: TxId) -> Result<()> {
        let at = self.find(tx)?;
        let ended = self.active.swap_remove(at);
        if self.release == Release::Lazy {
            return Ok(());
        }
        let deleted = ended.undo.iter().filter(|u| matches!(u, Undo::Delete(..)));
        let mut pages: Vec<u32> = deleted.map(|u| u.rid().page).collect();
        pages.sort_unstable();
        pages.dedup();
        for page in pages {
            self.release_page(page)?;
        }
        Ok(())
    }

    fn release_page(&mut self, page: u32) -> Result<()> {
        let (frame, mut view) = self.volume.page(page, Purpose::Release)?;
        view.purge(|id| self.active.iter().any(|t| t.id == id));
        if view.is_empty() {
            let old = self.volume.bucket(page)?;
            self.volume.reclaim(page)?;
            let (new, free, cause) = (UNALLOCATED, self.usable(), Cause::Reclaimed);
            self.algorithm.changed(&Change { page, old, new, free, cause });
            return Ok(());
        }
        let free = self.told(frame);
        if is(Mutation::EagerTold) { Ok(()) } else { self.tell(page, free, Cause::Deleted) }
    }

    /// Ends `tx` and takes back what it did.
    pub fn abort(&mut self, tx: TxId) -> Result<()> {
        let at = self.find(tx)?;
        while let Some(step) = self.active[at].undo.pop() {
            let page = step.rid().page;
            let (frame, mut view) = self.volume.page(page, Purpose::Release)?;
            match &step {
                Undo::Create(rid) => view.remove(rid.slot)?,
                Undo::Delete(rid, bytes) => view.restore(tx.0, rid.slot, bytes)?,
            }
            let free = self.told(frame);
            self.tell(page, free, Cause::RolledBack)?;
        }
        self.active.swap_remove(at);
        Ok(())
    }
}
