//! The sizes that edits keep to, and writing bytes as segments within them.
//!
//! Owns: [`Limits`]: page size, threshold T, largest segment, longest tail. Every run a
//! store returns is checked here, and joined with the one before if they are neighbours.

use super::{Options, Pieces, SegmentRead, Segments, Slice, SliceKind};
use crate::{Error, PageNo, Result};

/// The sizes that edits keep to, in bytes and pages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub page: u64,
    /// T.
    pub threshold: u64,
    pub shuffle_bytes: bool,
    pub max_pages: u64,
    pub max_tail: u64,
}

impl Limits {
    /// The limits of an object whose descriptor says `threshold`.
    pub(super) fn for_threshold(
        threshold: u16,
        page_size: usize,
        options: &Options,
    ) -> Result<Self> {
        let page = page_size as u64;
        let max_pages = options.max_segment_pages;
        if page == 0 || u32::try_from(page).is_err() || max_pages == 0 {
            let detail = format!("segments of {max_pages} pages of {page} bytes");
            return Err(Error::Invalid(detail));
        }
        let threshold = if threshold == 0 { options.threshold } else { threshold };
        let threshold = u64::from(threshold).clamp(1, max_pages);
        let (shuffle_bytes, max_tail) = (options.shuffle_bytes, options.max_tail as u64);
        Ok(Self { page, threshold, shuffle_bytes, max_pages, max_tail })
    }

    /// Of `len` bytes at an object's end, how many stay inline.
    pub(super) fn tail_of(&self, len: u64) -> u64 {
        let rest = len % self.page;
        if rest <= self.max_tail { rest } else { 0 }
    }

    /// Bytes of the largest segment.
    pub(super) fn max_bytes(&self) -> u64 {
        self.max_pages.saturating_mul(self.page)
    }

    /// Writes the next `len` bytes as segments behind those in `out`.
    pub(super) fn write_runs<S: Segments + ?Sized>(
        &self,
        store: &mut S,
        pieces: &mut Pieces<'_>,
        mut len: u64,
        near: Option<PageNo>,
        out: &mut Vec<Slice>,
    ) -> Result<()> {
        while len > 0 {
            let now = len.min(self.max_bytes());
            let last = out.last().filter(|s| s.is_run());
            let near = last.map(|s| PageNo(s.end_page(self.page))).or(near);
            let runs = store.write_runs(pieces, now, near)?;
            self.check_written(&runs, now)?;
            runs.into_iter().for_each(|run| self.push_slice(out, run));
            len -= now;
        }
        Ok(())
    }

    /// Takes what is left of `pieces` into memory.
    pub(super) fn take_tail<S: SegmentRead + ?Sized>(
        &self,
        store: &S,
        pieces: &mut Pieces<'_>,
    ) -> Result<Vec<u8>> {
        let mut tail = vec![0; pieces.remaining() as usize];
        pieces.fill(store, &mut tail)?;
        Ok(tail)
    }

    fn check_written(&self, runs: &[Slice], len: u64) -> Result<()> {
        let whole = runs.iter().rev().skip(1).all(|s| s.ends_page(self.page));
        let plain = runs.iter().all(|s| s.is_run() && s.offset == 0);
        if whole && plain && super::node::sum(runs.iter().map(|s| s.len)) == Some(len) {
            return Ok(());
        }
        Err(Error::Invalid(format!("the segment store wrote {runs:?} for {len} bytes")))
    }

    /// Puts `slice` behind `out`, as one with the last if they are neighbours on disk.
    pub(super) fn push_slice(&self, out: &mut Vec<Slice>, slice: Slice) {
        if let Some(last) = out.last_mut()
            && last.flags == slice.flags
            && last.kind == slice.kind
        {
            let fits = last.pages(self.page) + slice.pages(self.page) <= self.max_pages;
            let follows = last.ends_page(self.page)
                && slice.offset == 0
                && last.end_page(self.page) == slice.reference;
            if slice.kind == SliceKind::Zero || (follows && fits) {
                last.len += slice.len;
                return;
            }
        }
        out.push(slice);
    }
}
