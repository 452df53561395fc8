//! Creating several small objects at once.
//!
//! Owns: [`New`]. Objects that are created one after the other mostly go to one heap page, and
//! their handles to one handle page: here each of these pages is looked up and changed once
//! for all of them, and the records are written where they will lie.

use super::ObjectWrite;
use crate::handle::HandleSlot;
use crate::heap::Records;
use crate::prefetch;
use holdall_core::handle_page::Location;
use holdall_core::heap_page::max_record;
use holdall_core::heap_record::{small_len, write_small};
use holdall_core::{Oid, Result};

/// Objects asked for ahead of the one being written: their bytes come meanwhile.
const AHEAD: usize = 4;

/// An object to be created: its name, if it is to have one, and its bytes.
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    /// The name.
    pub name: Option<&'a [u8]>,
    /// When it is made, in milliseconds since 1970 UTC.
    pub time: u64,
    /// All of its bytes.
    pub bytes: &'a [u8],
}

impl New<'_> {
    /// Whether a record of a page of `page_size` bytes holds all of it.
    pub fn is_small(&self, page_size: usize) -> bool {
        self.record_len() <= max_record(page_size)
    }

    fn record_len(&self) -> usize {
        small_len(self.name, self.time, self.bytes.len())
    }

    fn fetch(&self) {
        prefetch::range(self.bytes.as_ptr(), 0..self.bytes.len());
    }
}

/// The records of new objects, given their OIDs as they are written.
struct Writing<'a, 'o, U> {
    objects: &'a [New<'a>],
    spot: HandleSlot,
    unique: U,
    oids: &'o mut Vec<Oid>,
}

impl<U: FnMut() -> Result<u32>> Records for Writing<'_, '_, U> {
    fn len(&self, i: usize) -> Option<usize> {
        self.objects.get(i).map(New::record_len)
    }

    fn write(&mut self, i: usize, to: &mut [u8]) -> Result<()> {
        if let Some(later) = self.objects.get(i + AHEAD) {
            later.fetch();
        }
        let oid = self.spot.oid_after(i, (self.unique)()?);
        let New { name, time, bytes } = self.objects[i];
        write_small(to, oid, name, time, bytes);
        self.oids.push(oid);
        Ok(())
    }
}

impl ObjectWrite<'_> {
    /// Creates the first of `objects`, all of which are small, and those behind it that go to
    /// the same pages, as [`ObjectWrite::create`] would one by one. Their OIDs are added to
    /// `oids`. Returns where their records lie: none, and nothing is changed that matters, if the
    /// first has no page at hand. `unique` gives the numbers.
    ///
    /// # Errors
    /// As [`ObjectWrite::create`], and those of `unique`.
    pub fn create_run(
        &mut self,
        objects: &[New<'_>],
        unique: impl FnMut() -> Result<u32>,
        oids: &mut Vec<Oid>,
    ) -> Result<Vec<Location>> {
        let Some(first) = objects.first() else { return Ok(Vec::new()) };
        objects.iter().take(AHEAD).for_each(New::fetch);
        let len = first.record_len();
        if self.heap.run_from(self.placement, len).is_none() {
            return Ok(Vec::new());
        }
        let (spot, most) = self.handles.next_run(self.tx, self.cursor)?;
        let objects = &objects[..objects.len().min(most)];
        let before = oids.len();
        let mut records = Writing { objects, spot, unique, oids };
        let Some(run) = self.heap.put_run(self.tx, self.placement, &mut records)? else {
            return Ok(Vec::new());
        };
        let places: Vec<_> = run.slots().iter().map(|slot| run.location(*slot)).collect();
        let handles = oids[before..].iter().zip(&places);
        let handles = handles.map(|(oid, place)| (oid.unique, *place));
        self.handles.fill_run(self.tx, spot, handles)?;
        Ok(places)
    }
}
