//! The checksums of segment data, looked up by place.
//!
//! Owns: some checksums in a row, as an info page has them, and where they are looked for:
//! among those of the transaction, those looked up before, the state's info pages.

use super::super::apply::{Stretch, stretch_of};
use super::{ReadHow, STEP, Source, UNIT};
use holdall_core::page::PageKind;
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::space_info::SpaceInfo;
use holdall_core::{Error, PageNo, PageRead, Result};
use std::ops::Range;

/// Checksums looked up at a time: those of a step.
const SUMS_AT_ONCE: usize = STEP / UNIT;

/// Checksums of some units in a row, as one info page has them.
#[derive(Debug)]
struct Sums {
    /// The units whose checksums these are.
    known: Range<u64>,
    sums: [u32; SUMS_AT_ONCE],
}

impl Sums {
    /// None yet.
    const NONE: Self = Self { known: 0..0, sums: [0; SUMS_AT_ONCE] };

    /// The checksum of a unit, if it is among these.
    #[inline]
    fn get(&self, unit: u64) -> Option<u32> {
        let known = self.known.contains(&unit);
        known.then(|| self.sums.get((unit - self.known.start) as usize).copied()).flatten()
    }

    /// Looks up up to `wanted` checksums from `unit` on, in place of those it has.
    fn look_up<R: PageRead + ?Sized>(
        &mut self,
        pages: &R,
        layout: &SpaceLayout,
        unit: u64,
        wanted: usize,
    ) -> Result<()> {
        let page = page_of(layout, unit);
        let s = stretch_of(layout, page)?;
        let info = info_page(pages, layout, &s, page)?;
        let first = unit - s.first * layout.units() as u64;
        let wanted = &mut self.sums[..wanted.clamp(1, SUMS_AT_ONCE)];
        self.known = 0..0;
        let count = pages.with_page(info, PageKind::SpaceInfo, |bytes| {
            SpaceInfo::open(*layout, s.space, s.number, bytes)?.copy_crcs(first, wanted)
        })?;
        self.known = unit..unit + count as u64;
        Ok(())
    }
}

/// The page that a unit lies in.
fn page_of(layout: &SpaceLayout, unit: u64) -> PageNo {
    PageNo(unit / layout.units() as u64)
}

/// The info page of the stretch that `page` lies in.
fn info_page<R: PageRead + ?Sized>(
    pages: &R,
    layout: &SpaceLayout,
    s: &Stretch,
    page: PageNo,
) -> Result<PageNo> {
    let info = pages.with_page(layout.dir_page(s.space), PageKind::SpaceDir, |bytes| {
        SpaceDir::open(*layout, s.space, bytes)?.info_page(s.number)
    })?;
    if info.is_none() {
        return Err(Error::page(page, "segment data without an info page"));
    }
    Ok(info)
}

/// Looks up checksums by place, some at a time.
pub(super) struct Checksums<'a, R: PageRead + ?Sized> {
    source: &'a Source<'a, R>,
    pub(super) layout: &'a SpaceLayout,
    at_hand: Sums,
    pub(super) how: ReadHow,
}

impl<'a, R: PageRead + ?Sized> Checksums<'a, R> {
    pub(super) fn new(source: &'a Source<'a, R>, how: ReadHow) -> Self {
        Self { source, layout: source.layout, at_hand: Sums::NONE, how }
    }

    /// The checksum of unit number `unit` of the volume, the first of `wanted` in a row.
    pub(super) fn get(&mut self, unit: u64, wanted: usize) -> Result<u32> {
        if let Some(own) = (self.source.own)(unit) {
            return Ok(own);
        }
        if !self.at_hand.known.contains(&unit) {
            self.at_hand.look_up(self.source.pages, self.layout, unit, wanted)?;
        }
        let sum = self.at_hand.get(unit);
        sum.ok_or_else(|| Error::page(page_of(self.layout, unit), "no checksum"))
    }
}
