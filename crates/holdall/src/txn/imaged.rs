//! Which states have pages that lie elsewhere, and where a page of such a state lies.
//!
//! Owns: [`Trees`], the root of the tree of images as each commit left it, for the snapshots that
//! are open. While no state has images, all of this is the look at one flag.
//!
//! Invariants: a state's tree is noted before its commit is installed, and forgotten once nobody can
//! open a snapshot that old. Nodes of the tree lie in their places, so a look at them needs
//! no look at the tree.

use super::{LatestState, Pager};
use crate::cache::horizon::Horizon;
use crate::cache::index::Pin;
use crate::cache::pool::Reading;
use crate::images::Images;
use holdall_core::page::{self, PageKind};
use holdall_core::{Lsn, PageNo, PageRead, PageRef, Result};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// What lies elsewhere than in its place and in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Elsewhere {
    /// Pages whose newest version lies in another page, since a transaction too large for memory
    /// wrote it there. They come home by and by.
    pub images: u64,
    /// Such pages written since the store was opened.
    pub images_written: u64,
    /// Of all such pages, those that came home since.
    pub images_home: u64,
    /// Bytes of old versions that open snapshots read and memory had no room for.
    pub scratch_bytes: u64,
    /// Such versions written since the store was opened.
    pub old_versions_written: u64,
}

/// Trees by the commits that made them, of all states that may still be read.
#[derive(Debug, Default)]
pub(super) struct Trees {
    any: AtomicBool,
    /// In the order of commits; before the first every page lies in its place.
    by_commit: Mutex<Vec<(Lsn, Images)>>,
    /// The newest commit that wrote pages as images.
    newest: AtomicU64,
    written: AtomicU64,
    home: AtomicU64,
}

impl Trees {
    /// The tree of the state at `lsn`.
    #[inline]
    pub(super) fn at(&self, lsn: Lsn) -> Images {
        if !self.any.load(SeqCst) {
            return Images::default();
        }
        let all = self.by_commit.lock();
        all.iter().rev().find(|(made, _)| *made <= lsn).map(|(_, tree)| *tree).unwrap_or_default()
    }

    /// The newest state's, for who has the writer's lock.
    #[inline]
    pub(super) fn newest(&self) -> Images {
        self.at(Lsn(u64::MAX))
    }

    /// Commit `lsn`, not installed yet, leaves this tree.
    pub(super) fn push(&self, lsn: Lsn, tree: Images, horizon: &Horizon) {
        let mut all = self.by_commit.lock();
        all.push((lsn, tree));
        self.forget(&mut all, horizon.oldest());
    }

    /// Forgets the trees of states that nobody can read any more.
    pub(super) fn prune(&self, horizon: &Horizon) {
        if self.any.load(SeqCst) {
            self.forget(&mut self.by_commit.lock(), horizon.oldest());
        }
    }

    /// Nobody reads states before `oldest`.
    fn forget(&self, all: &mut Vec<(Lsn, Images)>, oldest: Lsn) {
        // The last at or below it is what the oldest state has.
        let first = all.iter().rposition(|(made, _)| *made <= oldest).unwrap_or(0);
        all.drain(..first);
        let any = all.iter().any(|(_, tree)| !tree.is_empty());
        if !any {
            all.clear();
        }
        self.any.store(any, SeqCst);
    }

    /// Whether a snapshot at `lsn` may read places of pages that have images since.
    pub(super) fn is_older(&self, lsn: Lsn) -> bool {
        lsn.0 < self.newest.load(SeqCst)
    }

    /// Commit `lsn` wrote `written` pages as images, and brought `home` pages home.
    pub(super) fn count(&self, lsn: Lsn, written: u64, home: u64) {
        if written > 0 {
            self.newest.store(lsn.0, SeqCst);
            self.written.fetch_add(written, Relaxed);
        }
        if home > 0 {
            self.home.fetch_add(home, Relaxed);
        }
    }
}

/// Pages of a state in their places, for nodes of the tree.
pub(super) struct Places<'a> {
    pub(super) pager: &'a Pager,
    pub(super) lsn: Lsn,
    pub(super) reading: &'a dyn Reading,
}

impl PageRead for Places<'_> {
    fn page_size(&self) -> usize {
        self.pager.page_size()
    }

    fn page(&self, page: PageNo, kind: PageKind) -> Result<PageRef> {
        self.pager.pool.get(page, kind, self.lsn, self.reading)
    }

    #[inline]
    fn with_page<T>(
        &self,
        page: PageNo,
        kind: PageKind,
        f: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let pin = Pin::new();
        let Some(bytes) = self.pager.pool.peek(page, self.lsn, &pin) else {
            drop(pin);
            return f(&self.page(page, kind)?);
        };
        page::of_kind(bytes, page, kind).and_then(|()| f(bytes))
    }
}

impl Places<'_> {
    /// The page, wherever this state has it.
    pub(super) fn find(&self, images: Images, page: PageNo, kind: PageKind) -> Result<PageRef> {
        if !images.is_empty()
            && kind.may_lie_elsewhere()
            && let Some(image) = images.get(self, page)?
        {
            let at = (page, image);
            return self.pager.pool.get_image(at, Some(kind), self.lsn, self.reading);
        }
        self.page(page, kind)
    }
}

impl Pager {
    /// The tree of the state that the store was opened with.
    pub fn set_images(&self, root: PageNo) {
        self.trees.push(self.horizon.newest(), Images { root }, &self.horizon);
    }

    /// A page in its place, of the state at `lsn`, which nobody can take away.
    pub(super) fn in_place(&self, page: PageNo, kind: PageKind, lsn: Lsn) -> Result<PageRef> {
        self.pool.get(page, kind, lsn, &LatestState(self))
    }

    /// As [`Pager::in_place`], of a page that lies at `image`.
    pub(super) fn image(
        &self,
        (page, image): (PageNo, PageNo),
        kind: PageKind,
        lsn: Lsn,
    ) -> Result<PageRef> {
        self.pool.get_image((page, image), Some(kind), lsn, &LatestState(self))
    }

    /// As [`Pager::image`], of a page of any kind.
    pub(super) fn image_of_any_kind(&self, at: (PageNo, PageNo), lsn: Lsn) -> Result<PageRef> {
        self.pool.get_image(at, None, lsn, &LatestState(self))
    }

    /// What lies elsewhere; `images` is the root page's count.
    pub fn elsewhere(&self, images: u64) -> Elsewhere {
        Elsewhere {
            images,
            images_written: self.trees.written.load(Relaxed),
            images_home: self.trees.home.load(Relaxed),
            scratch_bytes: self.scratch_bytes(),
            old_versions_written: self.old.written(),
        }
    }

    /// Whether a snapshot may be open from before the newest images.
    pub fn has_readers_before_images(&self) -> bool {
        self.trees.is_older(self.horizon.oldest())
    }

    /// The tree of images of the newest state; for who has the writer's lock.
    pub fn images(&self) -> Images {
        self.trees.newest()
    }
}
