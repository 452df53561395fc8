//! An object: handle, record, descriptor, tree.

use crate::engine::key::Key;
use crate::handle::HandleTable;
use crate::heap::HeapFile;
use crate::object::{Attributes, Body, Record, read_record, time_of};
use crate::page_map::PageMap;
use crate::segment_tree::{DEFAULT_THRESHOLD, TreeRead};
use crate::store::Store;
use holdall_core::handle_page::Location;
use holdall_core::heap_record::divided::{Part, part};
use holdall_core::page::PageKind;
use holdall_core::segment_tree::{self, Descriptor, Slice, Top, Visit};
use holdall_core::{Error, Oid, PageNo, PageRead, Result, root_page};
use std::time::SystemTime;

/// An object as it lies in the store.
#[derive(Debug)]
#[non_exhaustive]
pub struct ObjectDump {
    /// Its id.
    pub oid: Oid,
    /// The number of its collection if that is small, which its record has; else `None`.
    pub collection: Option<u64>,
    /// Bytes of its record.
    pub record_bytes: usize,
    /// Where the record lies.
    pub place: Location,
    /// Where the rest of a divided record lies.
    pub rest: Option<Location>,
    /// Its name, if it has one.
    pub name: Option<Vec<u8>>,
    /// When its bytes or attributes last changed; `None` if that is not known.
    pub modified: Option<SystemTime>,
    /// Its attributes.
    pub attributes: Attributes,
    /// Its bytes, or where they are.
    pub body: ObjectBody,
}

/// The bytes of an object, or where they are.
#[derive(Debug)]
#[non_exhaustive]
pub enum ObjectBody {
    /// All of the bytes, which the record holds.
    Small(Vec<u8>),
    /// A descriptor and its tree.
    Large(LargeObject),
}

/// A descriptor and the tree of its segments.
#[derive(Debug)]
#[non_exhaustive]
pub struct LargeObject {
    /// Bytes of a page.
    pub page_size: u64,
    /// Bytes of the object.
    pub size: u64,
    /// The last of them, which the record holds.
    pub tail: Vec<u8>,
    /// Segment size threshold in pages.
    pub threshold: u16,
    /// Whether that is the one of all objects that have no other.
    pub is_default: bool,
    /// Flags of the descriptor.
    pub flags: u8,
    /// Levels of nodes; 0 if the record holds the segments.
    pub levels: u8,
    /// Nodes and segments in order, nodes before what is below them.
    pub tree: Vec<TreePart>,
}

/// What lies in the tree of a large object.
#[derive(Debug)]
#[non_exhaustive]
pub enum TreePart {
    /// A node.
    #[non_exhaustive]
    Node {
        /// Its page.
        page: PageNo,
        /// Its level; segments are below level 0.
        level: u8,
        /// Its entries.
        count: usize,
        /// Bytes of the object below it.
        bytes: u64,
    },
    /// A node that cannot be read or was met before; what is below it is left out.
    #[non_exhaustive]
    Unreadable {
        /// Its page.
        page: PageNo,
        /// Its level.
        level: u8,
        /// Why.
        error: Error,
    },
    /// Neighbouring pages or zeros, with their first byte in the object.
    Segment(u64, Slice),
}

pub(super) fn read(store: &Store, collection: &str, key: &Key<'_>) -> Result<ObjectDump> {
    let reader = store.read()?.collection(collection)?;
    let oid = reader.resolve(key)?;
    let pages = &*reader.state;
    let root = pages.page(store.inner.root, PageKind::Root)?;
    let handles = HandleTable { map: PageMap::decode(&root_page::handles(&root))? };
    let place = handles.lookup(pages, oid)?;
    let bytes = read_record(pages, &handles, oid)?;
    let record = Record::parse(&bytes)?;
    let rest = match part(&HeapFile::get(pages, place)?)? {
        (_, Part::First(rest)) => Some(rest),
        _ => None,
    };
    let body = match record.body {
        Body::Small(bytes) => ObjectBody::Small(bytes.to_vec()),
        Body::Large(bytes) => {
            ObjectBody::Large(large(&TreeRead(pages), bytes, pages.page_size() as u64)?)
        }
    };
    Ok(ObjectDump {
        oid,
        collection: Some(record.collection).filter(|number| *number > 0),
        record_bytes: bytes.len(),
        place,
        rest,
        name: record.name.map(<[u8]>::to_vec),
        modified: time_of(record.time),
        attributes: record.attributes()?,
        body,
    })
}

fn large<S: segment_tree::NodeRead>(
    nodes: &S,
    descriptor: &[u8],
    page_size: u64,
) -> Result<LargeObject> {
    let d = Descriptor::decode(descriptor)?;
    let levels = match &d.tree.top {
        Top::Inline(_) => 0,
        Top::Root { height, .. } => height.saturating_add(1),
    };
    let mut tree = Vec::new();
    segment_tree::walk(nodes, &d.tree, &mut |visit| {
        tree.push(match visit {
            Visit::Node { node, level, bytes, content, .. } => {
                TreePart::Node { page: PageNo(node.0), level, count: content.count(), bytes }
            }
            Visit::Unreadable { node, level, error } => {
                TreePart::Unreadable { page: PageNo(node.0), level, error }
            }
            Visit::Slice { start, slice } => TreePart::Segment(start, slice),
        });
        Ok(())
    })?;
    Ok(LargeObject {
        page_size,
        size: d.size(),
        threshold: if d.threshold == 0 { DEFAULT_THRESHOLD } else { d.threshold },
        is_default: d.threshold == 0,
        flags: d.flags,
        levels,
        tree,
        tail: d.tail,
    })
}
