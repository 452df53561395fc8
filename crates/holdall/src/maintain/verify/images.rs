//! The tree of images: its nodes, what it says lies elsewhere, and that it lies there.
//!
//! Owns: no state. Whether the pages of images are in use is compared with all others.

use super::report::ProblemKind;
use super::walk_state::Walk;
use crate::images::Images;
use crate::space::IMAGES_OWNER;
use holdall_core::image_node::ImageNode;
use holdall_core::page::PageKind;
use holdall_core::{PageNo, Result};

const WHAT: &str = "the tree of images";

impl Walk<'_> {
    /// Walks the tree, which the root page says names `count` pages.
    ///
    /// # Errors
    /// Anything but damage.
    pub(super) fn images(&mut self, tree: Images, count: u64) -> Result<()> {
        let mut found = 0;
        if !tree.is_empty() {
            self.image_node((tree.root, None), (PageNo(0), PageNo::MAX), &mut found)?;
        }
        if self.complete && found != count {
            let detail = format!("names {count} images, {found} were found");
            self.found.add(ProblemKind::Page, "the root page", detail);
        }
        Ok(())
    }

    /// Node `no`, below one of level `above`, whose pages are from the first to the second of
    /// `bounds`.
    fn image_node(
        &mut self,
        (no, above): (PageNo, Option<u8>),
        bounds: (PageNo, PageNo),
        found: &mut u64,
    ) -> Result<()> {
        let what = || WHAT.to_owned();
        let bytes = self.own_page(no, PageKind::Images, IMAGES_OWNER, &what)?;
        let Some(bytes) = bytes else { return Ok(()) };
        let node = ImageNode::new(&bytes, no).and_then(|n| n.check_order(no).map(|()| n));
        let Some(node) = self.take(ProblemKind::Page, &what, node)? else { return Ok(()) };
        if above.is_some_and(|above| node.level() + 1 != above) {
            self.bad_page(no, WHAT, format!("has level {}", node.level()));
            self.complete = false;
            return Ok(());
        }
        for i in 0..node.len() {
            let (page, target) = node.entry(i);
            // The first below a node serves all before it.
            let first = node.level() > 0 && i == 0;
            if (page < bounds.0 && !first) || page > bounds.1 {
                self.bad_page(no, WHAT, format!("names page {page}, which is not its own"));
            } else if node.level() == 0 {
                *found += u64::from(!target.is_none());
                self.image(page, target)?;
            } else {
                let from = if first { bounds.0 } else { page };
                let to = if i + 1 < node.len() { node.entry(i + 1).0 } else { bounds.1 };
                self.image_node((target, Some(node.level())), (from, to), found)?;
            }
        }
        Ok(())
    }

    fn image(&mut self, page: PageNo, image: PageNo) -> Result<()> {
        let what = || format!("the image of page {page}");
        if image.is_none() || !self.reach(image, &what) {
            return Ok(());
        }
        // What lies in its place is read by nobody.
        self.blank += 1;
        let read = self.pages.image(page, image);
        self.take(ProblemKind::Page, &what, read)?;
        Ok(())
    }
}
