//! Writes past the system's cache (`O_DIRECT`), through aligned memory where the caller's is not.
//!
//! Owns: the file opened a second time for it, and whether it turned out not to serve.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::file::write_all;

/// Alignment of offset, length and memory.
const ALIGN: usize = 4096;
/// Bytes copied to aligned memory and written at a time.
const BOUNCE_BYTES: usize = 1 << 20;

thread_local! {
    static BOUNCE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A file opened for writes past the cache.
#[derive(Debug)]
pub(crate) struct Direct {
    file: File,
    fails: AtomicBool,
}

impl Direct {
    /// The file at `path` once more; `None` where that is not to be had.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn open(path: &Path) -> Option<Self> {
        use std::os::unix::fs::OpenOptionsExt;
        let file = File::options().write(true).custom_flags(libc::O_DIRECT).open(path).ok()?;
        Some(Self { file, fails: AtomicBool::new(false) })
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn open(_path: &Path) -> Option<Self> {
        None
    }

    /// Writes `parts`, one behind the other. `Ok(false)`: this file cannot, or not these; what
    /// is there then is undefined and has to be written another way.
    ///
    /// # Errors
    /// As [`Disk::write_at`](crate::Disk::write_at).
    pub(crate) fn write(&self, offset: u64, parts: &[&[u8]]) -> io::Result<bool> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let ragged = !offset.is_multiple_of(ALIGN as u64) || !len.is_multiple_of(ALIGN);
        if ragged || self.fails.load(Relaxed) {
            return Ok(false);
        }
        if let [bytes] = parts
            && bytes.as_ptr().align_offset(ALIGN) == 0
        {
            return self.straight(offset, bytes);
        }
        // Where the thread ends, and its memory with it, the way through the cache is left.
        let written = BOUNCE.try_with(|buffer| self.bounce(offset, (parts, len), buffer));
        written.unwrap_or(Ok(false))
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
    fn bounce(
        &self,
        mut offset: u64,
        (parts, len): (&[&[u8]], usize),
        buffer: &RefCell<Vec<u8>>,
    ) -> io::Result<bool> {
        let mut buffer = buffer.borrow_mut();
        // Grown once: a thread that only commits needs a block or two.
        let most = len.min(BOUNCE_BYTES) + ALIGN;
        if buffer.len() < most {
            buffer.resize(most, 0);
        }
        let skip = buffer.as_ptr().align_offset(ALIGN).min(ALIGN);
        let (mut parts, mut rest, mut left) = (parts.iter(), &[][..], len);
        while left > 0 {
            let aligned = &mut buffer[skip..skip + left.min(BOUNCE_BYTES)];
            let mut filled = 0;
            while filled < aligned.len() {
                if rest.is_empty() {
                    rest = parts.next().copied().unwrap_or_default();
                    continue;
                }
                let (now, later) = rest.split_at(rest.len().min(aligned.len() - filled));
                aligned[filled..filled + now.len()].copy_from_slice(now);
                (filled, rest) = (filled + now.len(), later);
            }
            if !self.straight(offset, aligned)? {
                return Ok(false);
            }
            (offset, left) = (offset + filled as u64, left - filled);
        }
        Ok(true)
    }
}
