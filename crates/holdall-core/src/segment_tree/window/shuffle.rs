//! Byte reshuffling: pages that an edit would leave partly filled beside what it writes.
//!
//! Owns: no state. Biliris says of EOS that the parts of a split segment are shuffled (§2.3)
//! and leaves the rules to another paper; here, as in ESM's improved insert (§3.4), the bytes
//! of one neighbour join what is written if that saves a page. Only with
//! [`super::Options::shuffle_bytes`].

use super::{Item, Origin, Window};

impl Window<'_> {
    /// Takes along what lies alone on a page before what is written, what lies so before that,
    /// and a page behind that is not full: of these what makes the fewest pages of all, and of
    /// equal ones the fewest bytes.
    pub(super) fn shuffle_bytes(&mut self) {
        let mut written = (0..self.items.len()).filter(|at| self.is_written(*at));
        let (Some(at), None) = (written.next(), written.next()) else { return };
        let before = self.alone_before(at);
        let behind = self.alone_at(at + 1).filter(|(_, pages)| *pages == 1).map(|(bytes, _)| bytes);
        let (len, page) = (self.stored(at), self.page);
        let cost = |steps: usize, right: bool| {
            let stay = before.len() - steps + usize::from(behind.is_some() && !right);
            let right = if right { behind.unwrap_or(0) } else { 0 };
            let moved = before[..steps].iter().sum::<u64>() + right;
            ((len + moved).div_ceil(page) + stay as u64, moved)
        };
        // Of the neighbours one at most, as in ESM; what is left of the segment cut is none.
        let (inside, other_right) = (self.steps_inside(at), self.is_old(at + 1));
        let rights = [false, true].into_iter().filter(|right| !right || behind.is_some());
        let choices = rights
            .flat_map(|right| (0..=before.len()).map(move |steps| (steps, right)))
            .filter(|(steps, right)| *steps <= inside || !*right || !other_right);
        let Some((steps, right)) = choices.min_by_key(|(steps, right)| cost(*steps, *right)) else {
            return;
        };
        if right {
            self.absorb(at + 1);
        }
        for before in (0..at).rev().take(steps) {
            match self.alone_at(before) {
                Some((_, 1)) => self.absorb(before),
                _ => self.borrow(before, 1, true),
            }
        }
        self.join();
    }

    /// Whether the item is a segment that the edit does not cut.
    fn is_old(&self, at: usize) -> bool {
        matches!(self.items.get(at), Some(Item::Kept(_, Origin::Old(_))))
    }

    /// Steps to the left that stay in the segment cut.
    fn steps_inside(&self, at: usize) -> usize {
        usize::from(at > 0 && !self.is_old(at - 1))
    }

    /// Bytes alone on a page: at the end of the item before `at`; and, if that is all of
    /// its segment, at the end of the one before.
    fn alone_before(&self, at: usize) -> Vec<u64> {
        let mut steps = Vec::new();
        for before in (0..at).rev().take(2) {
            let Some((bytes, pages)) = self.alone_at(before) else { break };
            steps.push(bytes);
            if pages > 1 {
                break;
            }
        }
        steps
    }

    /// Bytes on the last page of a kept run that does not fill it, and the run's pages.
    fn alone_at(&self, at: usize) -> Option<(u64, u64)> {
        let Some(Item::Kept(slice, _)) = self.items.get(at) else { return None };
        if !slice.is_run() || slice.ends_page(self.page) {
            return None;
        }
        let last = (u64::from(slice.offset) + slice.len) % self.page;
        Some((last.min(slice.len), slice.pages(self.page)))
    }
}
