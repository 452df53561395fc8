//! The state of a walk over a store.
//!
//! Owns: [`Walk`]: what was counted so far, and how far it is.

use super::contract::{Keys, handle_pages};
use super::histogram::Histogram;
use super::map::MapBuilder;
use super::sums::Sums;
use super::{CollectionHeap, CutObject};
use crate::engine::Inner;
use crate::engine::catalog::{Collection, Known, large, page_of};
use crate::read::state::ReadState;
use crate::sharing::{Shared, Sharing};
use crate::space::SpacePicture;
use holdall_core::collection_entry::{Entry, NumberKey, SMALL_OWNER};
use holdall_core::page::PageKind;
use holdall_core::space_dir::SpaceLayout;
use holdall_core::{Error, PageNo, PageRead, Result, root_page};
use std::ops::Bound;

/// A walk over one snapshot.
pub(super) struct Walk<'a> {
    pub(super) state: &'a ReadState,
    root: PageNo,
    pub(super) layout: SpaceLayout,
    pub(super) picture: SpacePicture,
    /// Bytes of blocks of the file.
    pub(super) blocks: u64,
    /// Spaces with a directory.
    pub(super) spaces: u32,
    /// The file system is not known to punch holes.
    pub(super) cannot_punch: bool,
    pub(super) map: MapBuilder,
    pub(super) reserved_pages: u64,
    pub(super) waiting_pages: u64,
    pub(super) holes_assumed: bool,
    pub(super) longest_free: u64,
    pub(super) free_runs: Histogram,
    /// Ranges of pages that slices share, in order.
    pub(super) shared: Vec<Shared>,
    pub(super) sums: Sums,
    /// Keys of the catalog, of the entries and of the drop list.
    names: Keys,
    names_by_number: Keys,
    dropped: Keys,
    pub(super) by_pieces: Histogram,
    pub(super) most_cut: Vec<CutObject>,
    pub(super) heaps: Vec<CollectionHeap>,
    progress: &'a mut dyn FnMut(u64, u64),
    total: u64,
    done: u64,
}

/// Bytes of a range that copies share: its key, and two numbers.
const MOST_RANGE: usize = 8 + 2 * 10;

/// What stands for a name with the heap file that small collections share.
const SMALL: &str = "(small collections)";
/// The same with a collection that was dropped and is not yet emptied.
const DROPPED: &str = "(dropped)";
/// Pages between two calls of the progress function.
const TICK: u64 = 256;

impl<'a> Walk<'a> {
    /// A walk that has not begun.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub(super) fn new(
        inner: &Inner,
        state: &'a ReadState,
        progress: &'a mut dyn FnMut(u64, u64),
    ) -> Result<Self> {
        let picture = inner.alloc.picture();
        let blocks = inner.pager.volume.disk.allocated();
        let blocks = blocks.map_err(|e| Error::io("asking for the file's blocks", e))?;
        let spaces = root_page::spaces(&state.page(inner.root, PageKind::Root)?);
        Ok(Self {
            state,
            root: inner.root,
            layout: inner.layout,
            blocks,
            spaces,
            cannot_punch: inner.gave_back().cannot_punch || !inner.pager.volume.disk.can_punch(),
            map: MapBuilder::new(picture.volume_pages),
            picture,
            reserved_pages: 0,
            waiting_pages: 0,
            holes_assumed: false,
            longest_free: 0,
            free_runs: Histogram::default(),
            shared: Vec::new(),
            sums: Sums::default(),
            names: Keys::default(),
            names_by_number: Keys::default(),
            dropped: Keys::default(),
            by_pieces: Histogram::default(),
            most_cut: Vec::new(),
            heaps: Vec::new(),
            progress,
            total: 0,
            done: 0,
        })
    }

    /// Bytes of a page.
    pub(super) fn page_size(&self) -> u64 {
        self.layout.page_size() as u64
    }

    /// The heap files of all collections with their names; small ones have one in common. From here
    /// on the total is known.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub(super) fn collections(&mut self) -> Result<Vec<(String, Collection)>> {
        let mut found = Vec::new();
        let mut pages = self.layout.spaces(self.picture.volume_pages)?.into();
        let root = self.state.root();
        let mut add = |name: &str, collection: Collection| {
            pages += u64::from(collection.heap.map().len());
            found.push((name.to_owned(), collection));
        };
        for entry in root.entries.iter(self.state, Bound::Unbounded) {
            let (key, value) = entry?;
            let known = Known::decode(&key, &value)?;
            self.names.add(known.name.len());
            self.names_by_number.add(known.name.len() + NumberKey::new(known.number).len());
            if let Entry::Large(page) = known.entry {
                add(&known.name, large(self.state, known.number, page)?);
            }
        }
        if !root.small.is_none() {
            add(SMALL, large(self.state, SMALL_OWNER, root.small)?);
        }
        for entry in root.drops.iter(self.state, Bound::Unbounded) {
            let (key, value) = entry?;
            let (number, _) = NumberKey::split(&key)?;
            self.dropped.add(key.len());
            add(DROPPED, large(self.state, number, page_of(&value)?)?);
        }
        self.total = pages;
        self.tell();
        Ok(found)
    }

    /// Counts what the store has beside objects and their names.
    pub(super) fn structures(&mut self) {
        let size = self.layout.page_size();
        let catalog = [&self.names, &self.names_by_number, &self.dropped];
        let catalog: u64 = catalog.iter().map(|keys| keys.pages(size)).sum();
        let mut ranges = Keys::default();
        self.shared.iter().for_each(|_| ranges.add(MOST_RANGE));
        let handles = handle_pages(self.state.root().handles.map.len(), size);
        self.sums.most_metadata_pages += catalog + ranges.pages(size) + handles;
    }

    /// Reads the ranges that copies share. They are segment pages, entered here once.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub(super) fn sharing(&mut self) -> Result<()> {
        let sharing = Sharing::load(self.state, self.root)?;
        for entry in sharing.tree.iter(self.state, Bound::Unbounded) {
            let (key, value) = entry?;
            let shared = Shared::decode(&key, &value)?;
            self.enter_segment(shared.run);
            self.shared.push(shared);
        }
        Ok(())
    }

    /// Tells of one more page.
    pub(super) fn tick(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(TICK) {
            self.tell();
        }
    }

    /// Reports how far the walk is.
    pub(super) fn tell(&mut self) {
        let size = self.page_size();
        (self.progress)(self.done.min(self.total) * size, self.total * size);
    }
}
