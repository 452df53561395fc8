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
use std::sync::Arc;

#[derive(Debug, Clone)]
struct Remembered {
    name: Arc<str>,
    /// The last commit that used it.
    used: u64,
    placement: Placement,
}

/// What the store remembers.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    handles: HandleCursor,
    collections: BTreeMap<u32, Remembered>,
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
    pub(crate) fn forget(&mut self, number: u32) {
        self.collections.remove(&number);
    }

    /// Collections remembered.
    pub(crate) fn len(&self) -> usize {
        self.collections.len()
    }

    /// Numbers and names of all collections but the `most` used last.
    pub(crate) fn oldest(&self, most: usize) -> Vec<(u32, Arc<str>)> {
        let mut all: Vec<_> = self.collections.iter().collect();
        all.sort_by_key(|(_, r)| r.used);
        all.truncate(all.len().saturating_sub(most));
        all.into_iter().map(|(number, r)| (*number, r.name.clone())).collect()
    }
}

/// What a transaction has looked at and changed.
#[derive(Debug)]
pub(crate) struct TxCursors {
    handles: HandleCursor,
    /// None: nothing is to be remembered.
    collections: BTreeMap<u32, Option<Remembered>>,
}

impl TxCursors {
    /// Where objects of a collection go: their handles, and their records.
    pub(crate) fn of_collection(
        &mut self,
        number: u32,
        name: &str,
        store: &Mutex<Cursors>,
    ) -> (&mut HandleCursor, &mut Placement) {
        let known = || store.lock().collections.get(&number).cloned();
        let new = || Remembered {
            name: name.into(),
            used: 0,
            placement: Placement::new(Policy::default()),
        };
        let found = self.collections.entry(number).or_insert_with(known).get_or_insert_with(new);
        (&mut self.handles, &mut found.placement)
    }

    /// Forgets a collection.
    pub(crate) fn forget(&mut self, number: u32) {
        self.collections.insert(number, None);
    }
}
