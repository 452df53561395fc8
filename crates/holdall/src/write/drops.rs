//! Emptying what was dropped: large collections, in transactions of a few pages.
//!
//! Owns no state: the drop list and the collections' own pages say what is left, so that a crash or
//! a close between two transactions costs nothing but time. Of a heap file the last page goes first,
//! record by record; a record whose handle no longer leads to it is done.
//!
//! Invariant: a handle of a dropped object dangles before its record's page goes, and for readers
//! from the drop on, since lookups by OID ask the list (`Root::check_alive`).

use super::opened::DROPPED;
use super::{Begun, Durability, ObjectsMut, WriteTx};
use crate::engine::Inner;
use crate::engine::catalog::{Collection, large, page_of};
use crate::heap::HeapFile;
use crate::object::{PreviousBody, Record};
use crate::space::Class;
use crate::txn::Waiting;
use holdall_core::collection_entry::NumberKey;
use holdall_core::heap_record::divided::part;
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::PageKind;
use holdall_core::{Error, Oid, PageWrite, Result, root_page};
use std::ops::Bound;
use std::sync::Arc;

/// Pages that one transaction changes, so that others wait for little.
const MOST_CHANGED: usize = 256;
/// Pages that one transaction frees, or less by the limit of changed pages.
const MOST_FREED: usize = 64;

/// Whether anything is dropped and not yet emptied. Cost: a look at the root page.
///
/// # Errors
/// Those of reading it.
pub(crate) fn has_dropped(inner: &Inner) -> Result<bool> {
    let root = inner.pager.newest(inner.root, PageKind::Root)?;
    Ok(!root_page::drops(&root).is_none())
}

/// Empties a part of what was dropped, in one transaction that is not waited for. Returns whether
/// there is more.
///
/// # Errors
/// Those of the transaction.
pub(crate) fn empty_dropped(inner: &Arc<Inner>) -> Result<bool> {
    if !has_dropped(inner)? {
        return Ok(false);
    }
    let mut tx = WriteTx::new(inner, None)?;
    tx.set_durability(Durability::Deferred);
    tx.start_now(&Waiting::maintenance())?;
    let emptied = tx.empty_some();
    tx.fail_with(emptied)?;
    if mutation::is(Mutation::R53Resume) {
        tx.opened.set(DROPPED, None);
    }
    tx.commit()?;
    has_dropped(inner)
}

/// Empties all that was dropped.
///
/// # Errors
/// As [`empty_dropped`].
pub(crate) fn empty_all_dropped(inner: &Arc<Inner>) -> Result<()> {
    while empty_dropped(inner)? {}
    Ok(())
}

impl ObjectsMut {
    /// Empties a part of the first collection in the drop list.
    fn empty_some(&mut self) -> Result<()> {
        let dirty = self.inner.pager.limits().dirty_pages;
        let (most, freed) = (MOST_CHANGED.min(dirty / 4), MOST_FREED.min(dirty / 8));
        let Begun { tx, root, .. } = self.begin()?;
        tx.set_class(Class::Shrink);
        let first = root.drops.iter(&*tx, Bound::Unbounded).next().transpose()?;
        let Some((key, value)) = first else { return Ok(()) };
        let (number, _) = NumberKey::split(&key)?;
        let mut c = large(tx, number, page_of(&value)?)?;
        self.opened.set(DROPPED, Some(c));
        self.current = DROPPED;
        for _ in 0..freed {
            let Some(index) = c.heap.map().len().checked_sub(1) else { break };
            if !self.give_up_page(&c, index, most)? {
                return Ok(());
            }
            c.heap.drop_pages(&mut self.begin()?.tx, 1)?;
            self.opened.set(DROPPED, Some(c));
        }
        if !c.heap.map().is_empty() {
            return Ok(());
        }
        let tx = &mut self.begin()?.tx;
        let gone = c.names.clear_some(tx, freed)?;
        self.opened.set(DROPPED, Some(c).filter(|_| !gone));
        if gone {
            let Begun { tx, root, .. } = self.begin()?;
            tx.free_page(c.page)?;
            root.drops.remove(tx, &key)?;
        }
        Ok(())
    }

    /// Gives up the objects whose records, or parts of them, lie in heap page `index`. Returns
    /// whether that was all of them, before `most` pages were changed.
    fn give_up_page(&mut self, c: &Collection, index: u32, most: usize) -> Result<bool> {
        let parts = c.heap.page_records(&self.begin()?.tx, index)?;
        for (_, found) in parts {
            if self.begin()?.tx.changed_pages() >= most {
                return Ok(false);
            }
            if !mutation::is(Mutation::R53Handles) {
                self.give_up(part(&found)?.0)?;
            }
        }
        Ok(true)
    }

    /// Gives up an object, if that was not done before: the other part of its record may have
    /// come first.
    fn give_up(&mut self, oid: Oid) -> Result<()> {
        let Begun { tx, root, .. } = self.begin()?;
        let loc = match root.handles.lookup(&*tx, oid) {
            Err(Error::Dangling(_) | Error::NotFound(_)) => return Ok(()),
            found => found?,
        };
        let record = HeapFile::whole(&*tx, loc)?;
        let old = PreviousBody::from_record(&Record::parse(&record)?)?;
        drop(record);
        self.with_objects_of(|objects, _| objects.give_up(oid, &old))
    }
}
