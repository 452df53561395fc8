//! The promise on space: how many blocks the file may take, from what the store holds.
//!
//! Owns: the formula, in docs/design.md "The contract on space"; nothing else in the code has a
//! part of it. Each function gives the most pages that a structure of this content can have,
//! however it came about.

use super::report::{Contract, Geometry};
use super::sums::Sums;
use crate::heap::growth;
use crate::space::SpacePicture;
use holdall_core::heap_page::max_record;
use holdall_core::names_node::capacity;
use holdall_core::page_map_node::fanout;
use holdall_core::space_dir::SpaceLayout;

/// What the file takes in any case: superblocks, a step of growth, the next log's blocks.
const CONSTANT: u64 = 1 << 20;
/// The part of the volume that the file system may need to keep track of its holes.
const CONSTANT_SHARE: u64 = 64;
/// Bytes of a slot in a heap page.
const SLOT: u64 = 4;
/// Classes of free space in a page: a record is held against whole ones.
const CLASSES: u64 = 15;
/// Pages that emptying sparse ones may leave in a collection.
const SPARE_PAGES: u64 = 2;
/// Bytes that an entry of a tree of names takes beside its key: value, slot, lengths.
const ENTRY: u64 = 32;

/// What an entry for each of many names takes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Keys {
    bytes: u64,
    longest: u64,
}

impl Keys {
    /// Counts a key of `len` bytes.
    pub(super) fn add(&mut self, len: usize) {
        let len = len as u64 + ENTRY;
        self.bytes = self.bytes.saturating_add(len);
        self.longest = self.longest.max(len);
    }

    /// The most pages of their tree: neighbours among its nodes are not both half empty, but for
    /// an entry that did not fit.
    pub(super) fn pages(&self, page_size: usize) -> u64 {
        let room = capacity(page_size) as u64;
        let node = room.saturating_sub(self.longest).max(room / 4);
        let nodes = |bytes: u64| match bytes {
            0 => 0,
            bytes if bytes <= node => 1,
            bytes => bytes.saturating_mul(2).div_ceil(node),
        };
        let (mut all, mut level) = (0_u64, nodes(self.bytes));
        while level > 1 {
            all = all.saturating_add(level);
            // A node above holds at least two.
            level = nodes(level.saturating_mul(self.longest)).min(level.div_ceil(2));
        }
        all.saturating_add(level)
    }
}

/// Bytes of heap pages that a record of `len` bytes may come to, where records that do not fit
/// leave room: the whole page if it takes over half of one.
pub(super) fn record_bytes(len: u64, page_size: usize) -> u64 {
    let (max, len) = (max_record(page_size) as u64, len + SLOT);
    let class = (len * CLASSES).div_ceil(max);
    if len * 2 > max { max.max(len) } else { (len * CLASSES).div_ceil(CLASSES - class).min(max) }
}

/// The most heap pages of a collection whose records come to `bytes`; `len`: pages that it has
/// had at a time.
pub(super) fn heap_pages(bytes: u64, len: u32, page_size: usize) -> u64 {
    let full = bytes.div_ceil(max_record(page_size) as u64);
    (full + SPARE_PAGES + u64::from(growth(len))).min(len.into())
}

/// The pages of a page map of `len` entries.
pub(super) fn map_pages(len: u32, page_size: usize) -> u64 {
    let (mut all, mut level) = (0, u64::from(len));
    while level > 0 {
        level = if level == 1 && all > 0 { 0 } else { level.div_ceil(fanout(page_size) as u64) };
        all += level;
    }
    all
}

/// The pages of handles that a table of `len` pages has had at a time, with its map.
pub(super) fn handle_pages(len: u32, page_size: usize) -> u64 {
    u64::from(len) + map_pages(len, page_size)
}

/// The pages that a volume has of its own: superblocks, the root, directories, checksums.
fn own_pages(layout: &SpaceLayout, volume_pages: u64) -> u64 {
    let (n, stretch) = (u64::from(layout.space_pages()), u64::from(layout.stretch_pages()));
    let (whole, rest) = (volume_pages / n, volume_pages % n);
    let in_whole = whole * (1 + u64::from(layout.stretches()));
    3 + in_whole + u64::from(rest > 0) + rest.div_ceil(stretch)
}

/// Holds the file against the promise. `saved`: bytes that sharing saves; `factor`:
/// [`Options::space_factor`](crate::Options::space_factor).
pub(super) fn contract(
    g: &Geometry,
    sums: &Sums,
    (layout, picture): (&SpaceLayout, &SpacePicture),
    saved: u64,
) -> Contract {
    let factor = picture.space_factor();
    let data = g.bytes(g.segment_pages.saturating_add(sums.most_heap_pages));
    let metadata = sums.most_metadata_pages.saturating_add(own_pages(layout, g.volume_pages));
    let metadata = g.bytes(metadata);
    let constant = CONSTANT
        .saturating_add(picture.spare_bytes)
        .saturating_add(g.bytes(g.volume_pages) / CONSTANT_SHARE);
    let waiting = g.bytes(g.waiting_pages.saturating_add(g.reserved_pages));
    // No more of what is free has blocks than the file takes beyond all else.
    let busy = g.bytes(g.volume_pages.saturating_sub(g.free_pages));
    let kept = g.bytes(sums.kept_pages).min(g.block_bytes.saturating_sub(busy));
    let counted = data.saturating_add(metadata);
    let right = ((factor * counted as f64) as u64)
        .saturating_add(waiting)
        .saturating_add(kept)
        .saturating_add(constant);
    Contract {
        left_bytes: g.block_bytes,
        right_bytes: right,
        holds: g.block_bytes <= right,
        factor,
        stored_bytes: sums.object_bytes.saturating_sub(saved),
        name_bytes: sums.name_bytes,
        objects: sums.small + sums.large,
        data_bytes: data,
        metadata_bytes: metadata,
        waiting_bytes: waiting,
        kept_bytes: kept,
        constant_bytes: constant,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_over_half_a_page_take_one() {
        let max = max_record(8192) as u64;
        assert_eq!(record_bytes(max / 2, 8192), max);
        assert_eq!(record_bytes(max - 4, 8192), max);
        // Just below a third: used above 10 fifteenths.
        let third = record_bytes(max / 3 - 4, 8192);
        assert!((max / 2 - 5..max / 2 + 5).contains(&third), "{third}");
        let small = record_bytes(96, 8192);
        assert!((100..=108).contains(&small), "{small}");
        assert_eq!((heap_pages(10 * max, 500, 8192), heap_pages(10 * max, 3, 8192)), (20, 3));
    }

    #[test]
    fn trees_are_half_full_at_worst() {
        let mut keys = Keys::default();
        assert_eq!(keys.pages(8192), 0);
        keys.add(1);
        assert_eq!(keys.pages(8192), 1);
        (0..20_000).for_each(|_| keys.add(500));
        let all = 20_000 * 532;
        let pages = keys.pages(8192) * 8192;
        assert!(pages > 2 * all && pages < 3 * all, "{pages} of {all}");
        // Names of which a page holds three, still an end.
        let mut long = Keys::default();
        (0..1000).for_each(|_| long.add(1024));
        assert!((500..2000).contains(&long.pages(4096)), "{}", long.pages(4096));
    }

    #[test]
    fn maps_have_as_many_nodes_as_their_length_asks_for() {
        let per = fanout(4096) as u32;
        let nodes = [0, 1, per, per + 1, per * per + 1].map(|len| map_pages(len, 4096));
        assert_eq!(nodes, [0, 1, 1, 3, u64::from(per) + 1 + 2 + 1]);
        assert_eq!(handle_pages(per, 4096), u64::from(per) + 1);
    }
}
