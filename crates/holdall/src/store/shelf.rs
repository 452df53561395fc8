//! What readers of one state share, kept for the next one.
//!
//! Owns: [`View`], a state's root and default collection, decoded, with the pages it has looked
//! at; and [`Shelf`], where each thread finds the view of the state it opened last. Opening
//! the same state again reads nothing and writes to no memory that all threads share.
//!
//! Invariant: a state never changes, so what was found for an LSN stays true; it is looked at
//! only with a snapshot of that LSN open. A shelf belongs to the handles of a store, not to
//! what they share, which its views keep alive.
//!
//! Threads: each remembers what it found last, without keeping it, and has its compartment,
//! until there are more threads than compartments.

use super::inner::Inner;
use super::read::State;
use super::view::{Collection, Root};
use crate::pager::{Seen, thread_number};
use crate::space::InfoPages;
use holdall_core::Result;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

/// Compartments of a shelf: threads beyond as many share them.
const COMPARTMENTS: usize = 16;

/// A state, decoded.
#[derive(Debug)]
pub(crate) struct View {
    pub(super) inner: Arc<Inner>,
    pub(super) root: Root,
    /// The default collection, looked up when first needed: reads by OID do without.
    pub(super) default: OnceLock<Option<Collection>>,
    /// Where checksums of segment data lie, as reads of this state found.
    pub(super) infos: InfoPages,
    seen: Arc<Seen>,
}

/// One thread's place on the shelf, on its own lines of the processors' caches.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Compartment(Mutex<Option<Arc<View>>>);

thread_local! {
    /// What this thread found on a shelf last, without keeping it: to look here takes no lock.
    static LAST: RefCell<(u64, Weak<View>)> = const { RefCell::new((0, Weak::new())) };
}

/// The view of the last state that each thread opened.
#[derive(Debug)]
pub(super) struct Shelf {
    /// Tells shelves apart; never 0.
    number: u64,
    compartments: Box<[Compartment]>,
}

impl Shelf {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let compartments = (0..COMPARTMENTS).map(|_| Compartment::default()).collect();
        Self { number: NEXT.fetch_add(1, Relaxed), compartments }
    }

    /// The view of the state that this thread opened last, if it is still kept.
    #[inline]
    fn last(&self) -> Option<Arc<View>> {
        let known = LAST.try_with(|last| {
            let last = last.try_borrow().ok()?;
            (last.0 == self.number).then(|| last.1.upgrade()).flatten()
        });
        known.ok().flatten().or_else(|| {
            let view = self.compartment().lock().clone()?;
            self.remember(&view);
            Some(view)
        })
    }

    fn remember(&self, view: &Arc<View>) {
        // A thread that ends has nothing left to remember in.
        let _ended = LAST.try_with(|last| {
            if let Ok(mut last) = last.try_borrow_mut() {
                *last = (self.number, Arc::downgrade(view));
            }
        });
    }

    fn compartment(&self) -> &Mutex<Option<Arc<View>>> {
        &self.compartments[thread_number() % COMPARTMENTS].0
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
                let view = Arc::new(View { inner, root, default, infos, seen });
                let replaced = self.compartment().lock().replace(view.clone());
                drop(replaced);
                self.remember(&view);
                view
            }
        };
        Ok(State { snapshot, view })
    }
}
