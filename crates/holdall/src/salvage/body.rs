//! The bytes of an object, as far as they can be read.
//!
//! Owns no state. What is lost is named by range; everything else is staged in the new store.

use super::pages::Pages;
use crate::engine::Inner;
use crate::object::StagedPart;
use crate::segment_tree::{TreeRead, run_start};
use crate::space::{Stager, UNIT};
use crate::write::stager;
use holdall_core::segment_tree::{
    self, Descriptor, MAY_HOLD_SHARED_RUNS, SegmentRead, Slice, Visit,
};
use holdall_core::{Error, Oid, Result};
use std::ops::Range;

/// Bytes read at a time; a multiple of every size of a page.
const AT_ONCE: u64 = 1 << 20;

/// What was read of a large object.
#[derive(Debug, Default)]
pub(super) struct ReadBody {
    /// Its bytes, with zeros in place of those lost; none if it is not to be brought.
    pub(super) parts: Vec<StagedPart>,
    pub(super) lost: Vec<Range<u64>>,
    /// Why the first of them are.
    pub(super) why: String,
}

/// Reads a large object and stages it in the new store.
pub(super) struct Reading<'a, 'g> {
    pub(super) pages: &'a Pages<'g>,
    pub(super) new: &'a Inner,
    /// Whether to go on.
    pub(super) check: &'a dyn Fn() -> Result<()>,
    /// Objects with lost bytes are brought too.
    pub(super) partial: bool,
    /// What is read may be of an earlier state, whose pages others have used since.
    pub(super) doubt: bool,
}

impl Reading<'_, '_> {
    /// Reads all of an object. `most_tail`: most bytes at its end that are left to its record. Cost: each
    /// node and each page of it once.
    ///
    /// # Errors
    /// Those of the new store; [`Error::Cancelled`].
    pub(super) fn read(&self, oid: Oid, d: &Descriptor, most_tail: usize) -> Result<ReadBody> {
        let mut body = ReadBody::default();
        let slices = self.slices(d, &mut body);
        let mut out = Out { new: self.new, size: d.size(), parts: Vec::new(), open: None };
        let mut end = 0;
        for (start, slice) in slices {
            if start != end {
                // A node below which they lie is lost, or says something else than its parent.
                body.lose(end.min(start)..start, "what leads to them is lost");
                out.zeros(start.saturating_sub(end))?;
            }
            self.copy(oid, d, (start, &slice), &mut body, &mut out)?;
            end = start + slice.len;
            if !self.partial && !body.lost.is_empty() {
                out.parts.clear();
                out.open = None;
            }
        }
        if end != d.tree.size {
            body.lose(end..d.tree.size, "what leads to them is lost");
            out.zeros(d.tree.size.saturating_sub(end))?;
        }
        if self.partial || body.lost.is_empty() {
            out.bytes(&d.tail)?;
            body.parts = out.finish(most_tail)?;
        }
        Ok(body)
    }

    /// The slices that can be found, in order, none over another.
    fn slices(&self, d: &Descriptor, body: &mut ReadBody) -> Vec<(u64, Slice)> {
        let mut slices: Vec<(u64, Slice)> = Vec::new();
        let mut end = 0;
        // The visitor has no errors.
        let _ = segment_tree::walk(&TreeRead(self.pages), &d.tree, &mut |visit| {
            match visit {
                Visit::Slice { start, slice } => {
                    let behind = start.checked_add(slice.len);
                    if start >= end && behind.is_some_and(|behind| behind <= d.tree.size) {
                        slices.push((start, slice));
                        end = start + slice.len;
                    }
                }
                Visit::Unreadable { error, .. } if body.why.is_empty() => {
                    body.why = reason(&error);
                }
                Visit::Unreadable { .. } | Visit::Node { .. } => {}
            }
            Ok(())
        });
        slices
    }

    fn copy(
        &self,
        oid: Oid,
        d: &Descriptor,
        (start, slice): (u64, &Slice),
        body: &mut ReadBody,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let keep = |body: &ReadBody| self.partial || body.lost.is_empty();
        if !slice.is_run() {
            return if keep(body) { out.zeros(slice.len) } else { Ok(()) };
        }
        if self.is_others(oid, d, slice) {
            body.lose(start..start + slice.len, "their pages belong to another object now");
            return if keep(body) { out.zeros(slice.len) } else { Ok(()) };
        }
        // What claims to lie behind the file's end is not looked for.
        let len = slice
            .len
            .min(self.pages.bytes_behind(slice.reference).saturating_sub(slice.offset.into()));
        let mut buffer = vec![0; AT_ONCE.min(len) as usize];
        let (mut at, shift) = (0, u64::from(slice.offset) % UNIT as u64);
        while at < len {
            let n = (AT_ONCE - if at == 0 { shift } else { 0 }).min(len - at);
            (self.check)()?;
            let part = &mut buffer[..n as usize];
            if let Err(e) = TreeRead(self.pages).read_run(slice, at, part) {
                self.read_units((start, slice), at, part, body);
                if body.why.is_empty() {
                    body.why = reason(&e);
                }
            }
            if keep(body) {
                out.bytes(part)?;
            }
            at += n;
        }
        if len < slice.len {
            body.lose(start + len..start + slice.len, "they lie beyond the end of the file");
            return if keep(body) { out.zeros(slice.len - len) } else { Ok(()) };
        }
        Ok(())
    }

    /// Reads what has a checksum of its own one by one; the rest is zeros.
    fn read_units(
        &self,
        (start, slice): (u64, &Slice),
        at: u64,
        to: &mut [u8],
        body: &mut ReadBody,
    ) {
        let mut done = 0;
        while done < to.len() {
            let inside = (u64::from(slice.offset) + at + done as u64) % UNIT as u64;
            let n = (UNIT - inside as usize).min(to.len() - done);
            let unit = &mut to[done..done + n];
            if let Err(e) = TreeRead(self.pages).read_run(slice, at + done as u64, unit) {
                unit.fill(0);
                let first = start + at + done as u64;
                body.lose(first..first + n as u64, &reason(&e));
            }
            done += n;
        }
    }

    /// Whether the pages of a slice were given to another object since: only of what is doubtful anyway,
    /// since the note is a hint.
    fn is_others(&self, oid: Oid, d: &Descriptor, slice: &Slice) -> bool {
        let shared = d.flags & MAY_HOLD_SHARED_RUNS != 0;
        let own = u64::from(oid.page) << 16 | u64::from(oid.slot);
        let noted = || self.pages.noted_owner(run_start(slice)?);
        self.doubt && !shared && noted().is_ok_and(|owner| owner != 0 && owner != own)
    }
}

impl ReadBody {
    fn lose(&mut self, range: Range<u64>, why: &str) {
        if self.why.is_empty() {
            why.clone_into(&mut self.why);
        }
        match self.lost.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ if range.is_empty() => {}
            _ => self.lost.push(range),
        }
    }
}

/// Why bytes cannot be read.
fn reason(e: &Error) -> String {
    match e {
        Error::Corrupt { place, detail } => format!("{place}: {detail}"),
        e => e.to_string(),
    }
}

/// The object on its way into the new store.
struct Out<'a> {
    new: &'a Inner,
    size: u64,
    parts: Vec<StagedPart>,
    open: Option<Stager>,
}

impl Out<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.open.get_or_insert_with(|| stager(self.new, self.size)).write(bytes)
    }

    /// Bytes that were never written, or are lost: from a page on they take none.
    fn zeros(&mut self, len: u64) -> Result<()> {
        let least = self.new.layout.page_size() as u64;
        if len < least {
            return self.bytes(&vec![0; len as usize]);
        }
        self.close(0)?;
        match self.parts.last_mut() {
            Some(StagedPart::Zeros(before)) => *before += len,
            _ => self.parts.push(StagedPart::Zeros(len)),
        }
        Ok(())
    }

    fn close(&mut self, most_tail: usize) -> Result<()> {
        if let Some(open) = self.open.take() {
            self.parts.push(StagedPart::Bytes(open.finish(most_tail)?.into()));
        }
        Ok(())
    }

    fn finish(mut self, most_tail: usize) -> Result<Vec<StagedPart>> {
        self.close(most_tail)?;
        Ok(self.parts)
    }
}
