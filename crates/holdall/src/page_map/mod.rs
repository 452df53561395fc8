//! The page map of a file: logical page index to page, and free-space inventory in one.
//!
//! Owns: the radix tree over `holdall_core::page_map_node`. Its root changes when it grows, so the
//! caller keeps a [`PageMap`] in its own page and stores it after each change. Invariants:
//! every index below `len` is a page or a hole, every one from `len` on is empty; an inner
//! entry sums up its subtree exactly. Logical indexes let pages move without their users
//! knowing; the classes let a page with room be found in the height of the tree (McAuliffe
//! §3.1, FSIPs, here with hierarchical maxima instead of a histogram).
//!
//! Threads: reading needs a snapshot only; changing, the collection's write transaction.

#[cfg(test)]
mod check;
mod find;
mod lower;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub use check::VisitPage;
use holdall_core::bytes::{put_u32, put_u48, u32_at, u48_at};
use holdall_core::page_map_node::{self as node, Entry, MAX_HEIGHT, Node, Tag};
use holdall_core::{Error, PageKind, PageNo, PageRead, PageRun, PageWrite, Result};

/// Root of a page map, as its owner's page holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageMap {
    root: PageNo,
    height: u8,
    len: u32,
}

/// One node on the way to an index, and the entry taken in it.
#[derive(Debug, Clone, Copy, Default)]
struct MapStep {
    node: PageNo,
    level: u8,
    base: u32,
    slot: usize,
}

/// The way from the root (first) to a leaf (last).
#[derive(Debug, Clone, Copy, Default)]
struct Path {
    steps: [MapStep; MAX_HEIGHT as usize],
    len: usize,
}

impl Path {
    fn push(&mut self, step: MapStep) {
        self.steps[self.len] = step;
        self.len += 1;
    }

    fn steps(&self) -> &[MapStep] {
        &self.steps[..self.len]
    }
}

impl PageMap {
    /// Bytes of an encoded map.
    pub const BYTES: usize = 16;

    /// The map as stored: root (48 bits), height, a zero byte, length, four zero bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut b = [0; Self::BYTES];
        put_u48(&mut b, 0, self.root.0);
        b[6] = self.height;
        put_u32(&mut b, 8, self.len);
        b
    }

    /// Reads a stored map.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if root, height and length contradict each other.
    pub fn decode(b: &[u8; Self::BYTES]) -> Result<Self> {
        let map = Self { root: PageNo(u48_at(b, 0)), height: b[6], len: u32_at(b, 8) };
        let empty = map.len == 0;
        let reserved = b[7] != 0 || u32_at(b, 12) != 0;
        let wrong = empty != map.root.is_none() || empty != (map.height == 0);
        if wrong || map.height > MAX_HEIGHT || reserved {
            return Err(Error::corrupt("page map root", format!("cannot be: {map:?}")));
        }
        Ok(map)
    }

    /// The root node; [`PageNo::NONE`] while the map is empty.
    pub fn root(&self) -> PageNo {
        self.root
    }

    /// Levels of nodes; 0 while the map is empty.
    pub fn height(&self) -> u8 {
        self.height
    }

    /// Indexes given out so far; every index below has a page or is a hole.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether no index was ever given out.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The page and class at `index`; `None` for a hole and beyond the end. Cost: as many
    /// page reads as the tree is high (1 to 507 pages of 4 KiB, 2 to 257 000).
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    #[inline]
    pub fn get<R: PageRead + ?Sized>(&self, pages: &R, index: u32) -> Result<Option<(PageNo, u8)>> {
        if index >= self.len {
            return Ok(None);
        }
        let (leaf, entry) = self.entry(pages, index)?;
        match (entry.page.is_none(), entry.tag.hole) {
            (false, false) => Ok(Some((entry.page, entry.tag.class))),
            (true, true) => Ok(None),
            _ => Err(Error::page(leaf, format!("map entry of index {index} is {entry:?}"))),
        }
    }

    /// As [`PageMap::descend`], keeping only the last step's node.
    #[inline]
    fn entry<R: PageRead + ?Sized>(&self, pages: &R, index: u32) -> Result<(PageNo, Entry)> {
        let mut no = self.root;
        for level in (0..self.height).rev() {
            let entry = entry_at(pages, step(pages.page_size(), no, level, index))?;
            if level == 0 {
                return Ok((no, entry));
            }
            no = child_of(no, entry, index)?;
        }
        Err(Error::corrupt("page map root", format!("index {index} in {self:?}")))
    }

    /// Points `index` to a page of class 0..=15; `index` may be the map's length, which then
    /// grows by one. Cost: the height in reads, one changed leaf; ancestors change only if
    /// their maxima do.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an index beyond the length; [`Error::Full`] and the errors of
    /// page access, after which the transaction must be aborted.
    pub fn set<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        owner: u64,
        index: u32,
        page: PageNo,
        class: u8,
    ) -> Result<()> {
        if page.is_none() || page > PageNo::MAX || class > node::FRESH {
            return Err(Error::Invalid(format!("page {page} of class {class} in a page map")));
        }
        let entry = Entry { page, tag: Tag { class, hole: false } };
        if index < self.len {
            return self.replace(pages, index, entry);
        }
        if index > self.len {
            return Err(Error::Invalid(format!("page map index {index} beyond {}", self.len)));
        }
        if self.len == u32::MAX {
            return Err(Error::Full("a page map holds 2^32-1 pages".into()));
        }
        let path = self.grow(pages, owner)?;
        self.len += 1;
        Self::store(pages, &path, Tag::default(), entry)
    }

    /// Appends a run of neighbouring pages and returns the first one's index.
    ///
    /// # Errors
    /// As [`PageMap::set`].
    pub fn append_run<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        owner: u64,
        run: PageRun,
        class: u8,
    ) -> Result<u32> {
        let first = self.len;
        for page in run.start.0..run.end() {
            self.set(pages, owner, self.len, PageNo(page), class)?;
        }
        Ok(first)
    }

    /// Makes `index`, which has a page, a hole. The page itself is not freed.
    ///
    /// # Errors
    /// As [`PageMap::set_class`].
    pub fn clear<W: PageWrite + ?Sized>(&mut self, pages: &mut W, index: u32) -> Result<()> {
        self.live(pages, index)?;
        let entry = Entry { page: PageNo::NONE, tag: Tag { class: 0, hole: true } };
        self.replace(pages, index, entry)
    }

    /// Sets the class of the page at `index`; returns whether it was another. Cost: as
    /// [`PageMap::set`], and without changing any page if the class is right already.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the index has no page; [`Error::Corrupt`], [`Error::Io`].
    pub fn set_class<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        index: u32,
        class: u8,
    ) -> Result<bool> {
        let (page, old) = self.live(pages, index)?;
        if old == class {
            return Ok(false);
        }
        self.replace(pages, index, Entry { page, tag: Tag { class, hole: false } })?;
        Ok(true)
    }

    /// Takes the last index away and returns its page ([`PageNo::NONE`] for a hole), `None`
    /// if the map is empty. Frees nodes that become empty, not the page. For dropping a
    /// file in as many transactions as it takes.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn pop<W: PageWrite + ?Sized>(&mut self, pages: &mut W) -> Result<Option<PageNo>> {
        let Some(index) = self.len.checked_sub(1) else { return Ok(None) };
        let (mut kept, last) = self.descend(pages, index)?;
        // A node whose first entry goes is empty: it goes too, and so does its entry.
        while let Some(step) = kept.steps().last().copied().filter(|step| step.slot == 0) {
            pages.free_page(step.node)?;
            kept.len -= 1;
        }
        if kept.len > 0 {
            Self::store(pages, &kept, last.tag, Entry::default())?;
        }
        self.len = index;
        self.lower(pages)?;
        Ok(Some(last.page))
    }

    /// Drops roots that have become needless.
    fn lower<W: PageWrite + ?Sized>(&mut self, pages: &mut W) -> Result<()> {
        if self.len == 0 {
            *self = Self::default();
        }
        while self.height > 1
            && u64::from(self.len) <= node::span(pages.page_size(), self.height - 1)
        {
            let step = MapStep { node: self.root, level: self.height - 1, base: 0, slot: 0 };
            let child = entry_at(pages, step)?;
            pages.free_page(self.root)?;
            (self.root, self.height) = (child.page, self.height - 1);
        }
        Ok(())
    }

    fn live<R: PageRead + ?Sized>(&self, pages: &R, index: u32) -> Result<(PageNo, u8)> {
        let none = || Error::Invalid(format!("page map index {index} has no page"));
        self.get(pages, index)?.ok_or_else(none)
    }

    fn replace<W: PageWrite + ?Sized>(
        &self,
        pages: &mut W,
        index: u32,
        entry: Entry,
    ) -> Result<()> {
        let (path, old) = self.descend(pages, index)?;
        Self::store(pages, &path, old.tag, entry)
    }

    /// The way to `index`, which must be below the length; and its entry there.
    fn descend<R: PageRead + ?Sized>(&self, pages: &R, index: u32) -> Result<(Path, Entry)> {
        let mut path = Path::default();
        let mut no = self.root;
        for level in (0..self.height).rev() {
            let step = step(pages.page_size(), no, level, index);
            let entry = entry_at(pages, step)?;
            path.push(step);
            if level == 0 {
                return Ok((path, entry));
            }
            no = child_of(no, entry, index)?;
        }
        Err(Error::corrupt("page map root", format!("index {index} in {self:?}")))
    }

    /// Makes the way to the index `len`, adding nodes if there are none.
    fn grow<W: PageWrite + ?Sized>(&mut self, pages: &mut W, owner: u64) -> Result<Path> {
        let (size, index) = (pages.page_size(), self.len);
        if self.height == 0 {
            self.root = new_node(pages, owner, 0, 0)?;
            self.height = 1;
        }
        while u64::from(index) >= node::span(size, self.height) {
            let below = MapStep { node: self.root, level: self.height - 1, base: 0, slot: 0 };
            let tag = summary_at(pages, below, Tag { class: node::FRESH, hole: true })?;
            let root = new_node(pages, owner, self.height, 0)?;
            let bytes = pages.page_mut(root, PageKind::PageMap)?;
            node::put(bytes, 0, Entry { page: self.root, tag });
            (self.root, self.height) = (root, self.height + 1);
        }
        let mut path = Path::default();
        let mut no = self.root;
        for level in (0..self.height).rev() {
            let step = step(size, no, level, index);
            path.push(step);
            let entry = entry_at(pages, step)?;
            if level == 0 {
                return Ok(path);
            }
            no = entry.page;
            if no.is_none() {
                let base = u64::from(index) / node::span(size, level) * node::span(size, level);
                no = new_node(pages, owner, level - 1, base as u32)?;
                let bytes = pages.page_mut(step.node, PageKind::PageMap)?;
                node::put(bytes, step.slot, Entry { page: no, tag: Tag::default() });
            }
        }
        Err(Error::corrupt("page map root", format!("{self:?} cannot grow")))
    }

    /// Writes the entry at the end of `path`, whose tag was `old`, and brings the sums above
    /// up to date as far as they change.
    fn store<W: PageWrite + ?Sized>(
        pages: &mut W,
        path: &Path,
        old: Tag,
        entry: Entry,
    ) -> Result<()> {
        let (mut old, mut entry) = (old, entry);
        for (depth, step) in path.steps().iter().enumerate().rev() {
            node::put(pages.page_mut(step.node, PageKind::PageMap)?, step.slot, entry);
            let Some(above) = depth.checked_sub(1).map(|d| path.steps()[d]) else { break };
            let parent = entry_at(pages, above)?;
            let new = entry.tag;
            // Only if the entry carried the maximum or a hole mark can the sum fall.
            let falls = old.class == parent.tag.class && new.class < old.class;
            let sum = if falls || (old.hole && !new.hole) {
                summary_at(pages, *step, parent.tag.join(new))?
            } else {
                parent.tag.join(new)
            };
            if sum == parent.tag {
                break;
            }
            old = parent.tag;
            entry = Entry { page: step.node, tag: sum };
        }
        Ok(())
    }
}

/// The step through node `no` of `level` towards `index`.
#[inline]
fn step(page_size: usize, no: PageNo, level: u8, index: u32) -> MapStep {
    // A page map has few levels: dividing again is cheaper than powers of 64 bits.
    let fanout = node::fanout(page_size) as u32;
    let (mut above, mut span) = (index, 1);
    for _ in 0..level {
        (above, span) = (above / fanout, span * u64::from(fanout));
    }
    let slot = above % fanout;
    let base = u64::from(above - slot) * span;
    MapStep { node: no, level, base: base as u32, slot: slot as usize }
}

/// The child that an entry on the way to `index` names.
#[inline]
fn child_of(no: PageNo, entry: Entry, index: u32) -> Result<PageNo> {
    if entry.page.is_none() {
        return Err(Error::page(no, format!("no child for index {index}")));
    }
    Ok(entry.page)
}

/// The entry that a step takes in its checked node.
#[inline]
fn entry_at<R: PageRead + ?Sized>(pages: &R, step: MapStep) -> Result<Entry> {
    pages.with_page(step.node, PageKind::PageMap, |bytes| {
        Node::new(bytes, step.node, step.level, step.base)?.entry(step.slot)
    })
}

/// The sum over a step's checked node, which is at most `most`.
fn summary_at<R: PageRead + ?Sized>(pages: &R, step: MapStep, most: Tag) -> Result<Tag> {
    pages.with_page(step.node, PageKind::PageMap, |bytes| {
        let node = Node::new(bytes, step.node, step.level, step.base)?;
        Ok(node.summary_within(step.slot, most))
    })
}

fn new_node<W: PageWrite + ?Sized>(
    pages: &mut W,
    owner: u64,
    level: u8,
    base: u32,
) -> Result<PageNo> {
    let no = pages.new_page(PageKind::PageMap, owner, None)?;
    node::init(pages.page_mut(no, PageKind::PageMap)?, level, base);
    Ok(no)
}
