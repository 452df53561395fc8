//! A volume with one heap file: pages, and the free-space inventory pages (FSIPs) that tell the
//! bucket of each in 4 bits (McAuliffe §3.1, §4).
//!
//! Owns the pool, the geometry and the counts of entries examined. Disk page 0 and every
//! (E+1)-th after it is an FSIP for the E pages behind it, E being twice the usable bytes of a
//! page: 16,216 at 8 KiB. Entry i is the bucket of file page i, 15 if the page is not
//! allocated. FSIPs go through the pool as all pages do. Threads: none.

use super::buckets::{Buckets, OVERHEAD, UNALLOCATED};
use super::nibbles;
use super::page::PageMut;
use crate::kit::error::{Error, Result};
use crate::kit::pool::Pool;
use holdall_core::techniques::bytes::{put_u64, u64_at};

const MAGIC: [u8; 4] = *b"FSIP";
/// In the header of the first FSIP: the next transaction's number.
const NEXT_TX: usize = 8;

/// Why a page is wanted; reads from the disk are counted apart by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To put an object on it.
    Create,
    /// To delete an object from it.
    Delete,
    /// It is a free-space inventory page.
    Inventory,
    /// To release reserved space at commit, or to roll back.
    Release,
    /// To read an object.
    Read,
}

impl From<Purpose> for usize {
    fn from(purpose: Purpose) -> Self {
        purpose as Self
    }
}

/// What searches of the inventory looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Looks {
    /// Entries examined by searches for a page.
    pub entries: u64,
    /// Searches, resumed ones counted once.
    pub searches: u64,
    /// Entries examined to fill an algorithm's tables when it first meets the file.
    pub loaded: u64,
}

/// The volume.
#[derive(Debug)]
pub struct Volume {
    pool: Pool,
    buckets: Buckets,
    /// Entries of the inventory that were ever used.
    pages: u32,
    /// Pages the volume has for data.
    max_pages: u32,
    /// Unallocated pages among the first `pages`.
    reclaimed: Vec<u32>,
    looks: Looks,
}

impl Volume {
    /// A volume over `pool`; an empty disk is an empty file. At most `max_pages` data pages.
    /// Errors: those of the disk; [`Error::Corrupt`] if an FSIP should be and is not.
    pub fn open(pool: Pool, max_pages: u32) -> Result<Self> {
        let buckets = Buckets::new(pool.page_size());
        let disk_pages = pool.disk().len()? / pool.page_size() as u64;
        let mut this = Self {
            pool,
            buckets,
            pages: 0,
            max_pages,
            reclaimed: Vec::new(),
            looks: Looks::default(),
        };
        let per_group = u64::from(this.per_group());
        for group in 0..disk_pages.div_ceil(per_group + 1) as u32 {
            let frame = this.inventory(group)?;
            let bytes = &this.pool.bytes(frame)[OVERHEAD..];
            let mut back = (0..per_group as usize).rev();
            if let Some(last) = back.find(|&i| nibbles::get(bytes, i) != UNALLOCATED) {
                this.pages = group * per_group as u32 + last as u32 + 1;
            }
        }
        for page in 0..this.pages {
            if this.bucket(page)? == UNALLOCATED {
                this.reclaimed.push(page);
            }
        }
        Ok(this)
    }

    /// The thresholds.
    pub fn buckets(&self) -> &Buckets {
        &self.buckets
    }

    /// Number of inventory entries to search: pages of the file and reclaimed ones among them.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// Pages of the file.
    pub fn file_pages(&self) -> u32 {
        self.pages - self.reclaimed.len() as u32
    }

    /// What searches looked at so far.
    pub fn looks(&self) -> Looks {
        self.looks
    }

    /// The pool.
    pub fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// The pool, to look at.
    pub fn pool_stats(&self) -> crate::kit::pool::PoolStats {
        self.pool.stats()
    }

    fn per_group(&self) -> u32 {
        self.buckets.usable() as u32 * 2
    }

    /// Disk page of file page `page`.
    pub fn disk_page(&self, page: u32) -> u32 {
        let per_group = self.per_group();
        page / per_group * (per_group + 1) + 1 + page % per_group
    }

    /// The frame of a page of the file, and the page to be changed.
    pub fn page(&mut self, page: u32, purpose: Purpose) -> Result<(u32, PageMut<'_>)> {
        let no = self.disk_page(page);
        let frame = self.pool.fix(no, purpose)?;
        Ok((frame, PageMut::new(self.pool.bytes_mut(frame), no)?))
    }

    /// The frame of an FSIP.
    fn inventory(&mut self, group: u32) -> Result<u32> {
        let frame = self.pool.fix(group * (self.per_group() + 1), Purpose::Inventory)?;
        if self.pool.bytes(frame)[..4] != MAGIC {
            return Err(Error::Corrupt(format!("page inventory {group} holds something else")));
        }
        Ok(frame)
    }

    /// The bucket of a page. Not a search: not counted.
    pub fn bucket(&mut self, page: u32) -> Result<u8> {
        let per_group = self.per_group();
        let frame = self.inventory(page / per_group)?;
        Ok(nibbles::get(&self.pool.bytes(frame)[OVERHEAD..], (page % per_group) as usize))
    }

    /// Sets the bucket of a page; gives the one before. The FSIP becomes dirty only by a change.
    pub fn set_bucket(&mut self, page: u32, bucket: u8) -> Result<u8> {
        let per_group = self.per_group();
        let at = (page % per_group) as usize;
        let frame = self.inventory(page / per_group)?;
        let old = nibbles::get(&self.pool.bytes(frame)[OVERHEAD..], at);
        if old != bucket {
            nibbles::set(&mut self.pool.bytes_mut(frame)[OVERHEAD..], at, bucket);
        }
        Ok(old)
    }

    /// A page for the file, unallocated before; its bucket is to be set. Reclaimed ones first.
    /// Errors: [`Error::Full`]; those of the disk.
    pub fn allocate(&mut self) -> Result<u32> {
        if let Some(page) = self.reclaimed.pop() {
            return Ok(page);
        }
        if self.pages == self.max_pages {
            return Err(Error::Full);
        }
        if self.pages.is_multiple_of(self.per_group()) {
            let frame = self.pool.fix_new(self.disk_page(self.pages) - 1)?;
            let bytes = self.pool.bytes_mut(frame);
            bytes[..4].copy_from_slice(&MAGIC);
            bytes[OVERHEAD..].fill(0xFF);
        }
        self.pages += 1;
        Ok(self.pages - 1)
    }

    /// Takes an empty page out of the file.
    pub fn reclaim(&mut self, page: u32) -> Result<()> {
        self.set_bucket(page, UNALLOCATED)?;
        self.reclaimed.push(page);
        Ok(())
    }

    /// Counts a search; resuming one after a refusal is none.
    pub fn count_search(&mut self) {
        self.looks.searches += 1;
    }

    /// The first page of `from..to` with a bucket of `least..=14`. Counts the entries that a
    /// loop over them looks at.
    pub fn find(&mut self, from: u32, to: u32, least: u8) -> Result<Option<u32>> {
        let hit = self.look(from, to, least, UNALLOCATED - 1)?;
        let looked = hit.map_or(to, |page| page + 1).saturating_sub(from);
        self.looks.entries += u64::from(looked);
        Ok(hit)
    }

    /// The first page of `from..to` in exactly this bucket. For entries that a search just
    /// looked at: not counted again.
    pub fn find_again(&mut self, from: u32, to: u32, bucket: u8) -> Result<Option<u32>> {
        self.look(from, to, bucket, bucket)
    }

    fn look(&mut self, from: u32, to: u32, low: u8, high: u8) -> Result<Option<u32>> {
        let per_group = self.per_group();
        let mut at = from;
        while at < to && low <= high {
            let base = at / per_group * per_group;
            let end = to.min(base + per_group);
            let frame = self.inventory(at / per_group)?;
            let bytes = &self.pool.bytes(frame)[OVERHEAD..];
            let (first, last) = ((at - base) as usize, (end - base) as usize);
            if let Some(i) = nibbles::find(bytes, first, last, low, high) {
                return Ok(Some(base + i as u32));
            }
            at = end;
        }
        Ok(None)
    }

    /// How many pages are in each bucket, from a scan of all entries.
    pub fn histogram(&mut self) -> Result<[u32; 16]> {
        let mut all = [0; 16];
        let per_group = self.per_group();
        for group in 0..self.pages.div_ceil(per_group) {
            let frame = self.inventory(group)?;
            let count = per_group.min(self.pages - group * per_group);
            let bytes = &self.pool.bytes(frame)[OVERHEAD..];
            for (sum, n) in all.iter_mut().zip(nibbles::histogram(bytes, 0, count as usize)) {
                *sum += n;
            }
        }
        self.looks.loaded += u64::from(self.pages);
        Ok(all)
    }

    /// The number kept for the next transaction; 1 for an empty file.
    pub fn next_tx(&mut self) -> Result<u64> {
        if self.pages == 0 {
            return Ok(1);
        }
        let frame = self.inventory(0)?;
        Ok(u64_at(self.pool.bytes(frame), NEXT_TX))
    }

    /// Keeps the next transaction's number and writes everything to the disk.
    pub fn flush(&mut self, next_tx: u64) -> Result<()> {
        if self.pages > 0 {
            let frame = self.inventory(0)?;
            put_u64(self.pool.bytes_mut(frame), NEXT_TX, next_tx);
        }
        Ok(self.pool.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_io::Disk;
    use holdall_testkit::SparseDisk;
    use std::sync::Arc;

    #[test]
    fn entries_of_several_inventory_pages() {
        let disk: Arc<dyn Disk> = Arc::new(SparseDisk::new());
        let pool = Pool::new(disk.clone(), 4096, 4);
        let mut volume = Volume::open(pool, 20_000).unwrap();
        let per_group = (4096 - 84) * 2;
        for page in 0..20_000 {
            assert_eq!(volume.allocate().unwrap(), page);
            assert_eq!(volume.set_bucket(page, 0).unwrap(), UNALLOCATED);
        }
        assert!(matches!(volume.allocate(), Err(Error::Full)));
        assert_eq!((volume.disk_page(0), volume.disk_page(per_group)), (1, per_group + 2));
        volume.set_bucket(17_000, 5).unwrap();
        volume.set_bucket(17_001, 4).unwrap();
        volume.reclaim(16_000).unwrap();
        assert_eq!(volume.find(10, 20_000, 5).unwrap(), Some(17_000));
        assert_eq!(volume.looks().entries, 16_991);
        assert_eq!(volume.find(17_001, 20_000, 5).unwrap(), None);
        assert_eq!(volume.looks().entries, 16_991 + 2_999);
        assert_eq!(volume.find_again(0, 20_000, 4).unwrap(), Some(17_001));
        let histogram = volume.histogram().unwrap();
        assert_eq!((histogram[0], histogram[4], histogram[5], histogram[15]), (19_997, 1, 1, 1));
        volume.flush(77).unwrap();
        let mut again = Volume::open(Pool::new(disk, 4096, 4), 20_000).unwrap();
        assert_eq!((again.pages(), again.file_pages()), (20_000, 19_999));
        assert_eq!(again.next_tx().unwrap(), 77);
        assert_eq!(again.allocate().unwrap(), 16_000);
    }
}
