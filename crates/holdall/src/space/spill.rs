//! Pages of a transaction that leave memory before its commit, and pages that come home.
//!
//! Changed pages that were there before are written as *images*: each into a page that this
//! transaction allocates, found through the tree of images. So nothing overwrites what older states
//! read, an abort or a crash leaves nothing to undo, and the commit needs neither the size of the
//! transaction in memory nor in the log. A later transaction that touches such a page takes
//! it out of the tree, and its commit is an ordinary one (docs/recovery.md, "Images").

use super::{Near, SpaceTx};
use crate::images::NodeWrite;
use crate::txn::Cold;
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::{self, PageKind};
use holdall_core::{Error, PageNo, PageRead, PageRun, Result, root_page};

/// Owner of the nodes of the tree of images.
pub const IMAGES_OWNER: u64 = u64::MAX - 1;
/// Images are written into runs of at most this many bytes.
const RUN_BYTES: usize = 1 << 20;

impl SpaceTx {
    /// Before another page comes into memory: about half of those there leave it, if they are too
    /// many. Cost: mostly the look at their number; else a write of each, and of the nodes that
    /// lead to the images.
    pub(super) fn make_room(&mut self) -> Result<()> {
        let waits = self.settled || self.pages.changed_pages() < self.room_from;
        let cold = if waits { None } else { self.pages.cold() };
        let Some(Cold { new, mut old }) = cold else { return Ok(()) };
        old.retain(|(no, _)| !self.pages.forget_unchanged(*no));
        let count = old.iter().filter(|(_, image)| image.is_none()).count();
        let mut places = match self.places_for(count) {
            Ok(places) => places.into_iter(),
            // Rather more memory, up to what a checkpoint may have, than a removal that fails.
            Err(Error::Full(why)) => return self.go_on_in_memory(why),
            Err(e) => return Err(e),
        };
        let mut images = Vec::with_capacity(old.len());
        for (no, image) in old {
            let missing = || Error::page(no, "has no place for its image");
            images.push((no, image.or_else(|| places.next()).ok_or_else(missing)?));
        }
        // First, since nodes of the tree may leave memory later only.
        for (no, image) in &images {
            let mut tree = self.pages.images;
            let before = tree.insert(self, *no, *image)?;
            self.pages.images = tree;
            match before {
                None => self.image_delta += 1,
                Some(before) if before == *image => {}
                Some(before) => {
                    let text = format!("has two images, at pages {before} and {image}");
                    return Err(Error::page(*no, text));
                }
            }
        }
        self.pages.spill(new, &images)
    }

    /// There is no room for images: the transaction keeps its pages, and does not ask again before
    /// it has twice as many.
    fn go_on_in_memory(&mut self, why: String) -> Result<()> {
        let (held, most) = (self.pages.changed_pages(), self.pager().limits().dirty_pages);
        if held >= most {
            return Err(Error::Full(why));
        }
        self.room_from = most.min(held * 2);
        Ok(())
    }

    /// Allocates `count` pages for images; none of them if there is not room for all.
    fn places_for(&mut self, count: usize) -> Result<Vec<PageNo>> {
        let most = (RUN_BYTES / self.page_size()) as u64;
        let mut places: Vec<PageNo> = Vec::with_capacity(count);
        while places.len() < count {
            match self.take_anywhere(most.min((count - places.len()) as u64)) {
                Ok(run) => places.extend((run.start.0..run.end()).map(PageNo)),
                Err(e) => {
                    for page in places {
                        self.mine.remove(PageRun::new(page, 1));
                        self.release(PageRun::new(page, 1));
                    }
                    return Err(e);
                }
            }
        }
        Ok(places)
    }

    /// Allocates pages that will be given back soon: who moves pages to the front needs not care.
    fn take_anywhere(&mut self, want: u64) -> Result<PageRun> {
        let run = self.alloc.reserve_pages(want, Near::Anywhere, self.image_class())?;
        self.mine.insert(run);
        Ok(run)
    }

    /// Before page `no` is changed: if it lies elsewhere in the committed state, it comes home.
    /// Cost: while images exist, the nodes that lead to it.
    pub(super) fn touch(&mut self, no: PageNo, kind: PageKind) -> Result<()> {
        if self.pages.images.is_empty() || !kind.may_lie_elsewhere() {
            return Ok(());
        }
        match self.pages.find_image(no)? {
            Some(image) if !self.pages.is_own_image(image) => self.take_home(no, image),
            _ => Ok(()),
        }
    }

    /// Page `no` is to lie in its place again after this commit, if it does not yet. Returns whether
    /// it did not.
    ///
    /// # Errors
    /// Page access.
    pub fn bring_home(&mut self, no: PageNo) -> Result<bool> {
        match self.pages.find_image(no)? {
            Some(image) if !self.pages.is_own_image(image) => {
                self.take_home(no, image).map(|()| true)
            }
            _ => Ok(false),
        }
    }

    fn take_home(&mut self, no: PageNo, image: PageNo) -> Result<()> {
        self.pages.bring_home(no, image)?;
        if !mutation::is(Mutation::R35Entry) {
            self.unlist(no)?;
        }
        self.freed.add(PageRun::new(image, 1), false)
    }

    /// Takes page `no`, which has an image, out of the tree.
    fn unlist(&mut self, no: PageNo) -> Result<()> {
        let mut tree = self.pages.images;
        tree.remove(self, no)?;
        self.pages.images = tree;
        self.image_delta -= 1;
        Ok(())
    }

    /// Page `no` is freed or made anew: nothing of what it was is needed in this state.
    pub(super) fn drop_image(&mut self, no: PageNo) -> Result<()> {
        if self.pages.images.is_empty() {
            return Ok(());
        }
        let Some(image) = self.pages.find_image(no)? else { return Ok(()) };
        self.unlist(no)?;
        if self.pages.is_own_image(image) {
            self.pages.forget_image(image);
            self.mine.remove(PageRun::new(image, 1));
            self.release(PageRun::new(image, 1));
        } else {
            self.freed.add(PageRun::new(image, 1), false)?;
        }
        Ok(())
    }

    /// Enters the tree into the root page, if it is another one than before. Nothing leaves memory
    /// afterwards.
    pub(super) fn enter_images(&mut self) -> Result<()> {
        self.settled = true;
        if self.image_delta == 0 && !self.pages.has_new_tree() {
            return Ok(());
        }
        let (root, images, delta) = (self.root, self.pages.images.root, self.image_delta);
        let bytes = self.pages.page_mut(root, PageKind::Root)?;
        root_page::set_images(bytes, images);
        let count = root_page::image_count(bytes).saturating_add_signed(delta);
        root_page::set_image_count(bytes, count);
        if (count == 0) == images.is_none() {
            return Ok(());
        }
        Err(Error::page(root, format!("{count} images, and a tree at page {images}")))
    }
}

impl NodeWrite for SpaceTx {
    /// Nodes never lie elsewhere, so those of a transaction that writes images are copied: they are
    /// new pages then, which may leave memory. Others change their nodes in place.
    fn own(&mut self, no: PageNo) -> Result<PageNo> {
        if !self.pages.has_spilled() || self.mine.contains(no) || self.pages.holds(no) {
            return Ok(no);
        }
        let old = self.pages.page(no, PageKind::Images)?;
        let new = self.new_node()?;
        self.node_mut(new)?[page::HEADER..].copy_from_slice(&old[page::HEADER..]);
        self.free_node(no)?;
        Ok(new)
    }

    fn node_mut(&mut self, no: PageNo) -> Result<&mut [u8]> {
        self.pages.page_mut(no, PageKind::Images)
    }

    fn new_node(&mut self) -> Result<PageNo> {
        let no = self.take_anywhere(1)?.start;
        self.pages.format(no, PageKind::Images, IMAGES_OWNER)?;
        Ok(no)
    }

    fn free_node(&mut self, no: PageNo) -> Result<()> {
        let run = PageRun::new(no, 1);
        self.pages.forget(no);
        if self.mine.contains(no) {
            self.mine.remove(run);
            self.release(run);
        } else {
            self.freed.add(run, false)?;
        }
        Ok(())
    }
}
