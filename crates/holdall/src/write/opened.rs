//! The collections that a transaction has named.
//!
//! Owns: [`Opened`]. Each has a slot, by which the transaction's calls reach it without
//! comparing names.

use crate::engine::catalog::{Collection, DEFAULT_COLLECTION};

/// A collection that was named, and its state as the transaction has changed it.
#[derive(Debug)]
struct Slot {
    name: String,
    /// None: not looked up yet, or missing.
    collection: Option<Collection>,
}

/// Collections of a transaction. The default one has slot 0.
#[derive(Debug)]
pub(crate) struct Opened {
    slots: Vec<Slot>,
}

impl Default for Opened {
    fn default() -> Self {
        Self { slots: vec![Slot { name: DEFAULT_COLLECTION.into(), collection: None }] }
    }
}

impl Opened {
    /// The slot of the collection `name`, which gets one if it has none.
    pub(crate) fn slot(&mut self, name: &str) -> usize {
        self.slots.iter().position(|slot| slot.name == name).unwrap_or_else(|| {
            self.slots.push(Slot { name: name.into(), collection: None });
            self.slots.len() - 1
        })
    }

    /// The name of the collection in `slot`.
    pub(crate) fn name(&self, slot: usize) -> &str {
        self.slots.get(slot).map_or("", |slot| &slot.name)
    }

    /// The collection in `slot`, if it is known to be there.
    #[inline]
    pub(crate) fn get(&mut self, slot: usize) -> Option<&mut Collection> {
        self.slots.get_mut(slot)?.collection.as_mut()
    }

    /// Notes the state of the collection in `slot`; None if there is none any more.
    pub(crate) fn set(&mut self, slot: usize, collection: Option<Collection>) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.collection = collection;
        }
    }

    /// Those known to be there, with their names, in the order in which they were named.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Collection)> {
        self.slots.iter().filter_map(|slot| Some((&*slot.name, slot.collection.as_ref()?)))
    }
}
