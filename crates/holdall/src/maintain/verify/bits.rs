//! A set of pages in one bit each, and a short description of page runs.
//!
//! Owns: [`PageBits`], [`Runs`]. A volume of 1 TB in pages of 8 KiB takes 16 MiB.

use holdall_core::{Error, Result};
use std::fmt;

/// A set of page numbers below a limit.
#[derive(Debug)]
pub(super) struct PageBits {
    words: Vec<u64>,
    limit: u64,
}

impl PageBits {
    /// The empty set of pages below `limit`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no memory for it.
    pub(super) fn new(limit: u64) -> Result<Self> {
        let none = || Error::Invalid(format!("no memory to mark {limit} pages"));
        let len = usize::try_from(limit.div_ceil(64)).map_err(|_| none())?;
        let mut words = Vec::new();
        words.try_reserve_exact(len).map_err(|_| none())?;
        words.resize(len, 0);
        Ok(Self { words, limit })
    }

    /// Adds `page`; false if it was there or lies beyond the limit.
    pub(super) fn add(&mut self, page: u64) -> bool {
        let inside = page < self.limit;
        let Some(word) = self.words.get_mut((page / 64) as usize).filter(|_| inside) else {
            return false;
        };
        let bit = 1 << (page % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Whether `page` is in the set.
    pub(super) fn has(&self, page: u64) -> bool {
        self.words.get((page / 64) as usize).is_some_and(|w| w >> (page % 64) & 1 == 1)
    }
}

/// Pages shown as runs: the first few, and how many there are.
#[derive(Debug, Default)]
pub(super) struct Runs {
    first: Vec<(u64, u64)>,
    more: u64,
    last: Option<u64>,
    pages: u64,
}

/// Runs that are spelled out.
const SHOWN: usize = 8;

impl Runs {
    /// Adds a page; pages come in ascending order.
    pub(super) fn push(&mut self, page: u64) {
        self.pages += 1;
        let follows = self.last.is_some_and(|last| last + 1 == page);
        self.last = Some(page);
        if !follows {
            if self.first.len() < SHOWN {
                self.first.push((page, page));
            } else {
                self.more += 1;
            }
        } else if self.more == 0
            && let Some(run) = self.first.last_mut()
        {
            run.1 = page;
        }
    }

    /// Number of pages.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }
}

impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (from, to)) in self.first.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            if from == to {
                write!(f, "{comma}{from}")?;
            } else {
                write!(f, "{comma}{from} to {to}")?;
            }
        }
        if self.more > 0 {
            write!(f, " and {} more runs", self.more)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_added_once_and_only_below_the_limit() {
        let mut bits = PageBits::new(70).unwrap();
        assert!(bits.add(69) && !bits.add(69) && !bits.add(70) && !bits.add(u64::MAX));
        assert!(bits.has(69) && !bits.has(68) && !bits.has(70) && !bits.has(u64::MAX));
    }

    #[test]
    fn runs_are_told_shortly() {
        let mut runs = Runs::default();
        for page in [3, 4, 5, 9] {
            runs.push(page);
        }
        assert_eq!((runs.to_string().as_str(), runs.pages()), ("3 to 5, 9", 4));
        for page in (20..60).step_by(2).chain([59]) {
            runs.push(page);
        }
        assert_eq!(runs.pages(), 25);
        assert!(runs.to_string().ends_with("30 and 14 more runs"), "{runs}");
    }
}
