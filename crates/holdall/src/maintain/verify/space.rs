//! Space directories and info pages: the bitmaps against what was reached.
//!
//! Owns: no state. Directories and info pages are entered before the walk, so that the total
//! is known and damage is reported once; bitmaps and counts are compared behind it.

use super::bits::Runs;
use super::report::ProblemKind;
use super::walk_state::Walk;
use holdall_core::page::PageKind;
use holdall_core::space_dir::SpaceDir;
use holdall_core::space_info::SpaceInfo;
use holdall_core::{Error, PageNo, PageRead, PageRef, PageRun, Result};

impl Walk<'_> {
    /// Enters the directories of `spaces` spaces (as the superblock says where the root page
    /// is damaged), with their info pages, and finds out how many pages are in use.
    ///
    /// # Errors
    /// Anything but damage.
    pub(super) fn spaces(&mut self, spaces: Option<u32>) -> Result<()> {
        let named = spaces.unwrap_or_else(|| self.pages.pager.volume.superblock().spaces);
        let most = self.pages.volume_pages.div_ceil(u64::from(self.layout.space_pages()));
        self.spaces = u64::from(named).min(most) as u32;
        if self.spaces < named {
            let detail = format!("names {named} spaces, the file has room for {most}");
            self.found.add(ProblemKind::Page, "the root page", detail);
        }
        let stretches = self.spaces as usize * self.layout.stretches() as usize;
        self.segment_pages
            .try_reserve_exact(stretches)
            .map_err(|_| Error::Invalid(format!("no memory to count {stretches} stretches")))?;
        self.segment_pages.resize(stretches, 0);
        for space in 0..self.spaces {
            self.space(space)?;
        }
        Ok(())
    }

    fn space(&mut self, space: u32) -> Result<()> {
        let what = || format!("directory of space {space}");
        let no = self.layout.dir_page(space);
        let bytes = self.own_page(no, PageKind::SpaceDir, u64::from(space), &what)?;
        let Some(bytes) = bytes else {
            self.lost_spaces.push(space);
            return Ok(());
        };
        let dir = SpaceDir::open(self.layout, space, &*bytes);
        let Some(dir) = self.take(ProblemKind::Page, &what, dir)? else {
            self.lost_spaces.push(space);
            return Ok(());
        };
        self.take(ProblemKind::Page, &what, dir.check())?;
        self.total += u64::from(dir.count_allocated());
        for stretch in 0..self.layout.stretches() {
            let found = dir.info_page(stretch).and_then(|p| Ok((p, dir.segment_pages(stretch)?)));
            let Some((info, live)) = self.take(ProblemKind::Page, &what, found)? else { continue };
            if !info.is_none() {
                self.info(space, stretch, info, live)?;
            }
        }
        Ok(())
    }

    fn info(&mut self, space: u32, stretch: u32, no: PageNo, live: u32) -> Result<()> {
        let what = || format!("checksums of stretch {stretch} of space {space}");
        if live == 0 {
            // Made anew before its next use; until then it may hold anything.
            if self.reach(no, &what) {
                self.blank += 1;
            }
            return Ok(());
        }
        let first = self.layout.stretch_run(stretch).map_or(0, |run| run.start);
        let owner = self.layout.page_at(space, first).0;
        if let Some(bytes) = self.own_page(no, PageKind::SpaceInfo, owner, &what)? {
            let info = SpaceInfo::open(self.layout, space, stretch, &*bytes);
            self.take(ProblemKind::Page, &what, info.map(drop))?;
        }
        Ok(())
    }

    /// Enters a run of segment pages; returns whether all of it may be read.
    pub(super) fn reach_segment(&mut self, run: PageRun, what: &dyn Fn() -> String) -> bool {
        let Ok((space, inside)) = self.layout.split_run(run) else {
            let detail =
                format!("names {} pages from {}, which lie in no space", run.len, run.start);
            self.found.add(ProblemKind::Object, what(), detail);
            self.complete = false;
            return false;
        };
        let mut whole = true;
        for no in run.start.0..run.end() {
            whole &= self.reach(PageNo(no), what);
        }
        let (per, mut at) = (self.layout.stretches(), inside.start);
        while at < inside.end() {
            let (stretch, place) = self.layout.stretch_of(at);
            let n = (self.layout.stretch_pages() - place).min(inside.end() - at);
            let slot = space as usize * per as usize + stretch as usize;
            if let Some(count) = self.segment_pages.get_mut(slot) {
                *count = count.saturating_add(n);
            }
            at += n;
        }
        whole
    }

    /// Compares the bitmaps and counts of all directories with what was reached.
    ///
    /// # Errors
    /// Anything but damage.
    pub(super) fn compare_spaces(&mut self) -> Result<()> {
        let (mut lost, mut free) = (Runs::default(), Runs::default());
        for space in 0..self.spaces {
            if self.lost_spaces.contains(&space) {
                continue;
            }
            let bytes = self.pages.page(self.layout.dir_page(space), PageKind::SpaceDir)?;
            self.compare_bitmap(space, &bytes, &mut lost, &mut free)?;
            if self.complete {
                self.compare_counts(space, &bytes)?;
            }
        }
        self.pages_of_no_space();
        if free.pages() > 0 {
            let detail = format!("{} pages in use are marked free: {free}", free.pages());
            self.found.add(ProblemKind::Space, "space directories", detail);
        }
        if lost.pages() > 0 {
            let why = if self.complete { "" } else { " (they may belong to what is damaged)" };
            let detail =
                format!("nothing refers to {} pages marked in use{why}: {lost}", lost.pages());
            self.found.add(ProblemKind::Waste, "space directories", detail);
        }
        Ok(())
    }

    /// Pages reached behind the spaces that the root names: no bitmap covers them, so whatever
    /// gives out or gives back space takes them for free.
    fn pages_of_no_space(&mut self) {
        let spaces = self.spaces;
        let beyond = self.reached_from(u64::from(spaces) * u64::from(self.layout.space_pages()));
        if beyond.pages() > 0 {
            let pages = beyond.pages();
            let detail = format!("{pages} pages in use lie behind the {spaces} named: {beyond}");
            self.found.add(ProblemKind::Space, "the root page", detail);
        }
    }

    /// Holds what was reached of a closed store against the length that its superblock names.
    pub(super) fn compare_length(&mut self) {
        let named = self.pages.pager.volume.superblock().volume_pages;
        let beyond = self.reached_from(named);
        if beyond.pages() > 0 {
            let pages = beyond.pages();
            let detail = format!("{pages} pages in use lie behind the {named} named: {beyond}");
            self.found.add(ProblemKind::Space, "superblock", detail);
        }
    }

    fn reached_from(&self, from: u64) -> Runs {
        let mut found = Runs::default();
        let reached = (from..self.pages.volume_pages).filter(|page| self.reached.has(*page));
        reached.for_each(|page| found.push(page));
        found
    }

    fn compare_bitmap(
        &mut self,
        space: u32,
        bytes: &PageRef,
        lost: &mut Runs,
        free: &mut Runs,
    ) -> Result<()> {
        let dir = SpaceDir::open(self.layout, space, &**bytes)?;
        for index in 0..self.layout.space_pages() {
            let page = self.layout.page_at(space, index).0;
            match (dir.is_allocated(index), self.reached.has(page)) {
                (true, false) => lost.push(page),
                (false, true) => free.push(page),
                _ => {}
            }
        }
        Ok(())
    }

    fn compare_counts(&mut self, space: u32, bytes: &PageRef) -> Result<()> {
        let dir = SpaceDir::open(self.layout, space, &**bytes)?;
        let per = self.layout.stretches();
        for stretch in 0..per {
            let slot = space as usize * per as usize + stretch as usize;
            let found = self.segment_pages.get(slot).copied().unwrap_or(0);
            let what = || format!("directory of space {space}");
            let Some(noted) = self.take(ProblemKind::Page, &what, dir.segment_pages(stretch))?
            else {
                continue;
            };
            if noted != found {
                let detail = format!("stretch {stretch} has {found} segment pages, noted {noted}");
                self.bad_page(self.layout.dir_page(space), &what(), detail);
            }
        }
        Ok(())
    }
}
