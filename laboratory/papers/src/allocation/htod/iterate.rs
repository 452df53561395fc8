//! Looking through a whole table, and giving back what crashes left. Owns no state.

use super::super::block::Block;
use super::Htod;
use super::item::Item;
use crate::kit::error::Result;
use std::collections::HashSet;
use std::ops::ControlFlow;

impl Htod {
    /// Every key, in no order. One access each.
    pub fn keys(&self, mut each: impl FnMut(Vec<u8>)) -> Result<()> {
        self.items(|item| {
            each(item.key(&self.store)?);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Every value, in no order. One access each, two for values beyond 4 KiB.
    pub fn values(&self, mut each: impl FnMut(Vec<u8>)) -> Result<()> {
        self.items(|item| {
            each(item.value(&self.store)?);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Every key with its value, until `each` breaks.
    pub fn entries(&self, mut each: impl FnMut(Vec<u8>, Vec<u8>) -> ControlFlow<()>) -> Result<()> {
        self.items(|item| Ok(each(item.key(&self.store)?, item.value(&self.store)?)))
    }

    fn items(&self, mut each: impl FnMut(&Item) -> Result<ControlFlow<()>>) -> Result<()> {
        let generation = self.root.generation();
        for &head in &self.heads {
            let mut at = head;
            while at != 0 {
                let item = Item::read(&self.store, at)?;
                if each(&item)?.is_break() {
                    return Ok(());
                }
                at = item.next[generation];
            }
        }
        Ok(())
    }

    /// Gives back the blocks that a crash left allocated with nothing leading to them. Reads
    /// every item and every header. Gives their number.
    pub fn sweep(&mut self) -> Result<u64> {
        let mut used = HashSet::from([self.root_block.at, self.root.index.at]);
        self.items(|item| {
            used.insert(item.at);
            Ok(ControlFlow::Continue(()))
        })?;
        let blocks = self.store.allocated_blocks()?;
        let leaked: Vec<Block> = blocks.into_iter().filter(|b| !used.contains(&b.at)).collect();
        for &block in &leaked {
            // What was asked for is not known any more; it was not counted either.
            self.store.free(block, 0)?;
        }
        self.keys = used.len() as u64 - 2;
        Ok(leaked.len() as u64)
    }
}
