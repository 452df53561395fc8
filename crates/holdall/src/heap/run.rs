//! Several records at once, as long as they go to one page.
//!
//! In a bulk load one record mostly follows the other into the page that has most room. Here
//! that page is chosen once, the records are written where they will lie, and the books are
//! kept when it has them all: pages, books and placement are then what single insertions
//! would have made them (tests/put_many.rs).

use super::{At, HeapFile, Location, Placement};
use holdall_core::heap_page::HeapPageMut;
use holdall_core::{PageKind, PageNo, PageWrite, Result};

/// Most records of a run.
const MOST_RECORDS: usize = 64;

/// Records on their way into a heap file.
pub trait Records {
    /// Bytes of the `i`-th record, 1 to [`holdall_core::heap_page::max_record`]; `None` if
    /// there are only `i`.
    fn len(&self, i: usize) -> Option<usize>;

    /// Writes all of the `i`-th record; called once for each in order, as its place is known.
    ///
    /// # Errors
    /// Any; the transaction must then be aborted.
    fn write(&mut self, i: usize, to: &mut [u8]) -> Result<()>;
}

/// Where the records of a run lie.
#[derive(Debug)]
pub struct Run {
    /// Their page.
    page: PageNo,
    slots: [u16; MOST_RECORDS],
    len: usize,
}

impl Run {
    /// The slots of the records, in their order.
    pub fn slots(&self) -> &[u16] {
        &self.slots[..self.len]
    }

    /// The place of the record in `slot`.
    pub fn location(&self, slot: u16) -> Location {
        Location { page: self.page, slot }
    }
}

impl HeapFile {
    /// The length that the records of a run beginning with one of `len` bytes must have at
    /// least; `None` if [`HeapFile::put_run`] would take none of them.
    pub fn run_from(&self, placement: &mut Placement, len: usize) -> Option<usize> {
        placement.sync(self.changes);
        let (chosen, least) = placement.choose_for_run(len)?;
        chosen.marked.then_some(least)
    }

    /// Puts the first of `records` into the cached page it belongs to, and those behind it as
    /// long as they belong there too. `None`, and nothing changed, if there is no such page
    /// or what is remembered of it is wrong: [`HeapFile::insert`] is to be asked then. Cost: one
    /// changed page.
    ///
    /// # Errors
    /// As [`HeapFile::insert`], and those of `records`.
    pub fn put_run<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        records: &mut impl Records,
    ) -> Result<Option<Run>> {
        let Some(first) = records.len(0) else { return Ok(None) };
        placement.sync(self.changes);
        let chosen = placement.choose_for_run(first).filter(|(cached, _)| cached.marked);
        let Some((cached, least)) = chosen else { return Ok(None) };
        let at = At { index: cached.index, page: cached.page };
        let mut run = Run { page: at.page, slots: [0; MOST_RECORDS], len: 0 };
        let bytes = pages.page_mut(at.page, PageKind::Heap)?;
        let own = holdall_core::page::owner(bytes) == self.owner;
        let mut page = HeapPageMut::new(bytes, at.page)?;
        if !own || page.view().index() != at.index {
            return Ok(None);
        }
        let before = page.view().room();
        while run.len < MOST_RECORDS
            && let Some(len) = records.len(run.len).filter(|len| *len >= least)
            && let Some(slot) = page.insert_with(len, |to| records.write(run.len, to))?
        {
            run.slots[run.len] = slot;
            run.len += 1;
        }
        if run.len == 0 {
            return Ok(None);
        }
        let after = page.view().room();
        self.records = self.records.saturating_add(run.len as u64);
        // As many changes as there were records: the last of them is counted with the rest.
        self.changes = self.changes.wrapping_add(run.len as u32 - 1);
        self.update_free_space(pages, placement, at, before, after)?;
        Ok(Some(run))
    }
}
