//! Part of a file in memory: `mmap` and `mincore`, which no safe wrapper offers.
//!
//! Owns: [`Mapping`], a part of the address space that shows a part of a file, for reading.
//!
//! The argument, for all `unsafe` here:
//! - *Addresses.* A mapping owns `len` bytes of addresses from `base` on, from `mmap` until
//!   `munmap` in its `drop`. All calls stay inside them, by checks. No reference into them is
//!   ever made or given away: bytes leave by a copy to the caller's memory only.
//! - *Bytes that change.* The file may be written while it is copied, by `pwrite` of any
//!   thread or by another process. So the copy is made through raw pointers, promises nothing
//!   about what it finds, and the copy alone is looked at afterwards. It may be torn: it is for
//!   callers who check what they got. No memory of this program is written through a mapping.
//! - *Pages that cannot be had.* Touching a page behind the end of the file, or one that the
//!   device fails to deliver, ends the process by `SIGBUS`. That breaks no rule of memory, but
//!   is no answer to an error either. So callers touch only what [`Mapping::is_resident`] found
//!   them lies in the page cache (`map.rs` says for how long that is believed), and who
//!   makes the file shorter calls [`Mapping::cut`] before: it puts zeros in the place of the
//!   pages, in one step as far as threads can see that copy them at the time.

use crate::summed_copy::{UNIT, copy_unit};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

/// A part of a file, to be copied from.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

#[expect(unsafe_code, reason = "addresses that are only read; see the argument above")]
// SAFETY: the addresses belong to the process, not to a thread; every method takes `&self`,
// may run at the same time as any other, and makes no reference to what lies there.
unsafe impl Send for Mapping {}
#[expect(unsafe_code, reason = "as above")]
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Bytes of the system's pages.
pub(crate) fn page_bytes() -> usize {
    rustix::param::page_size()
}

impl Mapping {
    /// Shows `len` bytes from `offset` on, both multiples of [`page_bytes`]; behind the end of
    /// the file too, if nothing is resident. Takes addresses, and memory only for what is
    /// touched (8 bytes for each page).
    ///
    /// # Errors
    /// Those of the operating system: a file that cannot be mapped, no addresses left.
    pub(crate) fn new(file: &File, offset: u64, len: usize) -> io::Result<Self> {
        let offset = i64::try_from(offset).map_err(io::Error::other)?;
        let base = map(ptr::null_mut(), len, Some((file, offset)))?;
        Ok(Self { base, len })
    }

    /// Copies the units of `buf`, which it has some of in whole, from byte `at` on, and puts the
    /// CRC-32C of each as it was copied into `sums`. Returns whether they lie inside, at a multiple
    /// of a unit. Waits for the device if a page is not in memory, and ends the process if that
    /// fails.
    pub(crate) fn copy(&self, at: usize, buf: &mut [u8], sums: &mut [u32]) -> bool {
        let inside = at.checked_add(buf.len()).is_some_and(|end| end <= self.len);
        let (units, rest) = buf.as_chunks_mut::<UNIT>();
        if !inside || !at.is_multiple_of(UNIT) || !rest.is_empty() || units.len() != sums.len() {
            return false;
        }
        for (i, (unit, sum)) in units.iter_mut().zip(sums).enumerate() {
            let from = at + i * UNIT;
            #[expect(unsafe_code, reason = "see the argument above")]
            // SAFETY: all units lie inside the mapping, which begins at a page, so that they are
            // aligned; `buf` is the caller's own, so they do not overlap.
            unsafe {
                *sum = copy_unit(self.base.as_ptr().add(from), unit);
            }
        }
        true
    }

    /// Begins to bring `len` bytes from byte `at` on closer to the processor, as many as is
    /// worth it. A hint: nothing is read, and nothing is waited for.
    pub(crate) fn approach(&self, at: usize, len: usize) {
        for line in (at..at.saturating_add(len)).step_by(LINE).take(MOST_LINES) {
            prefetch(self.base.as_ptr().wrapping_add(line));
        }
    }

    /// Whether all pages of the `len` bytes from `at` on, a multiple of [`page_bytes`], are in
    /// the page cache, as far as the system says. `seen` is for its answer, a byte for
    /// each page.
    pub(crate) fn is_resident(&self, at: usize, len: usize, seen: &mut [u8]) -> bool {
        let pages = len.div_ceil(page_bytes());
        let inside = at.checked_add(len).is_some_and(|end| end <= self.len);
        let Some(seen) = seen.get_mut(..pages).filter(|_| inside) else { return false };
        #[expect(unsafe_code, reason = "see the argument above")]
        // SAFETY: the range lies inside the mapping, and is only looked up; the call writes a
        // byte for each of its pages to `seen`, which has as many.
        let result = unsafe {
            libc::mincore(self.base.as_ptr().add(at).cast(), len, seen.as_mut_ptr().cast())
        };
        result == 0 && seen.iter().all(|page| page & 1 == 1)
    }

    /// Puts zeros in the place of the bytes from `at` up to `to`, multiples of [`page_bytes`].
    ///
    /// # Errors
    /// Those of the operating system; nothing was changed.
    pub(crate) fn cut(&self, at: usize, to: usize) -> io::Result<()> {
        if at >= to || to > self.len {
            return Ok(());
        }
        map(self.base.as_ptr().wrapping_add(at), to - at, None).map(|_| ())
    }
}

/// Bytes of a line of the processor's caches, on most.
const LINE: usize = 64;
/// Lines asked for at once: about as many as a processor waits for together.
const MOST_LINES: usize = 12;

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn prefetch(at: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    #[expect(unsafe_code, reason = "an instruction that takes a pointer")]
    // SAFETY: a prefetch is no access: it yields no value, changes no memory and raises no
    // fault, whatever the address. The instruction is part of every x86-64 (SSE).
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn prefetch(_at: *const u8) {}

/// Maps a file from a place on, or zeros. With an address, the caller owns `len` bytes of
/// addresses there, which now show this; the system changes them in one step.
fn map(at: *mut u8, len: usize, file: Option<(&File, i64)>) -> io::Result<NonNull<u8>> {
    let (fd, offset, kind) = match file {
        Some((file, offset)) => (file.as_raw_fd(), offset, libc::MAP_SHARED),
        None => (-1, 0, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS),
    };
    let kind = if at.is_null() { kind } else { kind | libc::MAP_FIXED };
    #[expect(unsafe_code, reason = "see the argument above")]
    // SAFETY: without an address the system chooses addresses that nobody has. With one, they
    // lie inside a mapping of ours, into which there are no references. The descriptor is
    // open for the length of the call; the mapping does not need it afterwards.
    let base = unsafe {
        libc::mmap(at.cast(), len, libc::PROT_READ, kind | libc::MAP_NORESERVE, fd, offset)
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "see the argument above")]
        // SAFETY: the addresses are ours, nothing refers to them, and nobody uses them after
        // this. If it fails they stay taken, which harms nobody.
        let _ = unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
