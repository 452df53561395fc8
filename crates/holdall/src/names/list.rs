//! Lines by prefix and delimiter, as object stores do.
//!
//! Owns: [`Names::list`]. Keys that share everything up to and including the delimiter are
//! rolled up into one common prefix; the walk seeks past them, so that its cost does not
//! depend on how many there are.

use super::{Names, Value};
use holdall_core::{PageRead, Result};
use std::ops::Bound;

/// What to list.
#[derive(Debug, Clone, Copy)]
pub struct ListOptions<'a> {
    /// Only keys that begin with this.
    pub prefix: &'a [u8],
    /// Only keys above this. If it is a common prefix that this listing would roll up (as
    /// [`Listing::next`](crate::Listing::next) may be), everything below that prefix is left out
    /// too.
    pub start_after: Option<&'a [u8]>,
    /// Rolls up keys at its first occurrence after the prefix. An empty one counts as none.
    pub delimiter: Option<&'a [u8]>,
    /// Most entries to return; with 0 there are none, and [`Listing::next`](crate::Listing::next)
    /// is `None`.
    pub limit: usize,
}

impl Default for ListOptions<'_> {
    /// All keys, none rolled up, at most 1,000 at a time.
    fn default() -> Self {
        Self { prefix: &[], start_after: None, delimiter: None, limit: 1000 }
    }
}

/// One line of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A key and its value.
    Key(Vec<u8>, Value),
    /// A common prefix, the delimiter included, of one or more keys.
    Prefix(Vec<u8>),
}

/// A listing, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    /// In key order.
    pub entries: Vec<Line>,
    /// If there is more: the `start_after` that continues the listing.
    pub next: Option<Vec<u8>>,
}

impl ListOptions<'_> {
    /// The common prefix `key`, which begins with `self.prefix`, is rolled up into.
    fn rolled<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let delimiter = self.delimiter.filter(|d| !d.is_empty())?;
        let rest = key.get(self.prefix.len()..)?;
        let at = rest.windows(delimiter.len()).position(|window| window == delimiter)?;
        Some(&key[..self.prefix.len() + at + delimiter.len()])
    }
}

/// The smallest key above all that begin with `prefix`; `None` if there is none.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut key = prefix[..=last].to_vec();
    key[last] += 1;
    Some(key)
}

impl Names {
    /// Lists keys and common prefixes in order. Cost: one step per key returned, one seek
    /// per common prefix.
    ///
    /// # Errors
    /// [`holdall_core::Error::Corrupt`], [`holdall_core::Error::Io`].
    pub fn list<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        options: &ListOptions<'_>,
    ) -> Result<Lines> {
        let mut listing = Lines { entries: Vec::new(), next: None };
        let skip;
        let from = match options.start_after.filter(|after| *after >= options.prefix) {
            None => Bound::Included(options.prefix),
            Some(after)
                if after.starts_with(options.prefix) && options.rolled(after) == Some(after) =>
            {
                let Some(key) = after_prefix(after) else { return Ok(listing) };
                skip = key;
                Bound::Included(skip.as_slice())
            }
            Some(after) => Bound::Excluded(after),
        };
        if options.limit == 0 {
            return Ok(listing);
        }
        let mut cursor = self.iter(pages, from);
        while let Some((key, value)) = cursor.advance()? {
            if !key.starts_with(options.prefix) {
                break;
            }
            if listing.entries.len() == options.limit {
                listing.next = listing.entries.last().map(|entry| match entry {
                    Line::Key(key, _) | Line::Prefix(key) => key.clone(),
                });
                break;
            }
            let Some(common) = options.rolled(key) else {
                listing.entries.push(Line::Key(key.to_vec(), value));
                continue;
            };
            let past = after_prefix(common);
            listing.entries.push(Line::Prefix(common.to_vec()));
            match past {
                Some(past) => cursor.seek(&past),
                None => break,
            }
        }
        Ok(listing)
    }
}
