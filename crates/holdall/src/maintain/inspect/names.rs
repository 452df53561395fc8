//! A tree of names, node by node.

use crate::engine::catalog::{Root, oid_of};
use crate::store::Store;
use crate::txn::Snapshot;
use holdall_core::names_node::Node;
use holdall_core::page::PageKind;
use holdall_core::{Error, Oid, PageNo, PageRead, Result};
use std::collections::HashSet;

/// The names of a collection: an iterator over its tree in order, nodes before what is below
/// them. Goes on behind a node that is damaged; another error is the last item. Memory: the nodes
/// of one path, and eight bytes per node met.
#[derive(Debug)]
#[non_exhaustive]
pub struct NamesTree {
    /// The collection's name.
    pub collection: String,
    /// Its page; `None` for a small one, whose names lie among those of others.
    pub page: Option<PageNo>,
    /// Its number.
    pub number: u64,
    /// Its objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u128,
    /// The root of its tree, if it has names.
    pub root: Option<PageNo>,
    prefix: Vec<u8>,
    /// Bytes of it that are no part of names.
    before: usize,
    snapshot: Snapshot,
    /// A damaged tree may name a node in many places.
    seen: HashSet<PageNo>,
    /// What comes next, the last first.
    todo: Vec<Todo>,
}

/// A stop in a tree of names.
#[derive(Debug)]
#[non_exhaustive]
pub struct NamesStop {
    /// How many nodes it is below.
    pub depth: usize,
    /// What is there.
    pub found: NamesPart,
}

/// What lies in a tree of names.
#[derive(Debug)]
#[non_exhaustive]
pub enum NamesPart {
    /// A node.
    #[non_exhaustive]
    Node {
        /// Its page.
        page: PageNo,
        /// Its level; leaves are on level 0.
        level: u8,
        /// Its names or separators.
        count: usize,
        /// Bytes of it in use.
        used: usize,
        /// Bytes it has.
        capacity: usize,
        /// What all its names begin with.
        prefix: Vec<u8>,
    },
    /// Names from this one on are in the node that follows.
    From(Vec<u8>),
    /// A name and its object.
    Name(Vec<u8>, Result<Oid>),
    /// A damaged node; `None` for one that was met before. What is below it is left out.
    Damaged(PageNo, Option<Error>),
}

#[derive(Debug)]
enum Todo {
    Node { page: PageNo, level: Option<u8>, depth: usize },
    Stop(NamesStop),
}

pub(super) fn read(store: &Store, collection: &str, prefix: &[u8]) -> Result<NamesTree> {
    let snapshot = store.inner.pager.snapshot();
    let found = Root::load(&snapshot, store.inner.root)?.collection(&snapshot, collection)?;
    let c = found.ok_or_else(|| Error::NotFound(format!("collection {collection:?}")))?;
    let root = Some(c.names.root).filter(|root| !root.is_none());
    Ok(NamesTree {
        collection: collection.to_owned(),
        page: Some(c.page).filter(|page| !page.is_none()),
        number: c.number,
        objects: c.objects,
        bytes: c.logical_bytes,
        root,
        prefix: c.key(prefix).into_owned(),
        before: c.prefix().map_or(0, |number| number.len()),
        snapshot,
        seen: HashSet::new(),
        todo: root.into_iter().map(|page| Todo::Node { page, level: None, depth: 0 }).collect(),
    })
}

impl Iterator for NamesTree {
    type Item = Result<NamesStop>;

    fn next(&mut self) -> Option<Self::Item> {
        let (page, level, depth) = match self.todo.pop()? {
            Todo::Stop(stop) => return Some(Ok(stop)),
            Todo::Node { page, level, depth } => (page, level, depth),
        };
        let mut found = Vec::new();
        let damage = if self.seen.insert(page) {
            match self.node(page, level, depth, &mut found) {
                Ok(()) => None,
                Err(e) if e.is_corrupt() || matches!(e, Error::Unsupported { .. }) => Some(Some(e)),
                Err(e) => {
                    self.todo.clear();
                    return Some(Err(e));
                }
            }
        } else {
            Some(None)
        };
        found.extend(damage.map(|e| stop(depth, NamesPart::Damaged(page, e))));
        self.todo.extend(found.into_iter().rev());
        self.next()
    }
}

fn stop(depth: usize, found: NamesPart) -> Todo {
    Todo::Stop(NamesStop { depth, found })
}

impl NamesTree {
    /// Adds what a node holds, as far as it can be read.
    fn node(
        &self,
        page: PageNo,
        level: Option<u8>,
        depth: usize,
        found: &mut Vec<Todo>,
    ) -> Result<()> {
        let bytes = self.snapshot.page(page, PageKind::Names)?;
        let node = match level {
            Some(level) => Node::open_at(page, &bytes, level)?,
            None => Node::open(page, &bytes)?,
        };
        let (level, count, prefix) = (node.level(), node.count(), node.prefix().to_vec());
        let (used, capacity) = (node.live(), node.capacity());
        found.push(stop(depth, NamesPart::Node { page, level, count, used, capacity, prefix }));
        let depth = depth + 1;
        if node.is_leaf() {
            for i in 0..count {
                let mut key = node.cell(i)?.key.to_vec();
                if key.starts_with(&self.prefix) {
                    key.drain(..self.before);
                    let oid = oid_of(&node.value(i)?);
                    found.push(stop(depth, NamesPart::Name(key, oid)));
                }
            }
            return Ok(());
        }
        let below = node.child_level()?;
        let mut low: Option<Vec<u8>> = None;
        for i in 0..=count {
            let high = if i < count { Some(node.cell(i)?.key.to_vec()) } else { None };
            if self.wanted(low.as_deref(), high.as_deref()) {
                found.extend(low.map(|low| stop(depth, NamesPart::From(low))));
                found.push(Todo::Node { page: node.child(i)?, level: Some(below), depth });
            }
            low = high;
        }
        Ok(())
    }

    /// Whether names with the prefix may lie from `low` to below `high`.
    fn wanted(&self, low: Option<&[u8]>, high: Option<&[u8]>) -> bool {
        let prefix = &*self.prefix;
        let behind = low.is_some_and(|low| low > prefix && !low.starts_with(prefix));
        !behind && high.is_none_or(|high| high > prefix)
    }
}
