//! A tree of names, drawn with indentation.

use super::text::{Name, Text};
use crate::engine::catalog::{Collection, oid_of, page_of};
use crate::store::Store;
use holdall_core::names_node::Node;
use holdall_core::page::PageKind;
use holdall_core::{Error, PageNo, PageRead, Result, root_page};
use std::collections::HashSet;

pub(super) fn dump(store: &Store, collection: &str, prefix: &[u8]) -> Result<String> {
    let snapshot = store.inner.pager.snapshot();
    let root = snapshot.page(store.inner.root, PageKind::Root)?;
    let catalog = crate::names::Names { root: root_page::catalog(&root) };
    let entry = catalog.get(&snapshot, collection.as_bytes())?;
    let entry = entry.ok_or_else(|| Error::NotFound(format!("collection {collection:?}")))?;
    let no = page_of(&entry)?;
    let c = Collection::load(&snapshot, no)?;
    let mut text = Text::default();
    text.line(
        0,
        format_args!(
            "collection {} in page {no}: number {}, {} objects of {} bytes",
            Name(collection.as_bytes()),
            c.number,
            c.objects,
            c.logical_bytes
        ),
    );
    if c.names.root.is_none() {
        text.line(0, format_args!("no names"));
        return Ok(text.finish());
    }
    let mut tree = Tree { pages: &snapshot, prefix, text, seen: HashSet::new() };
    tree.node(c.names.root, None, 0)?;
    Ok(tree.text.finish())
}

struct Tree<'a, R: ?Sized> {
    pages: &'a R,
    prefix: &'a [u8],
    text: Text,
    /// A damaged tree may name a node in many places.
    seen: HashSet<PageNo>,
}

impl<R: PageRead + ?Sized> Tree<'_, R> {
    /// Recursion ends with the levels, of which there are at most 64.
    fn node(&mut self, no: PageNo, level: Option<u8>, depth: usize) -> Result<()> {
        if !self.seen.insert(no) {
            self.text.line(depth, format_args!("page {no}: damaged: shown above already"));
            return Ok(());
        }
        match self.open(no, level, depth) {
            Err(e) if e.is_corrupt() || matches!(e, Error::Unsupported { .. }) => {
                self.text.line(depth, format_args!("page {no}: {e}"));
                Ok(())
            }
            other => other,
        }
    }

    fn open(&mut self, no: PageNo, level: Option<u8>, depth: usize) -> Result<()> {
        let bytes = self.pages.page(no, PageKind::Names)?;
        let node = match level {
            Some(level) => Node::open_at(no, &bytes, level)?,
            None => Node::open(no, &bytes)?,
        };
        let what = if node.is_leaf() { "names" } else { "separators" };
        self.text.line(
            depth,
            format_args!(
                "page {no}: level {}, {} {what}, {} of {} bytes used, prefix {}",
                node.level(),
                node.count(),
                node.live(),
                node.capacity(),
                Name(node.prefix())
            ),
        );
        if node.is_leaf() {
            return self.leaf(&node, depth + 1);
        }
        let below = node.child_level()?;
        let mut low: Option<Vec<u8>> = None;
        for i in 0..=node.count() {
            let high = if i < node.count() { Some(node.cell(i)?.key.to_vec()) } else { None };
            if self.wanted(low.as_deref(), high.as_deref()) {
                if let Some(low) = &low {
                    self.text.line(depth + 1, format_args!("from {}", Name(low)));
                }
                self.node(node.child(i)?, Some(below), depth + 1)?;
            }
            low = high;
        }
        Ok(())
    }

    fn leaf(&mut self, node: &Node<'_>, depth: usize) -> Result<()> {
        for i in 0..node.count() {
            let key = node.cell(i)?.key.to_vec();
            if key.starts_with(self.prefix) {
                let value = node.value(i)?;
                match oid_of(&value) {
                    Ok(oid) => self.text.line(depth, format_args!("{} {oid}", Name(&key))),
                    Err(e) => self.text.line(depth, format_args!("{} {e}", Name(&key))),
                }
            }
        }
        Ok(())
    }

    /// Whether names with the prefix may lie from `low` to below `high`.
    fn wanted(&self, low: Option<&[u8]>, high: Option<&[u8]>) -> bool {
        let behind = low.is_some_and(|low| low > self.prefix && !low.starts_with(self.prefix));
        !behind && high.is_none_or(|high| high > self.prefix)
    }
}
