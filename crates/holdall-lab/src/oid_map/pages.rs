//! The pages of a mapping file behind a buffer, with page faults counted.
//!
//! Owns the pool. A page read from the disk is a fault, and so is a new page of the file, as in
//! the paper's table 3. Pages can be kept resident, as §6.3 does with those that record new
//! mappings. Threads: none.

use std::collections::VecDeque;
use std::sync::Arc;

use anyhow::{Result, ensure};
use holdall_io::Disk;

use super::oid::{get32, put32};
use crate::kit::pool::Pool;

/// Bytes of a page (§5.2).
pub const PAGE: usize = 4096;
/// Bytes at the start of each page that name its kind and number.
pub const HEAD: usize = 16;

/// The one class of reads.
const READ: usize = 0;

/// Kinds of pages, in their first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Header = 1,
    Bucket,
    Leaf,
    Inner,
    Bitmap,
    Handles,
}

/// A mapping file.
#[derive(Debug)]
pub struct Pages {
    pool: Pool,
    frames: usize,
    /// Of pools before this one.
    reads: u64,
    fresh: u64,
    kept: VecDeque<u32>,
    keep: usize,
    fixes: usize,
}

impl Pages {
    /// The pages of `disk` behind a buffer of `frames` pages.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, frames: usize) -> Self {
        let pool = Pool::new(disk, PAGE, frames);
        Self { pool, frames, reads: 0, fresh: 0, kept: VecDeque::new(), keep: 0, fixes: 0 }
    }

    /// Whether nothing was ever written.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.pool.disk().len()? == 0)
    }

    /// Page faults so far: pages read, and pages new in the file.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.reads + self.pool.stats().all_reads() + self.fresh
    }

    /// Goes on with an empty buffer of `frames` pages; counts stay.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn set_buffer(&mut self, frames: usize) -> Result<()> {
        self.pool.flush()?;
        self.reads += self.pool.stats().all_reads();
        self.pool = Pool::new(self.pool.disk().clone(), PAGE, frames);
        self.frames = frames;
        Ok(())
    }

    /// Keeps the last `pages` that `keep` named in the buffer; far fewer than its frames.
    pub fn set_kept(&mut self, pages: usize) {
        self.keep = pages;
    }

    /// Page `no` recorded a new mapping: it stays, if [`Pages::set_kept`] asked for that.
    pub(super) fn keep(&mut self, no: u32) {
        if self.keep > 0 && !self.kept.contains(&no) {
            self.kept.push_back(no);
            if self.kept.len() > self.keep {
                self.kept.pop_front();
            }
        }
    }

    /// What keeps pages in an LRU buffer: touching them before others can push them out.
    fn hold(&mut self) -> Result<()> {
        self.fixes += 1;
        if self.fixes * 4 >= self.frames {
            self.fixes = 0;
            for at in 0..self.kept.len() {
                self.pool.fix(self.kept[at], READ)?;
            }
        }
        Ok(())
    }

    fn fix(&mut self, no: u32, kind: Kind) -> Result<u32> {
        self.hold()?;
        let frame = self.pool.fix(no, READ)?;
        let bytes = self.pool.bytes(frame);
        ensure!(
            bytes[0] == kind as u8 && get32(bytes, 4) == no,
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

    /// Page `no` as a new page of zeros behind its head. A fault where the file `grows` by it.
    pub(super) fn fresh(&mut self, no: u32, kind: Kind, grows: bool) -> Result<&mut [u8]> {
        self.hold()?;
        self.fresh += u64::from(grows);
        let frame = self.pool.fix_new(no)?;
        let bytes = self.pool.bytes_mut(frame);
        bytes[0] = kind as u8;
        put32(bytes, 4, no);
        Ok(bytes)
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        Ok(self.pool.flush()?)
    }
}
