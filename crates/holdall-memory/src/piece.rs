//! Memory in one piece, where the system has some.
//!
//! Owns: [`Piece`]. No threads.

use memmap2::MmapMut;

/// Bytes of a huge page on most systems, and of a [`Piece`].
pub const HUGE: usize = 2 << 20;

/// [`HUGE`] bytes of zeros, aligned to as many.
#[derive(Debug)]
pub struct Piece(MmapMut);

impl Piece {
    /// Asks the system for memory, as one huge page if it has one free and `huge` says so. `None`
    /// if there is no memory.
    #[must_use]
    pub fn new(huge: bool) -> Option<Self> {
        // Addresses twice as long, so that a page lies in them; only what is touched takes memory.
        let memory = MmapMut::map_anon(2 * HUGE).ok()?;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = huge;
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if huge {
            // A hint: many small pages do as well, only slower.
            let _ = memory.advise_range(memmap2::Advice::HugePage, skip(&memory), HUGE);
        }
        Some(Self(memory))
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
