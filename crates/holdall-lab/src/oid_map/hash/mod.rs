//! Linear hashing (Litwin 1980, as Eickler §3.1.1 and §5.1 use it): buckets of one page, split
//! one after the other, with chains of overflow pages and no directory.
//!
//! Owns the table: page 0 with its state, then the buckets. The buckets that a round of splits
//! adds lie together; page 0 knows where each round begins, and overflow pages lie between. Level
//! and split pointer are in memory while the table is open. Threads: none.

mod bucket;

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use holdall_io::Disk;

use super::mapping::{Mapping, Place};
use super::oid::{Handle, Oid, get32, get64, put32, put64};
use super::pages::{HEAD, Kind, Pages};
pub use bucket::CAPACITY;

const ROUNDS: usize = 32;

/// When a bucket is split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Control {
    /// Whenever a mapping meets a full bucket: Litwin's first criterion.
    Collision,
    /// Whenever the entries are more than this share of what the buckets hold without overflow.
    Load(f64),
}

/// The table.
#[derive(Debug)]
pub struct LinearHash {
    pages: Pages,
    control: Control,
    /// Buckets at the start, and the rounds of splits done since.
    first: u32,
    level: u32,
    /// The bucket that is split next.
    split: u32,
    /// Where the buckets of each round begin.
    bases: [u32; ROUNDS],
    entries: u64,
    overflow: u64,
    next_page: u32,
    next_serial: u64,
    /// Overflow pages not in use; on disk a chain.
    free: Vec<u32>,
}

impl LinearHash {
    /// The table on `disk`; an empty disk gets one of `first` buckets. `frames` pages of buffer.
    ///
    /// # Errors
    /// Those of the disk; where there is something else.
    pub fn open(disk: Arc<dyn Disk>, frames: usize, first: u32, control: Control) -> Result<Self> {
        let pages = Pages::new(disk, frames);
        let mut this = Self {
            pages,
            control,
            first: first.max(1),
            level: 0,
            split: 0,
            bases: [0; ROUNDS],
            entries: 0,
            overflow: 0,
            next_page: 1 + first.max(1),
            next_serial: 0,
            free: Vec::new(),
        };
        this.bases[0] = 1;
        if this.pages.is_empty()? {
            this.pages.fresh(0, Kind::Header, true)?;
            for page in 1..this.next_page {
                this.pages.fresh(page, Kind::Bucket, true)?;
            }
        } else {
            this.load()?;
        }
        Ok(this)
    }

    /// Buckets for `objects` that are known beforehand (§5.1): none overflows, and as many
    /// entries as `load` of what they hold. A prime, so that objects at any fixed distance
    /// spread over all buckets.
    #[must_use]
    pub fn tuned(objects: u64, load: f64) -> u32 {
        let least = (objects as f64 / (CAPACITY as f64 * load)).ceil() as u32;
        let prime = |n: &u32| (2..).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
        (least.max(2)..).find(prime).unwrap_or(least)
    }

    /// Buckets now.
    #[must_use]
    pub fn buckets(&self) -> u32 {
        (self.first << self.level) + self.split
    }

    /// Overflow pages in use.
    #[must_use]
    pub fn overflow_pages(&self) -> u64 {
        self.overflow
    }

    /// Records the mapping of an OID that some server gave out (§3.1.1, replication). Cost: one
    /// page, the rest of its chain, and the splits that the control asks for.
    ///
    /// # Errors
    /// Those of the disk; an OID that is there already.
    pub fn insert(&mut self, oid: Oid, handle: Handle) -> Result<()> {
        if self.find(oid)?.is_some() {
            bail!("{oid:?} is mapped already; give it another OID");
        }
        let primary = self.page_of(self.bucket_of(oid));
        let full = bucket::count(self.pages.read(primary, Kind::Bucket)?) == CAPACITY;
        if self.control == Control::Collision && full {
            self.split()?;
        }
        self.place(oid, handle)?;
        self.entries += 1;
        self.next_serial = self.next_serial.max(oid.number() + 1);
        if let Control::Load(most) = self.control {
            while self.entries as f64 > f64::from(self.buckets()) * CAPACITY as f64 * most {
                self.split()?;
            }
        }
        Ok(())
    }

    /// The bucket by the addressing of linear hashing. The server counts OIDs up, so the serial
    /// number itself fills all buckets alike.
    fn bucket_of(&self, oid: Oid) -> u32 {
        let buckets = u64::from(self.first) << self.level;
        let bucket = oid.number() % buckets;
        if bucket < u64::from(self.split) {
            (oid.number() % (buckets * 2)) as u32
        } else {
            bucket as u32
        }
    }

    fn page_of(&self, bucket: u32) -> u32 {
        match bucket / self.first {
            0 => self.bases[0] + bucket,
            rounds => {
                let round = rounds.ilog2();
                self.bases[round as usize + 1] + bucket - (self.first << round)
            }
        }
    }

    /// Page and place in it of an OID. Cost: its bucket's page, then the chain.
    fn find(&mut self, oid: Oid) -> Result<Option<(u32, usize)>> {
        let mut page = self.page_of(self.bucket_of(oid));
        while page != 0 {
            let bytes = self.pages.read(page, Kind::Bucket)?;
            if let Some(place) = bucket::find(bytes, oid) {
                return Ok(Some((page, place)));
            }
            page = bucket::next(bytes);
        }
        Ok(None)
    }

    /// Puts an entry into the first page of its chain with room, or into a new overflow page.
    fn place(&mut self, oid: Oid, handle: Handle) -> Result<()> {
        let mut page = self.page_of(self.bucket_of(oid));
        loop {
            let bytes = self.pages.read(page, Kind::Bucket)?;
            let next = bucket::next(bytes);
            if bucket::count(bytes) < CAPACITY {
                bucket::push(self.pages.write(page, Kind::Bucket)?, oid, handle);
                return Ok(());
            }
            if next == 0 {
                let new = self.overflow_page()?;
                bucket::set_next(self.pages.write(page, Kind::Bucket)?, new);
                bucket::push(self.pages.write(new, Kind::Bucket)?, oid, handle);
                return Ok(());
            }
            page = next;
        }
    }

    fn overflow_page(&mut self) -> Result<u32> {
        let (page, grows) = match self.free.pop() {
            Some(page) => (page, false),
            None => (self.next_page, true),
        };
        self.next_page += u32::from(grows);
        self.overflow += 1;
        self.pages.fresh(page, Kind::Bucket, grows)?;
        Ok(page)
    }

    /// Splits the bucket whose turn it is: its entries go to it or to the new bucket.
    fn split(&mut self) -> Result<()> {
        let round = self.first << self.level;
        let (old, new) = (self.page_of(self.split), self.split + round);
        if self.split == 0 {
            ensure!((self.level as usize) < ROUNDS - 1, "the hash table has its greatest size");
            self.bases[self.level as usize + 1] = self.next_page;
            self.next_page += round;
        }
        let mut all = Vec::new();
        let mut page = old;
        while page != 0 {
            let bytes = self.pages.read(page, Kind::Bucket)?;
            all.extend(bucket::entries(bytes));
            let next = bucket::next(bytes);
            if page != old {
                self.free.push(page);
                self.overflow -= 1;
            }
            page = next;
        }
        self.pages.fresh(old, Kind::Bucket, false)?;
        self.pages.fresh(self.page_of(new), Kind::Bucket, true)?;
        self.split += 1;
        if self.split == round {
            (self.level, self.split) = (self.level + 1, 0);
        }
        for (oid, handle) in all {
            self.place(oid, handle)?;
        }
        Ok(())
    }

    fn load(&mut self) -> Result<()> {
        let bytes = self.pages.read(0, Kind::Header)?;
        let word = |n: usize| get32(bytes, HEAD + n * 4);
        (self.first, self.level, self.split) = (word(0), word(1), word(2));
        self.next_page = word(3);
        let mut free = word(4);
        for (n, base) in self.bases.iter_mut().enumerate() {
            *base = word(5 + n);
        }
        let wide = |n: usize| get64(bytes, HEAD + (6 + ROUNDS) * 4 + n * 8);
        (self.entries, self.overflow, self.next_serial) = (wide(0), wide(1), wide(2));
        ensure!(self.first > 0 && self.level < 32, "page 0 is damaged; restore the file");
        while free != 0 {
            self.free.push(free);
            ensure!(self.free.len() < self.next_page as usize, "the free list runs in a circle");
            free = bucket::next(self.pages.read(free, Kind::Bucket)?);
        }
        self.free.reverse();
        Ok(())
    }
}

impl Mapping for LinearHash {
    /// By a serial number; the hash function leaves no choice of the place (§4.1.1).
    fn create(&mut self, _place: Place, handle: Handle) -> Result<Oid> {
        let oid = Oid::serial(self.next_serial);
        self.insert(oid, handle)?;
        Ok(oid)
    }

    fn lookup(&mut self, oid: Oid) -> Result<Option<Handle>> {
        let Some((page, place)) = self.find(oid)? else { return Ok(None) };
        Ok(Some(bucket::handle(self.pages.read(page, Kind::Bucket)?, place)))
    }

    fn update(&mut self, oid: Oid, handle: Handle) -> Result<bool> {
        let Some((page, place)) = self.find(oid)? else { return Ok(false) };
        bucket::set_handle(self.pages.write(page, Kind::Bucket)?, place, handle);
        Ok(true)
    }

    /// An overflow page that becomes empty is taken out of its chain.
    fn remove(&mut self, oid: Oid) -> Result<bool> {
        let Some((page, place)) = self.find(oid)? else { return Ok(false) };
        let bytes = self.pages.write(page, Kind::Bucket)?;
        bucket::remove(bytes, place);
        let (empty, next) = (bucket::count(bytes) == 0, bucket::next(bytes));
        self.entries -= 1;
        let mut before = self.page_of(self.bucket_of(oid));
        if !empty || page == before {
            return Ok(true);
        }
        loop {
            let after = bucket::next(self.pages.read(before, Kind::Bucket)?);
            if after == page {
                break;
            }
            before = after;
        }
        bucket::set_next(self.pages.write(before, Kind::Bucket)?, next);
        self.free.push(page);
        self.overflow -= 1;
        Ok(true)
    }

    fn flush(&mut self) -> Result<()> {
        let mut next = 0;
        for &page in &self.free {
            bucket::set_next(self.pages.fresh(page, Kind::Bucket, false)?, next);
            next = page;
        }
        let bytes = self.pages.fresh(0, Kind::Header, false)?;
        let words = [self.first, self.level, self.split, self.next_page, next];
        for (n, word) in words.into_iter().chain(self.bases).enumerate() {
            put32(bytes, HEAD + n * 4, word);
        }
        for (n, wide) in [self.entries, self.overflow, self.next_serial].into_iter().enumerate() {
            put64(bytes, HEAD + (6 + ROUNDS) * 4 + n * 8, wide);
        }
        self.pages.flush()
    }

    fn pages(&mut self) -> &mut Pages {
        &mut self.pages
    }

    fn used(&self) -> u64 {
        1 + u64::from(self.buckets()) + self.overflow + self.free.len() as u64
    }
}
