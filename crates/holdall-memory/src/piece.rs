//! Memory in one piece, where the system has some.
//!
//! Owns: [`Piece`]. No threads.
//!
//! The argument for the unsafe code: to collapse memory changes which pages of the system hold it,
//! not a byte of it, while others read and write it; of an address that is no memory of this
//! process's the system says so.
#![expect(unsafe_code, reason = "one call of the system; the argument is above")]

use memmap2::MmapMut;

/// Bytes of a huge page on most systems, and of a [`Piece`].
pub const HUGE: usize = 2 << 20;

/// [`HUGE`] bytes of zeros, aligned to as many.
#[derive(Debug)]
pub struct Piece(MmapMut);

impl Piece {
    /// Asks the system for memory. `None` if there is none.
    #[must_use]
    pub fn new() -> Option<Self> {
        // Addresses twice as long, so that a page lies in them; only what is touched takes memory.
        MmapMut::map_anon(2 * HUGE).ok().map(Self)
    }

    /// As [`Piece::new`], in one huge page if the system has one free. Who first uses it waits
    /// for that.
    #[must_use]
    pub fn huge() -> Option<Self> {
        let piece = Self::new()?;
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            // A hint: many small pages do as well, only slower.
            let (memory, huge) = (&piece.0, memmap2::Advice::HugePage);
            let _ = memory.advise_range(huge, skip(memory), HUGE);
        }
        Some(piece)
    }

    /// Its bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        let skip = skip(&self.0);
        self.0.get_mut(skip..skip + HUGE).unwrap_or_default()
    }
}

/// Bytes before the first multiple of [`HUGE`].
fn skip(memory: &[u8]) -> usize {
    memory.as_ptr().addr().next_multiple_of(HUGE) - memory.as_ptr().addr()
}

/// Has the system move the [`HUGE`] bytes at `start` to a huge page, if it has one, unless it was
/// told to use none. Linux since 6.1; elsewhere nothing happens. Cost: a copy, for which those who
/// use the bytes wait; and what the first use of a huge page costs, for which nobody waits: 4 ms
/// where a virtual machine gave such memory back to its host.
pub(crate) fn collapse(start: *mut u8) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if is_wanted() {
        // The system takes the huge page that was given back last, so one is used first.
        if let Some(byte) = Piece::huge().as_mut().and_then(|piece| piece.bytes().first_mut()) {
            *byte = 1;
        }
        // SAFETY: see the head of this file. If it fails, small pages do as well, only slower.
        unsafe { libc::madvise(start.cast(), HUGE, libc::MADV_COLLAPSE) };
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = start;
}

/// Whether the system may use huge pages: the call does not ask.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_wanted() -> bool {
    static WANTED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *WANTED.get_or_init(|| {
        let told = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        told.is_ok_and(|told| !told.contains("[never]"))
    })
}
