//! Where a collection's next objects go, as far as it is remembered between transactions.
//!
//! Owns: [`Cursors`], what the store remembers, and [`TxCursors`], what a transaction has looked
//! at and changed of it. All of it are hints, which an aborted transaction leaves as they were.
//! Invariant: a transaction that begins finds no more collections remembered than the store's
//! options say, and copies only those that it touches.

use crate::handle::HandleCursor;
use holdall_core::heap_placement::{Placement, Policy};
use parking_lot::Mutex;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
struct Remembered {
    /// The last commit that used it.
    used: u64,
    placement: Placement,
}

/// What the store remembers.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    handles: HandleCursor,
    collections: BTreeMap<u64, Remembered>,
    commits: u64,
}

impl Cursors {
    /// For a transaction that begins.
    pub(crate) fn begin(&self) -> TxCursors {
        let mut handles = self.handles;
        handles.forget_places();
        TxCursors { handles, collections: BTreeMap::new() }
    }

    /// Remembers what a transaction that is committed has changed.
    pub(crate) fn keep(&mut self, tx: TxCursors) {
        self.commits += 1;
        self.handles = tx.handles;
        for (number, changed) in tx.collections {
            match changed {
                Some(r) => {
                    self.collections.insert(number, Remembered { used: self.commits, ..r });
                }
                None => self.forget(number),
            }
        }
    }

    /// Forgets a collection.
    pub(crate) fn forget(&mut self, number: u64) {
        self.collections.remove(&number);
    }

    /// Collections remembered.
    pub(crate) fn len(&self) -> usize {
        self.collections.len()
    }

    /// Numbers of all heap files but the `most` used last.
    pub(crate) fn oldest(&self, most: usize) -> Vec<u64> {
        let mut all: Vec<_> = self.collections.iter().collect();
        all.sort_by_key(|(_, r)| r.used);
        all.truncate(all.len().saturating_sub(most));
        all.into_iter().map(|(number, _)| *number).collect()
    }
}

/// What a transaction has looked at and changed.
#[derive(Debug)]
pub(crate) struct TxCursors {
    handles: HandleCursor,
    /// None: nothing is to be remembered.
    collections: BTreeMap<u64, Option<Remembered>>,
}

impl TxCursors {
    /// Where objects of a heap file go, which its owner names: their handles, and their records.
    pub(crate) fn of_file(
        &mut self,
        owner: u64,
        store: &Mutex<Cursors>,
    ) -> (&mut HandleCursor, &mut Placement) {
        let known = || store.lock().collections.get(&owner).cloned();
        let new = || Remembered { used: 0, placement: Placement::new(Policy::default()) };
        let found = self.collections.entry(owner).or_insert_with(known).get_or_insert_with(new);
        (&mut self.handles, &mut found.placement)
    }

    /// Forgets a collection.
    pub(crate) fn forget(&mut self, number: u64) {
        self.collections.insert(number, None);
    }
}
