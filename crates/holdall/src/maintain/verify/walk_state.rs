//! The state of a walk over a store, and what every part of it uses.
//!
//! Owns: [`Walk`]: which pages were reached, what was found, how far it is. Invariant: each
//! page is reached once, but for segment pages noted as shared; a second reference to any
//! other is a problem and is not followed, so the walk ends whatever the pages hold.

use super::bits::PageBits;
use super::page_source::Pages;
use super::references::References;
use super::report::{ProblemKind, Problems};
use super::{Progress, VerifyOptions, VerifyReport};
use crate::engine::sums::Sums;
use crate::handle::HandleTable;
use crate::images::Images;
use crate::names::Names;
use crate::page_map::PageMap;
use crate::segment_tree::DataRead;
use crate::sharing::Sharing;
use holdall_core::page::{self, PageKind};
use holdall_core::space_dir::SpaceLayout;
use holdall_core::{Error, Lsn, PageNo, PageRead, PageRef, Result, root_page};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The root page as far as the walk needs it.
#[derive(Debug)]
pub(super) struct RootView {
    pub(super) spaces: u32,
    pub(super) next_collection: u64,
    pub(super) catalog: Names,
    pub(super) entries: Names,
    pub(super) small: PageNo,
    pub(super) drops: Names,
    pub(super) handles: HandleTable,
    pub(super) sharing: Sharing,
    pub(super) images: Images,
    pub(super) image_count: u64,
}

/// What objects are compared with.
#[derive(Debug)]
pub(super) struct Compare<'a> {
    pub(super) sums: &'a Sums,
    pub(super) epoch: u32,
    pub(super) seen: Lsn,
    /// Objects compared so far.
    pub(super) compared: u64,
}

/// A walk over one snapshot.
pub(super) struct Walk<'a> {
    pub(super) pages: &'a Pages<'a>,
    pub(super) layout: SpaceLayout,
    pub(super) options: VerifyOptions,
    pub(super) found: Problems,
    pub(super) reached: PageBits,
    pub(super) shared: References,
    /// Segment pages reached, by stretch of the volume.
    pub(super) segment_pages: Vec<u32>,
    /// Spaces with a directory, and which of the directories cannot be read.
    pub(super) spaces: u32,
    pub(super) lost_spaces: Vec<u32>,
    /// Pages allocated that hold nothing yet.
    pub(super) blank: u64,
    /// The sums that objects are held against.
    pub(super) sums: Option<Compare<'a>>,
    /// While a dropped collection is walked: what says which of its objects are left.
    pub(super) dropped: Option<HandleTable>,
    /// Divided records found.
    pub(super) divided: u64,
    pub(super) objects: u64,
    /// Every OID's `unique` lies below, as long as 32 bits hold it.
    pub(super) unique_ceiling: u64,
    /// Nothing was left out so far.
    pub(super) complete: bool,
    /// Handle pages that lead to large objects.
    pub(super) large: BTreeSet<u32>,
    progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    pub(super) total: u64,
    done: u64,
    told: u64,
}

/// Pages between two calls of the progress function.
const TICK: u64 = 256;

impl<'a> Walk<'a> {
    /// A walk that has not begun.
    ///
    /// # Errors
    /// [`Error::Invalid`] if memory is short.
    pub(super) fn new(
        pages: &'a Pages<'a>,
        options: VerifyOptions,
        progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Self> {
        Ok(Self {
            pages,
            layout: *pages.layout(),
            options,
            found: Problems::default(),
            reached: PageBits::new(pages.volume_pages)?,
            shared: References::default(),
            segment_pages: Vec::new(),
            spaces: 0,
            lost_spaces: Vec::new(),
            blank: 0,
            sums: None,
            dropped: None,
            divided: 0,
            objects: 0,
            unique_ceiling: pages.pager.volume.superblock().unique_ceiling,
            complete: true,
            large: BTreeSet::new(),
            progress,
            total: 0,
            done: 0,
            told: 0,
        })
    }

    /// Turns damage into a problem of `place`; what else went wrong ends the walk.
    ///
    /// # Errors
    /// Anything but damage and failed reads.
    pub(super) fn take<T>(
        &mut self,
        kind: ProblemKind,
        place: &dyn Fn() -> String,
        result: Result<T>,
    ) -> Result<Option<T>> {
        self.take_hidden();
        match result {
            Ok(value) => Ok(Some(value)),
            Err(e) => {
                let (own, detail) = damage(e)?;
                let place = place();
                // The page's own name says most; who refers to it comes behind.
                match own {
                    Some(own) if kind == ProblemKind::Page => {
                        self.found.add(kind, format!("{own} ({place})"), detail);
                    }
                    Some(own) => self.found.add(kind, place, format!("{own}: {detail}")),
                    None => self.found.add(kind, place, detail),
                }
                self.complete = false;
                Ok(None)
            }
        }
    }

    fn take_hidden(&mut self) {
        for (no, e) in self.pages.take_hidden() {
            let text = match e {
                Error::Corrupt { detail, .. } => detail,
                other => other.to_string(),
            };
            let detail = format!("{text}, while memory still has it right");
            self.found.add(ProblemKind::Page, format!("page {no} in the file"), detail);
        }
    }

    /// Adds a problem of a page's content.
    pub(super) fn bad_page(&mut self, page: PageNo, what: &str, detail: impl AsRef<str>) {
        self.found.add(ProblemKind::Page, format!("page {page} ({what})"), detail);
    }

    /// Enters a reference to `page`. False if it must not be followed.
    pub(super) fn reach(&mut self, page: PageNo, what: &dyn Fn() -> String) -> bool {
        self.tick(1);
        if page.is_none() || page.0 >= self.pages.volume_pages {
            let detail = format!("names page {page}, but the file has {}", self.pages.volume_pages);
            self.found.add(ProblemKind::Page, what(), detail);
        } else if !self.reached.add(page.0) {
            let detail = format!("{} uses it, and so does something else", what());
            self.found.add(ProblemKind::Page, format!("page {page}"), detail);
        } else {
            return true;
        }
        self.complete = false;
        false
    }

    /// Enters a reference to a page, reads it and holds its owner against `owner`.
    ///
    /// # Errors
    /// Anything but damage.
    pub(super) fn own_page(
        &mut self,
        page: PageNo,
        kind: PageKind,
        owner: u64,
        what: &dyn Fn() -> String,
    ) -> Result<Option<PageRef>> {
        if !self.reach(page, what) {
            return Ok(None);
        }
        let read = self.pages.page(page, kind);
        let bytes = self.take(ProblemKind::Page, what, read)?;
        if let Some(bytes) = &bytes {
            let own = page::owner(bytes);
            if own != owner {
                self.bad_page(page, &what(), format!("has owner {own}, not {owner}"));
            }
        }
        Ok(bytes)
    }

    /// Tells of pages done.
    pub(super) fn tick(&mut self, pages: u64) {
        self.done += pages;
        if self.done >= self.told + TICK {
            self.tell();
        }
    }

    /// Reports how far the walk is; of a total of 0 as long as that is not known.
    pub(super) fn tell(&mut self) {
        self.told = self.done;
        let size = self.layout.page_size() as u64;
        // A damaged store may name more pages than it has.
        let done = self.done.min(self.total) * size;
        if (self.progress)(Progress { done, total: self.total * size }).is_break() {
            self.pages.end();
        }
    }

    /// Reads the root page.
    ///
    /// # Errors
    /// Anything but damage.
    pub(super) fn root(&mut self, no: PageNo) -> Result<Option<RootView>> {
        let what = || "the root page".to_owned();
        let Some(bytes) = self.own_page(no, PageKind::Root, 0, &what)? else { return Ok(None) };
        let map = PageMap::decode(&root_page::handles(&bytes));
        let Some(map) = self.take(ProblemKind::Page, &what, map)? else { return Ok(None) };
        Ok(Some(RootView {
            spaces: root_page::spaces(&bytes),
            next_collection: root_page::next_collection(&bytes),
            catalog: Names { root: root_page::catalog(&bytes) },
            entries: Names { root: root_page::entries(&bytes) },
            small: root_page::small(&bytes),
            drops: Names { root: root_page::drops(&bytes) },
            handles: HandleTable { map },
            sharing: Sharing { tree: Names { root: root_page::sharing(&bytes) } },
            images: Images { root: root_page::images(&bytes) },
            image_count: root_page::image_count(&bytes),
        }))
    }

    /// The report.
    pub(super) fn finish(mut self) -> VerifyReport {
        self.take_hidden();
        self.done = self.total;
        self.tell();
        let (problems, notes) = self.found.finish();
        VerifyReport {
            pages: self.total,
            blank_pages: self.blank,
            divided: self.divided,
            objects: self.objects,
            bytes_checked: self.pages.bytes(),
            compared: self.sums.map(|sums| sums.compared),
            problems,
            notes,
        }
    }
}

/// Place, if it has one, and text of an error that is damage.
///
/// # Errors
/// The error itself if it is not.
pub(super) fn damage(e: Error) -> Result<(Option<String>, String)> {
    match e {
        Error::Corrupt { place, detail } => Ok((Some(place), detail)),
        Error::Unsupported { .. } | Error::Io { .. } | Error::Dangling(_) | Error::NotFound(_) => {
            Ok((None, e.to_string()))
        }
        other => Err(other),
    }
}

/// What was told before is passed over; what is no damage is not.
pub(super) fn quiet<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) => damage(e).map(|_| None),
    }
}
