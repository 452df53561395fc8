//! Pages of a damaged store, each from wherever it is whole.
//!
//! Owns: [`Pages`]. A page is looked for where the tree of images says, in its place, and last
//! wherever a page of that number was found. What comes from there may be older than the state: who reads
//! it learns so ([`Pages::take_doubt`]).

use super::ground::Ground;
use super::scan::Found;
use crate::cache::page_read::read_image;
use crate::images::each_leaf;
use crate::segment_tree::DataRead;
use crate::space::{ReadHow, read_segment};
use holdall_core::image_node::ImageNode;
use holdall_core::page::{self, PageKind};
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::space_info::SpaceInfo;
use holdall_core::{Error, Lsn, PageNo, PageRead, PageRef, Result, root_page};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// Pages kept in memory.
const MOST_KEPT: usize = 2048;

/// The pages of a damaged store.
#[derive(Debug)]
pub(super) struct Pages<'g> {
    ground: &'g Ground,
    layout: SpaceLayout,
    /// Where versions lie that are not in their places.
    elsewhere: HashMap<PageNo, Vec<(Lsn, PageNo)>>,
    infos: HashMap<u64, (Lsn, PageNo)>,
    /// Pages whose newest version is an image, and where it lies.
    images: HashMap<PageNo, PageNo>,
    /// The tree of images is whole: other pages lie in their places.
    images_whole: bool,
    kept: RefCell<HashMap<PageNo, (PageRef, bool)>>,
    /// Directories in their places; None for lost ones.
    directories: RefCell<HashMap<PageNo, Option<PageRef>>>,
    /// Directories in place of lost ones.
    made: RefCell<HashMap<PageNo, PageRef>>,
    doubt: Cell<bool>,
    /// A page that is read from one place only, and that.
    pinned: Cell<Option<(PageNo, PageNo)>>,
}

impl<'g> Pages<'g> {
    /// Pages as `found`; `root` is the root page, if that is known.
    ///
    /// # Errors
    /// [`Error::Invalid`] if no store has such spaces.
    pub(super) fn new(ground: &'g Ground, found: &mut Found) -> Result<Self> {
        let pages = match &ground.superblock {
            Some(sb) => sb.space_pages,
            None => found.space_pages(ground.page_size),
        };
        Ok(Self {
            ground,
            layout: SpaceLayout::new(ground.page_size, pages)?,
            elsewhere: std::mem::take(&mut found.elsewhere),
            infos: std::mem::take(&mut found.infos),
            images: HashMap::new(),
            images_whole: false,
            kept: RefCell::default(),
            directories: RefCell::default(),
            made: RefCell::default(),
            doubt: Cell::new(false),
            pinned: Cell::new(None),
        })
    }

    /// Learns where images lie from the root page `root` of a state that is sure.
    ///
    /// Returns of how many pages the newest version is not found that way.
    pub(super) fn learn_images(&mut self, root: PageNo) -> u64 {
        let known = self.page(root, PageKind::Root);
        let Ok(bytes) = known else { return 0 };
        let mut images = HashMap::new();
        each_leaf(&*self, root_page::images(&bytes), &mut |page, image| {
            images.insert(page, image);
        });
        let missing = root_page::image_count(&bytes).saturating_sub(images.len() as u64);
        self.images_whole = missing == 0;
        self.images = images;
        self.kept.borrow_mut().clear();
        missing
    }

    /// As [`Pages::learn_images`], of a state whose root page is lost: from the nodes that are in use.
    pub(super) fn guess_images(&mut self, nodes: &mut [(Lsn, PageNo)]) {
        nodes.sort_unstable();
        let mut images = HashMap::new();
        for (_, no) in nodes.iter().filter(|(_, no)| self.is_free(*no) == Some(false)) {
            let Ok(bytes) = self.page(*no, PageKind::Images) else { continue };
            if ImageNode::new(&bytes, *no).is_ok_and(|node| node.level() == 0) {
                each_leaf(&*self, *no, &mut |page, image| {
                    images.insert(page, image);
                });
            }
        }
        self.images = images;
        self.kept.borrow_mut().clear();
    }

    /// Bytes of the file from page `no` on.
    pub(super) fn bytes_behind(&self, no: u64) -> u64 {
        let length = self.ground.disk.len().unwrap_or(0);
        length.saturating_sub(no.saturating_mul(self.ground.page_size as u64))
    }

    /// Whether versions of pages were found that are not in their places, and nobody knows which of
    /// these are the newest.
    pub(super) fn is_mixed(&self) -> bool {
        !self.images_whole && !self.elsewhere.is_empty()
    }

    /// Where versions of a page lie that are not in its place.
    pub(super) fn versions(&self, no: PageNo) -> Vec<PageNo> {
        let all = self.elsewhere.get(&no).map_or(&[][..], Vec::as_slice);
        all.iter().map(|(_, place)| *place).collect()
    }

    /// From here on a page is read from that place; None: no page is.
    pub(super) fn pin(&self, page: Option<(PageNo, PageNo)>) {
        self.pinned.set(page);
    }

    /// Whether something read since the last call may be older than the state.
    pub(super) fn take_doubt(&self) -> bool {
        self.doubt.replace(false)
    }

    /// Puts back what [`Pages::take_doubt`] returned.
    pub(super) fn set_doubt(&self, doubt: bool) {
        self.doubt.set(doubt);
    }

    /// Whether the space of page `no` has it as free; None if its directory is lost.
    pub(super) fn is_free(&self, no: PageNo) -> Option<bool> {
        let (space, index) = self.layout.split(no).ok()?;
        let no = self.layout.dir_page(space);
        let mut directories = self.directories.borrow_mut();
        let bytes = directories.entry(no).or_insert_with(|| self.directory(no));
        let dir = SpaceDir::open(self.layout, space, bytes.as_deref()?).ok()?;
        Some(!dir.is_allocated(index))
    }

    /// The directory in its place, if that is of the state.
    fn directory(&self, no: PageNo) -> Option<PageRef> {
        let unmade = self.ground.is_sure() && self.ground.log.unmade.contains(&no);
        if unmade { None } else { self.in_place(no).ok() }
    }

    /// The owner noted for the first page of a run; 0 if none is.
    pub(super) fn noted_owner(&self, no: PageNo) -> Result<u64> {
        let (space, index) = self.layout.split(no)?;
        let (stretch, place) = self.layout.stretch_of(index);
        let dir = self.page(self.layout.dir_page(space), PageKind::SpaceDir)?;
        let info = SpaceDir::open(self.layout, space, &*dir)?.info_page(stretch)?;
        let bytes = self.page(info, PageKind::SpaceInfo)?;
        SpaceInfo::open(self.layout, space, stretch, &*bytes)?.owner(place)
    }

    /// Page `no`, and whether it may be of an earlier state.
    pub(super) fn look(&self, no: PageNo, kind: PageKind) -> Result<(PageRef, bool)> {
        if let Some((_, place)) = self.pinned.get().filter(|(pinned, _)| *pinned == no) {
            let page = self.at(no, place)?;
            page::of_kind(&page, no, kind)?;
            return Ok((page, true));
        }
        if let Some(kept) = self.kept.borrow().get(&no) {
            page::of_kind(&kept.0, no, kind)?;
            return Ok(kept.clone());
        }
        let found = self.find(no)?;
        let mut kept = self.kept.borrow_mut();
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(no, found.clone());
        page::of_kind(&found.0, no, kind)?;
        Ok(found)
    }

    fn find(&self, no: PageNo) -> Result<(PageRef, bool)> {
        let unmade = self.ground.log.unmade.contains(&no) && !self.images.contains_key(&no);
        if unmade && self.ground.is_sure() {
            return Err(Error::page(no, "the log cannot make its newest version"));
        }
        let placed = match self.images.get(&no) {
            Some(image) => self.at(no, *image),
            None => self.in_place(no),
        };
        let other = self.elsewhere.get(&no).and_then(|all| {
            // What lies in a free page was an image, or is of a transaction that was given up.
            let used = |place| self.is_free(place) != Some(true);
            all.iter().map(|(lsn, place)| (used(*place), *lsn, *place)).max()
        });
        match (placed, other) {
            // Images have the commit before their own.
            (Ok(page), Some((true, lsn, place)))
                if self.is_mixed() && !self.ground.places && lsn >= page::lsn(&page) =>
            {
                self.at(no, place).map(|page| (page, true))
            }
            (Ok(page), _) => Ok((page, unmade)),
            (Err(_), Some((_, _, place))) => {
                let doubt = unmade || !self.are_swapped(no, place);
                self.at(no, place).map(|page| (page, doubt))
            }
            (Err(e), None) => Err(e),
        }
    }

    /// Whether the page of another's number lies in the place of `no`: the two were written to each
    /// other's places.
    fn are_swapped(&self, no: PageNo, other: PageNo) -> bool {
        self.at(other, no).is_ok()
    }

    fn at(&self, no: PageNo, place: PageNo) -> Result<PageRef> {
        read_image(&*self.ground.disk, self.ground.page_size, (no, place))
    }

    /// What lies in the page's place, of the file or of what the log made.
    fn in_place(&self, no: PageNo) -> Result<PageRef> {
        let made = self.at(no, no);
        let made = match made {
            Ok(made) if self.ground.is_sure() => return Ok(made),
            made => made,
        };
        let lies = read_image(&*self.ground.file, self.ground.page_size, (no, no));
        match (made, lies) {
            (Ok(made), Ok(lies)) if page::lsn(&lies) > page::lsn(&made) => Ok(lies),
            (Ok(made), _) => Ok(made),
            (Err(e), _) if self.ground.is_sure() => Err(e),
            (Err(_), lies) => lies,
        }
    }

    /// A directory in place of a lost one, which knows the info pages that were found.
    fn made_directory(&self, no: PageNo) -> Result<PageRef> {
        if let Some(made) = self.made.borrow().get(&no) {
            return Ok(made.clone());
        }
        let (space, _) = self.layout.split(no)?;
        let mut bytes = crate::space::fresh_directory(&self.layout, space)?;
        let mut dir = SpaceDir::open(self.layout, space, &mut bytes[..])?;
        for stretch in 0..self.layout.stretches() {
            let Some(run) = self.layout.stretch_run(stretch) else { continue };
            let first = self.layout.page_at(space, run.start);
            if let Some((_, info)) = self.infos.get(&first.0) {
                dir.set_info_page(stretch, *info)?;
            }
        }
        let made: PageRef = bytes.into();
        self.made.borrow_mut().insert(no, made.clone());
        Ok(made)
    }
}

impl PageRead for Pages<'_> {
    fn page_size(&self) -> usize {
        self.ground.page_size
    }

    fn page(&self, no: PageNo, kind: PageKind) -> Result<PageRef> {
        match self.look(no, kind) {
            Ok((page, false)) => Ok(page),
            _ if kind == PageKind::SpaceDir => self.made_directory(no),
            Ok((page, true)) => {
                self.doubt.set(true);
                Ok(page)
            }
            Err(e) => Err(e),
        }
    }
}

impl DataRead for Pages<'_> {
    fn layout(&self) -> &SpaceLayout {
        &self.layout
    }

    fn read_data(&self, start: PageNo, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut read = |disk| {
            let how = (disk, ReadHow::default());
            read_segment(self, &self.layout, how, start, offset, &mut *buf)
        };
        match read(&*self.ground.disk) {
            Err(_) if !self.ground.is_sure() => read(&*self.ground.file),
            result => result,
        }
    }
}
