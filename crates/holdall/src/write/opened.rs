//! The collections that a transaction has named.
//!
//! Owns: [`Opened`]. Each has a slot, by which the transaction's calls reach it without
//! comparing names. Two slots are no collections of a name: what small ones share, and one that
//! was dropped and is being emptied.

use crate::engine::catalog::{Collection, DEFAULT_COLLECTION};
use holdall_core::collection_entry::Entry;
use std::collections::HashMap;

/// The slot of what small collections share.
pub(crate) const SHARED: usize = 1;
/// The slot of a dropped collection that is being emptied.
pub(crate) const DROPPED: usize = 2;

/// A collection that was named, and its state as the transaction has changed it.
#[derive(Debug, Default)]
struct Slot {
    name: String,
    /// None: not looked up yet, or missing.
    collection: Option<Collection>,
    /// Its entry in the catalog, as far as it was written; None of what has no name.
    entry: Option<Entry>,
    /// It should have become large, and there was no room.
    put_off: bool,
}

/// Collections of a transaction. The default one has slot 0.
#[derive(Debug)]
pub(crate) struct Opened {
    slots: Vec<Slot>,
    by_name: HashMap<String, usize>,
}

impl Default for Opened {
    fn default() -> Self {
        let default = Slot { name: DEFAULT_COLLECTION.into(), ..Slot::default() };
        let slots = vec![default, Slot::default(), Slot::default()];
        Self { slots, by_name: HashMap::new() }
    }
}

impl Opened {
    /// The slot of the collection `name`, which gets one if it has none.
    pub(crate) fn slot(&mut self, name: &str) -> usize {
        if name == DEFAULT_COLLECTION {
            return 0;
        }
        if let Some(slot) = self.by_name.get(name) {
            return *slot;
        }
        let slot = self.slots.len();
        self.slots.push(Slot { name: name.into(), ..Slot::default() });
        self.by_name.insert(name.into(), slot);
        slot
    }

    /// The name of the collection in `slot`.
    pub(crate) fn name(&self, slot: usize) -> &str {
        self.slots.get(slot).map_or("", |slot| &slot.name)
    }

    /// The collection in `slot`, if it is known to be there. Of a small one names and heap file are
    /// those of [`SHARED`]; see [`Opened::view`].
    #[inline]
    pub(crate) fn get(&mut self, slot: usize) -> Option<&mut Collection> {
        self.slots.get_mut(slot)?.collection.as_mut()
    }

    /// As [`Opened::get`], with names and heap file as they are now.
    #[inline]
    pub(crate) fn view(&self, slot: usize) -> Option<Collection> {
        let mut collection = self.slots.get(slot)?.collection?;
        if collection.is_small()
            && let Some(shared) = &self.slots[SHARED].collection
        {
            (collection.names, collection.heap) = (shared.names, shared.heap);
        }
        Some(collection)
    }

    /// Brings names and heap file of the small collection in `slot` up to date.
    pub(crate) fn lend(&mut self, slot: usize) {
        let view = self.view(slot);
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.collection = view;
        }
    }

    /// Keeps what became of the names and the heap file that [`Opened::lend`] gave.
    pub(crate) fn take_back(&mut self, slot: usize) {
        let lent = self.slots.get(slot).and_then(|slot| slot.collection);
        if let (Some(lent), Some(shared)) = (lent, &mut self.slots[SHARED].collection) {
            (shared.names, shared.heap) = (lent.names, lent.heap);
        }
    }

    /// Notes the state of the collection in `slot`; None if there is none any more.
    pub(crate) fn set(&mut self, slot: usize, collection: Option<Collection>) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.collection = collection;
            slot.put_off = false;
        }
    }

    /// Notes what the catalog says of the collection in `slot`.
    pub(crate) fn set_entry(&mut self, slot: usize, entry: Entry) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.entry = Some(entry);
        }
    }

    /// Whether the collection in `slot` is to stay small in this transaction.
    pub(crate) fn is_put_off(&self, slot: usize) -> bool {
        self.slots.get(slot).is_some_and(|slot| slot.put_off)
    }

    /// Has the collection in `slot` stay small in this transaction.
    pub(crate) fn put_off(&mut self, slot: usize) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.put_off = true;
        }
    }

    /// Those known to be there, with their names and what the catalog says of them, in the order
    /// in which they were named.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Collection, Option<Entry>)> {
        self.slots
            .iter()
            .filter_map(|slot| Some((&*slot.name, slot.collection.as_ref()?, slot.entry)))
    }
}
