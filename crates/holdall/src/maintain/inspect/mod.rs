//! What lies in a store, for those who look for a fault: structures, which `holdall-report` puts
//! into words and JSON.
//!
//! Owns: nothing; reads a snapshot of an open store, or the files of one that is not open.
//! What is damaged is given as such and ends nothing else. What may be large is an iterator.
//! A new version may add fields and variants. The types of `holdall-core` among them are those of
//! the format, and change with its version.

mod body;
mod decode;
mod log;
mod names;
mod object;
mod page;
mod sharing;
mod space;
mod superblock;

pub use body::{Body, HeapContent, HeapRoot, HeapSlot, MapRoot, NamesValue};
pub use holdall_core::handle_page::{Handle, Location};
pub use holdall_core::log_format::{InPlaceKind, Part, Ranges, Record};
pub use holdall_core::page::PageKind;
pub use holdall_core::page_map_node::Entry;
pub use holdall_core::segment_tree::{Node, Slice};
pub use holdall_core::superblock::Superblock;
pub use log::{LogBlock, LogDump, LogEnd, LogGroup, LogPart};
pub use names::{NamesPart, NamesStop, NamesTree};
pub use object::{LargeObject, ObjectBody, ObjectDump, TreePart};
pub use page::{Page, PageContent, PlaceInSpace, SegmentNote};
pub use sharing::{SharedPages, Sharing};
pub use space::{Space, SpaceFigures, Spaces, Stretch};
pub use superblock::{SuperblockCopy, Superblocks};

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
pub fn page(store: &Store, page: PageNo) -> Result<Page> {
    page::read(store, page)
}

/// A buddy space: its bitmap, its stretches, its last changes. Memory: a byte per page.
///
/// # Errors
/// [`Error::NotFound`](crate::Error::NotFound) if there is no such space; those of
/// reading its directory.
pub fn space(store: &Store, space: u32) -> Result<Space> {
    space::read(store, space)
}

/// All buddy spaces one after another: pages in use, free pages, the largest free run.
///
/// # Errors
/// Those of reading the root page.
pub fn spaces(store: &Store) -> Result<Spaces<'_>> {
    space::all(store)
}

/// An object: its handle, its record, its tree with all segments. Cost: reads all nodes.
/// Memory: some 50 bytes per node and segment.
///
/// # Errors
/// As [`Reader::metadata`](crate::Reader::metadata).
pub fn object<'k>(store: &Store, collection: &str, key: impl Into<Key<'k>>) -> Result<ObjectDump> {
    object::read(store, collection, &key.into())
}

/// The tree of names of a collection, node by node, as far as names with `prefix` lie in it.
///
/// # Errors
/// [`Error::NotFound`](crate::Error::NotFound) if there is no such collection; those of
/// reading its page.
pub fn names(store: &Store, collection: &str, prefix: &[u8]) -> Result<NamesTree> {
    names::read(store, collection, prefix)
}

/// The segment pages that copies share, and how many references each range has. Memory: some 50
/// bytes per range.
///
/// # Errors
/// Those of reading the root page.
pub fn sharing(store: &Store) -> Result<Sharing> {
    sharing::read(store)
}

/// Both superblocks of an open store.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io).
pub fn superblocks(store: &Store) -> Result<Superblocks> {
    superblock::read(&*store.inner.pager.volume.disk)
}

/// Both superblocks of a store that is not open, however damaged.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io).
pub fn superblocks_of(storage: &dyn Storage) -> Result<Superblocks> {
    superblock::read(&*storage.volume())
}

/// The log of the store at `path`, which is neither opened nor recovered, group by group.
///
/// # Errors
/// Those of [`Store::open_read_only`] but an empty or damaged log, which is given as such.
pub fn log(path: impl AsRef<Path>) -> Result<LogDump> {
    let path = path.as_ref();
    let storage = FileStorage::open(path, Access::ReadOnly).map_err(|e| open_error(path, e))?;
    log_of(&storage)
}

/// As [`log`], on any storage.
///
/// # Errors
/// As [`log`].
pub fn log_of(storage: &dyn Storage) -> Result<LogDump> {
    log::read(storage)
}
