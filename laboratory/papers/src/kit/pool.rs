//! Buffer pool: a fixed number of frames over a disk, least recently used out first.
//!
//! Owns the frames, the table page → frame and the counts of reads by class. A dirty page is
//! written when its frame is needed or by [`Pool::flush`], never before. Invariant: a page is in
//! at most one frame. Threads: none; the caller has it alone.

use std::io::Result;
use std::sync::Arc;

use holdall_io::Disk;

const NONE: u32 = u32::MAX;

/// Classes that reads are counted by, at most.
const CLASSES: usize = 8;

/// Pages read and written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Pages read from the disk, by the class that the caller gave.
    pub reads: [u64; CLASSES],
    /// Pages written.
    pub writes: u64,
}

impl PoolStats {
    /// Pages read for a class.
    #[must_use]
    pub fn read_for(&self, class: impl Into<usize>) -> u64 {
        self.reads.get(class.into()).copied().unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    page: u32,
    dirty: bool,
    newer: u32,
    older: u32,
}

/// The pool.
#[derive(Debug)]
pub struct Pool {
    disk: Arc<dyn Disk>,
    page_size: usize,
    bytes: Vec<u8>,
    frames: Vec<Frame>,
    /// Frame of each page number, [`NONE`] if it is in none.
    table: Vec<u32>,
    newest: u32,
    oldest: u32,
    capacity: usize,
    stats: PoolStats,
}

impl Pool {
    /// A pool of `capacity` frames (at least 2) of `page_size` bytes.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, page_size: usize, capacity: usize) -> Self {
        Self {
            disk,
            page_size,
            bytes: Vec::new(),
            frames: Vec::new(),
            table: Vec::new(),
            newest: NONE,
            oldest: NONE,
            capacity: capacity.max(2),
            stats: PoolStats::default(),
        }
    }

    /// Reads and writes so far.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        self.stats
    }

    /// The disk below.
    #[must_use]
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Bytes of a page.
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// Page `no` of the disk, read if it is not in the pool and then counted under `class`, a
    /// number below 8. Gives its frame, good until the next call of `fix` or `fix_new`.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn fix(&mut self, no: u32, class: impl Into<usize>) -> Result<u32> {
        if let Some(&frame) = self.table.get(no as usize)
            && frame != NONE
        {
            self.touch(frame);
            return Ok(frame);
        }
        let frame = self.vacate()?;
        let range = self.range(frame);
        self.disk.read_at(u64::from(no) * self.page_size as u64, &mut self.bytes[range])?;
        if let Some(count) = self.stats.reads.get_mut(class.into()) {
            *count += 1;
        }
        self.occupy(frame, no, false);
        Ok(frame)
    }

    /// A frame of zeros for page `no`, whatever the disk holds there. The page is dirty.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn fix_new(&mut self, no: u32) -> Result<u32> {
        let in_pool = self.table.get(no as usize).copied().filter(|&f| f != NONE);
        let frame = match in_pool {
            Some(frame) => {
                self.touch(frame);
                self.frames[frame as usize].dirty = true;
                frame
            }
            None => {
                let frame = self.vacate()?;
                self.occupy(frame, no, true);
                frame
            }
        };
        let range = self.range(frame);
        self.bytes[range].fill(0);
        Ok(frame)
    }

    /// The bytes of a frame just fixed.
    #[must_use]
    pub fn bytes(&self, frame: u32) -> &[u8] {
        &self.bytes[self.range(frame)]
    }

    /// The bytes of a frame just fixed, to be changed: the page becomes dirty.
    pub fn bytes_mut(&mut self, frame: u32) -> &mut [u8] {
        self.frames[frame as usize].dirty = true;
        let range = self.range(frame);
        &mut self.bytes[range]
    }

    /// The bytes of a frame just fixed, to be looked at through a view that could change them.
    /// The page does not become dirty: change nothing.
    pub fn bytes_kept(&mut self, frame: u32) -> &mut [u8] {
        let range = self.range(frame);
        &mut self.bytes[range]
    }

    /// Whether the page in a frame just fixed differs from the disk.
    #[must_use]
    pub fn is_dirty(&self, frame: u32) -> bool {
        self.frames[frame as usize].dirty
    }

    /// Takes back that [`Pool::bytes_mut`] made a page dirty: nothing was changed.
    pub fn unchanged(&mut self, frame: u32) {
        self.frames[frame as usize].dirty = false;
    }

    /// Writes all dirty pages, in order of page number, and syncs the disk.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn flush(&mut self) -> Result<()> {
        let mut dirty: Vec<u32> = (0..self.frames.len() as u32)
            .filter(|&f| self.frames[f as usize].dirty && self.frames[f as usize].page != NONE)
            .collect();
        dirty.sort_by_key(|&f| self.frames[f as usize].page);
        for frame in dirty {
            self.write(frame)?;
        }
        self.disk.sync()
    }

    fn range(&self, frame: u32) -> std::ops::Range<usize> {
        let start = frame as usize * self.page_size;
        start..start + self.page_size
    }

    fn write(&mut self, frame: u32) -> Result<()> {
        let at = u64::from(self.frames[frame as usize].page) * self.page_size as u64;
        self.disk.write_at(at, &self.bytes[self.range(frame)])?;
        self.stats.writes += 1;
        self.frames[frame as usize].dirty = false;
        Ok(())
    }

    /// A frame without a page, out of the list.
    fn vacate(&mut self) -> Result<u32> {
        if self.frames.len() < self.capacity {
            let frame = self.frames.len() as u32;
            self.frames.push(Frame { page: NONE, dirty: false, newer: NONE, older: NONE });
            self.bytes.resize(self.frames.len() * self.page_size, 0);
            self.link(frame);
        }
        // A frame whose page could not be read stays in the list without a page: it goes first.
        let frame = match self.frames[self.newest as usize].page {
            NONE => self.newest,
            _ => self.oldest,
        };
        if self.frames[frame as usize].page != NONE {
            if self.frames[frame as usize].dirty {
                self.write(frame)?;
            }
            let page = std::mem::replace(&mut self.frames[frame as usize].page, NONE);
            self.table[page as usize] = NONE;
        }
        self.touch(frame);
        Ok(frame)
    }

    fn occupy(&mut self, frame: u32, no: u32, dirty: bool) {
        let at = no as usize;
        if self.table.len() <= at {
            self.table.resize(at + 1, NONE);
        }
        self.table[at] = frame;
        self.frames[frame as usize].page = no;
        self.frames[frame as usize].dirty = dirty;
    }

    fn link(&mut self, frame: u32) {
        self.frames[frame as usize].older = self.newest;
        self.frames[frame as usize].newer = NONE;
        match self.newest {
            NONE => self.oldest = frame,
            newest => self.frames[newest as usize].newer = frame,
        }
        self.newest = frame;
    }

    fn touch(&mut self, frame: u32) {
        if self.newest == frame {
            return;
        }
        let Frame { newer, older, .. } = self.frames[frame as usize];
        self.frames[newer as usize].older = older;
        match older {
            NONE => self.oldest = newer,
            older => self.frames[older as usize].newer = newer,
        }
        self.link(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_io::MemoryDisk;

    const READ: usize = 0;
    const DELETE: usize = 1;

    #[test]
    fn the_least_recently_used_page_goes_and_is_written_if_dirty() {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let mut pool = Pool::new(disk.clone(), 16, 3);
        for no in 0..3 {
            let frame = pool.fix_new(no).unwrap();
            pool.bytes_mut(frame).fill(no as u8 + 1);
        }
        pool.fix(0, READ).unwrap();
        pool.fix_new(3).unwrap(); // page 1 goes
        assert_eq!(pool.stats(), PoolStats { reads: [0; CLASSES], writes: 1 });
        let mut bytes = [0; 16];
        disk.read_at(16, &mut bytes).unwrap();
        assert_eq!(bytes, [2; 16]);
        pool.fix(0, READ).unwrap();
        let frame = pool.fix(1, DELETE).unwrap(); // page 2 goes
        assert_eq!(pool.bytes(frame), [2; 16]);
        assert_eq!(pool.stats().read_for(DELETE), 1);
        assert_eq!(pool.stats().writes, 2);
        pool.flush().unwrap();
        assert_eq!(pool.stats().writes, 4, "pages 0 and 3; page 1 is clean");
    }

    #[test]
    fn a_failed_read_leaves_the_pool_usable() {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let mut pool = Pool::new(disk, 16, 2);
        pool.fix(9, READ).unwrap_err();
        for no in 0..5 {
            let frame = pool.fix_new(no).unwrap();
            pool.bytes_mut(frame)[0] = no as u8;
            pool.fix(9, READ).unwrap_err();
        }
        for no in 0..5 {
            let frame = pool.fix(no, READ).unwrap();
            assert_eq!(u32::from(pool.bytes(frame)[0]), no);
        }
    }
}
