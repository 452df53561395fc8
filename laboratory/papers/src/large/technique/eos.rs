//! EOS (Biliris §2.3): the engine's own segment tree, on the lab's volume.
//!
//! Owns: [`Eos`], a descriptor and the growth of its last segment. Inserting, deleting and
//! replacing are the engine's [`splice`] with the paper's parameters: no bytes in the
//! descriptor, 507 pairs in the root. Appends while the object is being built go on in the last
//! segment's own pages, as the paper has it; the engine, which never completes a page, does
//! not. Once there are index pages below the root, appends are the engine's.
//!
//! With [`Bytes::Shuffled`] bytes alone on a page beside an edit go along with what is written
//! if that saves a page (`Options::shuffle_bytes` of the tree; without it small thresholds
//! end in pages of a few bytes); the engine leaves them where they are.

use anyhow::{Result, ensure};
use holdall_core::techniques::segment_tree::{
    CheckOptions, Content, Descriptor, Options, Top, build, check, read_at, splice, stats,
};

use super::growth::{Growth, take_known};
use super::{LargeObject, Shape, check_range};
use crate::large::store::{MAX_SEGMENT_PAGES, Peek, Volume};
use crate::mutation::{Mutation, is};

/// What becomes of bytes that are alone on a page beside an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bytes {
    /// They stay, as in the engine.
    Stay,
    /// They go along if that saves a page.
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
        let threshold = if is(Mutation::EosThreshold) { 1 } else { threshold.max(1) };
        let descriptor = Descriptor { threshold, ..Descriptor::default() };
        Self { volume, bytes, descriptor, growth: Growth::default() }
    }

    fn options(&self) -> Options {
        Options {
            threshold: self.descriptor.threshold,
            shuffle_bytes: self.bytes == Bytes::Shuffled && !is(Mutation::EosShuffle),
            max_tail: 0,
            max_inline: self.volume.format().root_fanout(),
            max_segment_pages: MAX_SEGMENT_PAGES,
        }
    }

    fn splice(&mut self, at: u64, gone: u64, new: &[u8]) -> Result<()> {
        check_range(at, gone, self.descriptor.size())?;
        self.trim();
        let options = self.options();
        let (range, content) = (at..at + gone, Content::Bytes(new));
        self.descriptor = splice(&mut self.volume, &self.descriptor, range, content, &options)?;
        self.end()
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
            Top::Inline(slices) if slices.len() + new < most && !is(Mutation::EosGrow) => {
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
pub(super) fn shape_of(
    stats: &holdall_core::techniques::segment_tree::Stats,
    leaf_pages: u64,
) -> Shape {
    Shape {
        size: stats.size,
        segments: stats.segments,
        leaf_pages,
        index_pages: stats.nodes.saturating_sub(1),
        level: stats.levels.max(1),
    }
}
