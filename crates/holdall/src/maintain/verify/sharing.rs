//! Shared segment pages: what the tree says of them against the slices found.
//!
//! Owns: no state; [`References`] are the walk's.

use super::bits::Runs;
use super::references::References;
use super::report::ProblemKind;
use super::walk_state::Walk;
use crate::sharing::{OWNER, Shared, Sharing};
use holdall_core::{PageNo, PageRun, Result};

impl<'a> Walk<'a> {
    /// Walks the tree of shared pages; comes before the objects.
    ///
    /// # Errors
    /// Anything but damage.
    pub(super) fn sharing(&mut self, sharing: &Sharing) -> Result<()> {
        let what = "the tree of shared pages";
        self.names(&sharing.tree, OWNER, what, &mut |walk: &mut Walk<'a>, key, value| {
            let entry = Shared::decode(key, value);
            let Some(entry) = walk.take(ProblemKind::Page, &|| what.to_owned(), entry)? else {
                return Ok(());
            };
            let before = walk.shared.ranges.last().map_or(0, |r| r.run.end());
            if entry.run.start.0 < before {
                let detail = format!("pages from {} are in two ranges", entry.run.start);
                walk.found.add(ProblemKind::Page, what, detail);
                walk.complete = false;
                return Ok(());
            }
            walk.shared.ranges.push(entry);
            Ok(())
        })?;
        Ok(())
    }

    /// Enters a slice's reference to shared pages. Returns those among them that no slice
    /// reached before.
    pub(super) fn refer(
        &mut self,
        run: PageRun,
        noted: bool,
        what: &dyn Fn() -> String,
    ) -> Vec<PageRun> {
        self.shared.add(run);
        if !noted {
            let detail = format!("holds shared pages from {} and is not marked so", run.start);
            self.found.add(ProblemKind::Object, what(), detail);
        }
        let mut new: Vec<PageRun> = Vec::new();
        for page in (run.start.0..run.end()).filter(|page| !self.reached.has(*page)) {
            match new.last_mut() {
                Some(last) if last.end() == page => last.len += 1,
                _ => new.push(PageRun::new(PageNo(page), 1)),
            }
        }
        new
    }

    /// Holds the references found against those the tree counts.
    pub(super) fn compare_references(&mut self) {
        if !self.complete {
            // Slices may be among what could not be read.
            return;
        }
        let References { ranges, steps } = std::mem::take(&mut self.shared);
        let mut wrong = Runs::default();
        // References end with the range they are to; so the sum is 0 between ranges.
        let (mut steps, mut found) = (steps.into_iter().peekable(), 0);
        for range in ranges {
            let mut at = range.run.start.0;
            while at < range.run.end() {
                while let Some((_, step)) = steps.next_if(|(page, _)| *page <= at) {
                    found += step;
                }
                let next = steps.peek().map_or(u64::MAX, |(page, _)| *page).min(range.run.end());
                if found != range.references as i64 {
                    (at..next).for_each(|page| wrong.push(page));
                }
                at = next;
            }
        }
        if wrong.pages() > 0 {
            let detail = format!("counts other references than there are: pages {wrong}");
            self.found.add(ProblemKind::Space, "the tree of shared pages", detail);
        }
    }
}
