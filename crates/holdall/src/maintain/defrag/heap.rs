//! Emptying sparse heap pages: the records of the last pages go into the first with room.
//!
//! The last pages of a heap file were mostly allocated together, so what becomes free lies
//! together too, and can be given back.

use super::Work;
use crate::write::{Durability, MOVE_BYTES, WriteTx, collection_names};
use holdall_core::Result;
use std::ops::ControlFlow;

impl Work<'_> {
    /// Empties pages of each collection until it is as full as its placement policy asks for.
    pub(super) fn empty_heaps(&mut self) -> Result<ControlFlow<()>> {
        for name in collection_names(&self.store.inner)? {
            if self.empty_heap(&name)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn empty_heap(&mut self, name: &str) -> Result<ControlFlow<()>> {
        let (mut from, mut in_vain) = (u32::MAX, 0);
        loop {
            let mut tx = WriteTx::for_maintenance(&self.store.inner)?;
            tx.set_durability(Durability::Deferred);
            let emptied = tx.empty_heap_pages(name, &mut from, MOVE_BYTES)?;
            // Either way the writer's lock is free before others are asked.
            if emptied.moved > 0 {
                tx.commit()?
            } else {
                drop(tx)
            }
            let report = &mut self.report;
            report.moved.heap_pages += emptied.pages;
            report.moved.record_bytes += emptied.moved;
            report.stuck_pages += emptied.stuck;
            if self.moved()?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            in_vain = if emptied.pages > 0 { 0 } else { in_vain + emptied.stuck };
            if emptied.done || in_vain > self.most_in_vain {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }
}
