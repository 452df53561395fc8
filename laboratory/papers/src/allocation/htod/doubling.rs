//! Doubling of the index, and what a crash leaves of it (Iyengar §3: hashing by doubling, coded
//! so that it can be restarted).
//!
//! Owns the order of writes. A new index of twice the size is allocated and named in the root.
//! Bucket by bucket the items' links of the other generation and the new heads are written; the
//! root says how far that got. Links and index in use stay as they are until one write of the
//! root turns to the new ones. Each step can be done again, so that a restart goes on where the
//! root says. Threads: none.

use super::item::Item;
use super::{Htod, read_index};
use crate::kit::error::Result;
use crate::mutation::{Mutation, is};

/// Buckets between two writes of how far it got.
const STEP: u64 = 64;

impl Htod {
    /// Doubles the number of buckets.
    pub(super) fn double(&mut self) -> Result<()> {
        let len = self.root.buckets as usize * 16;
        self.root.new = self.store.allocate(len)?;
        self.root.done = 0;
        self.write_root()?;
        self.go_on()
    }

    /// Finishes a doubling that a crash broke off, and gives back an index out of use.
    pub(super) fn finish_doubling(&mut self) -> Result<()> {
        if self.root.new.at != 0 {
            if is(Mutation::HtodRestart) {
                self.root.done = 0;
            }
            self.go_on()?;
        }
        self.release()
    }

    /// From the bucket on that the root names.
    fn go_on(&mut self) -> Result<()> {
        let buckets = self.root.buckets;
        while self.root.done < buckets {
            let end = (self.root.done + STEP).min(buckets);
            let (mut low, mut high) = (Vec::new(), Vec::new());
            for bucket in self.root.done..end {
                let [to_low, to_high] = self.split_chain(bucket)?;
                low.extend(to_low.to_le_bytes());
                high.extend(to_high.to_le_bytes());
            }
            self.store.write(self.root.new, self.root.done * 8, &low)?;
            self.store.write(self.root.new, (buckets + self.root.done) * 8, &high)?;
            self.root.done = end;
            self.write_root()?;
        }
        self.root.turn();
        self.write_root()?;
        self.heads = read_index(&self.store, self.root.index, self.root.buckets)?;
        self.release()
    }

    /// Links the items of a bucket by their new bucket, in the same order, through the links
    /// that are not in use; gives the two heads.
    fn split_chain(&mut self, bucket: u64) -> Result<[u64; 2]> {
        let generation = self.root.generation();
        let mut sides: [Vec<Item>; 2] = [Vec::new(), Vec::new()];
        let mut at = self.heads[bucket as usize];
        while at != 0 {
            let item = Item::read_links(&self.store, at)?;
            at = item.next[generation];
            sides[usize::from(item.hash & self.root.buckets != 0)].push(item);
        }
        let mut heads = [0; 2];
        for (head, items) in heads.iter_mut().zip(&sides) {
            *head = items.first().map_or(0, |item| item.at);
            for (i, item) in items.iter().enumerate() {
                let next = items.get(i + 1).map_or(0, |item| item.at);
                if item.next[1 - generation] != next {
                    self.set_next(item.at, 1 - generation, next)?;
                }
            }
        }
        Ok(heads)
    }

    /// Gives back the index that was in use before; after a crash it may be done already.
    fn release(&mut self) -> Result<()> {
        let retired = self.root.retired;
        if retired.at == 0 {
            return Ok(());
        }
        // It is as it was, or free: nothing is allocated between its release and the root's
        // next write.
        if self.store.block_at(retired.at).is_ok_and(|block| block == retired) {
            self.store.free(retired, self.root.buckets as usize * 4)?;
        }
        self.root.forget_retired();
        self.write_root()
    }
}
