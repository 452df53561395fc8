//! EOS (Biliris §2.3): the engine's own segment tree, on the lab's volume.
//!
//! Owns: [`Eos`], a descriptor and the growth of its last segment. Inserting, deleting and
//! replacing are the engine's [`splice`] with the paper's parameters: no bytes in the
//! descriptor, 507 pairs in the root. Appends while the object is being built go on in the last
//! segment's own pages, as the paper has it; the engine, which never completes a page, does
//! not. Once there are index pages below the root, appends are the engine's.
//!
//! With [`Bytes::Shuffled`] bytes alone on a page beside an edit go along with what is written
//! where they fit (the byte reshuffling that EOS has beside that of pages, and without which
//! small thresholds end in pages of a few bytes); the engine leaves them where they are.

use std::ops::Range;

use anyhow::{Result, ensure};
use holdall_core::segment_tree::{
    CheckOptions, Content, Descriptor, Located, Options, Top, build, check, read_at, slices,
    splice, stats,
};

use super::growth::{Growth, take_known};
use super::{LargeObject, Shape, check_range};
use crate::large::store::{MAX_SEGMENT_PAGES, Peek, Purpose, Volume};

/// What becomes of the bytes before a cut that are alone on the cut's page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bytes {
    /// They stay, as in the engine.
    Stay,
    /// They go along where that takes no page more, so that the old page is free; so do those
    /// of a segment of one page behind.
    Shuffled,
}

/// An EOS object.
#[derive(Debug)]
pub struct Eos {
    volume: Volume,
    bytes: Bytes,
    descriptor: Descriptor,
    growth: Growth,
}

impl Eos {
    /// An empty object with threshold T in pages.
    pub fn new(volume: Volume, threshold: u16, bytes: Bytes) -> Self {
        let descriptor = Descriptor { threshold: threshold.max(1), ..Descriptor::default() };
        Self { volume, bytes, descriptor, growth: Growth::default() }
    }

    fn options(&self) -> Options {
        Options {
            threshold: self.descriptor.threshold,
            max_tail: 0,
            max_inline: self.volume.format().root_fanout(),
            max_segment_pages: MAX_SEGMENT_PAGES,
        }
    }

    fn splice(&mut self, at: u64, gone: u64, new: &[u8]) -> Result<()> {
        check_range(at, gone, self.descriptor.size())?;
        self.trim();
        let options = self.options();
        let (range, written) = self.reshuffled(at, gone, new)?;
        let content = Content::Bytes(written.as_deref().unwrap_or(new));
        self.descriptor = splice(&mut self.volume, &self.descriptor, range, content, &options)?;
        self.end()
    }

    fn segment(&self, at: u64) -> Result<Option<Located>> {
        Ok(slices(&self.volume, &self.descriptor.tree, at..at + 1).next().transpose()?)
    }

    /// The range to replace and the bytes to put there, where bytes around go along: those
    /// before it on its page, or on the last page of the segment before; and a segment of one
    /// page behind it. Only as long as what is written takes no page more, so that every step
    /// saves one; a step costs at most the read of its page.
    fn reshuffled(&self, at: u64, gone: u64, new: &[u8]) -> Result<(Range<u64>, Option<Vec<u8>>)> {
        let mut range = at..at + gone;
        if self.bytes == Bytes::Stay {
            return Ok((range, None));
        }
        let page = self.volume.page() as u64;
        // The rest of the page the range ends on is written anew anyway.
        let behind = match self.segment(range.end)? {
            Some(r) if r.start < range.end => {
                let used = (range.end - r.start) % page;
                if used > 0 { (page - used).min(r.end() - range.end) } else { 0 }
            }
            _ => 0,
        };
        let mut written = new.len() as u64 + behind;
        let fits = |written: u64, more: u64| {
            more > 0 && written > 0 && (written + more).div_ceil(page) == written.div_ceil(page)
        };
        for _ in 0..2 {
            let Some(left) = range.start.checked_sub(1) else { break };
            let Some(left) = self.segment(left)? else { break };
            let more = (range.start - left.start) % page;
            if !fits(written, more) {
                break;
            }
            written += more;
            range.start -= more;
            if range.start > left.start {
                break;
            }
        }
        if let Some(right) = self.segment(range.end + behind)?
            && right.start == range.end + behind
            && right.slice.len <= page
            && fits(written, right.slice.len)
        {
            range.end = right.end();
        }
        let after = at + gone;
        if range == (at..after) {
            return Ok((range, None));
        }
        let mut bytes = self.copy(range.start..at)?;
        bytes.extend_from_slice(new);
        bytes.extend(self.copy(after..range.end)?);
        Ok((range, Some(bytes)))
    }

    /// The bytes of a range, read for an update.
    fn copy(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let mut rest = bytes.as_mut_slice();
        for segment in slices(&self.volume, &self.descriptor.tree, range.clone()) {
            let segment = segment?;
            let from = range.start.max(segment.start);
            let (now, later) = rest.split_at_mut((range.end.min(segment.end()) - from) as usize);
            let reference = segment.slice.reference;
            self.volume.read_leaf(reference, from - segment.start, now, Purpose::Update)?;
            rest = later;
        }
        Ok(bytes)
    }

    fn trim(&mut self) {
        if let Top::Inline(slices) = &self.descriptor.tree.top {
            self.growth.trim(&mut self.volume, slices.last());
        }
    }

    fn end(&mut self) -> Result<()> {
        let root = match self.descriptor.tree.top {
            Top::Inline(_) => None,
            Top::Root { node, .. } => Some(node),
        };
        Ok(self.volume.end_operation(root)?)
    }
}

impl LargeObject for Eos {
    fn size(&self) -> u64 {
        self.descriptor.size()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let most = self.volume.format().root_fanout();
        let size = self.size();
        // A doubling series of segments up to the largest, and whole ones behind it.
        let new = 16 + bytes.len() / (MAX_SEGMENT_PAGES as usize * self.volume.page());
        match &mut self.descriptor.tree.top {
            Top::Inline(slices) if slices.len() + new < most => {
                self.growth.append(&mut self.volume, slices, bytes)?;
                self.descriptor.tree.size += bytes.len() as u64;
                self.end()
            }
            _ => self.splice(size, 0, bytes),
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.trim();
        self.end()
    }

    fn create_zeros(&mut self, len: u64) -> Result<()> {
        ensure!(self.size() == 0, "the object has bytes");
        let segments = take_known(&mut self.volume, len)?;
        let page = self.volume.page() as u64;
        let end = segments.iter().map(|s| s.end_page(page)).max();
        self.volume.leaf().reach(end.unwrap_or(0))?;
        let inline = self.options().max_inline;
        self.descriptor.tree = build(&mut self.volume, segments, inline)?;
        self.end()
    }

    fn read(&mut self, at: u64, buf: &mut [u8]) -> Result<()> {
        check_range(at, buf.len() as u64, self.size())?;
        Ok(read_at(&self.volume, &self.descriptor, at, buf)?)
    }

    fn replace(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.splice(at, bytes.len() as u64, bytes)
    }

    fn insert(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.splice(at, 0, bytes)
    }

    fn delete(&mut self, at: u64, len: u64) -> Result<()> {
        self.splice(at, len, &[])
    }

    fn shape(&self) -> Result<Shape> {
        let page = self.volume.page();
        let stats = stats(&Peek(&self.volume), &self.descriptor, page)?;
        let ahead = match &self.descriptor.tree.top {
            Top::Inline(slices) => self.growth.ahead(slices.last(), page as u64),
            Top::Root { .. } => 0,
        };
        Ok(shape_of(&stats, stats.pages + ahead))
    }

    fn check(&self) -> Result<()> {
        let options = CheckOptions {
            page_size: self.volume.page(),
            threshold: self.descriptor.threshold,
            max_segment_pages: MAX_SEGMENT_PAGES,
            max_inline: self.options().max_inline,
            max_tail: 0,
        };
        let report = check(&Peek(&self.volume), &self.descriptor, &options)?;
        let damage: Vec<_> = report.problems.iter().filter(|p| p.is_damage()).collect();
        ensure!(damage.is_empty(), "{damage:?}");
        check_pages(&self.volume, &self.shape()?, self.root_pages())
    }

    fn volume(&self) -> &Volume {
        &self.volume
    }
}

impl Eos {
    fn root_pages(&self) -> u64 {
        u64::from(matches!(self.descriptor.tree.top, Top::Root { .. }))
    }
}

/// Whether the pages taken are those of the structure; the root of a large tree is a page of
/// the index area.
pub(super) fn check_pages(volume: &Volume, shape: &Shape, root_pages: u64) -> Result<()> {
    let used = volume.used_pages();
    let wanted = (shape.leaf_pages, shape.index_pages + root_pages);
    ensure!(used == wanted, "pages taken {used:?}, the structure has {wanted:?}");
    Ok(())
}

/// The shape of a tree of the engine: its root node, if any, is the paper's root; so is the
/// descriptor's list if there is none.
pub(super) fn shape_of(stats: &holdall_core::segment_tree::Stats, leaf_pages: u64) -> Shape {
    Shape {
        size: stats.size,
        segments: stats.segments,
        leaf_pages,
        index_pages: stats.nodes.saturating_sub(1),
        level: stats.levels.max(1),
    }
}
