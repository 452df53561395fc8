//! Which blobs a record, a retired entry or an intent stands for.
//!
//! One place answers "what is named?", for collecting and for verifying.

use crate::format::{
    BlobId, BlobKind, BlobRef, Blobs, Named, Part, Record, alias_of, decode_list, decode_node,
};
use crate::store::{Inner, all_named, is_missing, missing_blob, together};
use holdall::Result;
use holdall_core::segment_tree::Node;
use std::collections::BTreeMap;

/// Nodes that are read together.
const READS: usize = 32;

/// Blobs that something stands for.
pub(crate) type Reached = BTreeMap<BlobId, Place>;

/// A blob that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// How many blobs lead to it, by the longest way. Whoever deletes some takes the deepest first, so
    /// that what a broken-off deletion left is still found.
    pub(crate) depth: u32,
    /// Whether it leads to no other.
    pub(crate) leaf: bool,
    pub(crate) blob: BlobRef,
}

impl Place {
    /// One that nothing leads to.
    pub(crate) fn lone(blob: BlobRef) -> Self {
        Self { depth: 0, leaf: true, blob }
    }
}

/// What happens where a node or list is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// It is an error.
    Refused,
    /// What is below it was deleted before.
    Skipped,
}

/// All blobs that the tree of a record names.
pub(crate) async fn live(store: &Inner, record: &Record) -> Result<Reached> {
    reach(store, &all_named(record), Absent::Refused).await
}

/// All blobs that these stand for. Cost: a request for each node and list that is not at hand.
pub(crate) async fn reach(store: &Inner, named: &[Named], absent: Absent) -> Result<Reached> {
    let mut reached = Reached::new();
    let mut open: Vec<Named> = named.to_vec();
    let mut depth = 0;
    while !open.is_empty() {
        let mut inner = Vec::new();
        for named in open.drain(..) {
            let leaf = !matches!(named.part, Part::Tree(_) | Part::List);
            let known = reached.get(&named.blob.id).copied();
            let place =
                Place { depth, leaf: leaf && known.is_none_or(|k| k.leaf), blob: named.blob };
            reached.insert(named.blob.id, place);
            // Once more if it lies deeper than it seemed, or was seen alone only.
            if !leaf && known.is_none_or(|known| known.leaf || known.depth < depth) {
                inner.push(named);
            }
        }
        let more = together(inner, READS, |named| below(store, named, absent)).await?;
        open.extend(more.into_iter().flatten());
        depth += 1;
    }
    Ok(reached)
}

/// What lies right below a node or list.
async fn below(store: &Inner, named: Named, absent: Absent) -> Result<Vec<Named>> {
    let found = match named.part {
        Part::List => list(store, named.blob).await,
        Part::Tree(level) => node(store, named.blob, level).await,
        Part::Segment | Part::Node => Ok(Vec::new()),
    };
    match found {
        Err(e) if absent == Absent::Skipped && is_missing(&e) => Ok(Vec::new()),
        found => found,
    }
}

async fn list(store: &Inner, blob: BlobRef) -> Result<Vec<Named>> {
    let payload = store.read_whole(blob.id, BlobKind::List).await?;
    let payload = payload.ok_or_else(|| missing_blob(blob.id))?;
    let entries = decode_list(&payload, &format!("blob {}", blob.id))?;
    Ok(entries.into_iter().map(|entry| entry.named).collect())
}

async fn node(store: &Inner, blob: BlobRef, level: u8) -> Result<Vec<Named>> {
    let payload = store.read_node(blob.id).await?;
    let mut blobs = Blobs::default();
    let place = format!("blob {}", blob.id);
    let node = decode_node(&payload, &mut blobs, &place)?;
    if node.level() != level {
        let detail = format!("a node of level {}, not {level}", node.level());
        return Err(holdall::Error::corrupt(place, detail));
    }
    let found = match node {
        Node::Leaf(slices) => {
            let aliases = slices.iter().filter(|s| s.is_run()).map(|s| alias_of(s.reference));
            let found = aliases.filter_map(|alias| blobs.get(alias));
            found.map(|blob| Named { blob, part: Part::Segment }).collect()
        }
        Node::Inner { children, .. } => {
            let found = children.iter().filter_map(|child| blobs.get(child.node.0));
            found.map(|blob| Named { blob, part: Part::Tree(level - 1) }).collect()
        }
    };
    Ok(found)
}
