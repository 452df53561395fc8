//! What a page says, by its kind. Adding a kind: here, in `decode`, and its words and JSON in
//! `holdall-report`.

use holdall_core::handle_page::{Handle, Location};
use holdall_core::page_map_node::Entry;
use holdall_core::segment_tree::Node;
use holdall_core::{Lsn, Oid, PageNo, Result};
use std::ops::Range;

/// What a page says. Lists end at the first entry that cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Body {
    /// Directory of a buddy space.
    #[non_exhaustive]
    SpaceDir {
        /// The space's number.
        space: u32,
        /// Pages in use.
        used: u32,
        /// Pages it has.
        pages: u32,
    },
    /// Checksums and owners of the pages of a stretch.
    #[non_exhaustive]
    SpaceInfo {
        /// The stretch's number in its space.
        stretch: u32,
        /// The space.
        space: u32,
        /// Pages of the stretch.
        pages: u32,
        /// Those with a checksum or an owner: page, checksums of its units of 4 KiB, owner.
        entries: Vec<(PageNo, Vec<u32>, u64)>,
    },
    /// The root page.
    #[non_exhaustive]
    Root {
        /// Buddy spaces.
        spaces: u32,
        /// The number that the next collection gets.
        next_collection: u64,
        /// Root of the tree from collections' names to their numbers.
        catalog: PageNo,
        /// Root of the tree from their numbers to what is known of them.
        entries: PageNo,
        /// The page of what small collections share; 0 if there is none.
        small: PageNo,
        /// Root of the drop list; 0 if it is empty.
        drops: PageNo,
        /// The map of handle pages, if it can be read.
        handles: Option<MapRoot>,
        /// Root of the tree of images; none while every page lies in its place.
        images: PageNo,
        /// The backups that an increment can build on, the oldest first, each with the state before
        /// its mark; none if they cannot be read.
        backups: Vec<([u8; 16], Lsn)>,
    },
    /// A collection's own page.
    #[non_exhaustive]
    Collection {
        /// Its objects.
        objects: u64,
        /// Those of them without a name.
        unnamed: u64,
        /// Their bytes.
        bytes: u64,
        /// Root of its tree of names.
        names: PageNo,
        /// Its heap file, if it can be read.
        heap: Option<HeapRoot>,
        /// Segment size threshold in pages; 0 for the default.
        threshold: u16,
    },
    /// Node of a page map.
    #[non_exhaustive]
    PageMap {
        /// Its level; level 0 names the pages themselves.
        level: u8,
        /// Its first index.
        base: u32,
        /// Its entries that are in use or a hole, each with the first index it is for.
        entries: Vec<(u64, Entry)>,
    },
    /// Handles.
    #[non_exhaustive]
    Handle {
        /// The page's index in the handle table.
        index: u32,
        /// Slots that can be given out.
        free: usize,
        /// All slots.
        slots: Vec<Handle>,
    },
    /// Heap page.
    #[non_exhaustive]
    Heap {
        /// The page's index in its heap file.
        index: u32,
        /// Records in it.
        records: usize,
        /// Free bytes.
        free: usize,
        /// The slots in use.
        slots: Vec<HeapSlot>,
    },
    /// Node of a tree of names.
    #[non_exhaustive]
    Names {
        /// Its level; leaves are on level 0.
        level: u8,
        /// Its cells.
        count: usize,
        /// Free bytes.
        free: usize,
        /// What all its names begin with.
        prefix: Vec<u8>,
        /// Of an inner node, the child with the names below all cells.
        below: Option<PageNo>,
        /// Keys of the cells and what they lead to.
        cells: Vec<(Vec<u8>, NamesValue)>,
    },
    /// Node of a large object's tree.
    SegmentNode(Node),
    /// Node of the tree of images.
    #[non_exhaustive]
    Images {
        /// Its level; leaves are on level 0.
        level: u8,
        /// In a leaf, pages and where their images lie, none for a page that is in its place
        /// again; in others, the least page below a node and the node.
        entries: Vec<(PageNo, PageNo)>,
    },
}

/// Root of a page map.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapRoot {
    /// Indices it has.
    pub pages: u32,
    /// Levels of nodes.
    pub levels: u8,
    /// Its root page.
    pub root: PageNo,
}

/// A heap file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapRoot {
    /// The map of its pages.
    pub map: MapRoot,
    /// Its records.
    pub records: u64,
    /// Bytes in use.
    pub used: u64,
    /// Bytes its pages have for records.
    pub capacity: u64,
}

/// A slot in use of a heap page.
#[derive(Debug)]
#[non_exhaustive]
pub struct HeapSlot {
    /// Its number.
    pub slot: u16,
    /// Its bytes in the page.
    pub bytes: Range<usize>,
    /// What it holds; `None` if it is outside the page.
    pub content: Option<Result<HeapContent>>,
}

/// What a slot of a heap page holds.
#[derive(Debug)]
#[non_exhaustive]
pub enum HeapContent {
    /// The beginning of a record that goes on elsewhere.
    Divided(Oid, Location),
    /// The rest of a record.
    Continuation(Oid),
    /// A record.
    #[non_exhaustive]
    Record {
        /// The object.
        oid: Oid,
        /// Its name, if it has one.
        name: Option<Vec<u8>>,
        /// Whether its bytes are in segments.
        large: bool,
        /// Its size in bytes.
        size: Result<u64>,
    },
}

/// What a cell of a tree of names leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NamesValue {
    /// The node with the names from its key on.
    Child(PageNo),
    /// An object.
    Object(Oid),
    /// Another value.
    Other(Vec<u8>),
}
