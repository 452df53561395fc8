//! Spaces that come and go: their directories, and how many the root names.
//!
//! Rule 39: the last spaces are given up where they hold their directories alone. These wait as freed
//! pages do; a space that comes again meanwhile keeps its directory, since a snapshot and the log
//! may know it.

use super::SpaceTx;
use crate::txn::Pager;
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::{self, PageKind};
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::{Error, PageNo, PageRead, PageRun, PageWrite, Result, root_page};

/// The directory page of a space that nothing is allocated in yet.
///
/// # Errors
/// [`Error::Invalid`] if the geometry is impossible.
pub fn fresh_directory(layout: &SpaceLayout, space: u32) -> Result<Vec<u8>> {
    let mut bytes = vec![0; layout.page_size()];
    page::format(&mut bytes, PageKind::SpaceDir, layout.dir_page(space), u64::from(space));
    SpaceDir::init(*layout, space, &mut bytes)?;
    Ok(bytes)
}

/// Whether pages are in use by a directory of this space that lies where it would, whatever names
/// it.
///
/// # Errors
/// [`Error::Io`].
pub fn holds_pages(pager: &Pager, layout: &SpaceLayout, space: u32) -> Result<bool> {
    let found = pager.newest(layout.dir_page(space), PageKind::SpaceDir);
    match found.and_then(|page| Ok(SpaceDir::open(*layout, space, &*page)?.holds_pages())) {
        Err(Error::Corrupt { .. }) => Ok(false),
        other => other,
    }
}

/// The directory of a space, made if it has none.
///
/// # Errors
/// Those of page access.
pub(super) fn directory<'a>(
    tx: &'a mut SpaceTx,
    layout: &SpaceLayout,
    space: u32,
) -> Result<SpaceDir<&'a mut [u8]>> {
    make_up_to(tx, layout, space)?;
    let bytes = tx.page_mut(layout.dir_page(space), PageKind::SpaceDir)?;
    SpaceDir::open(*layout, space, bytes)
}

/// Makes the directories of all spaces up to this one.
fn make_up_to(tx: &mut SpaceTx, layout: &SpaceLayout, space: u32) -> Result<()> {
    let root = tx.root;
    let have = root_page::spaces(&tx.page(root, PageKind::Root)?);
    for s in have..=space {
        let at = layout.dir_page(s);
        if !tx.alloc.waits(at) || mutation::is(Mutation::R39Kept) {
            let fresh = fresh_directory(layout, s)?;
            let bytes = tx.format(at, PageKind::SpaceDir, u64::from(s))?;
            bytes[page::HEADER..].copy_from_slice(&fresh[page::HEADER..]);
        } else {
            tx.again.push(s);
        }
        root_page::set_spaces(tx.page_mut(root, PageKind::Root)?, s + 1);
    }
    Ok(())
}

/// Gives up the last spaces, as far as nothing is in use there but their directories, and nothing
/// claimed. Returns these. Cost: a look at each.
///
/// # Errors
/// Those of page access, after which the transaction must be aborted.
pub(super) fn give_up(tx: &mut SpaceTx) -> Result<Vec<PageRun>> {
    let (root, layout) = (tx.root, *tx.alloc.layout());
    let have = root_page::spaces(&tx.page(root, PageKind::Root)?);
    let mut gone = Vec::new();
    for space in (1..have).rev() {
        let (at, whole) = (layout.dir_page(space), u64::from(layout.space_pages()));
        if tx.alloc.is_claimed(PageRun::new(at, whole)) || !empty(tx, space)? {
            break;
        }
        root_page::set_spaces(tx.page_mut(root, PageKind::Root)?, space);
        gone.push(PageRun::new(at, 1));
    }
    Ok(gone)
}

/// Whether a space holds its directory alone. Frees the info pages of its stretches, which lie in
/// other spaces then.
fn empty(tx: &mut SpaceTx, space: u32) -> Result<bool> {
    let layout = *tx.alloc.layout();
    let mut infos = Vec::new();
    {
        let bytes = tx.page(layout.dir_page(space), PageKind::SpaceDir)?;
        let dir = SpaceDir::open(layout, space, &*bytes)?;
        if dir.holds_pages() {
            return Ok(false);
        }
        for number in 0..layout.stretches() {
            if dir.segment_pages(number)? > 0 {
                return Ok(false);
            }
            let info = dir.info_page(number)?;
            infos.extend((!info.is_none()).then_some((number, info)));
        }
    }
    for (number, info) in infos {
        tx.free_page(info)?;
        directory(tx, &layout, space)?.set_info_page(number, PageNo::NONE)?;
    }
    Ok(true)
}
