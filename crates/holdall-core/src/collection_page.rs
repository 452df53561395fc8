//! A collection's page: roots, counters and options of one named group of objects.
//!
//! Owns: the body of pages of kind Collection (docs/format.md "Collection page"); the page's
//! owner is the collection's number. Pure accessors at fixed offsets.

use crate::PageNo;
use crate::bytes::{put_u16, put_u64, u16_at, u64_at};
use crate::page::HEADER;

const NAMES: usize = HEADER;
const HEAP: usize = HEADER + 8;
/// Bytes kept for the heap file.
pub const HEAP_BYTES: usize = 40;
const OBJECTS: usize = HEADER + 48;
const LOGICAL: usize = HEADER + 56;
const THRESHOLD: usize = HEADER + 64;
const FLAGS: usize = HEADER + 66;
const UNNAMED: usize = HEADER + 72;

/// Root of the names tree.
pub fn names(page: &[u8]) -> PageNo {
    PageNo(u64_at(page, NAMES))
}

/// Sets the root of the names tree.
pub fn set_names(page: &mut [u8], root: PageNo) {
    put_u64(page, NAMES, root.0);
}

/// The heap file, in its own encoding.
pub fn heap(page: &[u8]) -> [u8; HEAP_BYTES] {
    let mut b = [0; HEAP_BYTES];
    b.copy_from_slice(&page[HEAP..HEAP + HEAP_BYTES]);
    b
}

/// Sets the heap file.
pub fn set_heap(page: &mut [u8], map: [u8; HEAP_BYTES]) {
    page[HEAP..HEAP + HEAP_BYTES].copy_from_slice(&map);
}

/// Number of objects.
pub fn objects(page: &[u8]) -> u64 {
    u64_at(page, OBJECTS)
}

/// Sets the number of objects.
pub fn set_objects(page: &mut [u8], n: u64) {
    put_u64(page, OBJECTS, n);
}

/// How many of the objects have no name.
pub fn unnamed(page: &[u8]) -> u64 {
    u64_at(page, UNNAMED)
}

/// Sets how many of the objects have no name.
pub fn set_unnamed(page: &mut [u8], n: u64) {
    put_u64(page, UNNAMED, n);
}

/// Sum of the objects' sizes in bytes.
pub fn logical_bytes(page: &[u8]) -> u64 {
    u64_at(page, LOGICAL)
}

/// Sets the sum of the objects' sizes.
pub fn set_logical_bytes(page: &mut [u8], n: u64) {
    put_u64(page, LOGICAL, n);
}

/// Segment threshold T in pages for objects that set none; 0 means the built-in default.
pub fn threshold(page: &[u8]) -> u16 {
    u16_at(page, THRESHOLD)
}

/// Descriptor flags for new large objects: the hints that are bits.
pub fn flags(page: &[u8]) -> u8 {
    page[FLAGS]
}

/// Sets the descriptor flags for new large objects.
pub fn set_flags(page: &mut [u8], flags: u8) {
    page[FLAGS] = flags;
}

/// Sets the segment threshold.
pub fn set_threshold(page: &mut [u8], pages: u16) {
    put_u16(page, THRESHOLD, pages);
}
