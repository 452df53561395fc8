//! A transaction over pages: private copies, then one commit.
//!
//! Owns: the writer's lock from begin to drop; the copies. Which way new bytes take is
//! [`NewData`]'s. Knows nothing of which pages are free.
//!
//! Everything that can fail comes before the first page is installed; afterwards the only
//! failure is poison (rule 9).

use super::Pager;
use super::direct::{Given, NewData, Way};
use super::housekeeping::Housekeeping;
use super::tx_pages::{TxPage, TxPages};
use super::writer_lock::{Waiting, WriterLock};
use crate::cache::index::Pin;
use crate::cache::page_read::{read_image, read_in_place};
use crate::images::Images;
use holdall_core::log_format::{push_from_image, push_page};
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::{self, PageKind};
use holdall_core::{Error, Lsn, PageNo, PageRead, PageRef, PageRun, Result, RunSet};
use std::collections::HashMap;
use std::sync::Arc;

/// A page transaction; dropping it undoes everything.
#[derive(Debug)]
pub struct PageTx {
    pager: Arc<Pager>,
    /// The state it begins from.
    base: Lsn,
    /// Which pages lie elsewhere, as this transaction sees it; the layer above changes it.
    pub images: Images,
    /// As it was at the begin.
    images_before: Images,
    /// Pages that hold its own images.
    own_images: RunSet,
    pages: TxPages,
    new: NewData,
    /// Behind the last page it allocated.
    end: u64,
    writer: WriterLock,
}

/// Pages of a transaction that should leave memory.
#[derive(Debug)]
pub struct Cold {
    /// New ones.
    pub new: Vec<u64>,
    /// The others, with the place of the transaction's own image, if one was written.
    pub old: Vec<(PageNo, Option<PageNo>)>,
}

impl PageTx {
    /// Takes the writer's lock, waiting for the transaction that has it, and for a checkpoint if
    /// one must come first.
    ///
    /// # Errors
    /// [`Error::Poisoned`]; [`Error::Busy`] and [`Error::Cancelled`] as the wait says; those of
    /// [`Housekeeping::before_write`].
    pub fn begin(pager: &Arc<Pager>, waiting: &Waiting) -> Result<Self> {
        let writer = pager.writer.lock(waiting)?;
        pager.check_poison()?;
        if let Some(store) = pager.housekeeping() {
            store.before_write(waiting)?;
        }
        Ok(Self {
            pager: pager.clone(),
            base: pager.horizon.newest(),
            images: pager.images(),
            images_before: pager.images(),
            own_images: RunSet::default(),
            pages: TxPages::default(),
            new: NewData::new(&pager.limits),
            end: 0,
            writer,
        })
    }

    /// Says that this thread runs the transaction now.
    #[inline]
    pub fn run_here(&self) {
        self.writer.run_here();
    }

    /// The pager below.
    pub fn pager(&self) -> &Arc<Pager> {
        &self.pager
    }

    /// The page as this transaction sees it.
    ///
    /// # Errors
    /// As [`holdall_core::PageRead::page`].
    pub fn page(&self, no: PageNo, kind: PageKind) -> Result<PageRef> {
        match self.pages.get(&no.0) {
            Some(p) => page::of_kind(&p.now, no, kind).map(|()| p.now.clone()),
            None => self.outside(no, kind),
        }
    }

    /// Gives `f` the page as this transaction sees it; see [`holdall_core::PageRead::with_page`].
    ///
    /// # Errors
    /// As [`PageTx::page`], and those of `f`.
    pub fn with_page<T>(
        &self,
        no: PageNo,
        kind: PageKind,
        f: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        match self.pages.get(&no.0) {
            Some(p) => page::of_kind(&p.now, no, kind).and_then(|()| f(&p.now)),
            None => {
                let here = self.images.is_empty() || !kind.may_lie_elsewhere();
                let pin = Pin::new();
                let seen = self.pager.pool.peek(no, self.base, &pin);
                if let Some(bytes) = seen.filter(|_| here && !self.new.is_early(no.0)) {
                    return page::of_kind(bytes, no, kind).and_then(|()| f(bytes));
                }
                drop(pin);
                f(&self.outside(no, kind)?)
            }
        }
    }

    /// The transaction's copy of the page.
    ///
    /// # Errors
    /// As [`PageTx::page`].
    pub fn page_mut(&mut self, no: PageNo, kind: PageKind) -> Result<&mut [u8]> {
        Ok(self.copy(no, kind)?.now.make_mut())
    }

    /// The transaction's copy of the page, about to change.
    fn copy(&mut self, no: PageNo, kind: PageKind) -> Result<&mut TxPage> {
        if self.pages.get(&no.0).is_none() {
            self.bring_in(no, kind)?;
        }
        let gone = || Error::page(no, "is not among the transaction's pages");
        let found = self.pages.get_mut(&no.0).ok_or_else(gone)?;
        page::of_kind(&found.now, no, kind)?;
        found.sent &= mutation::is(Mutation::R13DirectAgain);
        Ok(found)
    }

    /// Makes a page from outside the transaction's own.
    fn bring_in(&mut self, no: PageNo, kind: PageKind) -> Result<()> {
        let image = self.image_of(no, kind)?;
        let old = self.outside_at(no, kind, image)?;
        let page = match image {
            _ if self.new.take_early(no.0) => TxPage::new(old),
            Some(image) if self.is_own_image(image) => TxPage::spilled(old, image),
            None => TxPage::existing(old, None),
            // The state would go on leading to the image.
            Some(image) => return Err(Error::page(no, format!("lies at page {image} still"))),
        };
        self.pages.insert(no.0, page);
        Ok(())
    }

    /// A page that this transaction holds no copy of.
    fn outside(&self, no: PageNo, kind: PageKind) -> Result<PageRef> {
        self.outside_at(no, kind, self.image_of(no, kind)?)
    }

    /// As [`PageTx::outside`], of a page that lies at `image` or in its place.
    fn outside_at(&self, no: PageNo, kind: PageKind, image: Option<PageNo>) -> Result<PageRef> {
        let (disk, size) = (&*self.pager.volume.disk, self.pager.page_size());
        let own = image.filter(|image| self.own_images.contains(*image));
        let found = match (own, image) {
            (Some(own), _) => self.new.check().and_then(|()| read_image(disk, size, (no, own)))?,
            (None, _) if self.new.is_early(no.0) => {
                self.new.check().and_then(|()| read_in_place(disk, size, no))?
            }
            (None, Some(image)) => return self.pager.image((no, image), kind, self.base),
            (None, None) => return self.pager.in_place(no, kind, self.base),
        };
        page::of_kind(&found, no, kind)?;
        Ok(found)
    }

    /// Where a page lies that this transaction holds no copy of, if not in its place.
    ///
    /// # Errors
    /// Those of looking at the tree of images.
    fn image_of(&self, no: PageNo, kind: PageKind) -> Result<Option<PageNo>> {
        if self.images.is_empty() || !kind.may_lie_elsewhere() || self.new.is_early(no.0) {
            return Ok(None);
        }
        self.images.get(&Nodes(self), no)
    }

    /// Makes a page that this transaction allocated an empty one, without reading it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the page is in use, or was until the last checkpoint.
    pub fn format(&mut self, no: PageNo, kind: PageKind, owner: u64) -> Result<&mut [u8]> {
        self.new.take_early(no.0);
        // A former life of this page may still be in the pool; nobody can need it.
        if !self.pager.pool.forget(no) {
            return Err(Error::page(no, "is to be made anew before its last change is in place"));
        }
        let mut now = self.pager.pool.memory.zeroed();
        page::head(now.make_mut(), kind, no, owner);
        if kind == PageKind::Heap {
            self.new.note_heap_page(no.0, &self.pager, self.base, &mut self.pages);
        }
        let page = self.pages.insert(no.0, TxPage::new(now));
        Ok(page.now.make_mut())
    }

    /// Drops what the transaction holds of a page that it frees.
    pub fn forget(&mut self, no: PageNo) {
        self.pages.remove(&no.0);
        self.new.take_early(no.0);
    }

    /// Where the version of page `no` lies that this transaction sees, if not in its place or in
    /// memory: another's image, or one of its own.
    ///
    /// # Errors
    /// Those of looking at the tree of images.
    pub fn find_image(&self, no: PageNo) -> Result<Option<PageNo>> {
        // Of any kind that may have one.
        self.image_of(no, PageKind::Heap)
    }

    /// Whether `image` holds an image of this transaction's own.
    pub fn is_own_image(&self, image: PageNo) -> bool {
        self.own_images.contains(image) || mutation::is(Mutation::R34Again)
    }

    /// Whether it has written pages before its commit to make room.
    pub fn has_spilled(&self) -> bool {
        self.new.way() == Way::SyncedFirst
    }

    /// Whether another tree leads to its images than to those of the state before.
    pub fn has_new_tree(&self) -> bool {
        self.images != self.images_before
    }

    /// The state that it begins from.
    pub fn base(&self) -> Lsn {
        self.base
    }

    /// Pages that it holds, but for its own images.
    pub fn held_in_place(&self) -> impl Iterator<Item = PageNo> + '_ {
        let here = self.pages.iter().filter(|(_, page)| page.own_image().is_none());
        here.map(|(no, _)| PageNo(*no))
    }

    /// Runs of pages, new or never used before, that it has written in place and holds no more.
    pub fn written_early(&self) -> impl Iterator<Item = PageRun> + '_ {
        self.new.early()
    }

    /// Whether page `no` is to be another after the commit than before. Cost: it compares a page.
    pub fn is_changed(&self, no: PageNo) -> bool {
        let held = self.pages.get(&no.0).is_some_and(|page| !page.is_as_before());
        held || self.new.is_early(no.0)
    }

    /// Pages of this kind that it holds.
    pub fn of_kind(&self, kind: PageKind) -> Vec<PageNo> {
        let of_kind = |(_, page): &(&u64, &TxPage)| page::kind(&page.now) == Some(kind);
        self.pages.iter().filter(of_kind).map(|(no, _)| PageNo(*no)).collect()
    }

    /// Whether it holds a copy of page `no`.
    pub fn holds(&self, no: PageNo) -> bool {
        self.pages.get(&no.0).is_some()
    }

    /// Brings in page `no`, whose image another transaction left, so that the commit puts it into
    /// its place. The layer above takes it out of the tree.
    ///
    /// # Errors
    /// As [`PageTx::page`].
    pub fn bring_home(&mut self, no: PageNo, image: PageNo) -> Result<()> {
        let old = self.pager.image_of_any_kind((no, image), self.base)?;
        self.pages.insert(no.0, TxPage::existing(old, Some(image)));
        Ok(())
    }

    /// Pages that should leave memory, if it holds more than it may: those that are new, and the
    /// others, each with the place of its own image if it has one.
    pub fn cold(&self) -> Option<Cold> {
        if self.pages.len() < self.pager.limits.transaction_pages {
            return None;
        }
        let (mut new, mut old) = (Vec::new(), Vec::new());
        for no in self.pages.cold() {
            let Some(page) = self.pages.get(&no) else { continue };
            if page.is_new() {
                new.push(no);
            } else {
                old.push((PageNo(no), page.own_image()));
            }
        }
        Some(Cold { new, old })
    }

    /// Writes `new` pages in place and `old` ones as images, each at the page given, and keeps none
    /// of them in memory.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Io`], [`Error::Corrupt`]; the commit then fails too.
    pub fn spill(&mut self, new: Vec<u64>, old: &[(PageNo, PageNo)]) -> Result<()> {
        let mut numbers = new;
        for (no, image) in old {
            let Some(page) = self.pages.get_mut(&no.0) else { continue };
            if page.own_image().is_none() {
                if !self.pager.pool.forget(*image) {
                    let text = "is to hold an image before its last change is in place";
                    return Err(Error::page(*image, text));
                }
                self.own_images.insert(PageRun::new(*image, 1));
                (page.base, page.image, page.sent) = (None, Some(*image), false);
            }
            numbers.push(no.0);
        }
        self.new.spill(&self.pager, self.base, &mut self.pages, &numbers)
    }

    /// Forgets the own image at `image`, which is given back.
    pub fn forget_image(&mut self, image: PageNo) {
        self.own_images.remove(PageRun::new(image, 1));
    }

    /// Lets go of a copy that is as it was.
    pub fn forget_unchanged(&mut self, no: PageNo) -> bool {
        let unchanged = self.pages.get(&no.0).is_some_and(TxPage::is_as_before);
        if unchanged {
            self.pages.remove(&no.0);
        }
        unchanged
    }

    /// Whether nothing was changed.
    pub fn is_unchanged(&self) -> bool {
        self.pages.is_empty() && self.new.is_none()
    }

    /// Pages that it has copied or made, and holds.
    pub fn changed_pages(&self) -> usize {
        self.pages.len()
    }

    /// Adds segment data at `start`, which goes with the commit.
    pub fn add_segment(&mut self, start: PageNo, given: Given<'_>) {
        self.new.add_segment(start, given);
    }

    /// Segment data does not pass through the log from here on: bytes logged for pages that are
    /// given back could land on their next owner's data.
    pub fn leave_the_log(&mut self) {
        self.new.leave_the_log();
    }

    /// The volume is synced before the commit: not all of its new data can be listed.
    pub fn sync_first(&mut self) {
        self.new.sync_first();
    }

    /// Takes over segment data that is to be written at `start` before the commit.
    pub fn hold(&mut self, start: PageNo, bytes: Vec<u8>) {
        self.new.hold(&self.pager, start, bytes);
    }

    /// Writes what was taken over, so that it can be read.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Io`]; the commit then fails too.
    pub fn write_held(&self) -> Result<()> {
        self.new.write_held(&self.pager)
    }

    /// Waits until nothing that was handed over is being written any more, so that its pages can
    /// be given back. For transactions that end without a commit.
    pub fn abandon_writes(&self) {
        self.new.abandon(&self.pager);
    }

    /// Chooses the way of the new bytes: all pages are there, and `segments` are all runs of new
    /// segment data with the checksums of their units.
    pub fn choose_way<'a>(&mut self, segments: impl Iterator<Item = (PageRun, &'a [u32])>) {
        self.new.choose(&self.pages, self.pager.page_size(), segments);
    }

    /// Notes that the transaction allocated no page from `end` on; before the commit.
    pub fn ends_at(&mut self, end: PageNo) {
        self.end = end.0;
    }

    /// Installs all changes under one LSN and hands them to the log; durable only once the
    /// log says so. Cost: no sync, or one of the volume if more new data is in place than the
    /// group may list; one pass and one checksum per changed page.
    ///
    /// # Errors
    /// Before anything is installed: [`Error::TooLarge`], [`Error::Io`],
    /// [`Error::Poisoned`].
    pub fn commit(&mut self) -> Result<Lsn> {
        // A page asked for and left as it was is no change: neither logged nor dirty.
        self.pages.retain(|_, p| !p.is_as_before());
        if self.is_unchanged() {
            return Ok(self.base);
        }
        self.new.settle(&self.pager, self.base, &mut self.pages, self.end)?;
        self.pages.retain(|_, p| p.own_image().is_none());
        let former = self.former_versions()?;
        let copied = self.new.copied_bytes();
        // What replay may have to copy is room in the log too.
        while !self.pager.copied.lock().has_room(copied, self.pager.log.usage().capacity) {
            self.store()?.make_log_room()?;
        }
        let (mut records, order) = self.records();
        let appending = loop {
            match self.pager.log.begin(records.len()) {
                Ok(Some(a)) => break a,
                Ok(None) => self.store()?.make_log_room()?,
                Err(e @ Error::TooLarge(_)) => {
                    if !self.store()?.enlarge_log()? {
                        return Err(e);
                    }
                }
                Err(e) => return Err(e),
            }
        };
        let lsn = appending.lsn();
        let needed = self.pager.horizon.needed(|| appending.visible_points());
        self.note_images(lsn);
        for (no, checksum_at) in order {
            let Some(p) = self.pages.get_mut(&no) else { continue };
            let in_place = checksum_at.is_none();
            if let Some(at) = checksum_at {
                let sum = page::seal(p.now.make_mut(), lsn);
                holdall_core::bytes::put_u32(&mut records, at, sum);
            }
            let version = (lsn, p.now.clone());
            let base = if p.image.is_some() { former.get(&no) } else { p.base.as_ref() };
            let base = base.filter(|_| !mutation::is(Mutation::R19Base));
            self.pager.pool.install(PageNo(no), version, base, in_place, &needed);
        }
        self.pager.horizon.set_newest(lsn);
        appending.finish(records, self.new.listed_bytes());
        self.pager.copied.lock().push(lsn, copied);
        self.pages.clear();
        self.pager.bound_old_versions();
        Ok(lsn)
    }

    /// What lies in the places of pages whose images this transaction takes out of the tree, if
    /// snapshots from before these images may read it: the frames that it makes hide it from them.
    fn former_versions(&self) -> Result<HashMap<u64, PageRef>> {
        let (mut former, oldest) = (HashMap::new(), self.pager.horizon.oldest());
        if !self.pager.trees.is_older(oldest) || mutation::is(Mutation::R37Former) {
            return Ok(former);
        }
        for (no, _) in self.pages.iter().filter(|(_, page)| page.image.is_some()) {
            // A frame that is there now may be gone when this is installed.
            let in_place = match self.pager.pool.newest_in_memory(PageNo(*no)) {
                Some(bytes) => bytes,
                None => {
                    let (disk, size) = (&*self.pager.volume.disk, self.pager.page_size());
                    read_in_place(disk, size, PageNo(*no))?
                }
            };
            former.insert(*no, in_place);
        }
        Ok(former)
    }

    /// Says which pages lie elsewhere in the state that commit `lsn` is about to install.
    fn note_images(&self, lsn: Lsn) {
        let (trees, horizon) = (&self.pager.trees, &self.pager.horizon);
        let home = self.pages.values().filter(|p| p.image.is_some()).count() as u64;
        trees.count(lsn, self.own_images.pages(), home);
        if self.images == self.images_before {
            trees.prune(horizon);
        } else {
            trees.push(lsn, self.images, horizon);
        }
    }

    /// Who makes room in the log.
    fn store(&self) -> Result<Arc<dyn Housekeeping>> {
        self.pager.housekeeping().ok_or_else(|| Error::Full("the log has no room left".into()))
    }

    /// The commit's records, and for each page its number and where its checksum goes in
    /// the records (None: it is in place).
    fn records(&mut self) -> (Vec<u8>, Vec<(u64, Option<usize>)>) {
        let new_in_place = self.new.way() != Way::Logged;
        let mut records = self.new.take_records();
        let mut order: Vec<u64> = self.pages.keys().copied().collect();
        order.sort_unstable();
        let place = |no: u64| {
            let p = self.pages.get(&no)?;
            if p.base.is_none() && new_in_place {
                return Some((no, None));
            }
            let (number, old) = (PageNo(no), p.base.as_deref());
            let at = match (p.image, old) {
                (Some(image), Some(old)) => {
                    push_from_image(&mut records, number, (image, old), &p.now)
                }
                _ => push_page(&mut records, number, old, &p.now),
            };
            Some((no, Some(at)))
        };
        let order = order.into_iter().filter_map(place).collect();
        (records, order)
    }
}

/// Nodes of the tree of images as a transaction sees them.
struct Nodes<'a>(&'a PageTx);

impl PageRead for Nodes<'_> {
    fn page_size(&self) -> usize {
        self.0.pager.page_size()
    }

    fn page(&self, page: PageNo, kind: PageKind) -> Result<PageRef> {
        self.0.page(page, kind)
    }

    fn with_page<T>(
        &self,
        page: PageNo,
        kind: PageKind,
        f: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        self.0.with_page(page, kind, f)
    }
}

impl Drop for PageTx {
    fn drop(&mut self) {
        self.abandon_writes();
    }
}
