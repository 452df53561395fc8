//! The pages of a transaction, found by number.
//!
//! Owns: [`TxPages`].

use crate::cache::page_hash::PageHash;
use holdall_core::page;
use holdall_core::{PageNo, PageRef};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A page of the transaction.
#[derive(Debug)]
pub(super) struct TxPage {
    /// What the page was before; None for a page allocated by this transaction, and for one that
    /// it has written as an image.
    pub(super) base: Option<PageRef>,
    /// Where the version before lies, if that is not the page's place: the image that `base` was
    /// read from, or this transaction's own.
    pub(super) image: Option<PageNo>,
    pub(super) now: PageRef,
    /// As it is now it was handed over to be written, in place or as this transaction's image.
    pub(super) sent: bool,
    /// Looked at or changed since the last look for pages that could leave memory.
    used: AtomicBool,
}

impl TxPage {
    fn with(base: Option<PageRef>, image: Option<PageNo>, now: PageRef) -> Self {
        Self { base, image, now, sent: false, used: AtomicBool::new(true) }
    }

    /// A page of which all is to be logged or written.
    pub(super) fn new(now: PageRef) -> Self {
        Self::with(None, None, now)
    }

    /// A page that was `base` before, which lies at `image` or in its place.
    pub(super) fn existing(base: PageRef, image: Option<PageNo>) -> Self {
        let now = base.copy();
        Self::with(Some(base), image, now)
    }

    /// A page that this transaction has written at `image`, as it is.
    pub(super) fn spilled(now: PageRef, image: PageNo) -> Self {
        Self { sent: true, ..Self::with(None, Some(image), now) }
    }

    /// Whether this transaction made it.
    pub(super) fn is_new(&self) -> bool {
        self.base.is_none() && self.image.is_none()
    }

    /// Where this transaction's image of it lies, if it has one.
    pub(super) fn own_image(&self) -> Option<PageNo> {
        self.image.filter(|_| self.base.is_none())
    }

    /// Whether it is still as it was, in its place.
    pub(super) fn is_as_before(&self) -> bool {
        self.image.is_none() && self.base.as_ref() == Some(&self.now)
    }

    /// Whether it may leave memory: all but what leads to images and says what is free.
    fn may_leave(&self) -> bool {
        self.is_new() || page::kind(&self.now).is_some_and(page::PageKind::may_lie_elsewhere)
    }

    fn touch(&self) {
        if !self.used.load(Relaxed) {
            self.used.store(true, Relaxed);
        }
    }
}

/// Pages by number.
#[derive(Debug, Default)]
pub(super) struct TxPages {
    /// Number and page, in any order.
    all: Vec<(u64, TxPage)>,
    /// Where each is in `all`.
    places: HashMap<u64, u32, PageHash>,
}

impl TxPages {
    /// Where page `no` is in `all`.
    #[inline]
    fn place(&self, no: u64) -> Option<usize> {
        self.places.get(&no).map(|at| *at as usize)
    }

    /// Page `no`, if the transaction has it.
    #[inline]
    pub(super) fn get(&self, no: &u64) -> Option<&TxPage> {
        let (_, page) = self.all.get(self.place(*no)?)?;
        page.touch();
        Some(page)
    }

    /// As [`TxPages::get`], to be changed.
    #[inline]
    pub(super) fn get_mut(&mut self, no: &u64) -> Option<&mut TxPage> {
        let at = self.place(*no)?;
        let (_, page) = self.all.get_mut(at)?;
        page.touch();
        Some(page)
    }

    /// Adds page `no`, in place of what it was.
    pub(super) fn insert(&mut self, no: u64, page: TxPage) -> &mut TxPage {
        let at = self.place(no).unwrap_or(self.all.len());
        if at == self.all.len() {
            self.places.insert(no, at as u32);
            self.all.push((no, page));
        } else {
            self.all[at].1 = page;
        }
        &mut self.all[at].1
    }

    /// Takes page `no` away.
    pub(super) fn remove(&mut self, no: &u64) -> Option<TxPage> {
        let at = self.places.remove(no)? as usize;
        let (_, page) = self.all.swap_remove(at);
        if let Some((moved, _)) = self.all.get(at) {
            self.places.insert(*moved, at as u32);
        }
        Some(page)
    }

    /// About half of the pages, in order: those not used since this was last called, then those
    /// that have been here longest. Fewer if few may leave. Cost: a look at each.
    pub(super) fn cold(&self) -> Vec<u64> {
        let half = self.all.len().div_ceil(2);
        let (mut cold, mut warm) = (Vec::new(), Vec::new());
        for (no, page) in self.all.iter().filter(|(_, page)| page.may_leave()) {
            let used = page.used.swap(false, Relaxed);
            if used { warm.push(*no) } else { cold.push(*no) }
        }
        warm.truncate(half.saturating_sub(cold.len()));
        cold.append(&mut warm);
        cold.sort_unstable();
        cold
    }

    /// Keeps the pages of which `f` is true.
    pub(super) fn retain(&mut self, mut f: impl FnMut(&u64, &mut TxPage) -> bool) {
        let before = self.all.len();
        self.all.retain_mut(|(no, page)| f(no, page));
        if self.all.len() < before {
            self.places.clear();
            let numbers = self.all.iter().enumerate();
            self.places.extend(numbers.map(|(at, (no, _))| (*no, at as u32)));
        }
    }

    /// Takes all pages away.
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.places.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Numbers and pages, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&u64, &TxPage)> {
        self.all.iter().map(|(no, page)| (no, page))
    }

    /// Numbers, in no order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &u64> {
        self.all.iter().map(|(no, _)| no)
    }

    /// Pages, in no order.
    pub(super) fn values(&self) -> impl Iterator<Item = &TxPage> {
        self.all.iter().map(|(_, page)| page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};
    use std::collections::BTreeMap;

    fn page(n: u8, old: bool) -> TxPage {
        TxPage::with(old.then(|| vec![n].into()), None, vec![n].into())
    }

    #[test]
    fn random_use_equals_a_map() {
        let (mut rng, mut pages) = (SmallRng::seed_from_u64(5), TxPages::default());
        let mut model: BTreeMap<u64, (u8, bool)> = BTreeMap::new();
        let mut most = 0;
        for n in 0..40_000_u32 {
            let (no, byte) = (rng.random_range(0..100), n as u8);
            let old = rng.random_bool(0.5);
            match rng.random_range(0..100) {
                0 => {
                    pages.retain(|_, p| p.base.is_some());
                    model.retain(|_, (_, old)| *old);
                }
                1 if n % 7 == 0 => {
                    pages.clear();
                    model.clear();
                }
                2..=30 => {
                    let was = pages.remove(&no).map(|p| (p.now[0], p.base.is_some()));
                    assert_eq!(was, model.remove(&no));
                }
                31..=60 => {
                    assert_eq!(pages.insert(no, page(byte, old)).now[0], byte);
                    model.insert(no, (byte, old));
                }
                61..=70 => {
                    if let Some(p) = pages.get_mut(&no) {
                        p.now = vec![byte].into();
                        model.get_mut(&no).unwrap().0 = byte;
                    }
                }
                _ => {}
            }
            let found = pages.get(&no).map(|p| (p.now[0], p.base.is_some()));
            assert_eq!(found, model.get(&no).copied());
            assert_eq!((pages.len(), pages.is_empty()), (model.len(), model.is_empty()));
            most = most.max(pages.len());
            if n % 100 == 0 {
                let mut all: Vec<_> = pages.iter().map(|(no, p)| (*no, p.now[0])).collect();
                all.sort_unstable();
                assert_eq!(all, model.iter().map(|(no, p)| (*no, p.0)).collect::<Vec<_>>());
                assert_eq!((pages.keys().count(), pages.values().count()), (all.len(), all.len()));
            }
        }
        assert!(most > 40, "too few at a time: {most}");
    }
}
