//! How Starburst and EOS grow an object by appends (Biliris §2.2, §4.2): segments double in
//! size up to the largest, bytes go behind the last one in place, the last is trimmed.
//!
//! Owns: [`Growth`], how many pages of the last segment are taken ahead of need. Costs of an
//! append: reading the last page if it is not full, writing the pages with new bytes.

use anyhow::Result;
use holdall_core::techniques::segment_tree::Slice;

use crate::large::store::{MAX_SEGMENT_PAGES, Purpose, Volume};
use crate::mutation::{Mutation, is};

/// The space behind the last segment's bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Growth {
    /// Pages the last segment had when it was taken, 0 if none is growing.
    taken: u64,
}

impl Growth {
    /// Appends `bytes` to the object that has these segments.
    pub(super) fn append(
        &mut self,
        volume: &mut Volume,
        segments: &mut Vec<Slice>,
        mut bytes: &[u8],
    ) -> Result<()> {
        let page = volume.page() as u64;
        if let Some(last) = segments.last_mut() {
            let room = self.taken.max(last.pages(page)) * page - last.len;
            let (now, later) = bytes.split_at(room.min(bytes.len() as u64) as usize);
            write_behind(volume, last, now)?;
            bytes = later;
        }
        while !bytes.is_empty() {
            let pages = match segments.last() {
                Some(last) if is(Mutation::BurstDouble) => self.taken.max(last.pages(page)),
                Some(last) => 2 * self.taken.max(last.pages(page)),
                None => (bytes.len() as u64).div_ceil(page),
            };
            let pages = pages.min(MAX_SEGMENT_PAGES);
            let first = volume.leaf().take(pages)?;
            let n = (bytes.len() as u64).min(pages * page) as usize;
            let (now, later) = bytes.split_at(n);
            volume.write_leaf(first, now.to_vec())?;
            segments.push(Slice::run(first, n as u64));
            self.taken = pages;
            bytes = later;
        }
        Ok(())
    }

    /// Frees what the last segment has too much.
    pub(super) fn trim(&mut self, volume: &mut Volume, last: Option<&Slice>) {
        if is(Mutation::BurstTrim) {
            return;
        }
        let taken = std::mem::take(&mut self.taken);
        if let Some(last) = last {
            let used = last.pages(volume.page() as u64);
            if taken > used {
                volume.free_leaf(last.reference + used, taken - used);
            }
        }
    }

    /// Pages taken ahead of need.
    pub(super) fn ahead(&self, last: Option<&Slice>, page: u64) -> u64 {
        last.map_or(0, |last| self.taken.saturating_sub(last.pages(page)))
    }
}

/// Writes bytes behind those of a segment, in its own pages: nothing useful is overwritten.
pub(super) fn write_behind(volume: &Volume, segment: &mut Slice, bytes: &[u8]) -> Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let page = volume.page() as u64;
    let partial = segment.len % page;
    let from = segment.len - partial;
    let mut whole = vec![0; partial as usize];
    volume.read_leaf(segment.reference, from, &mut whole, Purpose::Update)?;
    whole.extend_from_slice(bytes);
    volume.write_leaf(segment.reference + from / page, whole)?;
    segment.len += bytes.len() as u64;
    Ok(())
}

/// Segments of the largest size for `len` bytes, the last one trimmed (§2.2, size known).
pub(super) fn take_known(volume: &mut Volume, len: u64) -> Result<Vec<Slice>> {
    let page = volume.page() as u64;
    let mut segments = Vec::new();
    let mut left = len;
    while left > 0 {
        let now = left.min(MAX_SEGMENT_PAGES * page);
        let pages = now.div_ceil(page);
        let first = volume.leaf().take(pages)?;
        segments.push(Slice::run(first, now));
        left -= now;
    }
    Ok(segments)
}
