//! Reading a page from the volume, checked.
//!
//! Owns: no state.

use holdall_core::mutation::{self, Mutation};
use holdall_core::page::{self, PageKind};
use holdall_core::{Error, PageNo, PageRef, Result};
use holdall_io::{Disk, Near};

/// Reads and checks a page in place.
///
/// # Errors
/// [`Error::Io`], [`Error::Corrupt`].
pub fn read_in_place(disk: &dyn Disk, page_size: usize, page: PageNo) -> Result<PageRef> {
    read_by(PageRef::zeroed(page_size), (page, page), |at, to| disk.read_at(at, to))
}

/// Reads and checks the version of `page` that lies at `image`.
///
/// # Errors
/// As [`read_in_place`].
pub fn read_image(
    disk: &dyn Disk,
    page_size: usize,
    (page, image): (PageNo, PageNo),
) -> Result<PageRef> {
    read_by(PageRef::zeroed(page_size), (image, page), |at, to| disk.read_at(at, to))
}

/// Reads and checks the old version of `page` that lies, masked, at `at` in scratch.
///
/// # Errors
/// As [`read_in_place`].
pub fn read_masked(
    disk: &dyn Disk,
    page_size: usize,
    (page, at): (PageNo, PageNo),
) -> Result<PageRef> {
    read_by(PageRef::zeroed(page_size), (at, page), |at, to| {
        disk.read_at(at, to)?;
        if !mutation::is(Mutation::R38Masked) {
            page::mask(to);
        }
        Ok(())
    })
}

/// What lies around a page of this kind: pages of records and what leads to them take up
/// most of a store of small objects, the others lie among the data of large ones.
pub(super) fn near(kind: PageKind) -> Near {
    match kind {
        PageKind::Heap | PageKind::Handle | PageKind::Names | PageKind::PageMap => Near::Many,
        _ => Near::Few,
    }
}

/// Reads into `bytes` what lies at a page, and must be the page `address`, by `read`, which fills a
/// buffer from a byte of the volume.
pub(super) fn read_by(
    mut bytes: PageRef,
    (page, address): (PageNo, PageNo),
    read: impl FnOnce(u64, &mut [u8]) -> std::io::Result<()>,
) -> Result<PageRef> {
    if page > PageNo::MAX {
        return Err(Error::page(page, "impossible page number"));
    }
    let buffer = bytes.get_mut().ok_or_else(|| Error::page(page, "buffer is shared"))?;
    let at = page.0 * buffer.len() as u64;
    read(at, buffer).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => Error::page(page, "lies beyond the end of the file"),
        _ => Error::io(format!("reading page {page} at byte {at}"), e),
    })?;
    page::check(buffer, address)?;
    Ok(bytes)
}
