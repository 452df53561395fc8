//! Which objects live, and where their records are.
//!
//! Owns: [`Handles`]. The handle table of a state that is sure decides alone. Of what else is whole of it
//! only that counts which no later state can have changed: a number that a slot has had, no object gets
//! again.

use super::map::each_entry;
use super::pages::Pages;
use super::scan::Found;
use crate::engine::catalog::Root;
use holdall_core::handle_page::{Handle, HandlePage, Location};
use holdall_core::page::PageKind;
use holdall_core::page_map_node::FRESH;
use holdall_core::{Oid, PageNo, PageRead};
use std::collections::BTreeMap;

/// What is known of a handle page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// The state's own: what it says holds.
    Own(PageNo),
    /// One that was found: it may be of an earlier state.
    Perhaps(PageNo),
    /// The state's own cannot be read.
    Lost,
}

/// Whether a record is of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// It is the object's record.
    Lives,
    /// A handle says so that may be of an earlier state, and other pages are of several: another record
    /// may be younger.
    Fits,
    /// It may be: no handle denies it.
    Perhaps,
    /// Its object was removed, or has its record elsewhere.
    Gone,
}

/// The handle pages that were found.
#[derive(Debug, Default)]
pub(super) struct Handles {
    pages: BTreeMap<u32, Known>,
    /// All pages are of one state.
    sure: bool,
    /// Of some pages versions were found that are not in their places.
    mixed: bool,
}

impl Handles {
    /// As the root leads to them, if the state is sure, and as they were found.
    pub(super) fn find(pages: &Pages<'_>, found: &Found, root: Option<&Root>, sure: bool) -> Self {
        let mut all = BTreeMap::new();
        if let Some(root) = root {
            each_entry(pages, &root.handles.map, &mut |index, entry| {
                if entry.tag.class != FRESH {
                    let known = match pages.look(entry.page, PageKind::Handle) {
                        Ok((_, false)) => Known::Own(entry.page),
                        _ => Known::Lost,
                    };
                    all.insert(index, known);
                }
            });
        }
        for (index, (_, no)) in &found.handles {
            let free = sure && pages.is_free(*no) == Some(true);
            if !free {
                all.entry(*index).or_insert(Known::Perhaps(*no));
            }
        }
        Self { pages: all, sure, mixed: pages.is_mixed() }
    }

    /// Whether the record of `oid` at `loc` is that of an object.
    pub(super) fn life(&self, pages: &Pages<'_>, oid: Oid, loc: Location) -> Life {
        // Of a page that the state has as free, nothing lives.
        let free = if self.sure { pages.is_free(loc.page) } else { None };
        let (own, no) = match self.pages.get(&oid.page) {
            Some(Known::Own(no)) => (true, *no),
            Some(Known::Perhaps(no)) if free != Some(true) => (false, *no),
            None | Some(Known::Lost) if free != Some(true) => return Life::Perhaps,
            _ => return Life::Gone,
        };
        let looked = pages.with_page(no, PageKind::Handle, |bytes| {
            let page = HandlePage::new(bytes, no, oid.page)?;
            Ok((page.get(oid.slot)?, page.last_unique(oid.slot)))
        });
        let Ok((handle, last)) = looked else { return Life::Perhaps };
        match handle {
            Handle::Live { unique, loc: at } if unique == oid.unique && at == loc => {
                if own || !self.mixed { Life::Lives } else { Life::Fits }
            }
            _ if own => Life::Gone,
            Handle::Live { unique, .. } if unique == oid.unique => Life::Perhaps,
            Handle::Live { .. } | Handle::Free if is_after(last, oid.unique) => Life::Gone,
            Handle::Live { .. } | Handle::Free | Handle::Never => Life::Perhaps,
        }
    }

    /// Gives `f` each live handle that can be read, and whether it is sure that its object lives.
    pub(super) fn each(&self, pages: &Pages<'_>, f: &mut dyn FnMut(Oid, Location, bool)) {
        for (index, known) in &self.pages {
            let (no, own) = match known {
                Known::Own(no) => (*no, true),
                Known::Perhaps(no) => (*no, false),
                Known::Lost => continue,
            };
            let Ok(bytes) = pages.page(no, PageKind::Handle) else { continue };
            let Ok(page) = HandlePage::new(&bytes, no, *index) else { continue };
            for (slot, unique, loc) in page.iter().filter_map(Result::ok) {
                f(Oid { site: 0, page: *index, slot, unique }, loc, own);
            }
        }
    }

    /// What the handle of `oid` says: `None` if it cannot be read.
    pub(super) fn is_live(&self, pages: &Pages<'_>, oid: Oid) -> Option<bool> {
        let (Known::Own(no) | Known::Perhaps(no)) = self.pages.get(&oid.page)? else { return None };
        let bytes = pages.page(*no, PageKind::Handle).ok()?;
        let handle =
            HandlePage::new(&bytes, *no, oid.page).and_then(|page| page.get(oid.slot)).ok()?;
        Some(matches!(handle, Handle::Live { unique, .. } if unique == oid.unique))
    }
}

/// Whether number `a` was given out with `b` or after it. They go round.
fn is_after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) >= 0
}

/// As for objects: whether `a` was made after `b`.
pub(super) fn is_younger(a: Oid, b: Oid) -> bool {
    a.unique != b.unique && is_after(a.unique, b.unique)
}
