//! One pass over a damaged file: which pages are whole, and what each says that it is.
//!
//! Owns: [`Found`]. Nothing here is believed yet: a page that is whole may be of an earlier state, and
//! free since.

use super::ground::Ground;
use super::meter::Meter;
use super::whole::{is_whole, may_be_page, read_what_can_be};
use holdall_core::bytes::{u32_at, u64_at};
use holdall_core::handle_page::HandlePage;
use holdall_core::heap_page::HeapPage;
use holdall_core::heap_record::Record;
use holdall_core::names_node::Node;
use holdall_core::page::{self, HEADER, PageKind};
use holdall_core::{Error, Lsn, PageNo, Result};
use std::collections::{BTreeMap, HashMap};

/// Bytes read at a time.
const AT_ONCE: usize = 1 << 20;

/// The pages of a file that are whole, by what they say of themselves.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Pages of records, with owner and index of each.
    heaps: Vec<((u64, u32), Lsn, PageNo)>,
    /// Handle pages by index, the newest of each.
    pub(super) handles: BTreeMap<u32, (Lsn, PageNo)>,
    /// Info pages by the first page of their stretch, the newest of each.
    pub(super) infos: HashMap<u64, (Lsn, PageNo)>,
    /// Leaves of names trees, with their owner.
    pub(super) leaves: Vec<(u64, PageNo)>,
    /// Nodes of the tree of images.
    pub(super) images: Vec<(Lsn, PageNo)>,
    /// The newest root page.
    pub(super) root: Option<(Lsn, PageNo)>,
    /// Where versions of pages lie that are not in their places.
    pub(super) elsewhere: HashMap<PageNo, Vec<(Lsn, PageNo)>>,
    /// Pages of a space, as directories say, and how many do.
    space_pages: BTreeMap<u32, usize>,
    /// The highest number of an object, and the highest epoch of a change.
    pub(super) most_unique: u32,
    pub(super) most_epoch: u32,
    /// Pages with a header that are whole.
    pub(super) pages: u64,
    /// Bytes that the device could not read.
    pub(super) unreadable: u64,
}

impl Found {
    /// Reads the whole file once.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Io`] if the file has no length.
    pub(super) fn read(ground: &Ground, meter: &Meter<'_>) -> Result<Self> {
        let mut found = Self::default();
        let length = ground.disk.len().map_err(|e| Error::io("reading the file's length", e))?;
        let size = ground.page_size;
        let (mut buffer, mut lies) = (vec![0; AT_ONCE], vec![0; AT_ONCE]);
        for at in (0..length).step_by(AT_ONCE) {
            let part = (length - at).min(AT_ONCE as u64) as usize;
            let part = &mut buffer[..part];
            found.unreadable += read_what_can_be(&*ground.disk, at, part);
            // What is left of a log may be older than what lies there.
            let lies = &mut lies[..if ground.is_sure() { 0 } else { part.len() }];
            read_what_can_be(&*ground.file, at, lies);
            let mut lies = lies.chunks_exact(size);
            for (i, bytes) in part.chunks_exact(size).enumerate() {
                let other = lies.next();
                let whole = [Some(bytes), other]
                    .into_iter()
                    .flatten()
                    .find(|b| may_be_page(b) && is_whole(b));
                if let Some(bytes) = whole {
                    found.add(PageNo(at / size as u64 + i as u64), bytes);
                }
            }
            meter.at((at + part.len() as u64, 0), length)?;
        }
        Ok(found)
    }

    fn add(&mut self, place: PageNo, bytes: &[u8]) {
        let (no, lsn, owner) = (page::address(bytes), page::lsn(bytes), page::owner(bytes));
        self.pages += 1;
        if no != place {
            self.elsewhere.entry(no).or_default().push((lsn, place));
        }
        match page::kind(bytes) {
            Some(PageKind::SpaceDir) => {
                *self.space_pages.entry(u32_at(bytes, HEADER + 4)).or_default() += 1;
            }
            Some(PageKind::SpaceInfo) => {
                newest(self.infos.entry(u64_at(bytes, HEADER)).or_default(), lsn, no);
            }
            Some(PageKind::Root) => {
                newest(self.root.get_or_insert_default(), lsn, no);
            }
            Some(PageKind::Handle) => self.add_handles(no, bytes),
            Some(PageKind::Heap) => self.add_records(no, bytes),
            Some(PageKind::Names) if Node::open(no, bytes).is_ok_and(|node| node.is_leaf()) => {
                self.leaves.push((owner, no));
            }
            Some(PageKind::Images) => self.images.push((lsn, no)),
            _ => {}
        }
    }

    fn add_handles(&mut self, no: PageNo, bytes: &[u8]) {
        let index = u32_at(bytes, HEADER);
        let Ok(handles) = HandlePage::new(bytes, no, index) else { return };
        newest(self.handles.entry(index).or_default(), page::lsn(bytes), no);
        let slots = 0..holdall_core::handle_page::capacity(bytes.len()) as u16;
        let most = slots.map(|slot| handles.last_unique(slot)).max();
        self.most_unique = self.most_unique.max(most.unwrap_or(0));
    }

    fn add_records(&mut self, no: PageNo, bytes: &[u8]) {
        let Ok(heap) = HeapPage::new(bytes, no) else { return };
        self.heaps.push(((page::owner(bytes), heap.index()), page::lsn(bytes), no));
        for range in heap.iter().filter_map(Result::ok).map(|(_, range)| range) {
            if let Some(Ok(record)) = bytes.get(range).map(Record::parse) {
                self.most_unique = self.most_unique.max(record.oid.unique);
                self.most_epoch = self.most_epoch.max(record.change.epoch);
            }
        }
    }

    /// Pages of records, in the order in which they lie. `sure`: what tells which are in use is of one
    /// state with them; else of several with one place in their file the newest only.
    pub(super) fn heaps(&self, sure: bool) -> Vec<PageNo> {
        let mut newest: HashMap<(u64, u32), Lsn> = HashMap::new();
        for (place, lsn, _) in self.heaps.iter().filter(|_| !sure) {
            let known = newest.entry(*place).or_insert(*lsn);
            *known = (*known).max(*lsn);
        }
        let serve =
            |(place, lsn, _): &&(_, Lsn, _)| newest.get(place).is_none_or(|most| most == lsn);
        let mut all: Vec<PageNo> = self.heaps.iter().filter(serve).map(|(.., no)| *no).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Pages of a space, as most directories say; else a number that all info pages agree with.
    pub(super) fn space_pages(&self, page_size: usize) -> u32 {
        let most = self.space_pages.iter().max_by_key(|(_, n)| **n).map(|(pages, _)| *pages);
        most.unwrap_or_else(|| self.space_pages_of_infos(page_size))
    }

    fn space_pages_of_infos(&self, page_size: usize) -> u32 {
        use holdall_core::space_dir::SpaceLayout;
        let usual = SpaceLayout::default_space_pages(page_size);
        let sizes = std::iter::once(usual).chain((6..=15).rev().map(|bits| 1 << bits));
        let fits = |layout: &SpaceLayout| {
            let first = |no: &u64| {
                let (_, index) = layout.split(PageNo(*no)).ok()?;
                let (_, place) = layout.stretch_of(index);
                (place == 0).then_some(())
            };
            self.infos.keys().all(|no| first(no).is_some())
        };
        let layouts = sizes.filter_map(|pages| SpaceLayout::new(page_size, pages).ok());
        layouts.filter(fits).map(|layout| layout.space_pages()).next().unwrap_or(usual)
    }
}

fn newest(known: &mut (Lsn, PageNo), lsn: Lsn, no: PageNo) {
    if known.1.is_none() || lsn > known.0 {
        *known = (lsn, no);
    }
}
