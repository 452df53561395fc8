//! The full check of a store: every page, record, name, tree and byte of one snapshot.
//!
//! Owns: [`Store::verify`] and the order of the walk. Takes no lock: pages are those of one
//! snapshot, whose bitmaps must name exactly what is reachable in it. What is damaged is
//! reported and left out, and the walk goes on elsewhere. Memory: two bits per page of the
//! volume, four bytes per stretch, the segments of one object at a time; problems of one
//! kind are listed up to a limit and then counted.
//!
//! Who refers to whom is compared by fingerprints ([`cross`]), so that a sound store is read
//! in the order it lies in; only if they differ is each entry looked up.
//!
//! No checksum covers free pages, pages allocated for later
//! ([`VerifyReport::blank_pages`]) and what lies behind a superblock in its page. The first are
//! never read before they are formatted, the last is checked to be zeros.

mod bits;
mod catalog;
mod cross;
mod heap;
mod images;
mod map;
mod names;
mod objects;
mod page_source;
mod references;
mod report;
mod sharing;
mod space;
mod sums;
mod superblock;
mod walk_state;

pub use report::{Problem, Progress, VerifyReport};

use crate::store::Store;
use holdall_core::{Error, Lsn, Result};
use page_source::Pages;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;
use walk_state::{Compare, Walk};

/// What [`Store::verify_with`] looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyOptions {
    /// Whether the bytes of large objects are read and held against their checksums, and those
    /// of all objects against their sums if the store has them; without it only the structure is
    /// checked, which reads a small share of a store of large objects.
    pub data: bool,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self { data: true }
    }
}

/// What a walk over one state found.
pub(super) struct Walked {
    lsn: Lsn,
    pub(super) report: VerifyReport,
    /// Handle pages that lead to large objects.
    pub(super) large: BTreeSet<u32>,
}

impl Store {
    /// Checks the newest durable state of the whole store; other transactions go on
    /// meanwhile. Pages that are in memory are read from
    /// the file too, unless they wait for a checkpoint. Cost: reads every page in use once
    /// or twice; memory of two bits per page. With
    /// [`Options::debug_sums`](crate::Options::debug_sums) objects are held against their sums.
    ///
    /// # Errors
    /// Damage is not an error but in the report.
    /// [`Error::SnapshotTooOld`](holdall_core::Error::SnapshotTooOld) if the disk has no room for
    /// what writers changed meanwhile.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.verify_with(&VerifyOptions::default(), &mut |_| ())
    }

    /// As [`Store::verify`], of what `options` names. `progress` is called now and then.
    ///
    /// # Errors
    /// As [`Store::verify`].
    pub fn verify_with(
        &self,
        options: &VerifyOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<VerifyReport> {
        self.report(|store| {
            let mut go_on = |done| {
                progress(done);
                ControlFlow::Continue(())
            };
            let Walked { lsn, report, .. } = store.verify_once(options, &mut go_on)?;
            // Another process that writes makes it look damaged.
            let past = !report.is_sound() && store.inner.pager.is_past(lsn);
            if past { Err(Error::SnapshotTooOld { age: Duration::ZERO }) } else { Ok(report) }
        })
    }

    /// Walks over one state. `progress` may end that.
    ///
    /// # Errors
    /// As [`Store::verify`]; [`Error::Cancelled`] if `progress` ended it.
    pub(super) fn verify_once(
        &self,
        options: &VerifyOptions,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Walked> {
        let snapshot = self.inner.pager.snapshot();
        let pages = Pages::new(&self.inner, &snapshot)?;
        let mut walk = Walk::new(&pages, *options, progress)?;
        walk.sums = Compare::new(&self.inner, &snapshot).filter(|_| options.data);
        walk.tell();
        walk.superblocks()?;
        let root = walk.root(self.inner.root)?;
        walk.spaces(root.as_ref().map(|r| r.spaces))?;
        if let Some(root) = root {
            walk.images(root.images, root.image_count)?;
            walk.sharing(&root.sharing)?;
            let handles = walk.handles(&root.handles)?;
            let records = walk.collections(&root)?;
            walk.compare_handles(&root, handles, &records)?;
            walk.compare_parts(&root, &records)?;
            walk.compare_references();
        }
        walk.compare_spaces()?;
        // Commits since a checkpoint may lie behind the length that it named: with a log, the
        // superblock need not name all.
        if self.inner.is_clean() {
            walk.compare_length();
        }
        let large = std::mem::take(&mut walk.large);
        Ok(Walked { lsn: snapshot.lsn(), report: walk.finish(), large })
    }
}
