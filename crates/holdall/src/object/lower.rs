//! Moving what an object's data and record lie in towards the front of the file; all of the
//! object stays as it is.

use super::{Body, ObjectLocation, ObjectWrite, Record};
use crate::heap::{HeapFile, Location};
use crate::space::Lowering;
use holdall_core::heap_record::divided::{Part, part};
use holdall_core::segment_tree::Descriptor;
use holdall_core::{Oid, Result};

impl ObjectWrite<'_> {
    /// Moves heap page `index`, if `low` takes it. Cost: the page, and a handle page for each
    /// record, or a page that leads to it.
    ///
    /// # Errors
    /// Page access, after which the transaction must be aborted.
    pub fn lower_heap_page(&mut self, index: u32, low: &mut Lowering) -> Result<()> {
        let Some(old) = self.heap.lower_page(self.tx, index, low)? else { return Ok(()) };
        let records = self.heap.page_records(&*self.tx, index)?;
        let known = records.iter().map(|(loc, record)| Ok((*loc, part(record)?)));
        let known = known.collect::<Result<Vec<_>>>()?;
        drop(records);
        // First parts first: they may lie in the same page as what they lead to.
        for (loc, (oid, kind)) in &known {
            if *kind != Part::Continuation {
                self.handles.update(self.tx, *oid, *loc)?;
            }
        }
        for (loc, (oid, kind)) in known {
            if kind == Part::Continuation {
                let first = self.handles.lookup(&*self.tx, oid)?;
                let before = Location { page: old, slot: loc.slot };
                HeapFile::relink(self.tx, first, oid, (before, loc))?;
            }
        }
        Ok(())
    }

    /// Moves the nodes of a large object that `low` takes. Cost: a look at all but the leaves.
    ///
    /// # Errors
    /// As [`ObjectWrite::lower_heap_page`].
    pub fn lower_nodes(&mut self, oid: Oid, low: &mut Lowering) -> Result<()> {
        let place = ObjectLocation::find(&*self.tx, self.handles, oid)?;
        let bytes = place.record(&*self.tx)?;
        let record = Record::parse(&bytes)?;
        let Body::Large(d) = record.body else { return Ok(()) };
        let mut d = Descriptor::decode(d)?;
        let head = record.head();
        drop(bytes);
        let before = d.tree.clone();
        self.tree(oid, d.flags).lower(&mut d.tree, low)?;
        if d.tree == before { Ok(()) } else { self.put_record(place, &head.large(oid, &d)) }
    }
}
