//! What readers of one state share, kept for the next one.
//!
//! Owns: [`ViewCache`], where each thread finds the view of the state it opened last. Opening
//! the same state again reads nothing and writes to no memory that all threads share.
//!
//! Invariant: a state never changes, so what was found for an LSN stays true; it is looked at
//! only with a snapshot of that LSN open. A view cache belongs to the handles of a store, not to
//! what they share, which its views keep alive.
//!
//! Threads: each has its slot, until there are more threads than slots.

use crate::cache::thread_number;
use crate::engine::Inner;
use crate::engine::catalog::Root;
use crate::read::state::{ReadState, StateView};
use holdall_core::Result;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

/// Slots of a view cache: threads beyond as many share them.
const SLOTS: usize = 16;

/// One thread's place on the view cache, on its own lines of the processors' caches.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CacheSlot(Mutex<Option<Arc<StateView>>>);

/// The view of the last state that each thread opened.
#[derive(Debug)]
pub(crate) struct ViewCache {
    slots: Box<[CacheSlot]>,
}

impl ViewCache {
    pub(crate) fn new() -> Self {
        Self { slots: (0..SLOTS).map(|_| CacheSlot::default()).collect() }
    }

    fn slot(&self) -> &Mutex<Option<Arc<StateView>>> {
        &self.slots[thread_number() % SLOTS].0
    }

    /// Opens the newest durable state, or with `newest` the newest installed one.
    pub(crate) fn open(&self, inner: &Arc<Inner>, newest: bool) -> Result<ReadState> {
        let last = self.slot().lock().clone();
        let snapshot = inner.pager.snapshot_after(newest, last.as_ref().map(|view| &view.seen));
        let view = match last {
            Some(view) if Arc::ptr_eq(&view.seen, snapshot.seen()) => view,
            _ => {
                let root = Root::load(&snapshot, inner.root)?;
                let (inner, default) = (inner.clone(), OnceLock::new());
                let seen = snapshot.seen().clone();
                let view = Arc::new(StateView { inner, root, default, seen });
                let replaced = self.slot().lock().replace(view.clone());
                drop(replaced);
                view
            }
        };
        Ok(ReadState { snapshot, view })
    }
}
