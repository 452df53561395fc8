//! Pages that most look-ups of one state pass through: root, collections, maps, inner nodes.
//!
//! Owns: [`HotPages`], references to a few pages as one state sees them; all snapshots of a
//! state may share it. A page found here costs a look at one place and is of any version, so
//! that also old states find theirs without a lock.
//!
//! Invariants: a page of a state never changes, so what was kept for an LSN stays true for as
//! long as a snapshot of that LSN is open; nothing is looked up here without one. A place
//! once taken stays taken.
//!
//! Threads: looking and keeping take no lock.

use holdall_core::page::{self, PageKind};
use holdall_core::{Lsn, PageNo, PageRef};
use std::sync::OnceLock;

/// Most pages kept for a state.
const PLACES: usize = 64;
/// Most bytes kept for a state.
const BYTES: usize = 512 << 10;

/// Hot pages of one state.
#[derive(Debug)]
pub(super) struct HotPages {
    lsn: Lsn,
    /// By the low bits of the page number.
    places: Box<[OnceLock<(PageNo, PageRef)>]>,
}

impl HotPages {
    pub(super) fn new(lsn: Lsn, page_size: usize) -> Self {
        let places = PLACES.min(BYTES / page_size).max(1);
        Self { lsn, places: (0..places).map(|_| OnceLock::new()).collect() }
    }

    /// The state whose pages these are.
    pub(super) fn lsn(&self) -> Lsn {
        self.lsn
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn page(kind: PageKind, no: u64, owner: u64, level: u8) -> PageRef {
        let mut bytes = vec![0; 4096];
        page::format(&mut bytes, kind, PageNo(no), owner);
        bytes[page::HEADER] = level;
        bytes.into()
    }

    #[test]
    fn hot_pages_are_kept_and_others_are_not() {
        let hot = HotPages::new(Lsn(5), 4096);
        let root = page(PageKind::Root, 3, 0, 0);
        hot.keep(PageNo(3), PageKind::Root, &root);
        let (far, leaf, inner) = (PageNo(3 + PLACES as u64), PageNo(4), PageNo(5));
        hot.keep(far, PageKind::PageMap, &page(PageKind::PageMap, far.0, 0, 0));
        hot.keep(leaf, PageKind::Names, &page(PageKind::Names, 4, 1, 0));
        hot.keep(inner, PageKind::Names, &page(PageKind::Names, 5, 1, 2));
        assert!(hot.get(PageNo(3)).is_some_and(|p| Arc::ptr_eq(p, &root)));
        assert!(hot.get(far).is_none(), "the place is taken");
        assert!(hot.get(leaf).is_none(), "a leaf");
        assert!(hot.get(inner).is_some());
    }
}
