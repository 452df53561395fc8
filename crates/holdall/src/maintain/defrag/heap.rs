//! Emptying sparse heap pages: the records of the last pages go into the first with room.
//!
//! The last pages of a heap file were mostly allocated together, so what becomes free lies
//! together too, and can be given back.

use super::Work;
use crate::write::{Durability, HeapFiles, MOVE_BYTES, WriteTx};
use holdall_core::{Error, Result};
use std::ops::ControlFlow;

impl Work<'_> {
    /// Empties pages of each heap file until it is as full as its placement policy asks for. Large
    /// collections that have become small ones move to where these lie.
    pub(super) fn empty_heaps(&mut self) -> Result<ControlFlow<()>> {
        let inner = self.store.inner.clone();
        let mut files = HeapFiles::new(&inner);
        while let Some(owner) = files.next()? {
            if self.make_small(owner)?.is_break() || self.empty_heap(owner)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Makes a large collection small that need not be large.
    fn make_small(&mut self, owner: u64) -> Result<ControlFlow<()>> {
        let mut tx = WriteTx::for_maintenance(&self.store.inner)?;
        tx.set_durability(Durability::Deferred);
        match tx.make_small(owner) {
            Ok(false) => return Ok(ControlFlow::Continue(())),
            // It stays as it is.
            Err(Error::Full(_) | Error::TooLarge(_)) => return Ok(ControlFlow::Continue(())),
            made => drop(made?),
        }
        match tx.commit() {
            Err(Error::Full(_) | Error::TooLarge(_)) | Ok(()) => self.moved(),
            Err(e) => Err(e),
        }
    }

    fn empty_heap(&mut self, owner: u64) -> Result<ControlFlow<()>> {
        let (mut from, mut in_vain) = (u32::MAX, 0);
        loop {
            let mut tx = WriteTx::for_maintenance(&self.store.inner)?;
            tx.set_durability(Durability::Deferred);
            let emptied = tx.empty_heap_pages(owner, &mut from, MOVE_BYTES)?;
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
