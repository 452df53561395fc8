//! Starburst's long field manager (Biliris §2.2, §3.5): segments that double, or of the
//! largest size if the size is known, and copying everything behind a change of length.
//!
//! Owns: [`Starburst`], a descriptor of segments in memory (it is the root, never flushed).
//! Invariant: after a change of length all segments but the last have the largest size, since
//! a descriptor tells one pattern of growth only.

use anyhow::{Result, ensure};
use holdall_core::techniques::segment_tree::Slice;

use super::growth::{Growth, take_known};
use super::{LargeObject, Shape, check_range};
use crate::large::store::{MAX_SEGMENT_PAGES, Purpose, Volume};
use crate::mutation::{Mutation, is};

/// A long field.
#[derive(Debug)]
pub struct Starburst {
    volume: Volume,
    segments: Vec<Slice>,
    growth: Growth,
    size: u64,
}

impl Starburst {
    /// An empty field.
    pub fn new(volume: Volume) -> Self {
        Self { volume, segments: Vec::new(), growth: Growth::default(), size: 0 }
    }

    /// Index of the segment with byte `at`, and its first byte; the last one's for the end.
    fn find(&self, at: u64) -> (usize, u64) {
        let mut start = 0;
        for (index, segment) in self.segments.iter().enumerate() {
            if at < start + segment.len || index + 1 == self.segments.len() {
                return (index, start);
            }
            start += segment.len;
        }
        (0, 0)
    }

    fn read_range(&self, at: u64, mut buf: &mut [u8]) -> Result<()> {
        let (mut index, start) = self.find(at);
        let mut inside = at - start;
        while !buf.is_empty() {
            let segment = &self.segments[index];
            let n = (segment.len - inside).min(buf.len() as u64);
            let (now, later) = buf.split_at_mut(n as usize);
            // The target is a buffer that is being filled, whether the client's or ours: the
            // bytes before the range are taken, so the three steps are needed for both.
            self.volume.read_leaf(segment.reference, inside, now, Purpose::Client)?;
            (index, inside, buf) = (index + 1, 0, later);
        }
        Ok(())
    }

    /// Copies all from the segment of byte `at` on to new segments, with `new` at `at` in place
    /// of `gone` bytes, through the copy buffer.
    fn rebuild(&mut self, at: u64, gone: u64, new: &[u8]) -> Result<()> {
        self.growth.trim(&mut self.volume, self.segments.last());
        let full = MAX_SEGMENT_PAGES * self.volume.page() as u64;
        let (mut index, mut start) = self.find(at);
        if self.segments[..index].iter().any(|s| s.len != full) || is(Mutation::BurstFrom) {
            (index, start) = (0, 0);
        }
        let size = self.size - gone + new.len() as u64;
        let segments = take_known(&mut self.volume, size - start)?;
        let mut to = start;
        for segment in &segments {
            self.copy(segment, to, at, gone, new)?;
            to += segment.len;
        }
        let page = self.volume.page() as u64;
        for old in self.segments.drain(index..) {
            self.volume.free_leaf(old.reference, old.pages(page));
        }
        self.segments.extend(segments);
        self.size = size;
        Ok(self.volume.end_operation(None)?)
    }

    /// Writes a new segment, whose first byte is byte `to` of the changed field, through the copy
    /// buffer.
    fn copy(&self, segment: &Slice, to: u64, at: u64, gone: u64, new: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < segment.len {
            let mut buf = vec![0; self.piece().min(segment.len - done) as usize];
            self.fill(to + done, at, gone, new, &mut buf)?;
            let (page, n) = (self.volume.page() as u64, buf.len() as u64);
            self.volume.write_leaf(segment.reference + done / page, buf)?;
            done += n;
        }
        Ok(())
    }

    /// Bytes that are copied at once (§3.5).
    fn piece(&self) -> u64 {
        let buffer = self.volume.config().copy_buffer as u64;
        if is(Mutation::BurstBuffer) { 2 * buffer } else { buffer }
    }

    /// The bytes of the changed field from `from` on.
    fn fill(&self, from: u64, at: u64, gone: u64, new: &[u8], buf: &mut [u8]) -> Result<()> {
        let end = from + buf.len() as u64;
        let behind = at + new.len() as u64;
        let place = |b: u64| (b.clamp(from, end) - from) as usize;
        let (before, rest) = buf.split_at_mut(place(at));
        let (inside, after) = rest.split_at_mut(place(behind) - before.len());
        if !before.is_empty() {
            self.read_range(from, before)?;
        }
        if !inside.is_empty() {
            let skip = (from.max(at) - at) as usize;
            inside.copy_from_slice(&new[skip..skip + inside.len()]);
        }
        if !after.is_empty() {
            self.read_range(from.max(behind) - new.len() as u64 + gone, after)?;
        }
        Ok(())
    }
}

impl LargeObject for Starburst {
    fn size(&self) -> u64 {
        self.size
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.growth.append(&mut self.volume, &mut self.segments, bytes)?;
        self.size += bytes.len() as u64;
        Ok(self.volume.end_operation(None)?)
    }

    fn finish(&mut self) -> Result<()> {
        self.growth.trim(&mut self.volume, self.segments.last());
        Ok(self.volume.end_operation(None)?)
    }

    fn create_zeros(&mut self, len: u64) -> Result<()> {
        ensure!(self.size == 0, "the object has bytes");
        self.segments = take_known(&mut self.volume, len)?;
        self.size = len;
        let page = self.volume.page() as u64;
        let end = self.segments.iter().map(|s| s.end_page(page)).max();
        Ok(self.volume.leaf().reach(end.unwrap_or(0))?)
    }

    fn read(&mut self, at: u64, buf: &mut [u8]) -> Result<()> {
        check_range(at, buf.len() as u64, self.size)?;
        if buf.is_empty() { Ok(()) } else { self.read_range(at, buf) }
    }

    fn replace(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        check_range(at, bytes.len() as u64, self.size)?;
        if bytes.is_empty() {
            return Ok(());
        }
        // Segments with replaced bytes are shadowed whole, at their own size (§3.3, §3.5).
        self.finish()?;
        let page = self.volume.page() as u64;
        let (first, start) = self.find(at);
        let (last, _) = self.find(at + bytes.len() as u64 - 1);
        let mut to = start;
        for index in first..=last {
            let old = self.segments[index];
            let new = Slice::run(self.volume.leaf().take(old.pages(page))?, old.len);
            self.copy(&new, to, at, bytes.len() as u64, bytes)?;
            to += old.len;
            self.volume.free_leaf(old.reference, old.pages(page));
            self.segments[index] = new;
        }
        Ok(self.volume.end_operation(None)?)
    }

    fn insert(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        check_range(at, 0, self.size)?;
        match bytes {
            [] => Ok(()),
            _ if at == self.size => self.append(bytes),
            _ => self.rebuild(at, 0, bytes),
        }
    }

    fn delete(&mut self, at: u64, len: u64) -> Result<()> {
        check_range(at, len, self.size)?;
        if len == 0 { Ok(()) } else { self.rebuild(at, len, &[]) }
    }

    fn shape(&self) -> Result<Shape> {
        let page = self.volume.page() as u64;
        let pages: u64 = self.segments.iter().map(|s| s.pages(page)).sum();
        let leaf_pages = pages + self.growth.ahead(self.segments.last(), page);
        let segments = self.segments.len() as u64;
        Ok(Shape { size: self.size, segments, leaf_pages, index_pages: 0, level: 1 })
    }

    fn check(&self) -> Result<()> {
        let shape = self.shape()?;
        ensure!(self.segments.iter().map(|s| s.len).sum::<u64>() == self.size, "size");
        let used = self.volume.used_pages();
        ensure!(used == (shape.leaf_pages, 0), "{used:?} pages taken, {shape:?}");
        Ok(())
    }

    fn volume(&self) -> &Volume {
        &self.volume
    }
}
