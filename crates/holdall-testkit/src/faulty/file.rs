//! One simulated file: what reads see, what is durable, and what lies between ([`SimFile`]).
//!
//! Owns two images and the ordered list of changes that are not durable. Invariants: applying all
//! changes of the list, in order, to the durable image gives the cached image; a write in the
//! list covers whole sectors and holds what they contained after it, because a device writes a
//! sector from the cache as it is, never one write's share of it.
//!
//! After a failed sync, writes stay in the list but are marked clean (recovery rule 7): later
//! syncs pass them by, until newer writes or a cut of the length make parts of them void. Changes
//! of the length are metadata; they stay as they are and the next sync writes them.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::holes::{Holes, chunks, len_of};
use super::image::{CHUNK, Image};
use super::plan::{Chooser, Fate};

/// What a device writes as one: never partly old and partly new.
pub(super) const SECTOR: u64 = 512;

#[derive(Clone)]
struct Change {
    what: What,
    /// The kernel takes it for written although it is not.
    clean: bool,
}

#[derive(Clone)]
enum What {
    /// The sectors from `offset` on contain this.
    Write { offset: u64, bytes: Arc<[u8]> },
    /// The length is this.
    Len(u64),
    /// These chunks have no blocks, and are zeros.
    Punch(Range<u64>),
    /// These chunks have blocks.
    Fill(Range<u64>),
}

/// A file.
#[derive(Clone, Default)]
pub(super) struct SimFile {
    pub(super) durable: Image,
    pub(super) cached: Image,
    changes: Vec<Change>,
    /// Chunks without blocks, as `cached` and as `durable` has them.
    holes: Holes,
    durable_holes: Holes,
}

impl SimFile {
    /// A file with this content, all durable.
    pub(super) fn from_bytes(bytes: &[u8]) -> io::Result<Self> {
        let mut image = Image::default();
        image.set_len(bytes.len() as u64)?;
        image.write(0, bytes);
        Ok(Self { durable: image.clone(), cached: image, ..Self::default() })
    }

    /// Bytes of blocks that it takes.
    pub(super) fn taken(&self) -> u64 {
        self.cached.len() - (self.holes.count() * CHUNK as u64).min(self.cached.len())
    }

    /// How many bytes can be written at `offset`, of `len`, if `spare` more bytes of blocks
    /// can be had.
    pub(super) fn fits(&self, offset: u64, len: u64, mut spare: u64) -> u64 {
        let end = offset.saturating_add(len);
        for hole in self.holes.within(chunks(offset, len)) {
            let Some(less) = spare.checked_sub(CHUNK as u64) else {
                return (hole * CHUNK as u64).saturating_sub(offset);
            };
            spare = less;
        }
        end.min(self.cached.len().saturating_add(spare)).saturating_sub(offset)
    }

    /// Takes the blocks of a range of whole chunks away.
    pub(super) fn punch(&mut self, offset: u64, len: u64) {
        let range = chunks(offset, len);
        self.cached.clear(range.clone());
        self.holes.add(range.clone());
        self.changes.push(Change { what: What::Punch(range), clean: false });
    }

    /// Gives a range blocks.
    pub(super) fn fill(&mut self, offset: u64, len: u64) {
        let range = chunks(offset, len);
        self.holes.remove(range.clone());
        self.changes.push(Change { what: What::Fill(range), clean: false });
    }

    /// How many changes are not durable.
    pub(super) fn unsynced(&self) -> usize {
        self.changes.len()
    }

    /// Writes, past the end if need be.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let end = offset + bytes.len() as u64;
        if end > self.cached.len() {
            self.set_len(end)?;
        }
        self.cached.write(offset, bytes);
        self.holes.remove(chunks(offset, bytes.len() as u64));
        let first = offset / SECTOR * SECTOR;
        let last = end.next_multiple_of(SECTOR).min(self.cached.len());
        let after: Arc<[u8]> = if (first, last) == (offset, end) {
            bytes.into()
        } else {
            let mut after = vec![0; (last - first) as usize];
            self.cached.read(first, &mut after);
            after.into()
        };
        let what = What::Write { offset: first, bytes: after };
        self.changes.push(Change { what, clean: false });
        Ok(())
    }

    /// Grows or cuts.
    pub(super) fn set_len(&mut self, len: u64) -> io::Result<()> {
        if len != self.cached.len() {
            self.cached.set_len(len)?;
            self.holes.cut(len);
            self.changes.push(Change { what: What::Len(len), clean: false });
        }
        Ok(())
    }

    /// Makes durable what is not marked clean.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        for change in std::mem::take(&mut self.changes) {
            match &change.what {
                _ if change.clean => self.changes.push(change),
                What::Write { offset, bytes } => {
                    self.durable.write(*offset, bytes);
                    self.durable_holes.remove(chunks(*offset, bytes.len() as u64));
                    self.void(*offset, bytes.len() as u64);
                }
                What::Punch(range) => {
                    self.durable.clear(range.clone());
                    self.durable_holes.add(range.clone());
                    self.void(range.start * CHUNK as u64, len_of(range));
                }
                What::Fill(range) => self.durable_holes.remove(range.clone()),
                What::Len(len) => {
                    let old = self.durable.len();
                    self.durable.set_len(*len)?;
                    self.durable_holes.cut(*len);
                    self.void(*len, old.saturating_sub(*len));
                }
            }
        }
        Ok(())
    }

    /// A sync that fails: what was to be written counts as written.
    pub(super) fn fail_sync(&mut self) {
        for change in &mut self.changes {
            change.clean |= matches!(change.what, What::Write { .. });
        }
    }

    /// Takes `len` bytes at `offset` out of the clean writes: newer content is durable there.
    fn void(&mut self, offset: u64, len: u64) {
        let end = offset + len;
        let touched = |c: &Change| match &c.what {
            What::Write { offset: at, bytes } => *at < end && offset < at + bytes.len() as u64,
            What::Len(_) | What::Punch(_) | What::Fill(_) => false,
        };
        if len == 0 || !self.changes.iter().any(touched) {
            return;
        }
        for change in std::mem::take(&mut self.changes) {
            let What::Write { offset: at, bytes } = &change.what else {
                self.changes.push(change);
                continue;
            };
            let (at, till) = (*at, at + bytes.len() as u64);
            for (from, to) in [(at, till.min(offset)), (at.max(end), till)] {
                if from < to {
                    let part = bytes[(from - at) as usize..(to - at) as usize].into();
                    let what = What::Write { offset: from, bytes: part };
                    self.changes.push(Change { what, clean: true });
                }
            }
        }
    }

    /// The file as found after a power cut; all of it durable.
    pub(super) fn after_power_cut(&self, chooser: &mut Chooser) -> io::Result<Self> {
        let (mut image, mut holes) = (self.durable.clone(), self.durable_holes.clone());
        let mut resized = true;
        for change in &self.changes {
            let fate = chooser.fate();
            match &change.what {
                What::Len(len) => {
                    // The journal of a file system keeps changes of one file's length in order.
                    resized &= fate == Fate::Kept;
                    if resized {
                        image.set_len(*len)?;
                        holes.cut(*len);
                    }
                }
                What::Punch(range) if fate == Fate::Kept => {
                    image.clear(range.clone());
                    holes.add(range.clone());
                }
                What::Fill(range) if fate == Fate::Kept => holes.remove(range.clone()),
                What::Punch(_) | What::Fill(_) => {}
                What::Write { offset, bytes } if fate == Fate::Kept => {
                    image.write(*offset, bytes);
                    holes.remove(chunks(*offset, bytes.len() as u64));
                }
                What::Write { offset, bytes } if fate == Fate::Torn => {
                    for (sector, bytes) in bytes.chunks(SECTOR as usize).enumerate() {
                        if chooser.sector() {
                            holes.remove(chunks(offset + sector as u64 * SECTOR, SECTOR));
                            image.write(offset + sector as u64 * SECTOR, bytes);
                        }
                    }
                }
                What::Write { .. } => {}
            }
        }
        // A length that was lost leaves no chunk behind the end.
        holes.cut(image.len());
        let (durable, durable_holes) = (image.clone(), holes.clone());
        Ok(Self { durable, cached: image, changes: Vec::new(), holes, durable_holes })
    }

    /// Inverts the bits of `mask` in one byte, wherever it is held.
    pub(super) fn flip(&mut self, offset: u64, mask: u8) {
        for image in [&mut self.durable, &mut self.cached] {
            if offset < image.len() {
                let mut byte = [0];
                image.read(offset, &mut byte);
                image.write(offset, &[byte[0] ^ mask]);
            }
        }
        for change in &mut self.changes {
            if let What::Write { offset: at, bytes } = &mut change.what
                && let Some(index) = offset.checked_sub(*at)
                && index < bytes.len() as u64
            {
                Arc::make_mut(bytes)[index as usize] ^= mask;
            }
        }
    }
}
