//! Pages that most look-ups of one state pass through: root, collections, maps, inner nodes.
//!
//! Owns: [`HotPages`], references to a few pages as one state sees them, and [`HotShelf`],
//! where the next snapshot of the same state finds them again. A page found here costs no
//! lock and no reference count, so that readers on several processors write no common memory.
//!
//! Invariants: a page of a state never changes, so what was kept for an LSN stays true for as
//! long as a snapshot of that LSN is open; nothing is looked up here without one. A place
//! once taken stays taken.
//!
//! Threads: looking and keeping take no lock; taking from the shelf takes one that threads
//! seldom share.

use super::horizon::thread_number;
use holdall_core::page::{self, PageKind};
use holdall_core::{Lsn, PageNo, PageRef};
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

/// Most pages kept for a state.
const PLACES: usize = 64;
/// Most bytes kept for a state.
const BYTES: usize = 512 << 10;
/// Compartments of a shelf: threads beyond as many share them.
const COMPARTMENTS: usize = 16;

/// Hot pages of one state.
#[derive(Debug)]
pub(super) struct HotPages {
    lsn: Lsn,
    /// By the low bits of the page number.
    places: Box<[OnceLock<(PageNo, PageRef)>]>,
}

impl HotPages {
    fn new(lsn: Lsn, page_size: usize) -> Self {
        let places = PLACES.min(BYTES / page_size).max(1);
        Self { lsn, places: (0..places).map(|_| OnceLock::new()).collect() }
    }

    fn place(&self, page: PageNo) -> &OnceLock<(PageNo, PageRef)> {
        // A power of two, as the page size is one.
        &self.places[page.0 as usize & (self.places.len() - 1)]
    }

    /// The page, if it is kept.
    #[inline]
    pub(super) fn get(&self, page: PageNo) -> Option<&PageRef> {
        self.place(page).get().filter(|(no, _)| *no == page).map(|(_, bytes)| bytes)
    }

    /// Whether [`HotPages::keep`] would keep the page.
    #[inline]
    pub(super) fn wants(&self, page: PageNo, kind: PageKind, bytes: &[u8]) -> bool {
        is_hot(kind, bytes) && self.place(page).get().is_none()
    }

    /// Keeps a page as this state sees it, if it is one of those and its place is free.
    pub(super) fn keep(&self, page: PageNo, kind: PageKind, bytes: &PageRef) {
        if is_hot(kind, bytes) {
            let _taken = self.place(page).set((page, bytes.clone()));
        }
    }
}

/// Whether a page is one that many look-ups pass through.
#[inline]
fn is_hot(kind: PageKind, bytes: &[u8]) -> bool {
    match kind {
        PageKind::Root | PageKind::Collection | PageKind::PageMap => true,
        // The catalog, which no collection owns, and all inner nodes.
        PageKind::Names => page::owner(bytes) == 0 || bytes.get(page::HEADER) != Some(&0),
        _ => false,
    }
}

/// One thread's place on the shelf, on its own lines of the processors' caches.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Compartment(Mutex<Option<Arc<HotPages>>>);

/// The hot pages of the last state that each thread opened.
#[derive(Debug)]
pub(super) struct HotShelf {
    compartments: Box<[Compartment]>,
    page_size: usize,
}

impl HotShelf {
    pub(super) fn new(page_size: usize) -> Self {
        Self {
            compartments: (0..COMPARTMENTS).map(|_| Compartment::default()).collect(),
            page_size,
        }
    }

    /// The hot pages of the state `lsn`, of which the caller holds a snapshot.
    pub(super) fn take(&self, lsn: Lsn) -> Arc<HotPages> {
        let mut last = self.compartments[thread_number() % COMPARTMENTS].0.lock();
        match &*last {
            Some(hot) if hot.lsn == lsn => hot.clone(),
            _ => last.insert(Arc::new(HotPages::new(lsn, self.page_size))).clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(kind: PageKind, no: u64, owner: u64, level: u8) -> PageRef {
        let mut bytes = vec![0; 4096];
        page::format(&mut bytes, kind, PageNo(no), owner);
        bytes[page::HEADER] = level;
        bytes.into()
    }

    #[test]
    fn hot_pages_are_kept_for_their_state_only() {
        let shelf = HotShelf::new(4096);
        let hot = shelf.take(Lsn(5));
        let root = page(PageKind::Root, 3, 0, 0);
        hot.keep(PageNo(3), PageKind::Root, &root);
        let (far, leaf, inner) = (PageNo(3 + PLACES as u64), PageNo(4), PageNo(5));
        hot.keep(far, PageKind::PageMap, &page(PageKind::PageMap, far.0, 0, 0));
        hot.keep(leaf, PageKind::Names, &page(PageKind::Names, 4, 1, 0));
        hot.keep(inner, PageKind::Names, &page(PageKind::Names, 5, 1, 2));
        assert!(shelf.take(Lsn(5)).get(PageNo(3)).is_some_and(|p| Arc::ptr_eq(p, &root)));
        assert!(hot.get(far).is_none(), "the place is taken");
        assert!(hot.get(leaf).is_none(), "a leaf");
        assert!(hot.get(inner).is_some());
        assert!(shelf.take(Lsn(6)).get(PageNo(3)).is_none(), "another state");
        assert!(hot.get(PageNo(3)).is_some(), "an open snapshot keeps what it has");
    }
}
