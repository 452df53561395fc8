//! The pages of a mapping file behind a buffer, with page faults counted by kind of page.
//!
//! Owns the pool, and page 0 with the state of the mapping. A page read from the disk is a fault,
//! and so is a new page of the file, as in the paper's table 3. Pages can be kept resident, as
//! §6.3 does with those that record new mappings. Threads: none.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use anyhow::{Result, ensure};
use holdall_core::techniques::bytes::{put_u32, put_u64, u32_at, u64_at};
use holdall_io::Disk;

use crate::kit::pool::Pool;
use crate::mutation::{Mutation, is};

/// Bytes of a page (§5.2).
pub const PAGE: usize = 4096;
/// Bytes at the start of each page that name its kind and number.
pub const HEAD: usize = 16;

/// Kinds of pages, in their first byte; a class of faults each. Page 0 is a header, data pages are
/// of a file of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Data,
    Header,
    Bucket,
    Overflow,
    Leaf,
    Inner,
    Bitmap,
    Handles,
}

/// What the kinds are called.
const NAMES: [&str; 8] = [
    "data pages",
    "headers",
    "buckets",
    "overflow pages",
    "leaves",
    "inner nodes",
    "bitmap pages",
    "handle pages",
];

/// Page faults by kind of page: pages read from the disk, then pages new in the file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults([u64; 16]);

impl Faults {
    /// Pages new in the file.
    pub fn new_pages(&self) -> u64 {
        self.0[8..].iter().sum()
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Those that came since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self(std::array::from_fn(|n| self.0[n] - before.0[n]))
    }

    /// These and `more`.
    pub fn and(&self, more: &Self) -> Self {
        Self(std::array::from_fn(|n| self.0[n] + more.0[n]))
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = self.0.iter().enumerate().filter(|(_, faults)| **faults > 0);
        let said = some.map(|(n, faults)| {
            format!("{faults} {} {}", NAMES[n % 8], if n < 8 { "read" } else { "new in the file" })
        });
        f.write_str(&said.collect::<Vec<_>>().join(", "))
    }
}

/// A mapping file.
#[derive(Debug)]
pub struct Pages {
    pool: Pool,
    frames: usize,
    /// New pages, and reads of pools before this one.
    faults: Faults,
    kept: VecDeque<(u32, Kind)>,
    keep: usize,
    fixes: usize,
}

impl Pages {
    /// The pages of `disk` behind a buffer of `frames` pages.
    pub fn new(disk: Arc<dyn Disk>, frames: usize) -> Self {
        let pool = Pool::new(disk, PAGE, frames);
        let faults = Faults::default();
        Self { pool, frames, faults, kept: VecDeque::new(), keep: 0, fixes: 0 }
    }

    /// The mapping's state on page 0; `None` if the file is empty, which then gets that page.
    pub(super) fn state(&mut self) -> Result<Option<Vec<u64>>> {
        if self.pool.disk().len()? == 0 {
            self.fresh(0, Kind::Header, true)?;
            return Ok(None);
        }
        let bytes = self.read(0, Kind::Header)?;
        Ok(Some((HEAD..PAGE).step_by(8).map(|at| u64_at(bytes, at)).collect()))
    }

    /// Puts the state on page 0, writes all changed pages and syncs the disk.
    pub(super) fn flush(&mut self, state: &[u64]) -> Result<()> {
        let bytes = self.fresh(0, Kind::Header, false)?;
        for (n, &word) in state.iter().enumerate() {
            put_u64(bytes, HEAD + n * 8, word);
        }
        Ok(self.pool.flush()?)
    }

    /// Page faults so far.
    pub fn faults(&self) -> Faults {
        let mut now = Faults::default();
        now.0[..8].copy_from_slice(&self.pool.stats().reads);
        self.faults.and(&now)
    }

    /// Goes on with an empty buffer of `frames` pages; counts stay.
    pub fn set_buffer(&mut self, frames: usize) -> Result<()> {
        self.pool.flush()?;
        self.faults = self.faults();
        self.pool = Pool::new(self.pool.disk().clone(), PAGE, frames);
        self.frames = frames;
        Ok(())
    }

    /// Keeps the last `pages` that `keep` named in the buffer; far fewer than its frames.
    pub fn set_kept(&mut self, pages: usize) {
        self.keep = pages;
        self.kept.drain(..self.kept.len().saturating_sub(pages));
    }

    /// Page `no` was needed to record a new mapping: it stays, if [`Pages::set_kept`] asked for
    /// that.
    pub(super) fn keep(&mut self, no: u32, kind: Kind) {
        if self.keep > 0 {
            self.kept.retain(|page| *page != (no, kind));
            self.kept.push_back((no, kind));
            if self.kept.len() > self.keep {
                self.kept.pop_front();
            }
        }
    }

    /// What keeps pages in an LRU buffer: touching them before others can push them out.
    fn hold(&mut self) -> Result<()> {
        self.fixes += 1;
        if self.fixes * 4 >= self.frames && !is(Mutation::KeptPages) {
            self.fixes = 0;
            for at in 0..self.kept.len() {
                let (no, kind) = self.kept[at];
                self.pool.fix(no, kind as usize)?;
            }
        }
        Ok(())
    }

    fn fix(&mut self, no: u32, kind: Kind) -> Result<u32> {
        self.hold()?;
        let frame = self.pool.fix(no, kind as usize)?;
        let bytes = self.pool.bytes(frame);
        ensure!(
            bytes[0] == kind as u8 && u32_at(bytes, 4) == no,
            "page {no} of the mapping file is damaged: it is no {kind:?} page; restore the file"
        );
        Ok(frame)
    }

    pub(super) fn read(&mut self, no: u32, kind: Kind) -> Result<&[u8]> {
        let frame = self.fix(no, kind)?;
        Ok(self.pool.bytes(frame))
    }

    pub(super) fn write(&mut self, no: u32, kind: Kind) -> Result<&mut [u8]> {
        let frame = self.fix(no, kind)?;
        Ok(self.pool.bytes_mut(frame))
    }

    /// Page `no` as a new page of zeros behind its head. A fault if the file `grows` by it.
    pub(super) fn fresh(&mut self, no: u32, kind: Kind, grows: bool) -> Result<&mut [u8]> {
        self.hold()?;
        self.faults.0[8 + kind as usize] += u64::from(grows);
        let frame = self.pool.fix_new(no)?;
        let bytes = self.pool.bytes_mut(frame);
        bytes[0] = kind as u8;
        put_u32(bytes, 4, no);
        Ok(bytes)
    }
}
