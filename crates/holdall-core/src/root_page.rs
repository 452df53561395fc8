//! The root page: where everything is found, apart from the buddy spaces.
//!
//! Owns: the body of the page of kind Root (docs/format.md "Root page"). Pure accessors at
//! fixed offsets; the numbers they give are checked by their users.

use crate::PageNo;
use crate::bytes::{put_u32, put_u64, u32_at, u64_at};
use crate::page::HEADER;

const SPACES: usize = HEADER;
const CATALOG: usize = HEADER + 8;
const HANDLES: usize = HEADER + 16;
const SHARING: usize = HEADER + 32;
const IMAGES: usize = HEADER + 40;
const IMAGE_COUNT: usize = HEADER + 48;
const NEXT_COLLECTION: usize = HEADER + 64;
const ENTRIES: usize = HEADER + 72;
const SMALL: usize = HEADER + 80;
const DROPS: usize = HEADER + 88;
/// Bytes kept for the handle table's map.
pub const HANDLES_BYTES: usize = 16;

/// Buddy spaces whose directory page exists.
pub fn spaces(page: &[u8]) -> u32 {
    u32_at(page, SPACES)
}

/// Sets the number of buddy spaces.
pub fn set_spaces(page: &mut [u8], n: u32) {
    put_u32(page, SPACES, n);
}

/// Number that the next collection gets.
pub fn next_collection(page: &[u8]) -> u64 {
    u64_at(page, NEXT_COLLECTION)
}

/// Sets the number that the next collection gets.
pub fn set_next_collection(page: &mut [u8], n: u64) {
    put_u64(page, NEXT_COLLECTION, n);
}

/// Root of the catalog: a B+-tree from collection name to number.
pub fn catalog(page: &[u8]) -> PageNo {
    PageNo(u64_at(page, CATALOG))
}

/// Sets the root of the catalog.
pub fn set_catalog(page: &mut [u8], root: PageNo) {
    put_u64(page, CATALOG, root.0);
}

/// The handle table's map, in its own encoding.
pub fn handles(page: &[u8]) -> [u8; HANDLES_BYTES] {
    let mut b = [0; HANDLES_BYTES];
    b.copy_from_slice(&page[HANDLES..HANDLES + HANDLES_BYTES]);
    b
}

/// Sets the handle table's map.
pub fn set_handles(page: &mut [u8], map: [u8; HANDLES_BYTES]) {
    page[HANDLES..HANDLES + HANDLES_BYTES].copy_from_slice(&map);
}

/// Root of the tree of shared segment pages; none while there are none.
pub fn sharing(page: &[u8]) -> PageNo {
    PageNo(u64_at(page, SHARING))
}

/// Sets the root of the tree of shared segment pages.
pub fn set_sharing(page: &mut [u8], root: PageNo) {
    put_u64(page, SHARING, root.0);
}

/// Root of the tree of images; none while every page lies in its place.
pub fn images(page: &[u8]) -> PageNo {
    PageNo(u64_at(page, IMAGES))
}

/// Sets the root of the tree of images.
pub fn set_images(page: &mut [u8], root: PageNo) {
    put_u64(page, IMAGES, root.0);
}

/// Number of pages that have an image.
pub fn image_count(page: &[u8]) -> u64 {
    u64_at(page, IMAGE_COUNT)
}

/// Sets the number of pages that have an image.
pub fn set_image_count(page: &mut [u8], n: u64) {
    put_u64(page, IMAGE_COUNT, n);
}

/// Root of the entries: a B+-tree from a collection's number and name to what is known of it.
pub fn entries(page: &[u8]) -> PageNo {
    PageNo(u64_at(page, ENTRIES))
}

/// Sets the root of the entries.
pub fn set_entries(page: &mut [u8], root: PageNo) {
    put_u64(page, ENTRIES, root.0);
}

/// The collection page of what small collections share; none before the first object there.
pub fn small(page: &[u8]) -> PageNo {
    PageNo(u64_at(page, SMALL))
}

/// Sets the collection page of what small collections share.
pub fn set_small(page: &mut [u8], no: PageNo) {
    put_u64(page, SMALL, no.0);
}

/// Root of the drop list: a B+-tree from the number of a dropped collection to its page; none
/// while nothing waits there.
pub fn drops(page: &[u8]) -> PageNo {
    PageNo(u64_at(page, DROPS))
}

/// Sets the root of the drop list.
pub fn set_drops(page: &mut [u8], root: PageNo) {
    put_u64(page, DROPS, root.0);
}
