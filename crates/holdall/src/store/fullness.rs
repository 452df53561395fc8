//! How full a store is, by one formula, and whether a put fits.
//!
//! Owns: [`Fullness`]; the formula is in docs/design.md, "Percent full".

use holdall_core::heap_page::max_record;
use holdall_core::heap_record::Head;

/// Percent to which heap pages count as filled: what placement reaches with objects of mixed
/// sizes.
const HEAP_FULL: u64 = 90;
/// Heap pages of a collection that emptying sparse ones may leave beyond that.
const SPARE_PAGES: u64 = 2;
/// Bytes of a slot in a heap page.
const SLOT: u64 = 4;
/// Bytes of a handle, and of a name's cell but for the name.
const HANDLE_AND_CELL: u64 = 32;
/// Bytes that a descriptor takes in a record, at most as a rule.
const DESCRIPTOR: u64 = 64;

/// How full a store is; all in bytes. What is stored ÷ (limit − reserve − metadata) is its
/// share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Fullness {
    /// [`Options::max_bytes`](crate::Options::max_bytes); if there is no such bound, the file's
    /// length, or stored bytes and metadata if these are more.
    pub limit_bytes: u64,
    /// Kept for pages of transactions, for deleting and for maintenance: a 128th of
    /// `max_bytes`, at least 32 pages, at most 16 MiB; 0 without such a bound, or if it
    /// is less than 256 pages. A put that fits is then not promised to succeed.
    pub reserve_bytes: u64,
    /// Pages that are neither of large objects' bytes nor formatted heap pages, and directories
    /// and checksum pages that the rest of the volume will need.
    pub metadata_bytes: u64,
    /// Whole pages of large objects' bytes, those that copies share once; and the heap pages of
    /// each collection as far as its records ÷ 0.9 need them.
    pub stored_bytes: u64,
    /// The other heap pages, which are emptied before a put that needs them is refused.
    pub heap_room_bytes: u64,
    /// Bytes of a page.
    pub page_size: usize,
}

impl Fullness {
    /// Bytes that can be stored.
    pub fn capacity(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.reserve_bytes.saturating_add(self.metadata_bytes))
    }

    /// Stored bytes ÷ capacity; above 1 if the reserve is in use.
    pub fn share(&self) -> f64 {
        self.stored_bytes as f64 / self.capacity().max(1) as f64
    }

    /// Bytes that an object of `size` bytes and a name of `name` bytes takes. An object that is
    /// replaced takes its own until the commit.
    pub fn needed(&self, name: usize, size: u64) -> u64 {
        let page = self.page_size as u64;
        let head = Head { name: Some(vec![0; name].into()), ..Head::default() };
        let record = (head.record_len(0) as u64).saturating_add(size);
        let other = HANDLE_AND_CELL + name as u64;
        if record <= max_record(self.page_size) as u64 {
            return in_heap(record + SLOT) + other;
        }
        let tail = if size % page <= page / 2 { size % page } else { 0 };
        let record = head.record_len(0) as u64 + DESCRIPTOR + tail;
        (size - tail).next_multiple_of(page) + in_heap(record + SLOT) + other
    }

    /// Whether a put of such an object fits: it then succeeds.
    pub fn fits(&self, name: usize, size: u64) -> bool {
        self.stored_bytes.saturating_add(self.needed(name, size)) <= self.capacity()
    }

    /// Adds the heap file of a collection: bytes of records, of `capacity` in its pages.
    pub(super) fn add_heap(&mut self, used: u64, capacity: u64) {
        let (page, max) = (self.page_size as u64, max_record(self.page_size) as u64);
        let pages = capacity / max;
        let least = in_heap(used).div_ceil(max);
        let needed = least.max(pages.min(least + SPARE_PAGES));
        self.stored_bytes = self.stored_bytes.saturating_add(needed * page);
        self.heap_room_bytes += pages.saturating_sub(needed) * page;
    }
}

/// Bytes that records take of heap pages.
fn in_heap(records: u64) -> u64 {
    (records.saturating_mul(100)).div_ceil(HEAP_FULL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_need_their_pages_or_a_part_of_one() {
        let mut full = Fullness {
            limit_bytes: 1 << 20,
            reserve_bytes: 8192,
            metadata_bytes: 2 * 8192,
            stored_bytes: 90 * 8192,
            page_size: 8192,
            ..Fullness::default()
        };
        assert_eq!(full.capacity(), (1 << 20) - 3 * 8192);
        // 20,000 bytes need 3 pages, and 2 may stay beyond; one page is all there is.
        full.add_heap(20_000, 10 * 8144);
        assert_eq!((full.stored_bytes, full.heap_room_bytes), (95 * 8192, 5 * 8192));
        full.add_heap(10, 8144);
        assert_eq!((full.stored_bytes, full.heap_room_bytes), (96 * 8192, 5 * 8192));
        // Pages that are fuller now may not stay so.
        full.add_heap(9 * 8144, 9 * 8144);
        assert_eq!((full.stored_bytes, full.heap_room_bytes), (106 * 8192, 5 * 8192));
        let needs = |size| full.needed(10, size);
        assert!((1000..1200).contains(&needs(900)), "{}", needs(900));
        assert!((3 * 8192..3 * 8192 + 200).contains(&needs(3 * 8192)));
        assert!((4 * 8192..4 * 8192 + 200).contains(&needs(3 * 8192 + 5000)));
        assert!((3 * 8192 + 1000..3 * 8192 + 1300).contains(&needs(3 * 8192 + 1000)));
        let room = full.capacity() - full.stored_bytes;
        assert!(full.fits(10, room / 8192 * 8192 - 8192) && !full.fits(10, room));
    }
}
