//! Free-space buckets: which class of free space a page belongs to (McAuliffe §4).
//!
//! Owns: the 15 thresholds, scaled to the usable bytes of a page. Invariant: thresholds rise.
//! Pure; no threads.

use crate::mutation::{Mutation, is};

/// Code of a page that belongs to no file.
pub const UNALLOCATED: u8 = 15;
/// Bucket of a page of the file without objects.
pub const EMPTY: u8 = 14;
/// Bytes of a page that hold neither objects nor slots (McAuliffe §4).
pub const OVERHEAD: usize = 84;
/// The paper's thresholds, for pages with 8108 usable bytes.
const PAPER: [usize; 15] =
    [0, 64, 128, 256, 512, 1024, 1811, 2598, 3385, 4172, 4959, 5746, 6533, 7320, 8108];

/// Thresholds of a page size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    floor: [usize; 15],
}

impl Buckets {
    /// The paper's thresholds for pages of `page_size` bytes: exactly for 8192, in proportion to
    /// the usable bytes for others.
    pub fn new(page_size: usize) -> Self {
        let usable = page_size - OVERHEAD;
        Self { floor: PAPER.map(|t| t * usable / PAPER[14]) }
    }

    /// Usable bytes of a page.
    pub fn usable(&self) -> usize {
        self.floor[14]
    }

    /// The bucket of a page with `free` free bytes.
    pub fn of(&self, free: usize) -> u8 {
        let above = self.floor.iter().skip(1).take_while(|&&t| t <= free).count();
        above as u8
    }

    /// The least bucket all of whose pages have `need` free bytes; [`UNALLOCATED`] if even an
    /// empty page has not.
    pub fn promising(&self, need: usize) -> u8 {
        let bucket = self.floor.iter().take_while(|&&t| t < need).count() as u8;
        if is(Mutation::Guarantee) { bucket.saturating_sub(1) } else { bucket }
    }

    /// The least free space of a page in `bucket`, which must be below 15.
    pub fn floor(&self, bucket: u8) -> usize {
        self.floor[usize::from(bucket)]
    }

    /// What to assume of the free space of a page of which only the bucket is known: the middle.
    pub fn middle(&self, bucket: u8) -> usize {
        let at = usize::from(bucket);
        self.floor.get(at + 1).map_or(self.usable(), |&next| (self.floor[at] + next) / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_page() {
        let b = Buckets::new(8192);
        assert_eq!(b.usable(), 8108);
        assert_eq!(b.floor, PAPER);
        assert_eq!((b.of(0), b.of(63), b.of(64), b.of(8107), b.of(8108)), (0, 0, 1, 13, 14));
        // §5.2: an object of 5000 bytes on an empty page leaves it in bucket seven.
        assert_eq!(b.of(8108 - 5000 - 4), 7);
        assert_eq!((b.promising(0), b.promising(1), b.promising(64)), (0, 1, 1));
        assert_eq!((b.promising(104), b.promising(304), b.promising(8108)), (2, 4, 14));
        assert_eq!(b.promising(8109), UNALLOCATED);
    }

    #[test]
    fn a_promise_is_kept_at_every_page_size() {
        for size in [4096, 8192, 16384, 32768] {
            let b = Buckets::new(size);
            for free in 0..=b.usable() {
                let bucket = b.of(free);
                assert!(b.floor(bucket) <= free);
                assert!(b.promising(b.floor(bucket)) <= bucket);
                assert!(bucket == EMPTY || b.floor(bucket + 1) > free);
            }
        }
    }
}
