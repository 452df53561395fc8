//! A database area: one disk cut into buddy spaces (Biliris §3.1).
//!
//! Owns: [`Area`]: per space a buddy tree, above them the superdirectory, and the pages freed
//! by the operation under way, which are given back when it ends (shadowing needs the old
//! pages until then). A space is one directory page and [`SPACE_PAGES`] pages behind it, as
//! in the paper for 4 KiB pages. The directories stay in memory and cost no access; visits to
//! them are counted apart. Not for use by two threads at once.

use std::sync::Arc;

use holdall_core::techniques::buddy::{BuddyTree, SuperDirectory, least_order_for, order_for};
use holdall_core::techniques::{Error, Result};
use holdall_io::Disk;
use holdall_testkit::{CostModel, CountedDisk, DiskStats};

use crate::mutation::{Mutation, is};

/// Data pages of a buddy space: 63.5 MiB of 4 KiB pages (§3.1).
pub const SPACE_PAGES: u32 = 16_256;
/// Pages of the largest segment: 32 MiB of 4 KiB pages (§3.1).
pub const MAX_SEGMENT_PAGES: u64 = 8192;

/// Pages of a space with its directory.
const STRIDE: u64 = SPACE_PAGES as u64 + 1;
/// Order of the largest block of an empty space.
const WHOLE: u8 = 13;

/// One disk with its free pages.
#[derive(Debug)]
pub struct Area {
    counted: CountedDisk,
    plain: Arc<dyn Disk>,
    page_size: usize,
    spaces: Vec<BuddyTree>,
    believed: SuperDirectory,
    freed: Vec<(u64, u64)>,
    used: u64,
    visits: u64,
    most_visits: u64,
}

impl Area {
    /// An empty area on `disk`; accesses cost what `model` says.
    pub fn new(disk: Arc<dyn Disk>, model: CostModel) -> Self {
        Self {
            counted: CountedDisk::new(Arc::clone(&disk), model),
            plain: disk,
            page_size: model.page_size as usize,
            spaces: Vec::new(),
            believed: SuperDirectory::new(0, WHOLE),
            freed: Vec::new(),
            used: 0,
            visits: 0,
            most_visits: 0,
        }
    }

    /// Accesses so far.
    pub fn stats(&self) -> DiskStats {
        self.counted.stats()
    }

    /// Visits to directories of spaces so far; a visit is an access if directories are not
    /// kept in memory.
    pub fn visits(&self) -> u64 {
        self.visits
    }

    /// The most visits that one allocation made: 1 by §3.1, at any number of spaces.
    pub fn most_visits(&self) -> u64 {
        self.most_visits
    }

    /// Spaces so far.
    pub fn spaces(&self) -> usize {
        self.spaces.len()
    }

    /// Pages taken, without those that [`Area::commit`] would give back.
    pub fn used_pages(&self) -> u64 {
        self.used - self.freed.iter().map(|f| f.1).sum::<u64>()
    }

    /// Takes `pages` neighbouring pages and returns the first. Adds a space if none is known
    /// to have a free block that holds them: one visit, at any number of spaces (§3.1).
    /// Errors: [`Error::Invalid`] for no page or more than a segment may have.
    pub fn take(&mut self, pages: u64) -> Result<u64> {
        if pages == 0 || pages > MAX_SEGMENT_PAGES {
            return Err(Error::Invalid(format!("a segment of {pages} pages")));
        }
        // Within the largest segment, so it fits.
        let len = pages as u32;
        // A space below this order may still have a run across two blocks; whether it has, only
        // its directory tells, and the same few spaces would be asked again and again.
        let order = if is(Mutation::AreaVisits) { least_order_for(len) } else { order_for(len) };
        let before = self.visits;
        let mut candidates = self.believed.candidates(0, order);
        let mut taken = None;
        while taken.is_none()
            && let Some(space) = candidates.next(&self.believed)
        {
            taken = self.take_in(space, len);
        }
        if taken.is_none() {
            let space = self.add_space()?;
            taken = self.take_in(space, len);
        }
        self.most_visits = self.most_visits.max(self.visits - before);
        taken.ok_or_else(|| Error::Invalid("an empty space is full".into()))
    }

    fn take_in(&mut self, space: u32, len: u32) -> Option<u64> {
        let tree = &mut self.spaces[space as usize];
        self.visits += 1;
        let run = tree.alloc(len);
        if !is(Mutation::AreaForgets) {
            self.believed.set(space, tree.largest());
        }
        let run = run?;
        self.used += u64::from(len);
        Some(u64::from(space) * STRIDE + 1 + u64::from(run.start))
    }

    fn add_space(&mut self) -> Result<u32> {
        let tree = BuddyTree::from_free_words(SPACE_PAGES, SPACE_PAGES, |_| u64::MAX)?;
        let space = self.spaces.len() as u32;
        self.spaces.push(tree);
        self.believed.resize(space + 1, WHOLE);
        Ok(space)
    }

    /// The space of a page and its place there; `None` for a directory page.
    fn place(page: u64) -> Option<(usize, u32)> {
        let within = (page % STRIDE).checked_sub(1)?;
        Some(((page / STRIDE) as usize, within as u32))
    }

    /// Whether the `pages` pages from `first` on are free and in one space.
    pub fn is_free(&self, first: u64, pages: u64) -> bool {
        let Some((space, start)) = Self::place(first) else { return false };
        let fits = u64::from(start) + pages <= u64::from(SPACE_PAGES);
        fits && self.spaces.get(space).is_some_and(|t| t.is_free(start, pages as u32))
    }

    /// Takes the `pages` pages from `first` on if all are free.
    pub fn take_at(&mut self, first: u64, pages: u64) -> bool {
        if !self.is_free(first, pages) {
            return false;
        }
        let Some((space, start)) = Self::place(first) else { return false };
        self.visits += 1;
        self.spaces[space].alloc_at(start, pages as u32);
        self.believed.set(space as u32, self.spaces[space].largest());
        self.used += pages;
        true
    }

    /// Notes that pages are free once the operation ends.
    pub fn free_later(&mut self, first: u64, pages: u64) {
        if pages > 0 {
            self.freed.push((first, pages));
        }
    }

    /// Gives back what was noted.
    /// Errors: [`Error::Corrupt`] for pages that are free already or were never taken.
    pub fn commit(&mut self) -> Result<()> {
        for (first, pages) in std::mem::take(&mut self.freed) {
            let place = Self::place(first).filter(|(space, _)| *space < self.spaces.len());
            let (space, start) =
                place.ok_or_else(|| Error::corrupt(format!("page {first}"), "not of a space"))?;
            let tree = &mut self.spaces[space];
            self.visits += 1;
            tree.free(start, pages as u32)?;
            self.believed.set(space as u32, tree.largest());
            self.used -= pages;
        }
        Ok(())
    }

    /// Reads neighbouring pages in one access.
    pub fn read(&self, first: u64, buf: &mut [u8]) -> Result<()> {
        read_from(&self.counted, first, self.page_size, buf)
    }

    /// As [`Area::read`], outside the count: for looking at a structure.
    pub fn peek(&self, first: u64, buf: &mut [u8]) -> Result<()> {
        read_from(self.plain.as_ref(), first, self.page_size, buf)
    }

    /// Writes neighbouring pages in one access; `bytes` are whole pages.
    pub fn write(&self, first: u64, bytes: &[u8]) -> Result<()> {
        debug_assert!(bytes.len().is_multiple_of(self.page_size), "whole pages");
        let at = first * self.page_size as u64;
        self.counted.write_at(at, bytes).map_err(|e| Error::io(format!("write page {first}"), e))
    }

    /// Makes the pages before `end` readable (as zeros) without writing them.
    pub fn reach(&self, end: u64) -> Result<()> {
        let len = end * self.page_size as u64;
        self.plain.grow(len).map_err(|e| Error::io("grow the area", e))
    }
}

fn read_from(disk: &dyn Disk, first: u64, page_size: usize, buf: &mut [u8]) -> Result<()> {
    let at = first * page_size as u64;
    disk.read_at(at, buf).map_err(|e| Error::io(format!("read page {first}"), e))
}
