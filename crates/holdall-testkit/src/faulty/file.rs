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
use std::sync::Arc;

use super::image::Image;
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
}

/// A file.
#[derive(Clone, Default)]
pub(super) struct SimFile {
    pub(super) durable: Image,
    pub(super) cached: Image,
    changes: Vec<Change>,
}

impl SimFile {
    /// A file with this content, all durable.
    pub(super) fn from_bytes(bytes: &[u8]) -> io::Result<Self> {
        let mut image = Image::default();
        image.set_len(bytes.len() as u64)?;
        image.write(0, bytes);
        Ok(Self { durable: image.clone(), cached: image, changes: Vec::new() })
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
                    self.void(*offset, bytes.len() as u64);
                }
                What::Len(len) => {
                    let old = self.durable.len();
                    self.durable.set_len(*len)?;
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
            What::Len(_) => false,
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
        let mut image = self.durable.clone();
        let mut resized = true;
        for change in &self.changes {
            let fate = chooser.fate();
            match &change.what {
                What::Len(len) => {
                    // The journal of a file system keeps changes of one file's length in order.
                    resized &= fate == Fate::Kept;
                    if resized {
                        image.set_len(*len)?;
                    }
                }
                What::Write { offset, bytes } if fate == Fate::Kept => image.write(*offset, bytes),
                What::Write { offset, bytes } if fate == Fate::Torn => {
                    for (sector, bytes) in bytes.chunks(SECTOR as usize).enumerate() {
                        if chooser.sector() {
                            image.write(offset + sector as u64 * SECTOR, bytes);
                        }
                    }
                }
                What::Write { .. } => {}
            }
        }
        Ok(Self { durable: image.clone(), cached: image, changes: Vec::new() })
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
