//! Reads and writes past the page cache (`O_DIRECT`), through memory that suits the device.
//!
//! Owns: the file opened a second time for it, and whether it turned out not to serve.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::io::Errno;

use crate::blocks::write_all;
use crate::huge::{HUGE, HugePage};
use crate::summed_copy::{UNIT, copy_units};

/// Alignment of offset, length and memory.
pub(crate) const ALIGN: usize = 4096;
/// Fewer bytes are written through memory of the thread.
const FEW: usize = 64 << 10;

thread_local! {
    static BOUNCE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A file opened for reads and writes past the cache.
#[derive(Debug)]
pub(crate) struct Direct {
    file: File,
    fails: AtomicBool,
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
        Some(Self { file, fails: AtomicBool::new(false) })
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
        if bytes.len() > FEW {
            let Some(mut page) = HugePage::take() else { return Ok(false) };
            return self.bounce(offset, bytes, page.bytes());
        }
        let few = |buffer: &RefCell<Vec<u8>>| {
            self.bounce(offset, bytes, aligned(&mut buffer.borrow_mut(), bytes.len()))
        };
        // Where the thread ends, and its memory with it, the way through the cache is left.
        BOUNCE.try_with(few).unwrap_or(Ok(false))
    }

    /// Whether it did not turn out to fail.
    pub(crate) fn serves(&self) -> bool {
        !self.fails.load(Relaxed)
    }

    /// Fills `parts`, one behind the other, with the bytes from `offset` on, and `sums` with the
    /// CRC-32C of each unit of them; all are whole units. Returns whether it did. What went wrong
    /// shows when they are read another way.
    pub(crate) fn read(&self, offset: u64, parts: &mut [&mut [u8]], sums: &mut [u32]) -> bool {
        let whole = parts.iter().all(|part| part.len().is_multiple_of(UNIT));
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if !whole || !offset.is_multiple_of(ALIGN as u64) || len != sums.len() * UNIT {
            return false;
        }
        let Some(mut page) = HugePage::take().filter(|_| self.serves()) else { return false };
        let (page, mut at, mut ready) = (page.bytes(), offset, 0..0);
        let (mut left, mut sums) = (len, sums);
        for part in parts {
            let mut to = &mut **part;
            while !to.is_empty() {
                if ready.is_empty() {
                    ready = 0..left.min(HUGE);
                    if !self.fill(at, &mut page[ready.clone()]) {
                        return false;
                    }
                    (at, left) = (at + ready.len() as u64, left - ready.len());
                }
                let n = to.len().min(ready.len());
                let (now, later) = to.split_at_mut(n);
                let (first, rest) = sums.split_at_mut(n / UNIT);
                copy_units(&page[ready.start..ready.start + n], now, first);
                (to, sums, ready.start) = (later, rest, ready.start + n);
            }
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
    fn bounce(&self, mut offset: u64, bytes: &[u8], memory: &mut [u8]) -> io::Result<bool> {
        for piece in bytes.chunks(memory.len().max(1)) {
            let aligned = &mut memory[..piece.len()];
            aligned.copy_from_slice(piece);
            if !self.straight(offset, aligned)? {
                return Ok(false);
            }
            offset += piece.len() as u64;
        }
        Ok(true)
    }
}

/// `len` bytes of `buffer`, aligned. It only grows: a thread that commits little needs
/// a block or two.
fn aligned(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    let most = len + ALIGN;
    if buffer.len() < most {
        buffer.resize(most, 0);
    }
    let skip = buffer.as_ptr().align_offset(ALIGN).min(ALIGN);
    &mut buffer[skip..skip + len]
}
