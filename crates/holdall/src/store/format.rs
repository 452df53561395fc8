//! Making a new store.

use super::Options;
use crate::space::fresh_directory;
use holdall_core::bytes::put_u64;
use holdall_core::page::{self, PageKind};
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::superblock::{SLOT_AT, Superblock};
use holdall_core::{Error, Lsn, PageNo, Result, root_page};
use holdall_io::Storage;

/// Where a new store's log begins: not 0, so that no LSN of it is 0.
const FIRST_LSN: Lsn = Lsn(1 << 16);

/// Writes an empty store into an empty volume: a directory, a root page, two superblocks.
/// The first superblock goes last but one, after a sync, so that a store cut short at
/// creation is not taken for one.
///
/// # Errors
/// [`Error::Invalid`], [`Error::Full`], [`Error::Io`].
pub(super) fn make(storage: &dyn Storage, options: &Options) -> Result<()> {
    options.check()?;
    let size = options.page_size;
    let space_pages = options.space_pages.unwrap_or(SpaceLayout::default_space_pages(size));
    let layout = SpaceLayout::new(size, space_pages)?;
    let disk = storage.volume();
    let fail = |e| crate::pager::io_error("creating the store", e);
    storage.remove_log().map_err(fail)?;
    let fixed = layout.fixed_pages(0).max().unwrap_or(0);
    let pages = u64::from(fixed) + 4;
    disk.grow(pages * size as u64).map_err(fail)?;

    let mut dir = fresh_directory(&layout, 0)?;
    let index = (1..space_pages).find(|i| !layout.fixed_pages(0).any(|f| f == *i));
    let index = index.ok_or_else(|| Error::Invalid("the space has no room".into()))?;
    SpaceDir::open(layout, 0, &mut dir[..])?.set_range(index, 1, true)?;
    page::seal(&mut dir, FIRST_LSN);
    let root = layout.page_at(0, index);
    let mut root_bytes = vec![0; size];
    page::format(&mut root_bytes, PageKind::Root, root, 0);
    root_page::set_spaces(&mut root_bytes, 1);
    root_page::set_next_collection(&mut root_bytes, 1);
    page::seal(&mut root_bytes, FIRST_LSN);
    for (no, bytes) in [(layout.dir_page(0), &dir), (root, &root_bytes)] {
        disk.write_at(no.0 * size as u64, bytes).map_err(fail)?;
    }
    disk.sync().map_err(fail)?;
    let sb = superblock(options, space_pages, pages, root);
    for sequence in [1, 2] {
        let sb = Superblock { sequence, ..sb.clone() };
        disk.write_at(SLOT_AT[Superblock::slot_of(sequence)], &sb.encode()).map_err(fail)?;
        disk.sync().map_err(fail)?;
    }
    storage.sync_dir().map_err(fail)
}

fn superblock(options: &Options, space_pages: u32, pages: u64, root: PageNo) -> Superblock {
    Superblock {
        store_id: options.store_id.unwrap_or_else(draw_id),
        incarnation: 1,
        epoch: 1,
        page_size: options.page_size as u32,
        space_pages,
        sequence: 0,
        replay: FIRST_LSN,
        home: FIRST_LSN,
        log_bytes: options.first_log_bytes(),
        log_required: false,
        unique_ceiling: 1,
        volume_pages: pages,
        spaces: 1,
        root,
    }
}

/// An id that no other store has, from the system's random keys for hashing.
fn draw_id() -> [u8; 16] {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut id = [0; 16];
    for at in [0, 8] {
        let n = RandomState::new().build_hasher().finish();
        put_u64(&mut id, at, n);
    }
    id
}
