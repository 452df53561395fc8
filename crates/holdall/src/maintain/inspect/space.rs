//! A space directory: bitmap, stretches, granules.

use crate::store::Store;
use crate::txn::Snapshot;
use holdall_core::page::PageKind;
use holdall_core::space_dir::SpaceDir;
use holdall_core::{Error, Lsn, PageNo, PageRead, Result, root_page};

/// A buddy space as its directory says.
#[derive(Debug)]
#[non_exhaustive]
pub struct Space {
    /// Its number, from 0.
    pub number: u32,
    /// Its first page.
    pub first: PageNo,
    /// The page of its directory.
    pub directory: PageNo,
    /// What is used and free of it.
    pub figures: SpaceFigures,
    /// What is wrong with the directory.
    pub damage: Option<Error>,
    /// Whether each of its pages is in use.
    pub used: Vec<bool>,
    /// Its stretches with segment pages; those that cannot be read too.
    pub stretches: Vec<Stretch>,
    /// The last noted change of each MiB; 0 if there was none.
    pub changes: Vec<Lsn>,
}

/// What is used and free of a space as far as it lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpaceFigures {
    /// Pages in use.
    pub used: u32,
    /// Free pages.
    pub free: u32,
    /// Pages of the longest free run.
    pub longest_run: u32,
    /// Pages beyond the end of the file.
    pub beyond: u32,
}

/// A part of a space whose segment pages have their checksums in one page.
#[derive(Debug)]
#[non_exhaustive]
pub struct Stretch {
    /// Its number in the space, from 0.
    pub number: u32,
    /// Its first page.
    pub first: PageNo,
    /// Its last page.
    pub last: PageNo,
    /// How many segment pages it has, and the page of their checksums.
    pub content: Result<(u32, PageNo)>,
}

/// All spaces: an iterator over their numbers and figures. A directory that cannot be read gives
/// an error, and the next space follows. Cost: a page read per space.
#[derive(Debug)]
#[non_exhaustive]
pub struct Spaces<'a> {
    /// Spaces that the root page names.
    pub named: u32,
    /// Spaces that the file has.
    pub present: u32,
    next: u32,
    store: &'a Store,
    snapshot: Snapshot,
}

pub(super) fn read(store: &Store, number: u32) -> Result<Space> {
    let (inner, snapshot) = (&store.inner, store.inner.pager.snapshot());
    let spaces = root_page::spaces(&snapshot.page(inner.root, PageKind::Root)?);
    if number >= spaces {
        return Err(Error::NotFound(format!("space {number}; the store has {spaces}, from 0")));
    }
    let layout = inner.layout;
    let (first, directory) = (layout.page_at(number, 0), layout.dir_page(number));
    let bytes = snapshot.page(directory, PageKind::SpaceDir)?;
    let dir = SpaceDir::open(layout, number, &*bytes)?;
    Ok(Space {
        number,
        first,
        directory,
        figures: figures(store, &dir)?,
        damage: dir.check().err(),
        used: (0..layout.space_pages()).map(|i| dir.is_allocated(i)).collect(),
        stretches: (0..layout.stretches()).filter_map(|n| stretch(&dir, n, first)).collect(),
        changes: (0..layout.granules()).map(|g| dir.last_change(g).unwrap_or(Lsn(0))).collect(),
    })
}

pub(super) fn all(store: &Store) -> Result<Spaces<'_>> {
    let (inner, snapshot) = (&store.inner, store.inner.pager.snapshot());
    let named = root_page::spaces(&snapshot.page(inner.root, PageKind::Root)?);
    // The root page may be false: what the file has is the limit.
    let present = inner.layout.spaces(inner.alloc.volume_pages())?;
    Ok(Spaces { named, present, next: 0, store, snapshot })
}

impl Iterator for Spaces<'_> {
    type Item = (u32, Result<SpaceFigures>);

    fn next(&mut self) -> Option<Self::Item> {
        let space = self.next;
        if space >= self.named.min(self.present) {
            return None;
        }
        self.next += 1;
        let layout = self.store.inner.layout;
        let page = self.snapshot.page(layout.dir_page(space), PageKind::SpaceDir);
        let found = page.and_then(|bytes| {
            let dir = SpaceDir::open(layout, space, &*bytes)?;
            figures(self.store, &dir)
        });
        Some((space, found))
    }
}

fn figures(store: &Store, dir: &SpaceDir<&[u8]>) -> Result<SpaceFigures> {
    let layout = dir.layout();
    let inside = layout.pages_inside(dir.space(), store.inner.alloc.volume_pages());
    let used = dir.count_allocated_in(0, inside)?;
    let (free, longest_run) = (inside - used, dir.tree(inside)?.longest_run());
    Ok(SpaceFigures { used, free, longest_run, beyond: layout.space_pages() - inside })
}

fn stretch(dir: &SpaceDir<&[u8]>, number: u32, first: PageNo) -> Option<Stretch> {
    let run = dir.layout().stretch_run(number)?;
    let content = match (dir.info_page(number), dir.segment_pages(number)) {
        (Ok(info), Ok(0)) if info.is_none() => return None,
        (Ok(info), Ok(live)) => Ok((live, info)),
        (Err(e), _) | (_, Err(e)) => Err(e),
    };
    let [first, last] = [run.start, run.end() - 1].map(|at| PageNo(first.0 + u64::from(at)));
    Some(Stretch { number, first, last, content })
}
