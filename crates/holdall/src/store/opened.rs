//! The collections that a transaction has opened.
//!
//! Owns: [`Opened`]. A transaction mostly stays in one collection: the one asked for last is
//! compared first, so that a bulk load pays one short comparison for each object.

use super::view::Collection;

/// Collections by name, as the transaction has changed them.
#[derive(Debug, Default)]
pub(super) struct Opened {
    all: Vec<(String, Collection)>,
    /// Where the one is that was asked for last.
    last: usize,
}

impl Opened {
    /// Where the collection `name` is, if it was opened.
    #[inline]
    pub(super) fn find(&mut self, name: &str) -> Option<usize> {
        if self.all.get(self.last).is_none_or(|(known, _)| known != name) {
            self.last = self.all.iter().position(|(known, _)| known == name)?;
        }
        Some(self.last)
    }

    /// The collection that [`Opened::find`] found.
    #[inline]
    pub(super) fn at(&mut self, at: usize) -> Option<&mut Collection> {
        self.all.get_mut(at).map(|(_, collection)| collection)
    }

    /// The collection `name`, if it was opened.
    #[inline]
    pub(super) fn get(&mut self, name: &str) -> Option<&mut Collection> {
        let at = self.find(name)?;
        self.at(at)
    }

    /// Adds a collection, which is not there yet.
    pub(super) fn add(&mut self, name: String, collection: Collection) {
        self.last = self.all.len();
        self.all.push((name, collection));
    }

    /// All of them with their names, in the order in which they were opened.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(String, Collection)> {
        self.all.iter()
    }
}
