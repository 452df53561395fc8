//! Binary buddy allocation in memory (Biliris 1992 §3.1): what is free is derived from the
//! bitmaps of the space directories, never stored.
//!
//! Owns: [`BuddyTree`], the free pages of one space, and [`SuperDirectory`], what is
//! believed about all spaces. A request is served to the page: the buddy order only
//! decides where a run is taken, never how long it is. Pure; the caller has the lock.

mod super_directory;
mod tree;
pub(crate) mod word;

#[cfg(test)]
mod tests;

pub use super_directory::{Candidates, SuperDirectory};
pub use tree::{BuddyTree, FreeRuns};

/// Most pages of a space: orders 0 to 15 fit a 16-bit set.
pub const MAX_SPACE_PAGES: u32 = 32768;

/// A run of neighbouring pages of one space, counted from the start of the space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Run {
    /// First page, counted from the start of the space.
    pub start: u32,
    /// Number of pages, at least 1.
    pub len: u32,
}

impl Run {
    /// One past the last page.
    pub fn end(self) -> u32 {
        self.start.saturating_add(self.len)
    }
}

/// Order of the smallest block that holds `len` pages: log₂ rounded up. A space with a free
/// block of this order certainly serves `len`.
pub fn order_for(len: u32) -> u8 {
    // At most 32, so the narrowing is exact.
    (u32::BITS - len.saturating_sub(1).leading_zeros()) as u8
}

/// The least order a space's largest free block has if it has `len` neighbouring free pages
/// at all: without a free block of order k + 1, a run is at most 2^(k+2) − 2 pages long, as
/// it may straddle two blocks. A space below this order cannot serve `len` in one run.
pub fn least_order_for(len: u32) -> u8 {
    let halves = (u64::from(len) + 2).div_ceil(4);
    // At most 31, so the narrowing is exact.
    (u64::BITS - (halves - 1).leading_zeros()) as u8
}
