//! Bytes of a damaged file: what can be read, and whether it is a page.
//!
//! Owns no state.

use holdall_core::PageNo;
use holdall_core::page;
use holdall_io::Disk;

/// What is read one by one where more at once cannot be.
const LEAST: usize = 4096;

/// Whether these may be the bytes of a page with a header: a short look that most data fails.
pub(super) fn may_be_page(page: &[u8]) -> bool {
    page::kind(page).is_some()
        && page.get(5..8).is_some_and(|b| b == [page::FORMAT_NOW, 0, 0])
        && page::address(page) <= PageNo::MAX
}

/// Whether a page has its checksum, wherever it belongs.
pub(super) fn is_whole(page: &[u8]) -> bool {
    page::check(page, page::address(page)).is_ok()
}

/// Fills `to` with what can be read at `at`; the rest is zeros. Returns how many bytes those are.
pub(super) fn read_what_can_be(disk: &dyn Disk, at: u64, to: &mut [u8]) -> u64 {
    if disk.read_at(at, to).is_ok() {
        return 0;
    }
    let mut lost = 0;
    for (i, part) in to.chunks_mut(LEAST).enumerate() {
        if disk.read_at(at + (i * LEAST) as u64, part).is_err() {
            part.fill(0);
            lost += part.len() as u64;
        }
    }
    lost
}
