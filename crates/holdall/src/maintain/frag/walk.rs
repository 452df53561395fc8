//! The state of a walk over a store.
//!
//! Owns: [`Walk`]: what was counted so far, and how far it is.

use super::contract::{Keys, handle_pages};
use super::histogram::Histogram;
use super::map::MapBuilder;
use super::sums::Sums;
use super::{CollectionHeap, CutObject};
use crate::engine::Inner;
use crate::engine::catalog::{Collection, page_of};
use crate::read::state::ReadState;
use crate::sharing::{Shared, Sharing};
use crate::space::SpacePicture;
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
    pub(super) by_pieces: Histogram,
    pub(super) most_cut: Vec<CutObject>,
    pub(super) heaps: Vec<CollectionHeap>,
    progress: &'a mut dyn FnMut(u64, u64),
    total: u64,
    done: u64,
}

/// Bytes of a range that copies share: its key, and two numbers.
const MOST_RANGE: usize = 8 + 2 * 10;

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

    /// All collections with their names; from here on the total is known.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub(super) fn collections(&mut self) -> Result<Vec<(String, Collection)>> {
        let mut found = Vec::new();
        let mut pages = self.layout.spaces(self.picture.volume_pages)?.into();
        for entry in self.state.root().catalog.iter(self.state, Bound::Unbounded) {
            let (name, value) = entry?;
            let collection = Collection::load(self.state, page_of(&value)?)?;
            pages += u64::from(collection.heap.map().len());
            found.push((String::from_utf8_lossy(&name).into_owned(), collection));
        }
        self.total = pages;
        self.tell();
        Ok(found)
    }

    /// Counts what the store has beside objects and their names.
    pub(super) fn structures(&mut self, collections: &[(String, Collection)]) {
        let size = self.layout.page_size();
        let mut names = Keys::default();
        collections.iter().for_each(|(name, _)| names.add(name.len()));
        let mut ranges = Keys::default();
        self.shared.iter().for_each(|_| ranges.add(MOST_RANGE));
        let handles = handle_pages(self.state.root().handles.map.len(), size);
        self.sums.most_metadata_pages += names.pages(size) + ranges.pages(size) + handles;
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
