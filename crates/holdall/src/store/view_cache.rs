//! What readers of one state share, kept for the next one.
//!
//! Owns: [`StateView`], a state's root and default collection, decoded, with the pages it has looked
//! at; and [`ViewCache`], where each thread finds the view of the state it opened last. Opening
//! the same state again reads nothing and writes to no memory that all threads share.
//!
//! Invariant: a state never changes, so what was found for an LSN stays true; it is looked at
//! only with a snapshot of that LSN open. A view cache belongs to the handles of a store, not to
//! what they share, which its views keep alive.
//!
//! Threads: each remembers what it found last, without keeping it, and has its slot,
//! until there are more threads than slots.

use super::inner::Inner;
use super::read::State;
use super::view::{Collection, Root};
use crate::pager::{SharedState, thread_number};
use crate::space::InfoPages;
use holdall_core::Result;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

/// Compartments of a view cache: threads beyond as many share them.
const SLOTS: usize = 16;

/// A state, decoded.
#[derive(Debug)]
pub(crate) struct StateView {
    pub(super) inner: Arc<Inner>,
    pub(super) root: Root,
    /// The default collection, looked up when first needed: reads by OID do without.
    pub(super) default: OnceLock<Option<Collection>>,
    /// Where checksums of segment data lie, as reads of this state found.
    pub(super) infos: InfoPages,
    seen: Arc<SharedState>,
}

/// One thread's place on the view cache, on its own lines of the processors' caches.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CacheSlot(Mutex<Option<Arc<StateView>>>);

thread_local! {
    /// What this thread found on a view cache last, without keeping it: to look here takes no lock.
    static LAST: RefCell<(u64, Weak<StateView>)> = const { RefCell::new((0, Weak::new())) };
}

/// The view of the last state that each thread opened.
#[derive(Debug)]
pub(super) struct ViewCache {
    /// Tells view caches apart; never 0.
    number: u64,
    slots: Box<[CacheSlot]>,
}

impl ViewCache {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let slots = (0..SLOTS).map(|_| CacheSlot::default()).collect();
        Self { number: NEXT.fetch_add(1, Relaxed), slots }
    }

    /// The view of the state that this thread opened last, if it is still kept.
    #[inline]
    fn last(&self) -> Option<Arc<StateView>> {
        let known = LAST.try_with(|last| {
            let last = last.try_borrow().ok()?;
            (last.0 == self.number).then(|| last.1.upgrade()).flatten()
        });
        known.ok().flatten().or_else(|| {
            let view = self.slot().lock().clone()?;
            self.remember(&view);
            Some(view)
        })
    }

    fn remember(&self, view: &Arc<StateView>) {
        // A thread that ends has nothing left to remember in.
        let _ended = LAST.try_with(|last| {
            if let Ok(mut last) = last.try_borrow_mut() {
                *last = (self.number, Arc::downgrade(view));
            }
        });
    }

    fn slot(&self) -> &Mutex<Option<Arc<StateView>>> {
        &self.slots[thread_number() % SLOTS].0
    }

    /// Opens the newest durable state, or with `newest` the newest installed one.
    pub(super) fn open(&self, inner: &Arc<Inner>, newest: bool) -> Result<State> {
        let last = self.last();
        let snapshot = inner.pager.snapshot_after(newest, last.as_ref().map(|view| &view.seen));
        let view = match last {
            Some(view) if Arc::ptr_eq(&view.seen, snapshot.seen()) => view,
            _ => {
                let root = Root::load(&snapshot, inner.root)?;
                let (inner, default) = (inner.clone(), OnceLock::new());
                let seen = snapshot.seen().clone();
                let infos = InfoPages::default();
                let view = Arc::new(StateView { inner, root, default, infos, seen });
                let replaced = self.slot().lock().replace(view.clone());
                drop(replaced);
                self.remember(&view);
                view
            }
        };
        Ok(State { snapshot, view })
    }
}
