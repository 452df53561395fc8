//! Text dumps of what lies in a store, for those who look for a fault.
//!
//! Owns: nothing; reads a snapshot of an open store, or the files of one that is not open.
//! What is damaged is shown as such and does not end a dump. The text is for people: it may
//! change with any version (golden files keep a change from going unseen).

mod log;
mod names;
mod object;
mod page;
mod sharing;
mod space;
mod superblock;
mod text;

use super::frag::Action;
use crate::engine::key::Key;
use crate::store::{Store, open_error};
use holdall_core::{PageNo, Result};
use holdall_io::{Access, FileStorage, Storage};
use std::path::Path;

/// A page: its header and its body, decoded by its kind. Cost: a page read or two.
///
/// # Errors
/// [`Error::Invalid`](crate::Error::Invalid) for a page beyond the end of the file,
/// [`Error::Io`](crate::Error::Io).
pub fn page(store: &Store, page: PageNo) -> Result<String> {
    page::dump(store, page)
}

/// A buddy space: its bitmap, its stretches, its last changes.
///
/// # Errors
/// [`Error::NotFound`](crate::Error::NotFound) where there is no such space; those of
/// reading its directory.
pub fn space(store: &Store, space: u32) -> Result<String> {
    space::dump(store, space)
}

/// All buddy spaces, a line each: pages in use, free pages, the largest free run. Cost: a page
/// read per space.
///
/// # Errors
/// Those of reading the root page; a directory that cannot be read is shown as such.
pub fn spaces(store: &Store) -> Result<String> {
    space::list(store)
}

/// An object: its handle, its record, its tree with all segments. Cost: reads all nodes.
///
/// # Errors
/// As [`Reader::metadata`](crate::Reader::metadata).
pub fn object<'k>(store: &Store, collection: &str, key: impl Into<Key<'k>>) -> Result<String> {
    object::dump(store, collection, &key.into())
}

/// The tree of names of a collection, as far as names with `prefix` lie in it.
///
/// # Errors
/// [`Error::NotFound`](crate::Error::NotFound) where there is no such collection; those of
/// reading its page.
pub fn names(store: &Store, collection: &str, prefix: &[u8]) -> Result<String> {
    names::dump(store, collection, prefix)
}

/// The segment pages that copies share, and how many references each range has.
///
/// # Errors
/// Those of reading the root page.
pub fn sharing(store: &Store) -> Result<String> {
    sharing::dump(store)
}

/// Both superblocks of an open store.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io).
pub fn superblock(store: &Store) -> Result<String> {
    superblock::dump(&*store.inner.pager.volume.disk)
}

/// Both superblocks of an open store, the holes of its file, and what maintenance has left to do.
/// Cost: as [`Store::frag`].
///
/// # Errors
/// As [`Store::frag`].
pub fn volume(store: &Store) -> Result<String> {
    let (text, report) = (superblock(store)?, store.frag(&mut |_, _| ())?);
    let (g, how) = (&report.geometry, report.geometry.holes_assumed);
    let how = if how { ", by the blocks that the file takes" } else { "" };
    let mut text = format!("{text}holes of the file: {} pages of {}", g.hole_pages, g.free_pages);
    text += &format!(" free{how}\n");
    for remedy in &report.remedies {
        let (gain, pieces, cost) = (remedy.gain_bytes, remedy.gain_pieces, remedy.cost_bytes);
        let what = match remedy.action {
            Action::JoinPieces => format!("{pieces} pieces to be joined"),
            Action::EmptyHeapPages => format!("heap pages of {gain} bytes to be emptied"),
            Action::Compact => format!("{gain} bytes to be given back"),
            Action::CloseOldestReader => format!("{gain} bytes that the oldest reader keeps"),
        };
        text += &format!("left to do: {what}, {cost} bytes to be moved\n");
    }
    if report.remedies.is_empty() {
        text += "left to do: nothing\n";
    }
    Ok(text)
}

/// Both superblocks of a store that is not open, however damaged.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io).
pub fn superblock_of(storage: &dyn Storage) -> Result<String> {
    superblock::dump(&*storage.volume())
}

/// The log of the store at `path`, which is neither opened nor recovered.
///
/// # Errors
/// Those of [`Store::open_read_only`] but an empty or damaged log, which is shown.
pub fn log(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    let storage = FileStorage::open(path, Access::ReadOnly).map_err(|e| open_error(path, e))?;
    log_of(&storage)
}

/// As [`log`], on any storage.
///
/// # Errors
/// As [`log`].
pub fn log_of(storage: &dyn Storage) -> Result<String> {
    log::dump(storage)
}
