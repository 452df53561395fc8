//! Bringing pages home: images that a large transaction left become pages in their places again.
//!
//! An ordinary user of the store, as defragmentation is: transactions of a few pages, in order of
//! place, that change nothing but where these lie (docs/recovery.md, "Images").

use super::Inner;
use crate::space::SpaceTx;
use crate::txn::{Cause, Wait, Waiting};
use holdall_core::page::PageKind;
use holdall_core::{Error, PageNo, Result, root_page};
use std::sync::atomic::Ordering::SeqCst;

/// Pages of a transaction: as short for who waits for the lock as a put.
const PAGES: usize = 32;
/// Transactions between two looks at what else is to be done.
const PACED: usize = 32;
/// Free pages that are few for any transaction.
const LEAST_FREE: u64 = 64;

impl Inner {
    /// Whether pages of the newest state lie elsewhere.
    pub(crate) fn has_images(&self) -> bool {
        !self.pager.images().is_empty()
    }

    /// Brings some pages home, as a thread of the store does beside its users, and makes the
    /// checkpoints that this asks for. Returns whether some are left and might be brought home now.
    pub(crate) fn bring_home_paced(&self) -> bool {
        for _ in 0..PACED {
            if !self.has_images() || self.rests() {
                return false;
            }
            let done = match self.is_home_full() {
                true => self.checkpoint(Cause::Maintenance).map(|()| true),
                false => self.bring_some_home(&Waiting::maintenance()),
            };
            match done {
                Ok(true) => {}
                Ok(false) => break,
                Err(e) => {
                    self.note_background_error("bringing pages home", &e);
                    return false;
                }
            }
        }
        self.has_images() && !self.rests()
    }

    /// Brings a few pages home, for a store without threads.
    pub(crate) fn bring_home_a_few(&self) -> Result<()> {
        if !self.has_images() || self.rests() || self.is_home_full() {
            return Ok(());
        }
        self.bring_some_home(&Waiting::begin(Wait::Not, None)).map(|_| ())
    }

    /// Brings all pages home, with checkpoints, so that the pages of their images are free but for
    /// snapshots. Returns whether there were any. Cost: a read and a write of each.
    ///
    /// # Errors
    /// Those of a commit.
    pub(crate) fn bring_all_home(&self) -> Result<bool> {
        let any = self.has_images();
        while self.has_images() {
            if self.is_home_full() {
                self.checkpoint(Cause::Space)?;
            }
            if !self.bring_some_home(&Waiting::maintenance())? {
                // Of this thread.
                return Ok(false);
            }
        }
        if any {
            self.checkpoint(Cause::Space)?;
        }
        Ok(any)
    }

    /// Brings all pages home, unless a snapshot from before their images is open.
    ///
    /// # Errors
    /// As [`Inner::bring_all_home`].
    pub(crate) fn bring_home_for_maintenance(&self) -> Result<()> {
        if self.rests() { Ok(()) } else { self.bring_all_home().map(|_| ()) }
    }

    /// Before a transaction takes the writer's lock: brings all pages home if little is free, since
    /// it could not while it runs. Cost: mostly the look at one number.
    ///
    /// # Errors
    /// As [`Inner::bring_all_home`].
    pub(crate) fn bring_home_if_short(&self) -> Result<()> {
        if !self.has_images() || self.pager.holds_writer() {
            return Ok(());
        }
        let images = root_page::image_count(&self.pager.newest(self.root, PageKind::Root)?);
        if self.alloc.is_short(images.max(LEAST_FREE)) {
            self.bring_all_home()?;
        }
        Ok(())
    }

    /// Whether an image now only makes more wait: snapshots from before the images read the
    /// places, and a copy of each page that comes home would be kept for them.
    fn rests(&self) -> bool {
        self.pager.has_readers_before_images()
    }

    /// Whether a checkpoint comes first: pages that come home wait in memory for it.
    fn is_home_full(&self) -> bool {
        self.pager.dirty_pages() * 4 > self.pager.limits().dirty_pages
    }

    /// Returns whether it had its turn.
    fn bring_some_home(&self, waiting: &Waiting) -> Result<bool> {
        let mut tx = match SpaceTx::begin(&self.pager, &self.alloc, self.root, waiting) {
            Err(Error::Busy(_)) => return Ok(false),
            begun => begun?,
        };
        let from = PageNo(self.home_from.load(SeqCst));
        let mut pages = self.pager.images().list(&tx, from, PAGES)?;
        if pages.is_empty() {
            pages = self.pager.images().list(&tx, PageNo(0), PAGES)?;
        }
        self.home_from.store(pages.last().map_or(0, |(page, _)| page.0 + 1), SeqCst);
        for (page, _) in pages {
            tx.bring_home(page)?;
        }
        drop(tx.commit()?);
        self.note_deferred();
        Ok(true)
    }
}
