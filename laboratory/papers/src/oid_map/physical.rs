//! Physical OIDs (Eickler §1): the OID is the address of the object, which therefore cannot change.
//!
//! Owns a file of data pages of 20 objects each. An object that moves by its physical OID leaves a
//! forward in its first place, which stays taken; one that is found by a logical OID leaves its
//! place to the next. Page 0 is empty. Threads: none.

use std::sync::Arc;

use anyhow::{Result, bail};
use holdall_core::techniques::bytes::{put_u64, u64_at};
use holdall_io::Disk;

use super::oid::{Handle, PER_PAGE};
use super::pages::{HEAD, Kind, PAGE, Pages};
use crate::mutation::{Mutation, is};

/// Bytes of a slot: its state, the number of its object, a forward, and the rest of the object.
const SLOT: usize = (PAGE - HEAD) / PER_PAGE;
const OBJECT: u64 = 1;
const FORWARD: u64 = 2;

/// The objects.
#[derive(Debug)]
pub struct Objects {
    pages: Pages,
    /// The place behind the last.
    end: usize,
    /// Places that objects left without a forward.
    free: Vec<Handle>,
}

impl Objects {
    /// `count` objects on an empty `disk`, in order from page 1 on; `frames` pages of buffer.
    pub fn build(disk: Arc<dyn Disk>, count: usize, frames: usize) -> Result<Self> {
        let mut this = Self { pages: Pages::new(disk, frames), end: 0, free: Vec::new() };
        for object in 0..count {
            let at = this.place()?;
            this.put(at, object)?;
        }
        Ok(this)
    }

    /// Data pages with their buffer.
    pub fn pages(&mut self) -> &mut Pages {
        &mut self.pages
    }

    /// Data pages in use.
    pub fn used(&self) -> usize {
        self.end.div_ceil(PER_PAGE)
    }

    /// A free place: one that an object left, else the one behind the last.
    fn place(&mut self) -> Result<Handle> {
        if let Some(left) = self.free.pop() {
            return Ok(left);
        }
        let at = Handle::of(self.end);
        if at.slot == 0 {
            self.pages.fresh(at.page as u32, Kind::Data, true)?;
        }
        self.end += 1;
        Ok(at)
    }

    fn slot(&mut self, at: Handle) -> Result<&mut [u8]> {
        let from = HEAD + usize::from(at.slot) * SLOT;
        let bytes = self.pages.write(at.page as u32, Kind::Data)?;
        Ok(&mut bytes[from..from + SLOT])
    }

    fn put(&mut self, at: Handle, object: usize) -> Result<()> {
        let slot = self.slot(at)?;
        put_u64(slot, 0, OBJECT);
        put_u64(slot, 8, object as u64);
        Ok(())
    }

    /// The number of the object that an address leads to. Cost: its page, and a second one if a
    /// forward is there.
    pub fn read(&mut self, mut at: Handle) -> Result<usize> {
        for _ in 0..2 {
            let from = HEAD + usize::from(at.slot) * SLOT;
            let bytes = self.pages.read(at.page as u32, Kind::Data)?;
            match u64_at(bytes, from) {
                OBJECT => return Ok(u64_at(bytes, from + 8) as usize),
                FORWARD => at = Handle::get(&bytes[from + 16..]),
                _ => break,
            }
        }
        bail!("no object at {at:?}")
    }

    /// Moves the object at `at`, its first place, to a free one. By a physical OID a forward is
    /// left in `at`, by a logical one nothing.
    pub fn relocate(&mut self, at: Handle, physical: bool) -> Result<Handle> {
        let object = self.read(at)?;
        let to = self.place()?;
        self.put(to, object)?;
        let slot = self.slot(at)?;
        put_u64(slot, 0, if physical && !is(Mutation::Forward) { FORWARD } else { 0 });
        to.put(&mut slot[16..]);
        if !physical {
            self.free.push(at);
        }
        Ok(to)
    }
}
