//! Direct mapping (Eickler §3.2, §4.1.2): the OID says in which page and slot its handle is.
//!
//! Owns a handle segment: page 0 with its state, then groups of one bitmap page and 192 handle
//! pages. Which slots are free is in memory while the segment is open and goes to the bitmap
//! pages at a flush. With matrix placement, handle page n belongs to the logical file n mod 20.
//! Threads: none.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use holdall_core::techniques::bytes::{put_u32, u32_at};
use holdall_io::Disk;

use super::mapping::{Mapping, Place};
use super::oid::{Handle, Oid, PER_PAGE};
use super::pages::{HEAD, Kind, PAGE, Pages};
use crate::mutation::{Mutation, is};

/// Bytes of a slot: the unique field and the handle.
const SLOT: usize = 4 + Handle::BYTES;
/// Slots of a handle page (§5.1: 170).
pub const SLOTS: usize = (PAGE - HEAD) / SLOT;
/// Handle pages whose slots one bitmap page covers.
const GROUP: u32 = ((PAGE - HEAD) * 8 / SLOTS) as u32;

/// How handles are placed (§4.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// In the order of creation, near a related object where it says which.
    Linear,
    /// Objects of one slot of the data pages in one logical file, so that two objects of a data
    /// page never have their handles in the same page.
    Matrix,
}

/// The handle segment.
#[derive(Debug)]
pub struct Direct {
    pages: Pages,
    /// Handle pages of each logical file; the file f has the pages f, f + files, ...
    counts: Vec<u32>,
    /// Groups whose bitmap page is made.
    groups: u32,
    /// The bitmaps of the groups, one behind the other: a bit for each free slot.
    free: Vec<u8>,
    /// Pages of each file with free slots.
    roomy: Vec<BTreeSet<u32>>,
    /// The page of each file that took the last handle.
    position: Vec<Option<u32>>,
}

impl Direct {
    /// The segment on `disk`; an empty disk gets one with this `placement`, and one that is there
    /// keeps its own. `frames` pages of buffer. Cost: the bitmap pages.
    pub fn open(disk: Arc<dyn Disk>, frames: usize, placement: Placement) -> Result<Self> {
        let files = if placement == Placement::Linear { 1 } else { PER_PAGE };
        let pages = Pages::new(disk, frames);
        let mut this = Self {
            pages,
            counts: vec![0; files],
            groups: 0,
            free: Vec::new(),
            roomy: vec![BTreeSet::new(); files],
            position: vec![None; files],
        };
        if let Some(state) = this.pages.state()? {
            this.load(&state)?;
        }
        Ok(this)
    }

    fn load(&mut self, state: &[u64]) -> Result<()> {
        let files = state[0] as usize;
        ensure!([1, PER_PAGE].contains(&files), "page 0 is damaged; restore the file");
        self.groups = state[1] as u32;
        self.counts = state[2..2 + files].iter().map(|&n| n as u32).collect();
        self.roomy = vec![BTreeSet::new(); files];
        self.position = vec![None; files];
        for group in 0..self.groups {
            let bytes = self.pages.read(bitmap_page(group), Kind::Bitmap)?;
            self.free.extend(&bytes[HEAD..]);
        }
        for page in 0..self.groups * GROUP {
            if self.first_free(page, 0).is_some() {
                self.roomy[page as usize % files].insert(page);
            }
        }
        Ok(())
    }

    /// Whether the segment has a handle page of this number.
    fn has(&self, page: u32) -> bool {
        let files = self.counts.len() as u32;
        page / files < self.counts[(page % files) as usize]
    }

    /// The first free slot of a handle page, from `slot` on.
    fn first_free(&self, page: u32, slot: u16) -> Option<u16> {
        (slot..SLOTS as u16).find(|&slot| {
            let (byte, bit) = place(page, slot);
            self.free[byte] & bit != 0
        })
    }

    /// Slot `slot` is free, and its page has one.
    fn set_free(&mut self, page: u32, slot: u16) {
        let (byte, bit) = place(page, slot);
        self.free[byte] |= bit;
        self.roomy[page as usize % self.counts.len()].insert(page);
    }

    /// The page for a new handle: that of the related object, else the last one used, else any
    /// with a free slot, else a new one.
    fn choose(&mut self, place: Place) -> Result<u32> {
        let files = self.counts.len();
        let slot = if is(Mutation::MatrixFile) { 0 } else { place.slot };
        let file = usize::from(slot) % files;
        let near = place.near.filter(|_| files == 1 && !is(Mutation::LinearNear)).map(Oid::page);
        let known = [near, self.position[file], self.roomy[file].first().copied()];
        if let Some(page) = known.into_iter().flatten().find(|page| self.roomy[file].contains(page))
        {
            return Ok(page);
        }
        let Some(page) = self.counts[file].checked_mul(files as u32).map(|n| n + file as u32)
        else {
            bail!("the handle segment is full");
        };
        self.extend(page)?;
        self.counts[file] += 1;
        Ok(page)
    }

    /// Makes a handle page of free slots, and the bitmap pages up to its own.
    fn extend(&mut self, page: u32) -> Result<()> {
        while self.groups <= page / GROUP {
            self.pages.fresh(bitmap_page(self.groups), Kind::Bitmap, true)?;
            self.groups += 1;
        }
        self.free.resize(self.groups as usize * (PAGE - HEAD), 0);
        self.pages.fresh(disk_page(page), Kind::Handles, true)?;
        (0..SLOTS as u16).for_each(|slot| self.set_free(page, slot));
        Ok(())
    }

    /// Where the handle of a live object begins in its page's bytes.
    fn find(&mut self, oid: Oid) -> Result<Option<usize>> {
        let slot = usize::from(oid.slot());
        if !self.has(oid.page()) || slot >= SLOTS {
            return Ok(None);
        }
        let at = HEAD + slot * SLOT;
        let bytes = self.pages.read(disk_page(oid.page()), Kind::Handles)?;
        let live = u32_at(bytes, at) == oid.unique() && Handle::get(&bytes[at + 4..]).page != 0;
        Ok(live.then_some(at + 4))
    }

    /// Sets the unique field of a free slot, as if it had been used that often.
    #[cfg(test)]
    pub(super) fn age(&mut self, page: u32, slot: u16, unique: u32) {
        let bytes = self.pages.write(disk_page(page), Kind::Handles).unwrap();
        put_u32(bytes, HEAD + usize::from(slot) * SLOT, unique);
    }
}

fn bitmap_page(group: u32) -> u32 {
    1 + group * (GROUP + 1)
}

/// Byte and bit of a slot in the bitmaps of all groups.
fn place(page: u32, slot: u16) -> (usize, u8) {
    let bit = (page % GROUP) as usize * SLOTS + usize::from(slot);
    ((page / GROUP) as usize * (PAGE - HEAD) + bit / 8, 1 << (bit % 8))
}

fn disk_page(page: u32) -> u32 {
    bitmap_page(page / GROUP) + 1 + page % GROUP
}

impl Mapping for Direct {
    /// Cost: no page if the chosen one is in the buffer; a new one for each 170 new handles.
    fn create(&mut self, place: Place, handle: Handle) -> Result<Oid> {
        ensure!(handle.page != 0, "data page 0 means none; give a handle with a page");
        let page = self.choose(place)?;
        let Some(slot) = self.first_free(page, 0) else { bail!("handle page {page} is full") };
        let bytes = self.pages.write(disk_page(page), Kind::Handles)?;
        let at = HEAD + usize::from(slot) * SLOT;
        let unique = u32_at(bytes, at);
        handle.put(&mut bytes[at + 4..]);
        let (byte, bit) = self::place(page, slot);
        self.free[byte] &= !bit;
        let file = page as usize % self.counts.len();
        if self.first_free(page, slot).is_none() {
            self.roomy[file].remove(&page);
        }
        self.position[file] = Some(page);
        self.pages.keep(disk_page(page), Kind::Handles);
        Ok(Oid::direct(page, slot, unique))
    }

    /// Cost: one page at most.
    fn lookup(&mut self, oid: Oid) -> Result<Option<Handle>> {
        let Some(at) = self.find(oid)? else { return Ok(None) };
        let bytes = self.pages.read(disk_page(oid.page()), Kind::Handles)?;
        Ok(Some(Handle::get(&bytes[at..])))
    }

    fn update(&mut self, oid: Oid, handle: Handle) -> Result<bool> {
        ensure!(handle.page != 0, "data page 0 means none; give a handle with a page");
        let Some(at) = self.find(oid)? else { return Ok(false) };
        handle.put(&mut self.pages.write(disk_page(oid.page()), Kind::Handles)?[at..]);
        Ok(true)
    }

    /// The slot can be used again, by an OID with the next unique field. One whose unique field
    /// has no next value is never used again.
    fn remove(&mut self, oid: Oid) -> Result<bool> {
        let Some(at) = self.find(oid)? else { return Ok(false) };
        let page = oid.page();
        let bytes = self.pages.write(disk_page(page), Kind::Handles)?;
        bytes[at..at + Handle::BYTES].fill(0);
        let next = oid.unique().saturating_add(u32::from(!is(Mutation::UniqueField)));
        put_u32(bytes, at - 4, next);
        if (next < u32::MAX || is(Mutation::UniqueEnd)) && !is(Mutation::FreeSlot) {
            self.set_free(page, oid.slot());
        }
        Ok(true)
    }

    fn flush(&mut self) -> Result<()> {
        for group in 0..self.groups {
            let bytes = self.pages.fresh(bitmap_page(group), Kind::Bitmap, false)?;
            let first = group as usize * (PAGE - HEAD);
            bytes[HEAD..].copy_from_slice(&self.free[first..first + PAGE - HEAD]);
        }
        let mut state = vec![self.counts.len() as u64, u64::from(self.groups)];
        state.extend(self.counts.iter().map(|&count| u64::from(count)));
        self.pages.flush(&state)
    }

    fn pages(&mut self) -> &mut Pages {
        &mut self.pages
    }

    fn used(&self) -> u64 {
        1 + u64::from(self.groups) + self.counts.iter().map(|&n| u64::from(n)).sum::<u64>()
    }
}
