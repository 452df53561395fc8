//! Which blobs a record, a retired entry or an intent stands for.
//!
//! One place answers "what is named?", for collecting and for verifying.

use crate::format::{
    BlobId, BlobKind, BlobRef, Blobs, Named, Part, Record, alias_of, decode_list, decode_node,
};
use crate::store::{Inner, all_named, is_missing, missing_blob, together};
use holdall::{Error, Result};
use holdall_core::segment_tree::Node;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes that are read together.
const READS: usize = 32;

/// Blobs that something stands for.
pub(crate) type Reached = BTreeMap<BlobId, Place>;

/// A blob that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// How many blobs lead to it, by the longest way. The deepest are deleted first, so
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

/// All blobs that these stand for. Each node and list is read once, whatever leads to it; how deep
/// it lies is counted when all is known. Cost: a request for each that is not at hand.
///
/// # Errors
/// [`Error::Corrupt`] if one is not what names it, or leads back to itself; those of the backend.
pub(crate) async fn reach(store: &Inner, named: &[Named], absent: Absent) -> Result<Reached> {
    let (mut reached, mut ways) = (Reached::new(), Ways::new());
    let mut read = BTreeSet::new();
    let mut open: Vec<Named> = named.to_vec();
    while !open.is_empty() {
        let mut inner = Vec::new();
        for named in open.drain(..) {
            let place = reached.entry(named.blob.id).or_insert(Place::lone(named.blob));
            if matches!(named.part, Part::Tree(_) | Part::List) {
                place.leaf = false;
                if read.insert((named.blob.id, named.part)) {
                    inner.push(named);
                }
            }
        }
        let found = together(inner, READS, |named| async move {
            Ok((named.blob.id, below(store, named, absent).await?))
        });
        for (id, found) in found.await? {
            ways.entry(id).or_default().extend(found.iter().map(|named| named.blob.id));
            open.extend(found);
        }
    }
    set_depths(&mut reached, &ways)?;
    Ok(reached)
}

/// Which blobs each node and list leads to.
type Ways = BTreeMap<BlobId, Vec<BlobId>>;

/// Sets each blob's depth, after that of all that lead to it. A tree's levels fall, but a list made by
/// somebody else may name itself: then some never have all before them.
fn set_depths(reached: &mut Reached, ways: &Ways) -> Result<()> {
    // Nodes and lists, with how many ways to them are not counted yet.
    let mut waiting: BTreeMap<BlobId, usize> = ways.keys().map(|id| (*id, 0)).collect();
    for id in ways.values().flatten() {
        if let Some(left) = waiting.get_mut(id) {
            *left += 1;
        }
    }
    let mut ready: Vec<BlobId> =
        waiting.iter().filter(|(_, left)| **left == 0).map(|(id, _)| *id).collect();
    while let Some(id) = ready.pop() {
        waiting.remove(&id);
        let depth = reached.get(&id).map_or(0, |place| place.depth.saturating_add(1));
        for child in ways.get(&id).into_iter().flatten() {
            if let Some(place) = reached.get_mut(child) {
                place.depth = place.depth.max(depth);
            }
            if let Some(left) = waiting.get_mut(child) {
                *left -= 1;
                if *left == 0 {
                    ready.push(*child);
                }
            }
        }
    }
    match waiting.keys().next() {
        Some(id) => {
            Err(Error::corrupt(format!("blob {id}"), "leads to itself, or one that does to it"))
        }
        None => Ok(()),
    }
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
        return Err(Error::corrupt(place, detail));
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
