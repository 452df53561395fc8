//! Editing any range of an object: one primitive, `splice`.
//!
//! Owns: which of the two forms an object has after an edit. The edit of segments itself is
//! the positional tree's (Biliris §2.3, EOS): untouched parts are not copied, pages are
//! written once.

use super::{Body, Head, ObjectLocation, ObjectWrite, Record, Shares, StoredHints};
use crate::segment_tree::{TreeRead, TreeWrite, tree_options};
use crate::space::Class;
use holdall_core::heap_page::max_record;
use holdall_core::segment_tree::{self, Content, Descriptor, MAY_HOLD_SHARED_RUNS, Options, Tree};
use holdall_core::{Error, Oid, PageRead, Result};
use std::ops::Range;

/// An object's size before and after an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resized {
    /// Bytes before.
    pub before: u64,
    /// Bytes after.
    pub after: u64,
}

impl ObjectWrite<'_> {
    /// Replaces the bytes `range` of an object by `content`. Insert, delete, replace, append
    /// and truncate are cases of it.
    ///
    /// Cost: the record; O(tree height) nodes; the new bytes, and copies of about T pages on
    /// either side at most (Biliris §4.4), whatever the object's size.
    ///
    /// # Errors
    /// [`Error::Range`] if the range is not inside the object; [`Error::Full`];
    /// [`Error::Invalid`] if the object would become too large.
    pub fn splice(&mut self, oid: Oid, range: Range<u64>, content: Content<'_>) -> Result<Resized> {
        let place = ObjectLocation::find(&*self.tx, self.handles, oid)?;
        self.splice_at(place, oid, range, content)
    }

    /// As [`ObjectWrite::splice`], for an object found before.
    ///
    /// # Errors
    /// As [`ObjectWrite::splice`].
    pub fn splice_at(
        &mut self,
        place: ObjectLocation,
        oid: Oid,
        range: Range<u64>,
        content: Content<'_>,
    ) -> Result<Resized> {
        self.splice_with(place, oid, range, content, 0)
    }

    /// Inserts shared runs, and the bytes around them, before byte `at`. Cost: as
    /// [`ObjectWrite::splice`]; the runs' bytes are not copied, but for runs of fewer than T
    /// pages at either end.
    ///
    /// # Errors
    /// As [`ObjectWrite::splice`].
    pub fn splice_shares(&mut self, oid: Oid, at: u64, shares: Shares) -> Result<Resized> {
        let Shares { mut head, slices, tail, flags, .. } = shares;
        if slices.is_empty() {
            head.extend_from_slice(&tail);
            return self.splice(oid, at..at, Content::Bytes(&head));
        }
        let content = Content::Staged { head: &head, slices, tail: &tail };
        let place = ObjectLocation::find(&*self.tx, self.handles, oid)?;
        self.splice_with(place, oid, at..at, content, flags)
    }

    /// `flags` are added to those of the descriptor.
    fn splice_with(
        &mut self,
        place: ObjectLocation,
        oid: Oid,
        range: Range<u64>,
        content: Content<'_>,
        flags: u8,
    ) -> Result<Resized> {
        let bytes = place.record(&*self.tx)?;
        let record = Record::parse(&bytes)?;
        let head = record.head_of_new_bytes()?;
        let head = head.changed(record.change.next(self.epoch), self.time_of_change(&head));
        let before = record.size()?;
        let (start, end) = (range.start, range.end);
        if start > end || end > before {
            return Err(Error::Range { object: oid.to_string(), start, end, size: before });
        }
        let more = content.len().and_then(|n| n.checked_add(before - (end - start)));
        let Some(after) = more else {
            return Err(Error::Invalid(format!("{oid} would become larger than an object can be")));
        };
        let fits = usize::try_from(after).is_ok_and(|n| self.fits_record(&head, n));
        let new = match (record.body, content) {
            (Body::Small(old), Content::Bytes(new)) if fits => {
                let range = start as usize..end as usize;
                let parts = [&old[..range.start], new, &old[range.end..]];
                head.small(oid, &parts.concat())
            }
            (Body::Small(old), content) => {
                // As a large object that so far has only a tail.
                let d = Descriptor {
                    flags: flags | self.hints.flags,
                    threshold: self.hints.threshold,
                    tree: Tree::empty(),
                    tail: old.to_vec(),
                };
                self.edit(oid, &head, &d, range, content)?
            }
            (Body::Large(d), content) => {
                let mut d = Descriptor::decode(d)?;
                d.flags |= flags;
                self.edit(oid, &head, &d, range, content)?
            }
        };
        drop(bytes);
        self.put_record(place, &new)?;
        Ok(Resized { before, after })
    }

    /// For an edit after which the object has `size` bytes.
    fn edit_options(&self, head: &Head<'_>, d: &Descriptor, size: u64) -> Options {
        let most = self.max_tail(head, d.flags, size);
        tree_options(self.tx.alloc().layout(), most, d.threshold)
    }

    /// Edits a large object and returns its new record: small again if it has become so.
    pub(super) fn edit(
        &mut self,
        oid: Oid,
        head: &Head<'_>,
        d: &Descriptor,
        range: Range<u64>,
        content: Content<'_>,
    ) -> Result<Vec<u8>> {
        let kept = d.size().saturating_sub(range.end.saturating_sub(range.start));
        let size = kept.saturating_add(content.len().unwrap_or(0));
        let options = self.edit_options(head, d, size);
        let threshold = d.threshold;
        let mut d = Descriptor { threshold: self.threshold_now(d, &options), ..d.clone() };
        let grows = range.start == d.size() && !content.is_empty();
        let mut store = TreeWrite { grows, ..self.tree(oid, d.flags) };
        d = segment_tree::splice(&mut store, &d, range, content, &options)
            .map_err(|e| name_object(e, oid))?;
        d.threshold = threshold;
        if d.tree.size == 0 {
            d.flags &= !MAY_HOLD_SHARED_RUNS;
        }
        // Hints of its own lie in the descriptor.
        let small = StoredHints::from_descriptor(&d) == self.hints
            && usize::try_from(d.size()).is_ok_and(|n| self.demotes(head, n));
        if !small {
            // Bytes that just fitted a record come as a tail that may be too long.
            let d = self.fit_tail(oid, head, d)?;
            return Ok(head.large(oid, &d));
        }
        let mut bytes = vec![0; d.size() as usize];
        segment_tree::read_at(&TreeRead(&*self.tx), &d, 0, &mut bytes)?;
        let mut store = self.tree(oid, d.flags);
        segment_tree::delete_all(&mut store, &d.tree)?;
        Ok(head.small(oid, &bytes))
    }

    /// An edit that shrinks the object joins no segments if pages run out: that may take
    /// 4 T + 3 pages, more than the reserve promises (rule 25).
    fn threshold_now(&self, d: &Descriptor, options: &Options) -> u16 {
        let own = if d.threshold == 0 { options.threshold } else { d.threshold };
        let shrinks = self.tx.class() == Class::Shrink;
        if shrinks && self.tx.alloc().is_short(4 * u64::from(own)) { 1 } else { own }
    }

    /// A large object becomes small again at three quarters of what a record holds, so that
    /// edits around the limit do not move its bytes each time.
    fn demotes(&self, head: &Head<'_>, len: usize) -> bool {
        head.record_len(len) <= max_record(self.tx.page_size()) / 4 * 3
    }
}

/// The tree does not know whose it is.
fn name_object(e: Error, oid: Oid) -> Error {
    match e {
        Error::Range { start, end, size, .. } => {
            Error::Range { object: oid.to_string(), start, end, size }
        }
        other => other,
    }
}
