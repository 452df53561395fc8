//! Nodes of a tree, and lists of retired blobs: payloads of blobs.

use super::part::{Retired, Table, counted};
use super::slices::{read_alias, read_slices, write_slices};
use super::{Blobs, damaged, or_short};
use holdall::{Error, Result};
use holdall_core::bytes::{Reader, push_varint};
use holdall_core::segment_tree::{Child, MAX_HEIGHT, MAX_OBJECT, Node, NodeRef};

/// Most entries of a node.
pub const MAX_FANOUT: usize = 2048;
/// Most entries of a list of retired blobs.
pub(super) const MAX_LIST: usize = 64 * 1024;
const MIN_CHILD: usize = 2;

/// The payload of a node. Its blobs' lengths are known: nodes are written from the leaves up.
///
/// # Errors
/// [`Error::Corrupt`] if it names what `blobs` has not; [`Error::TooLarge`] with too many entries.
pub fn encode_node(node: &Node, blobs: &Blobs) -> Result<Vec<u8>> {
    if !(1..=MAX_FANOUT).contains(&node.count()) {
        return Err(Error::TooLarge(format!("a node of {} entries", node.count())));
    }
    let (mut table, mut body) = (Table::default(), Vec::new());
    match node {
        Node::Leaf(slices) => write_slices(slices, blobs, &mut table, &mut body)?,
        Node::Inner { children, .. } => {
            push_varint(&mut body, children.len() as u64);
            for child in children {
                let blob = blobs.get(child.node.0);
                let blob = blob.ok_or_else(|| damaged("a tree", "names no node"))?;
                push_varint(&mut body, table.row(blob));
                push_varint(&mut body, child.bytes);
            }
        }
    }
    let mut out = vec![node.level()];
    table.write(&mut out);
    out.extend(body);
    Ok(out)
}

/// Reads the payload of a node; what it names gets aliases of `blobs`.
///
/// # Errors
/// [`Error::Corrupt`] for anything that cannot be.
pub fn decode_node(payload: &[u8], blobs: &mut Blobs, place: &str) -> Result<Node> {
    let mut r = Reader::new(payload);
    let level = or_short(r.u8().filter(|level| *level <= MAX_HEIGHT), place)?;
    let table = Table::read(&mut r, MAX_FANOUT, place)?;
    let node = if level == 0 {
        Node::Leaf(read_slices(&mut r, &table, blobs, (MAX_FANOUT, None), place)?)
    } else {
        let count = counted(&mut r, MIN_CHILD, MAX_FANOUT, place)?;
        let mut children = Vec::with_capacity(count);
        for _ in 0..count {
            let node = NodeRef(read_alias(&mut r, &table, blobs, place)?);
            let bytes = or_short(r.varint().filter(|n| (1..=MAX_OBJECT).contains(n)), place)?;
            children.push(Child { bytes, node });
        }
        Node::Inner { level, children }
    };
    if !r.rest().is_empty() || node.count() == 0 || node.bytes().is_none() {
        return Err(damaged(place, format!("a node of {} entries", node.count())));
    }
    Ok(node)
}

/// The payload of a list of retired blobs.
///
/// # Errors
/// [`Error::TooLarge`] with more entries than a reader takes.
pub fn encode_list(retired: &[Retired]) -> Result<Vec<u8>> {
    if !(1..=MAX_LIST).contains(&retired.len()) {
        let text = format!("a list of {} retired blobs, at most {MAX_LIST}", retired.len());
        return Err(Error::TooLarge(text));
    }
    let (mut table, mut body) = (Table::default(), Vec::new());
    push_varint(&mut body, retired.len() as u64);
    retired.iter().for_each(|entry| entry.write(&mut table, &mut body));
    let mut out = Vec::new();
    table.write(&mut out);
    out.extend(body);
    Ok(out)
}

/// Reads the payload of a list of retired blobs.
///
/// # Errors
/// [`Error::Corrupt`] for anything that cannot be.
pub fn decode_list(payload: &[u8], place: &str) -> Result<Vec<Retired>> {
    let mut r = Reader::new(payload);
    let table = Table::read(&mut r, MAX_LIST, place)?;
    let retired = Retired::read_all(&mut r, &table, MAX_LIST, place)?;
    if !r.rest().is_empty() || retired.is_empty() {
        return Err(damaged(place, format!("a list of {} entries", retired.len())));
    }
    Ok(retired)
}
