//! Reads and writes past the page cache (`O_DIRECT`), through aligned memory if the
//! caller's is not.
//!
//! Owns: the file opened a second time for it, whether it turned out not to serve, and memory
//! for reads.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use parking_lot::Mutex;
use rustix::io::Errno;

use crate::blocks::write_all;

/// Alignment of offset, length and memory.
const ALIGN: usize = 4096;
/// Bytes that are written through aligned memory at a time.
const BOUNCE_BYTES: usize = 1 << 20;
/// Bytes that are read through it at a time: those of a piece of 1 MiB whose ends are ragged
/// come at once.
const READ_BYTES: usize = BOUNCE_BYTES + (64 << 10);
/// Aligned memories for reads that a file keeps: threads that read long are made for it.
const SPARE: usize = 4;

thread_local! {
    static BOUNCE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A file opened for reads and writes past the cache.
#[derive(Debug)]
pub(crate) struct Direct {
    file: File,
    fails: AtomicBool,
    spare: Mutex<Vec<Vec<u8>>>,
}

impl Direct {
    /// The same file once more, whatever its path leads to by now; `None` if that is not to
    /// be had.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn open(file: &File, write: bool) -> Option<Self> {
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = File::options();
        let options = options.read(true).write(write).custom_flags(libc::O_DIRECT);
        let file = options.open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        Some(Self { file, fails: AtomicBool::new(false), spare: Mutex::default() })
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn open(_file: &File, _write: bool) -> Option<Self> {
        None
    }

    /// Writes `bytes`. `Ok(false)`: this file cannot, or not these; what
    /// is there then is undefined and has to be written another way.
    ///
    /// # Errors
    /// As [`Disk::write_at`](crate::Disk::write_at).
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<bool> {
        let ragged = !offset.is_multiple_of(ALIGN as u64) || !bytes.len().is_multiple_of(ALIGN);
        if ragged || self.fails.load(Relaxed) {
            return Ok(false);
        }
        if bytes.as_ptr().align_offset(ALIGN) == 0 {
            return self.straight(offset, bytes);
        }
        // Where the thread ends, and its memory with it, the way through the cache is left.
        let written = BOUNCE.try_with(|buffer| self.bounce(offset, bytes, buffer));
        written.unwrap_or(Ok(false))
    }

    /// Whether it did not turn out to fail.
    pub(crate) fn serves(&self) -> bool {
        !self.fails.load(Relaxed)
    }

    /// Fills `parts`, one behind the other, with the bytes from `offset` on; returns whether it
    /// did. What went wrong shows when they are read another way.
    pub(crate) fn read(&self, offset: u64, parts: &mut [&mut [u8]]) -> bool {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let ragged = !offset.is_multiple_of(ALIGN as u64) || !len.is_multiple_of(ALIGN);
        if ragged || !self.serves() {
            return false;
        }
        let mut buffer = self.spare.lock().pop().unwrap_or_default();
        let mut blocks = blocks(offset, parts).into_iter();
        let read = blocks.all(|block| self.read_block(block, &mut buffer));
        let mut spare = self.spare.lock();
        if !buffer.is_empty() && spare.len() < SPARE {
            spare.push(buffer);
        }
        read
    }

    fn read_block(&self, mut block: Block<'_>, buffer: &mut Vec<u8>) -> bool {
        if let [to] = &mut block.to[..]
            && to.as_ptr().align_offset(ALIGN) == 0
        {
            return self.fill(block.offset, to);
        }
        let len = block.to.iter().map(|to| to.len()).sum();
        let mut from = &mut aligned(buffer, len)[..len];
        if !self.fill(block.offset, from) {
            return false;
        }
        for to in block.to {
            let (now, rest) = from.split_at_mut(to.len());
            to.copy_from_slice(now);
            from = rest;
        }
        true
    }

    /// Reads into what is aligned already.
    fn fill(&self, mut offset: u64, mut buf: &mut [u8]) -> bool {
        while !buf.is_empty() {
            match rustix::io::pread(&self.file, &mut *buf, offset) {
                // A part that ends between blocks is the file's end.
                Ok(n) if n > 0 && n.is_multiple_of(ALIGN) => {
                    (buf, offset) = (&mut buf[n..], offset + n as u64);
                }
                Err(Errno::INTR) => {}
                Ok(_) => return false,
                Err(e) => {
                    if e == Errno::INVAL {
                        self.fails.store(true, Relaxed);
                    }
                    return false;
                }
            }
        }
        true
    }

    /// Writes what is aligned already.
    fn straight(&self, offset: u64, bytes: &[u8]) -> io::Result<bool> {
        match write_all(&self.file, offset, bytes) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                // The file system wants another alignment, or none of this.
                self.fails.store(true, Relaxed);
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }

    /// Writes through aligned memory.
    fn bounce(&self, mut offset: u64, bytes: &[u8], buffer: &RefCell<Vec<u8>>) -> io::Result<bool> {
        let mut buffer = buffer.borrow_mut();
        let buffer = aligned(&mut buffer, bytes.len().min(BOUNCE_BYTES));
        for piece in bytes.chunks(BOUNCE_BYTES) {
            let aligned = &mut buffer[..piece.len()];
            aligned.copy_from_slice(piece);
            if !self.straight(offset, aligned)? {
                return Ok(false);
            }
            offset += piece.len() as u64;
        }
        Ok(true)
    }
}

/// Up to [`READ_BYTES`] of a read.
struct Block<'a> {
    offset: u64,
    to: Vec<&'a mut [u8]>,
}

fn blocks<'a>(offset: u64, parts: &'a mut [&mut [u8]]) -> Vec<Block<'a>> {
    let mut blocks: Vec<Block<'a>> = Vec::new();
    let (mut at, mut room) = (offset, 0);
    for part in parts {
        let mut rest = &mut **part;
        while !rest.is_empty() {
            if room == 0 {
                blocks.push(Block { offset: at, to: Vec::new() });
                room = READ_BYTES;
            }
            let (now, later) = rest.split_at_mut(rest.len().min(room));
            (at, room, rest) = (at + now.len() as u64, room - now.len(), later);
            if let Some(block) = blocks.last_mut() {
                block.to.push(now);
            }
        }
    }
    blocks
}

/// `len` bytes of `buffer` or more, aligned. It only grows: a thread that commits little needs
/// a block or two.
fn aligned(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    let most = len + ALIGN;
    if buffer.len() < most {
        buffer.resize(most, 0);
    }
    let skip = buffer.as_ptr().align_offset(ALIGN).min(ALIGN);
    &mut buffer[skip..]
}
