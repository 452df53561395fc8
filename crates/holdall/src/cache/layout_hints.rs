//! Where things lie in pages, as earlier lookups found, so that the next one can prefetch them
//! sooner.
//!
//! Owns: [`LayoutHints`], some numbers for each page, of whose meaning this layer knows nothing.
//! A page says where in it things lie, but only once its head and a slot have come from memory,
//! one after the other; a hint says it before that. A hint may be old or of another page: it
//! says what to prefetch, never what is there. Only single lookups use them: a group waits for
//! its steps together, and hints cost it 9 to 15 % (docs/decisions/mechanisms.md).
//!
//! Threads: any; a hint is written only if it changes, since readers share its line.

use holdall_core::PageNo;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// Hints of a page; larger numbers share them.
const HINTS: usize = 64;
/// Pages whose hints are made together, when the first of them is written.
const PAGES_PER_CHUNK: usize = 512;
/// Most chunks: 64 MiB of hints, for 4 GiB in pages of 8 KiB. In a larger pool pages share them.
const MOST_CHUNKS: usize = 1 << 10;

type Chunk = Box<[AtomicU16]>;

/// Hints of the pages of a pool.
#[derive(Debug)]
pub(crate) struct LayoutHints(Box<[OnceLock<Chunk>]>);

impl LayoutHints {
    /// For a pool of `pages` pages. Cost: 128 bytes a page, once they are written.
    pub(crate) fn new(pages: usize) -> Self {
        let chunks = pages.div_ceil(PAGES_PER_CHUNK).clamp(1, MOST_CHUNKS).next_power_of_two();
        Self((0..chunks).map(|_| OnceLock::new()).collect())
    }

    #[inline]
    fn place(&self, page: PageNo, n: u16) -> (&OnceLock<Chunk>, usize) {
        let page = page.0 as usize;
        let chunk = &self.0[(page / PAGES_PER_CHUNK) & (self.0.len() - 1)];
        (chunk, page % PAGES_PER_CHUNK * HINTS + usize::from(n) % HINTS)
    }

    /// The hint; 0 if there is none.
    #[inline]
    pub(crate) fn get(&self, page: PageNo, n: u16) -> u16 {
        let (chunk, at) = self.place(page, n);
        chunk.get().and_then(|hints| hints.get(at)).map_or(0, |hint| hint.load(Relaxed))
    }

    /// Writes a hint.
    #[inline]
    pub(crate) fn set(&self, page: PageNo, n: u16, value: u16) {
        let (chunk, at) = self.place(page, n);
        let hints =
            chunk.get_or_init(|| (0..PAGES_PER_CHUNK * HINTS).map(|_| AtomicU16::new(0)).collect());
        if let Some(hint) = hints.get(at).filter(|hint| hint.load(Relaxed) != value) {
            hint.store(value, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_has_hints_and_strangers_share_them() {
        let hints = LayoutHints::new(1000);
        assert_eq!(hints.0.len(), 2);
        assert_eq!(hints.get(PageNo(5), 3), 0);
        for (page, n, value) in
            [(5, 3, 7), (5, 4, 8), (6, 3, 9), (5 + PAGES_PER_CHUNK as u64, 3, 10)]
        {
            hints.set(PageNo(page), n, value);
        }
        let got = |page, n| hints.get(PageNo(page), n);
        assert_eq!(
            [got(5, 3), got(5, 4), got(6, 3), got(5 + PAGES_PER_CHUNK as u64, 3)],
            [7, 8, 9, 10]
        );
        assert_eq!(
            got(5 + 2 * PAGES_PER_CHUNK as u64, 3),
            7,
            "a page far behind has the same place"
        );
        assert_eq!(got(5, 3 + HINTS as u16), 7, "so has a number too large");
        hints.set(PageNo(u64::MAX), u16::MAX, 1);
        assert_eq!(got(u64::MAX, u16::MAX), 1);
        for pages in [0, 1, usize::MAX] {
            assert!((1..=MOST_CHUNKS).contains(&LayoutHints::new(pages).0.len()));
        }
    }
}
