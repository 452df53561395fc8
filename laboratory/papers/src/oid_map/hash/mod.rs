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
use super::oid::{Handle, Oid};
use super::pages::{Kind, Pages};
use crate::mutation::{Mutation, is};
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
    /// New OIDs are in no order.
    scattered: bool,
    /// Overflow pages not in use; on disk a chain.
    free: Vec<u32>,
}

impl LinearHash {
    /// The table on `disk`; an empty disk gets one of `first` buckets. `frames` pages of buffer.
    pub fn open(disk: Arc<dyn Disk>, frames: usize, first: u32, control: Control) -> Result<Self> {
        let mut this = Self {
            pages: Pages::new(disk, frames),
            control,
            first: first.max(1),
            level: 0,
            split: 0,
            bases: [0; ROUNDS],
            entries: 0,
            overflow: 0,
            next_page: 1 + first.max(1),
            next_serial: 0,
            scattered: false,
            free: Vec::new(),
        };
        this.bases[0] = 1;
        match this.pages.state()? {
            Some(state) => this.load(&state)?,
            None => {
                for page in 1..this.next_page {
                    this.pages.fresh(page, Kind::Bucket, true)?;
                }
            }
        }
        Ok(this)
    }

    /// Buckets for `objects` that are known beforehand (§5.1): none overflows, and all are full. A
    /// prime, so that objects at any fixed distance spread over all buckets.
    pub fn tuned(objects: u64) -> u32 {
        let prime = |n: &u32| (2..).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
        let least = objects.div_ceil(CAPACITY as u64).max(2) as u32;
        (least..).find(prime).unwrap_or(least)
    }

    /// The same table, whose new OIDs come in no order from here on, so that each meets any bucket
    /// alike. Counted ones meet the buckets in the order in which these are split.
    #[must_use]
    pub fn scattered(self) -> Self {
        Self { scattered: true, ..self }
    }

    /// Buckets now.
    pub fn buckets(&self) -> u32 {
        (self.first << self.level) + self.split
    }

    /// Overflow pages in use.
    #[cfg(test)]
    pub fn overflow_pages(&self) -> u64 {
        self.overflow
    }

    /// Records the mapping of an OID that some server gave out (§3.1.1, replication). Cost: one
    /// page, the rest of its chain, and the splits that the control asks for.
    pub fn insert(&mut self, oid: Oid, handle: Handle) -> Result<()> {
        self.next_serial = self.next_serial.max(oid.number() + 1);
        self.add(oid, handle)
    }

    fn add(&mut self, oid: Oid, handle: Handle) -> Result<()> {
        if self.find(oid)?.is_some() {
            bail!("{oid:?} is mapped already; give it another OID");
        }
        let primary = self.page_of(self.bucket_of(oid));
        let full = bucket::count(self.pages.read(primary, Kind::Bucket)?) == CAPACITY;
        if self.control == Control::Collision && full && !is(Mutation::HashCollision) {
            self.split()?;
        }
        self.place(oid, handle)?;
        self.entries += 1;
        if let Control::Load(most) = self.control {
            let most = if is(Mutation::HashLoad) { 1.0 } else { most };
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
        if bucket < u64::from(self.split) && !is(Mutation::HashAddress) {
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

    /// Page, its kind and place in it of an OID. Cost: its bucket's page, then the chain.
    fn find(&mut self, oid: Oid) -> Result<Option<(u32, Kind, usize)>> {
        let (mut page, mut kind) = (self.page_of(self.bucket_of(oid)), Kind::Bucket);
        while page != 0 {
            let bytes = self.pages.read(page, kind)?;
            if let Some(place) = bucket::find(bytes, oid) {
                return Ok(Some((page, kind, place)));
            }
            (page, kind) = (bucket::next(bytes), Kind::Overflow);
        }
        Ok(None)
    }

    /// Puts an entry into the first page of its chain with room, or into a new overflow page.
    fn place(&mut self, oid: Oid, handle: Handle) -> Result<()> {
        let (mut page, mut kind) = (self.page_of(self.bucket_of(oid)), Kind::Bucket);
        loop {
            let bytes = self.pages.read(page, kind)?;
            let mut next = bucket::next(bytes);
            if bucket::count(bytes) < CAPACITY {
                bucket::push(self.pages.write(page, kind)?, oid, handle);
                return Ok(());
            }
            if next == 0 {
                next = self.overflow_page()?;
                bucket::set_next(self.pages.write(page, kind)?, next);
            }
            (page, kind) = (next, Kind::Overflow);
        }
    }

    fn overflow_page(&mut self) -> Result<u32> {
        let (page, grows) = match self.free.pop() {
            Some(page) => (page, false),
            None => (self.next_page, true),
        };
        self.next_page += u32::from(grows);
        self.overflow += 1;
        self.pages.fresh(page, Kind::Overflow, grows)?;
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
        let bytes = self.pages.read(old, Kind::Bucket)?;
        all.extend(bucket::entries(bytes));
        let mut page = bucket::next(bytes);
        while page != 0 {
            let bytes = self.pages.read(page, Kind::Overflow)?;
            all.extend(bucket::entries(bytes));
            self.free.push(page);
            self.overflow -= 1;
            page = bucket::next(bytes);
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

    fn load(&mut self, state: &[u64]) -> Result<()> {
        let [first, level, split, next_page, mut free] = [0, 1, 2, 3, 4].map(|n| state[n] as u32);
        ensure!(first > 0 && level < 32, "page 0 is damaged; restore the file");
        (self.first, self.level, self.split, self.next_page) = (first, level, split, next_page);
        (self.entries, self.overflow, self.next_serial) = (state[5], state[6], state[7]);
        self.bases = std::array::from_fn(|n| state[8 + n] as u32);
        while free != 0 {
            self.free.push(free);
            ensure!(self.free.len() < self.next_page as usize, "the free list runs in a circle");
            free = bucket::next(self.pages.read(free, Kind::Overflow)?);
        }
        self.free.reverse();
        Ok(())
    }
}

impl Mapping for LinearHash {
    /// By a serial number; the hash function leaves no choice of the place (§4.1.1).
    fn create(&mut self, _place: Place, handle: Handle) -> Result<Oid> {
        let next = self.next_serial;
        self.next_serial += 1;
        // An odd factor gives each number below 2^39 another one; all lie above those counted.
        let mixed = next.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (1 << 39) + (1 << 40);
        let oid = Oid::serial(if self.scattered { mixed } else { next });
        self.add(oid, handle)?;
        Ok(oid)
    }

    fn lookup(&mut self, oid: Oid) -> Result<Option<Handle>> {
        let Some((page, kind, place)) = self.find(oid)? else { return Ok(None) };
        Ok(Some(bucket::handle(self.pages.read(page, kind)?, place)))
    }

    fn update(&mut self, oid: Oid, handle: Handle) -> Result<bool> {
        let Some((page, kind, place)) = self.find(oid)? else { return Ok(false) };
        bucket::set_handle(self.pages.write(page, kind)?, place, handle);
        Ok(true)
    }

    /// An overflow page that becomes empty is taken out of its chain.
    fn remove(&mut self, oid: Oid) -> Result<bool> {
        let Some((page, kind, place)) = self.find(oid)? else { return Ok(false) };
        let bytes = self.pages.write(page, kind)?;
        bucket::remove(bytes, place);
        let (empty, next) = (bucket::count(bytes) == 0, bucket::next(bytes));
        self.entries -= 1;
        if !empty || kind == Kind::Bucket || is(Mutation::HashEmpty) {
            return Ok(true);
        }
        let (mut before, mut kind) = (self.page_of(self.bucket_of(oid)), Kind::Bucket);
        loop {
            let after = bucket::next(self.pages.read(before, kind)?);
            if after == page {
                break;
            }
            (before, kind) = (after, Kind::Overflow);
        }
        bucket::set_next(self.pages.write(before, kind)?, next);
        self.free.push(page);
        self.overflow -= 1;
        Ok(true)
    }

    fn flush(&mut self) -> Result<()> {
        let mut next = 0;
        for &page in &self.free {
            bucket::set_next(self.pages.fresh(page, Kind::Overflow, false)?, next);
            next = page;
        }
        let mut state: Vec<u64> =
            [self.first, self.level, self.split, self.next_page, next].map(u64::from).into();
        state.extend([self.entries, self.overflow, self.next_serial]);
        state.extend(self.bases.map(u64::from));
        self.pages.flush(&state)
    }

    fn pages(&mut self) -> &mut Pages {
        &mut self.pages
    }

    fn used(&self) -> u64 {
        1 + u64::from(self.buckets()) + self.overflow + self.free.len() as u64
    }
}
