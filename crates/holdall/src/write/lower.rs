//! What maintenance does inside a transaction to make the end of the file free: pages that lie
//! there move towards its front, a bounded number in each transaction.

use super::{Begun, ObjectsMut};
use crate::sharing::Sharing;
use crate::space::{Class, Lowering};
use holdall_core::collection_entry::{Entry, SMALL_OWNER};
use holdall_core::page::PageKind;
use holdall_core::{Oid, Result};

/// Pages that one transaction changes, so that others wait for little.
const MOST_CHANGED: usize = 256;
/// Collections of the catalog looked at together.
const MOST_KNOWN: usize = 1000;

impl ObjectsMut {
    /// Moves heap pages of the file of `owner` that `low` takes, from index `from` on, which is
    /// where to go on. Returns whether there are more.
    ///
    /// # Errors
    /// Those of page access; [`Error::Full`](holdall_core::Error::Full) if there is no room
    /// below the line. The transaction can then only be given up.
    pub(crate) fn lower_heap(
        &mut self,
        owner: u64,
        from: &mut u32,
        low: &mut Lowering,
    ) -> Result<bool> {
        let most = MOST_CHANGED.min(self.inner.pager.limits().dirty_pages / 4);
        let Some(slot) = self.slot_of_number(owner)? else { return Ok(false) };
        let outer = std::mem::replace(&mut self.current, slot);
        let result = match self.current() {
            Ok(Some(_)) => self.with_objects(|objects, _| {
                objects.tx.set_class(Class::Shrink);
                objects.tx.keep_below(low.line());
                let len = objects.heap.map().len();
                while *from < len && !low.is_done() && objects.tx.changed_pages() < most {
                    objects.lower_heap_page(*from, low)?;
                    *from += 1;
                }
                Ok(*from < len)
            }),
            other => other.map(|_| false),
        };
        self.current = outer;
        result
    }

    /// Moves handle pages that `low` takes, from index `from` on, which is where to go on.
    /// Returns whether there are more.
    ///
    /// # Errors
    /// As [`ObjectsMut::lower_heap`].
    pub(crate) fn lower_handles(&mut self, from: &mut u32, low: &mut Lowering) -> Result<bool> {
        let Begun { tx, root, .. } = self.begin()?;
        tx.set_class(Class::Shrink);
        tx.keep_below(low.line());
        let len = root.handles.map.len();
        while *from < len && !low.is_done() {
            if let Err(e) = root.handles.lower_page(tx, *from, low) {
                return self.fail_with(Err(e));
            }
            *from += 1;
        }
        Ok(*from < len)
    }

    /// Moves the nodes of a large object that `low` takes.
    ///
    /// # Errors
    /// As [`ObjectsMut::lower_heap`].
    pub(crate) fn lower_nodes(&mut self, oid: Oid, low: &mut Lowering) -> Result<()> {
        self.with_object(oid, |objects, _| {
            objects.tx.set_class(Class::Shrink);
            objects.tx.keep_below(low.line());
            objects.lower_nodes(oid, low)
        })
    }

    /// Moves nodes of all trees of names and of all maps, pages of checksums, and the
    /// collections' own pages.
    ///
    /// # Errors
    /// As [`ObjectsMut::lower_heap`].
    pub(crate) fn lower_trees(&mut self, low: &mut Lowering) -> Result<()> {
        let result = self.try_to_lower_trees(low);
        self.fail_with(result)
    }

    fn try_to_lower_trees(&mut self, low: &mut Lowering) -> Result<()> {
        let Begun { tx, root, .. } = self.begin()?;
        tx.set_class(Class::Shrink);
        tx.keep_below(low.line());
        tx.lower_info_pages(low)?;
        root.catalog.lower(tx, low)?;
        root.entries.lower(tx, low)?;
        root.drops.lower(tx, low)?;
        root.handles.map.lower_nodes(tx, low)?;
        let at = tx.root();
        let mut sharing = Sharing::load(tx, at)?;
        sharing.tree.lower(tx, low)?;
        sharing.store(tx, at)?;
        self.lower_collection(SMALL_OWNER, low)?;
        let mut next = Some(0);
        while let Some(from) = next.filter(|_| !low.is_done()) {
            let Begun { tx, root, .. } = self.begin()?;
            let known = root.known_from(&*tx, from, MOST_KNOWN)?;
            next = known.last().map(|known| known.number + 1);
            for known in known.iter().filter(|known| matches!(known.entry, Entry::Large(_))) {
                self.lower_collection(known.number, low)?;
            }
        }
        Ok(())
    }

    /// Gives up the last spaces where they are empty. Returns whether there were any.
    ///
    /// # Errors
    /// Those of page access; the transaction can then only be given up.
    pub(crate) fn give_up_spaces(&mut self) -> Result<bool> {
        let result = self.begin()?.tx.give_up_spaces();
        self.fail_with(result)
    }

    /// Moves the nodes of a collection's trees, and its page.
    fn lower_collection(&mut self, owner: u64, low: &mut Lowering) -> Result<()> {
        if low.is_done() {
            return Ok(());
        }
        let Some(slot) = self.slot_of_number(owner)? else { return Ok(()) };
        let Some(mut c) = self.opened.view(slot).filter(|c| !c.is_small()) else { return Ok(()) };
        let Begun { tx, root, .. } = self.begin()?;
        c.names.lower(tx, low)?;
        c.heap.lower_map(tx, low)?;
        if let Some(new) = low.page(tx, c.page, PageKind::Collection)? {
            c.page = new;
            if owner == SMALL_OWNER {
                root.small = new;
            }
        }
        self.opened.set(slot, Some(c));
        Ok(())
    }
}
