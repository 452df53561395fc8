//! The checksums of staged data, in order: memory holds the last ones, scratch the others.
//!
//! Owns: [`Checksums`]. One object of a terabyte has a gigabyte of them before any transaction knows
//! of it. Scratch is reserved in memory alone, so a crash leaves nothing of it.

use super::{Allocator, UNIT};
use crate::txn::{Pager, io_error};
use holdall_core::checksum::crc;
use holdall_core::{Error, PageRun, Result};
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of a checksum.
const BYTES: usize = size_of::<u32>();

/// Some checksums in scratch, under one of their own.
#[derive(Debug)]
struct Piece {
    run: PageRun,
    count: usize,
    checksum: u32,
}

/// Checksums of units in a row, taken out in the order in which they came.
#[derive(Debug)]
pub struct Checksums {
    alloc: Arc<Allocator>,
    pager: Arc<Pager>,
    /// Those that come first.
    pieces: VecDeque<Piece>,
    /// Those read from a piece, from `taken` on.
    first: Vec<u32>,
    taken: usize,
    last: Vec<u32>,
    /// Scratch would take pages that the data needs.
    stays: bool,
}

impl Checksums {
    pub(super) fn new(alloc: &Arc<Allocator>, pager: &Arc<Pager>) -> Self {
        Self {
            alloc: alloc.clone(),
            pager: pager.clone(),
            pieces: VecDeque::new(),
            first: Vec::new(),
            taken: 0,
            last: Vec::new(),
            stays: false,
        }
    }

    /// Adds those of whole units. Cost: mostly none; with each 2 GiB of data 2 MiB are written.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`].
    pub(super) fn add(&mut self, data: &[u8]) -> Result<()> {
        self.last.extend(data.chunks(UNIT).map(crc));
        if self.stays || self.last.len() * BYTES < self.pager.limits().checksum_bytes {
            return Ok(());
        }
        let bytes: Vec<u8> = self.last.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let size = self.pager.page_size();
            // Without room they stay in memory.
            let Some(run) = self.alloc.reserve_scratch(rest.len().div_ceil(size) as u64)? else {
                break;
            };
            let (part, behind) = rest.split_at(rest.len().min(run.len as usize * size));
            let count = part.len() / BYTES;
            self.pieces.push_back(Piece { run, count, checksum: crc(part) });
            let mut pages = part.to_vec();
            pages.resize(run.len as usize * size, 0);
            self.pager.volume.write_pages(run.start, &pages)?;
            rest = behind;
        }
        self.last.drain(..self.last.len() - rest.len() / BYTES);
        Ok(())
    }

    /// Brings the last ones in scratch back to memory, where further ones stay: the data has no room.
    /// Returns whether there were any. Cost: a read.
    ///
    /// # Errors
    /// As [`Checksums::take`].
    pub(super) fn come_back(&mut self) -> Result<bool> {
        self.stays = true;
        let Some(piece) = self.pieces.pop_back() else { return Ok(false) };
        let mut sums = self.read(&piece)?;
        sums.append(&mut self.last);
        self.last = sums;
        Ok(true)
    }

    /// Takes the next `count`, or those that are left. Cost: a read of scratch for each piece begun.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] if scratch is not as it was written.
    pub(super) fn take(&mut self, count: usize) -> Result<Vec<u32>> {
        if self.pieces.is_empty() && self.taken == self.first.len() && count >= self.last.len() {
            // Mostly all at once, without a copy.
            return Ok(std::mem::take(&mut self.last));
        }
        let mut all = Vec::with_capacity(count);
        while all.len() < count {
            if self.taken == self.first.len() {
                (self.first, self.taken) = (self.next()?, 0);
            }
            let left = self.first.len() - self.taken;
            let take = left.min(count - all.len());
            if take == 0 {
                break;
            }
            all.extend_from_slice(&self.first[self.taken..self.taken + take]);
            self.taken += take;
        }
        Ok(all)
    }

    /// The checksums of the next piece; behind the last one those in memory.
    fn next(&mut self) -> Result<Vec<u32>> {
        match self.pieces.pop_front() {
            Some(piece) => self.read(&piece),
            None => Ok(std::mem::take(&mut self.last)),
        }
    }

    /// The checksums of a piece, whose scratch is given back.
    fn read(&self, piece: &Piece) -> Result<Vec<u32>> {
        let mut bytes = vec![0; piece.count * BYTES];
        let at = piece.run.start.0 * self.pager.page_size() as u64;
        let read = self.pager.volume.disk.read_at(at, &mut bytes);
        give_back(&self.alloc, piece.run);
        read.map_err(|e| io_error(format!("reading scratch at page {}", piece.run.start), e))?;
        if crc(&bytes) != piece.checksum {
            return Err(Error::page(
                piece.run.start,
                "held checksums in scratch, and does not now",
            ));
        }
        let (sums, _) = bytes.as_chunks::<BYTES>();
        Ok(sums.iter().map(|sum| u32::from_le_bytes(*sum)).collect())
    }
}

impl Drop for Checksums {
    fn drop(&mut self) {
        for piece in &self.pieces {
            give_back(&self.alloc, piece.run);
        }
    }
}

fn give_back(alloc: &Allocator, run: PageRun) {
    // It can only fail if the allocator contradicts itself; the pages then stay reserved until the
    // store is closed.
    let _ = alloc.unreserve(run);
}
