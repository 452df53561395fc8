//! The tree of images: which pages of a state lie elsewhere, and where.
//!
//! An *image* of a page is a version of it that lies in another page. A transaction too large for
//! memory writes changed pages as images, and its commit has the state lead to them. The tree is
//! part of the state as all else is, so snapshots of before know nothing of them.
//!
//! Owns: nodes of kind `Images`. Knows neither transactions nor who may be written: a node to be
//! changed comes from [`NodeWrite::own`]. Nodes are never merged: the tree is emptied soon.
//!
//! Cost: with 8 KiB pages a node leads to 509 others, so 130,000 images have two levels.

use holdall_core::image_node::{self as node, ImageNode, MAX_LEVEL};
use holdall_core::page::PageKind;
use holdall_core::{Error, PageNo, PageRead, Result};
use std::collections::HashSet;

/// The tree of a state, by its root; none if every page lies in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Images {
    /// The root node.
    pub root: PageNo,
}

/// Changes nodes of a tree within a transaction.
pub trait NodeWrite: PageRead {
    /// The node to be changed in the place of `no`: itself, or a copy, and `no` is freed.
    ///
    /// # Errors
    /// Page access; no room for a copy.
    fn own(&mut self, no: PageNo) -> Result<PageNo>;

    /// The bytes of a node that is this transaction's own.
    ///
    /// # Errors
    /// Page access.
    fn node_mut(&mut self, no: PageNo) -> Result<&mut [u8]>;

    /// A new node, formatted.
    ///
    /// # Errors
    /// No room for it.
    fn new_node(&mut self) -> Result<PageNo>;

    /// Frees a node.
    ///
    /// # Errors
    /// Those of freeing a page.
    fn free_node(&mut self, no: PageNo) -> Result<()>;
}

/// What became of a node.
struct Changed {
    /// Where it is; none if it is gone.
    no: PageNo,
    /// The node behind it that it was divided into, with its first page.
    next: Option<(PageNo, PageNo)>,
}

impl Images {
    /// Whether every page lies in its place.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.root.is_none()
    }

    /// Where the image of `page` lies; `None` if the page lies in its place. Cost: a node a level.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn get<R: PageRead + ?Sized>(self, pages: &R, page: PageNo) -> Result<Option<PageNo>> {
        let (mut at, mut level) = (self.root, None);
        while !at.is_none() {
            let (below, found) = pages.with_page(at, PageKind::Images, |bytes| {
                let node = checked(bytes, at, level)?;
                level = Some(node.level());
                Ok(match node.level() {
                    0 => (PageNo::NONE, node.image(page)),
                    _ => (node.entry(node.child(page)).1, None),
                })
            })?;
            if found.is_some() {
                return Ok(found);
            }
            at = below;
        }
        Ok(None)
    }

    /// At most `most` pages from `from` on that have images, in order, and where these lie. Cost:
    /// the nodes that hold them, and those above.
    ///
    /// # Errors
    /// As [`Images::get`].
    pub fn list<R: PageRead + ?Sized>(
        self,
        pages: &R,
        from: PageNo,
        most: usize,
    ) -> Result<Vec<(PageNo, PageNo)>> {
        let mut found = Vec::new();
        if !self.is_empty() {
            list(pages, (self.root, None), from, most, &mut found)?;
        }
        Ok(found)
    }

    /// Says that the image of `page` lies at `image`. Returns where it lay before. Cost: a changed
    /// node, and two where one was full; with copies, one a level.
    ///
    /// # Errors
    /// As [`Images::get`]; those of `pages`.
    pub fn insert<W: NodeWrite>(
        &mut self,
        pages: &mut W,
        page: PageNo,
        image: PageNo,
    ) -> Result<Option<PageNo>> {
        if self.is_empty() {
            self.root = pages.new_node()?;
        }
        let mut before = PageNo::NONE;
        let changed = insert(pages, (self.root, None), (page, image), &mut before)?;
        self.root = changed.no;
        if let Some((key, next)) = changed.next {
            let level = level_of(pages, changed.no)?;
            if level >= MAX_LEVEL {
                return Err(Error::page(changed.no, "the tree of images is higher than any"));
            }
            let above = pages.new_node()?;
            let bytes = pages.node_mut(above)?;
            node::init(bytes, level + 1);
            node::insert_at(bytes, 0, PageNo(0), changed.no);
            node::insert_at(bytes, 1, key, next);
            self.root = above;
        }
        Ok(Some(before).filter(|b| !b.is_none()))
    }

    /// Says that `page`, which has an image, lies in its place. Cost: as [`Images::insert`].
    ///
    /// # Errors
    /// As [`Images::insert`].
    pub fn remove<W: NodeWrite>(&mut self, pages: &mut W, page: PageNo) -> Result<()> {
        self.root = remove(pages, (self.root, None), page)?;
        Ok(())
    }
}

/// The node in `bytes`, below one of level `above`.
fn checked(bytes: &[u8], no: PageNo, above: Option<u8>) -> Result<ImageNode<'_>> {
    let node = ImageNode::new(bytes, no)?;
    if above.is_some_and(|above| node.level() + 1 != above) {
        return Err(Error::page(no, format!("an image node of a wrong level {}", node.level())));
    }
    Ok(node)
}

fn level_of<R: PageRead + ?Sized>(pages: &R, no: PageNo) -> Result<u8> {
    pages.with_page(no, PageKind::Images, |bytes| Ok(ImageNode::new(bytes, no)?.level()))
}

fn list<R: PageRead + ?Sized>(
    pages: &R,
    (no, above): (PageNo, Option<u8>),
    from: PageNo,
    most: usize,
    found: &mut Vec<(PageNo, PageNo)>,
) -> Result<()> {
    let bytes = pages.page(no, PageKind::Images)?;
    let node = checked(&bytes, no, above)?;
    if node.level() == 0 {
        let live = node.entries().filter(|(page, image)| *page >= from && !image.is_none());
        found.extend(live.take(most - found.len()));
        return Ok(());
    }
    for (_, below) in node.entries().skip(node.child(from)) {
        if found.len() >= most {
            break;
        }
        list(pages, (below, Some(node.level())), from, most, found)?;
    }
    Ok(())
}

/// Gives `f` every page that has an image, and where it lies, as far as the nodes below `root` can be
/// read. Cost: a read of each node.
pub fn each_leaf<R: PageRead + ?Sized>(pages: &R, root: PageNo, f: &mut dyn FnMut(PageNo, PageNo)) {
    let (mut left, mut seen) = (vec![(root, None)], HashSet::new());
    while let Some((no, above)) = left.pop() {
        // A damaged tree may lead to a node many times.
        if no.is_none() || !seen.insert(no) {
            continue;
        }
        let Ok(bytes) = pages.page(no, PageKind::Images) else { continue };
        let Ok(node) = checked(&bytes, no, above) else { continue };
        for (page, to) in node.entries().filter(|(_, to)| !to.is_none()) {
            match node.level() {
                0 => f(page, to),
                level => left.push((to, Some(level))),
            }
        }
    }
}

/// Where the way to `page` goes on below node `no`: place among its entries and node; `None` if it
/// is a leaf.
fn below<R: PageRead + ?Sized>(
    pages: &R,
    (no, above): (PageNo, Option<u8>),
    page: PageNo,
) -> Result<(u8, Option<(usize, PageNo)>)> {
    pages.with_page(no, PageKind::Images, |bytes| {
        let node = checked(bytes, no, above)?;
        let at = node.child(page);
        let way = (node.level() > 0).then(|| (at, node.entry(at).1));
        Ok((node.level(), way))
    })
}

fn insert<W: NodeWrite>(
    pages: &mut W,
    (no, above): (PageNo, Option<u8>),
    (page, image): (PageNo, PageNo),
    before: &mut PageNo,
) -> Result<Changed> {
    let (level, way) = below(pages, (no, above), page)?;
    let Some((at, child)) = way else {
        let no = pages.own(no)?;
        let bytes = pages.node_mut(no)?;
        let found = ImageNode::new(bytes, no)?.search(page);
        return match found {
            Ok(at) => {
                *before = ImageNode::new(bytes, no)?.entry(at).1;
                node::set_target(bytes, at, image);
                Ok(Changed { no, next: None })
            }
            Err(at) => insert_entry(pages, no, at, (page, image)),
        };
    };
    let changed = insert(pages, (child, Some(level)), (page, image), before)?;
    if changed.no == child && changed.next.is_none() {
        return Ok(Changed { no, next: None });
    }
    let no = pages.own(no)?;
    node::set_target(pages.node_mut(no)?, at, changed.no);
    match changed.next {
        Some(next) => insert_entry(pages, no, at + 1, next),
        None => Ok(Changed { no, next: None }),
    }
}

/// Puts an entry into a node, which is divided if it is full: in the middle, or behind its last
/// entry if that is where the new one belongs, so that pages that come in order fill their nodes.
fn insert_entry<W: NodeWrite>(
    pages: &mut W,
    no: PageNo,
    at: usize,
    (key, target): (PageNo, PageNo),
) -> Result<Changed> {
    if !node::is_full(pages.node_mut(no)?) {
        node::insert_at(pages.node_mut(no)?, at, key, target);
        return Ok(Changed { no, next: None });
    }
    let other = pages.new_node()?;
    let mut half = vec![0; pages.page_size()];
    let bytes = pages.node_mut(no)?;
    let (level, count) = {
        let node = ImageNode::new(bytes, no)?;
        (node.level(), node.len())
    };
    let middle = if at == count { count } else { count / 2 };
    node::move_behind(bytes, middle, &mut half);
    if at <= middle && middle < count {
        node::insert_at(bytes, at, key, target);
    } else {
        node::insert_at(&mut half, at - middle, key, target);
    }
    let bytes = pages.node_mut(other)?;
    bytes[node::ENTRIES - 8..].copy_from_slice(&half[node::ENTRIES - 8..]);
    node::init(bytes, level);
    let first = ImageNode::new(bytes, other)?.entry(0).0;
    Ok(Changed { no, next: Some((first, other)) })
}

/// Returns where the node is afterwards: none if nothing is below it any more.
fn remove<W: NodeWrite>(
    pages: &mut W,
    (no, above): (PageNo, Option<u8>),
    page: PageNo,
) -> Result<PageNo> {
    let (level, way) = below(pages, (no, above), page)?;
    let Some((at, child)) = way else {
        let no = pages.own(no)?;
        let bytes = pages.node_mut(no)?;
        let leaf = ImageNode::new(bytes, no)?;
        let found = leaf.search(page).ok().filter(|at| !leaf.entry(*at).1.is_none());
        let at = found.ok_or_else(|| Error::page(page, "has no image to be taken out"))?;
        node::set_target(bytes, at, PageNo::NONE);
        if !ImageNode::new(bytes, no)?.is_void() {
            return Ok(no);
        }
        pages.free_node(no)?;
        return Ok(PageNo::NONE);
    };
    let now = remove(pages, (child, Some(level)), page)?;
    if now == child {
        return Ok(no);
    }
    let no = pages.own(no)?;
    let bytes = pages.node_mut(no)?;
    if !now.is_none() {
        node::set_target(bytes, at, now);
        return Ok(no);
    }
    if ImageNode::new(bytes, no)?.len() > 1 {
        let least = ImageNode::new(bytes, no)?.entry(at).0;
        node::remove_at(bytes, at);
        if at == 0 {
            // The next serves what the first did, also before its own pages.
            node::set_page(bytes, 0, least);
        }
        return Ok(no);
    }
    pages.free_node(no)?;
    Ok(PageNo::NONE)
}

#[cfg(test)]
mod tests;
