//! Staging large data: written to free runs before any transaction knows of it.
//!
//! Owns: reservations until a transaction takes them; the data's checksums. Needs no writer's
//! lock (rule 10). Dropped unused, everything is given back and no trace remains.
//!
//! Each page is written whole and once (docs/format.md, "Segment data"). Written ranges are pushed
//! to the device as they come and what is dirty in the cache is bounded (rule 8).

use super::checksums::Checksums;
use super::{Allocator, Class, Growing, Near};
use crate::txn::direct::{most_composed, most_logged};
use crate::txn::{Pager, io_error};
use holdall_core::segment_tree::Origin;
use holdall_core::{Error, PageNo, PageRun, Result};
use holdall_io::WriteOut;
use std::collections::VecDeque;
use std::sync::Arc;

/// First run of a stream of unknown length, in bytes; each further one doubles.
const FIRST_BYTES: u64 = 64 << 10;
/// Runs of a stream of unknown length grow to this size.
const MOST_BYTES: u64 = 32 << 20;
/// Checksums and writes go in pieces of this size, to stay in the cache.
const BYTES_PER_WRITE: usize = 1 << 20;

/// Write-out in flight: started for every this many bytes, and this many ranges before the
/// oldest is waited for.
#[derive(Clone, Copy)]
struct Depth {
    bytes: u64,
    ranges: usize,
}

/// Nobody else syncs: deep, to keep the device busy.
const ALONE: Depth = Depth { bytes: 4 << 20, ranges: 8 };
/// Others commit meanwhile: their syncs wait behind what is queued here.
const SHARED: Depth = Depth { bytes: 1 << 20, ranges: 1 };

/// Whatever has gathered, without waiting.
const NOW: Depth = Depth { bytes: 0, ranges: 8 };

/// Data at its place in free runs, not yet part of any object.
#[derive(Debug)]
pub struct Staged {
    alloc: Arc<Allocator>,
    /// Where the data lies, in order; all pages but the last are full.
    pub runs: Vec<PageRun>,
    /// Checksum of each unit, in the order of the runs.
    pub(super) checksums: Checksums,
    /// Bytes in the runs.
    pub len: u64,
    /// Bytes after those, which did not fill a page.
    pub tail: Vec<u8>,
    /// The runs' bytes if they are few enough for the log; else they need a sync.
    pub bytes: Option<Vec<u8>>,
    /// Where those bytes come from, if some lie in the volume already.
    pub origins: Option<Vec<Origin>>,
    /// None of those bytes was written yet: the adopter does it.
    pub unwritten: bool,
}

impl Staged {
    /// Hands the runs over to a transaction, which gives them back if it fails.
    pub fn take_runs(&mut self) -> Vec<PageRun> {
        std::mem::take(&mut self.runs)
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        give_back(&self.alloc, &self.runs);
    }
}

fn give_back(alloc: &Allocator, runs: &[PageRun]) {
    for run in runs {
        // It can only fail if the allocator contradicts itself; the pages then stay
        // reserved until the store is closed, which loses nothing.
        let _ = alloc.unreserve(*run);
    }
}

/// Takes bytes and writes them to runs as they come.
#[derive(Debug)]
pub struct Stager {
    alloc: Arc<Allocator>,
    pager: Arc<Pager>,
    runs: Vec<PageRun>,
    checksums: Checksums,
    buffer: Vec<u8>,
    expected: Option<u64>,
    /// The size that the data has perhaps, if nobody knows.
    likely: u64,
    near: Option<PageNo>,
    /// More will follow in other transactions.
    grows: bool,
    class: Class,
    /// What is at hand is all there will be.
    ending: bool,
    /// Next page to write, and pages left in the last run.
    next: PageNo,
    left: u64,
    written: u64,
    kept: Option<Vec<u8>>,
    /// All of the bytes are kept by who writes them.
    lent: bool,
    /// Most bytes that are kept.
    keep: usize,
    origins: Option<Vec<Origin>>,
    /// Nothing is written as long as all is kept: a small object is written in place with others.
    unwritten: bool,
    /// Groups the log had synced when last looked at.
    synced: u64,
    /// Others commit meanwhile.
    shared: bool,
    unpushed: (u64, u64),
    pushed: VecDeque<(u64, u64)>,
}

impl Stager {
    /// Stages data of `expected` bytes if that is known, close to `near`.
    pub fn new(alloc: &Arc<Allocator>, pager: &Arc<Pager>, expected: Option<u64>) -> Self {
        let keep = most_logged(pager.limits());
        Self {
            alloc: alloc.clone(),
            pager: pager.clone(),
            runs: Vec::new(),
            checksums: Checksums::new(alloc, pager),
            buffer: Vec::new(),
            expected,
            likely: 0,
            near: None,
            grows: false,
            class: Class::Data,
            ending: false,
            next: PageNo(0),
            left: 0,
            written: 0,
            kept: Some(Vec::new()),
            lent: false,
            keep,
            origins: None,
            unwritten: expected.is_some_and(|e| e <= keep as u64),
            synced: pager.log.groups(),
            shared: false,
            unpushed: (0, 0),
            pushed: VecDeque::new(),
        }
    }

    /// Asks that the first run begin at `page`, so that it continues an earlier one.
    pub fn near(mut self, page: Option<PageNo>) -> Self {
        self.near = page;
        self
    }

    /// Says whether more will follow once this has become a part of an object.
    pub fn grows(mut self, grows: bool) -> Self {
        self.grows = grows;
        self
    }

    /// Whether the caller told how many bytes there will be.
    pub fn knows_size(&self) -> bool {
        self.expected.is_some()
    }

    /// Guesses that there will be `bytes` bytes, where nobody told.
    pub fn likely(&mut self, bytes: u64) {
        self.likely = bytes;
    }

    /// Asks for room as `class` instead of as users' data.
    pub fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    /// Begins with `run`, which the caller has reserved.
    pub fn within(mut self, run: PageRun) -> Self {
        (self.next, self.left) = (run.start, run.len);
        self.runs.push(run);
        self
    }

    /// Tells where the bytes to come come from. If the new ones among them are few enough
    /// for the log, the commit needs no sync of its own for the others either.
    pub fn origins(mut self, origins: Vec<Origin>) -> Self {
        let sum = |new: bool| {
            let of = origins.iter().filter(|o| matches!(o, Origin::New(_)) == new);
            of.map(Origin::len).sum::<u64>()
        };
        if let Some(all) = most_composed(self.pager.limits(), sum(true), sum(false)) {
            self.keep = all.next_multiple_of(self.pager.page_size() as u64) as usize;
            self.origins = Some(origins);
        }
        self.unwritten &= self.origins.is_none();
        self
    }

    /// Bytes taken so far.
    pub fn len(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Takes more bytes. Whole pages of large buffers are written without a copy.
    ///
    /// # Errors
    /// [`holdall_core::Error::Full`], [`holdall_core::Error::Io`].
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        let size = self.pager.page_size();
        if !self.buffer.is_empty() {
            let n = bytes.len().min(BYTES_PER_WRITE - self.buffer.len());
            self.buffer.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if self.buffer.len() < BYTES_PER_WRITE {
                return Ok(());
            }
            let full = std::mem::take(&mut self.buffer);
            self.write_pages(&full)?;
            self.buffer = full;
            self.buffer.clear();
        }
        let whole = bytes.len() / BYTES_PER_WRITE * BYTES_PER_WRITE;
        // With room for a padded last page: the end of the data is not moved again.
        self.buffer.reserve((bytes.len() - whole).next_multiple_of(size));
        debug_assert!(BYTES_PER_WRITE.is_multiple_of(size), "pieces are whole pages");
        self.write_pages(&bytes[..whole])?;
        self.buffer.extend_from_slice(&bytes[whole..]);
        Ok(())
    }

    /// Ends the data. What does not fill a page stays as tail if it has at most `most_tail`
    /// bytes; else it goes into a last page, padded with zeros.
    ///
    /// # Errors
    /// As [`Stager::write`].
    pub fn finish(mut self, most_tail: usize) -> Result<Staged> {
        let size = self.pager.page_size();
        self.ending = true;
        let mut rest = std::mem::take(&mut self.buffer);
        let whole = rest.len() / size * size;
        let (mut tail, mut len) = (Vec::new(), self.written + rest.len() as u64);
        if rest.len() - whole > most_tail {
            rest.resize(whole + size, 0);
        } else {
            tail = rest.split_off(whole);
            len -= tail.len() as u64;
        }
        if self.written == 0 && self.kept.is_some() && rest.len() <= self.keep {
            self.keep_all(rest)?;
        } else {
            self.write_pages(&rest)?;
        }
        self.trim()?;
        self.keep_more(len + tail.len() as u64);
        if self.kept.is_none() || self.origins.is_some() {
            // What is copied is much more than the log holds: the next checkpoint's sync should
            // not find all of it waiting.
            self.push(NOW)?;
        }
        Ok(Staged {
            alloc: self.alloc.clone(),
            runs: std::mem::take(&mut self.runs),
            checksums: std::mem::replace(
                &mut self.checksums,
                Checksums::new(&self.alloc, &self.pager),
            ),
            len,
            tail,
            bytes: self.kept.take(),
            origins: self.origins.take(),
            unwritten: self.unwritten,
        })
    }

    /// Writes all of the data, and keeps it without a copy.
    fn keep_all(&mut self, bytes: Vec<u8>) -> Result<()> {
        self.lent = true;
        self.write_pages(&bytes)?;
        self.kept = Some(bytes);
        Ok(())
    }

    /// Gives back what the last run has too much.
    fn trim(&mut self) -> Result<()> {
        let left = std::mem::take(&mut self.left);
        let Some(last) = self.runs.last_mut().filter(|_| left > 0) else { return Ok(()) };
        let keep = last.len - left;
        self.alloc.unreserve(PageRun::new(PageNo(last.start.0 + keep), left))?;
        last.len = keep;
        if keep == 0 {
            self.runs.pop();
        }
        Ok(())
    }

    /// The pages that are expected behind the first `len` bytes, if any are.
    fn more_to_come(&self, len: u64) -> Option<u64> {
        let more = self.expected?.saturating_sub(len) / self.pager.page_size() as u64;
        Some(more).filter(|pages| *pages > 0)
    }

    /// Keeps pages behind data of `len` bytes that grows, or of which more are expected.
    fn keep_more(&self, len: u64) {
        let more = self.more_to_come(len);
        if let Some(last) = self.runs.last().filter(|_| self.grows || more.is_some()) {
            self.alloc.keep_behind(PageNo(last.end()), more);
        }
    }

    fn write_pages(&mut self, mut bytes: &[u8]) -> Result<()> {
        let size = self.pager.page_size();
        while !bytes.is_empty() {
            if self.left == 0 {
                self.more_room(bytes.len())?;
            }
            let most = (self.left as usize).saturating_mul(size).min(BYTES_PER_WRITE);
            let (piece, rest) = bytes.split_at(bytes.len().min(most));
            self.write_piece(piece)?;
            bytes = rest;
        }
        Ok(())
    }

    fn write_piece(&mut self, piece: &[u8]) -> Result<()> {
        let size = self.pager.page_size() as u64;
        self.checksums.add(piece)?;
        let at = self.next.0 * size;
        let kept = self.kept.as_ref().is_some_and(|k| k.len() + piece.len() <= self.keep);
        if !kept {
            self.write_kept()?;
        }
        let disk = &self.pager.volume.disk;
        // Past the cache if others' syncs would wait behind ours. Else through it: the device
        // works while the next piece is copied, and a reader of the object finds it there.
        let written = if self.unwritten {
            Ok(())
        } else if !kept && self.shared {
            disk.write_bulk(at, piece)
        } else {
            disk.write_at(at, piece)
        };
        written.map_err(|e| io_error(format!("writing segment data at page {}", self.next), e))?;
        let pages = piece.len() as u64 / size;
        self.next = PageNo(self.next.0 + pages);
        self.left -= pages;
        self.written += piece.len() as u64;
        match &mut self.kept {
            Some(_) if self.lent => {}
            Some(bytes) if kept => bytes.extend_from_slice(piece),
            bytes => *bytes = None,
        }
        self.note_written(at, piece.len() as u64)
    }

    /// Writes what was only kept: it turned out to be more.
    fn write_kept(&mut self) -> Result<()> {
        let size = self.pager.page_size();
        let mut rest = match &self.kept {
            Some(kept) if self.unwritten => kept.as_slice(),
            _ => &[],
        };
        for run in &self.runs {
            let len = (run.len as usize).saturating_mul(size).min(rest.len());
            let (part, behind) = rest.split_at(len);
            if !part.is_empty() {
                self.pager.volume.write_pages(run.start, part)?;
            }
            rest = behind;
        }
        self.unwritten = false;
        Ok(())
    }

    fn note_written(&mut self, at: u64, len: u64) -> Result<()> {
        let (start, so_far) = self.unpushed;
        if start + so_far == at {
            self.unpushed.1 += len;
        } else {
            self.push(NOW)?;
            self.unpushed = (at, len);
        }
        let synced = self.pager.log.groups();
        self.shared = synced != self.synced;
        let depth = if self.shared { SHARED } else { ALONE };
        if self.unpushed.1 >= ALONE.bytes {
            // Looked at anew with each stretch: commits may come and go.
            self.synced = synced;
        }
        self.push(depth)
    }

    /// Starts write-out once enough has gathered, and bounds what is under way.
    fn push(&mut self, depth: Depth) -> Result<()> {
        let (at, len) = self.unpushed;
        let logged = self.kept.is_some() && self.origins.is_none();
        if len == 0 || len < depth.bytes || logged {
            return Ok(());
        }
        self.unpushed = (at + len, 0);
        let disk = &self.pager.volume.disk;
        let poison = |e: std::io::Error| {
            // What could not be written out may be marked clean: as after a failed sync.
            self.pager.log.set_poison(&format!("write-out of the volume: {e}"));
            io_error("writing out segment data", e)
        };
        disk.write_out(at, len, WriteOut::Start).map_err(poison)?;
        self.pushed.push_back((at, len));
        while self.pushed.len() > depth.ranges {
            let Some((at, len)) = self.pushed.pop_front() else { break };
            disk.write_out(at, len, WriteOut::Wait).map_err(poison)?;
        }
        Ok(())
    }

    /// Reserves the next run: of the known size, or growing from run to run.
    fn more_room(&mut self, at_hand: usize) -> Result<()> {
        let size = self.pager.page_size() as u64;
        let want = match self.expected.map(|e| e.saturating_sub(self.written)) {
            _ if self.ending => at_hand as u64,
            Some(left) => left.max(at_hand as u64),
            None => {
                let next = FIRST_BYTES.max(self.written).min(MOST_BYTES).max(at_hand as u64);
                match self.likely.saturating_sub(self.written) {
                    0 => next,
                    // A guess takes no more at once than is taken without one.
                    left => left.min(MOST_BYTES).max(at_hand as u64),
                }
            }
        };
        let pages = want.div_ceil(size);
        let at = self.runs.last().map(|last| PageNo(last.end())).or(self.near);
        let more = self.more_to_come(self.written + at_hand as u64).filter(|_| self.ending);
        let near = match at {
            _ if self.grows || more.is_some() => Near::Growing(Growing { at, more }),
            Some(page) => Near::At(page),
            None => Near::Anywhere,
        };
        let run = loop {
            match self.alloc.reserve(pages, pages, near, self.class) {
                Err(Error::Full(_)) if self.checksums.come_back()? => {}
                result => break result?,
            }
        };
        self.next = run.start;
        self.left = run.len;
        match self.runs.last_mut() {
            Some(last) if last.end() == run.start.0 => last.len += run.len,
            _ => self.runs.push(run),
        }
        Ok(())
    }
}

impl Drop for Stager {
    fn drop(&mut self) {
        give_back(&self.alloc, &self.runs);
    }
}
