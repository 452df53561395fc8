//! Where info pages lie, as far as one state has looked them up.
//!
//! Owns: [`InfoPages`], a table that answers most look-ups of a directory page: each range of
//! a large object needs the checksums of its stretch, and which page has them does not change
//! within a state.
//!
//! Invariant: one table belongs to one state, which never changes; it is looked at only with a
//! snapshot of that state open. What is noted was read by such a snapshot. Should it have been
//! given up meanwhile, so were all of this state, and no later one opens it again.
//!
//! Threads: any. Page and stretch are one word; of two that write one place, one is lost.

use holdall_core::PageNo;
use holdall_core::space_dir::SpaceLayout;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// Stretches of a table, at most: those of 2.7 GB in pages of 4 KiB.
const PLACES: u64 = 2048;
/// Look-ups of a state before it has a table: 16 KiB are worth it only if more come.
const FEW: u8 = 32;
/// Bits of a page number in a place; pages beyond are looked up.
const PAGE_BITS: u32 = 40;

/// Info pages of one state by stretch.
#[derive(Debug, Default)]
pub struct InfoPages {
    /// What was not found, up to [`FEW`].
    asked: AtomicU8,
    /// Page number, and above it which of the stretches with this place it is for; 0: none.
    places: OnceLock<Box<[AtomicU64]>>,
}

/// The place of a stretch, and what tells it from others there.
fn place(layout: &SpaceLayout, space: u32, stretch: u32) -> (usize, u64) {
    let number = u64::from(space) * u64::from(layout.stretches()) + u64::from(stretch);
    ((number % PLACES) as usize, number / PLACES)
}

impl InfoPages {
    /// The info page of a stretch, if it was noted.
    #[inline]
    pub fn get(&self, layout: &SpaceLayout, space: u32, stretch: u32) -> Option<PageNo> {
        let places = self.places.get()?;
        let (at, tag) = place(layout, space, stretch);
        let noted = places.get(at)?.load(Relaxed);
        let page = PageNo(noted & ((1 << PAGE_BITS) - 1));
        (noted >> PAGE_BITS == tag && !page.is_none()).then_some(page)
    }

    /// Notes what this table's state says: `page` is the info page of a stretch.
    pub fn note(&self, layout: &SpaceLayout, (space, stretch): (u32, u32), page: PageNo) {
        // Two that count at once may count one.
        let asked = self.asked.load(Relaxed);
        if asked < FEW {
            self.asked.store(asked + 1, Relaxed);
            return;
        }
        let (at, tag) = place(layout, space, stretch);
        if tag >> (u64::BITS - PAGE_BITS) != 0 || page.0 >> PAGE_BITS != 0 {
            return;
        }
        let places = self.places.get_or_init(|| (0..PLACES).map(|_| AtomicU64::new(0)).collect());
        if let Some(place) = places.get(at) {
            place.store(tag << PAGE_BITS | page.0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_found_and_nothing_else() {
        let layout = SpaceLayout::new(4096, 16_384).unwrap();
        let known = InfoPages::default();
        for _ in 0..FEW {
            known.note(&layout, (0, 5), PageNo(7));
            assert_eq!(known.get(&layout, 0, 5), None, "not worth a table yet");
        }
        for (space, stretch) in [(0, 0), (0, 5), (3, 48), (7, 7)] {
            assert_eq!(known.get(&layout, space, stretch), None);
            let page = PageNo(1000 + u64::from(space * 100 + stretch));
            known.note(&layout, (space, stretch), page);
            assert_eq!(known.get(&layout, space, stretch), Some(page));
        }
        assert_eq!(known.get(&layout, 0, 0), Some(PageNo(1000)), "others have other places");
        assert_eq!(known.get(&layout, 0, 1), None);
    }

    #[test]
    fn a_place_holds_one_stretch_and_never_answers_for_another() {
        let layout = SpaceLayout::new(4096, 16_384).unwrap();
        let known = InfoPages::default();
        (0..=FEW).for_each(|_| known.note(&layout, (1, 1), PageNo(9)));
        // Stretch 50 of all has the place of the one that many places later.
        let (space, stretch) = ((50 + PLACES as u32) / 49, (50 + PLACES as u32) % 49);
        assert_eq!(place(&layout, 1, 1).0, place(&layout, space, stretch).0);
        assert_eq!(known.get(&layout, space, stretch), None);
        known.note(&layout, (space, stretch), PageNo(11));
        assert_eq!(known.get(&layout, space, stretch), Some(PageNo(11)));
        assert_eq!(known.get(&layout, 1, 1), None, "it took the place");
    }

    #[test]
    fn numbers_without_room_are_not_noted() {
        let layout = SpaceLayout::new(4096, 16_384).unwrap();
        let known = InfoPages::default();
        (0..=FEW).for_each(|_| known.note(&layout, (1, 1), PageNo(9)));
        for (space, page) in [(2, PageNo::MAX), (u32::MAX, PageNo(5)), (2, PageNo(1 << PAGE_BITS))]
        {
            known.note(&layout, (space, 3), page);
            assert_eq!(known.get(&layout, space, 3), None);
        }
        known.note(&layout, (2, 3), PageNo((1 << PAGE_BITS) - 1));
        assert_eq!(known.get(&layout, 2, 3), Some(PageNo((1 << PAGE_BITS) - 1)));
    }
}
