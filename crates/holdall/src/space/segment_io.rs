//! Reading segment data, checked.
//!
//! Owns: the checksum unit of 4 KiB (rule 22) and its lookup by place. Segment pages do not
//! pass through the pool: they are read straight into the caller's buffer where the range
//! covers whole units, and through a copy at its ragged ends (Biliris §3.2, the 3-step read).

use holdall_core::checksum::crc;
use holdall_core::page::PageKind;
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::space_info::SpaceInfo;
use holdall_core::{Error, PageNo, PageRead, PageRef, Result};
use holdall_io::Disk;

/// Bytes under one checksum.
pub const UNIT: usize = 4096;
/// Ranges up to this length are read in one step through a copy: a second read costs as much
/// as copying about so much.
const ONE_STEP: usize = 4 * UNIT;
/// Longer ranges are read and checked in pieces of this size, to stay in the cache.
const PIECE: usize = 256 * UNIT;

/// Where checksums come from.
pub(super) struct Source<'a, R: PageRead + ?Sized> {
    pub(super) pages: &'a R,
    pub(super) layout: &'a SpaceLayout,
    /// Checksums by unit that are in no info page yet.
    pub(super) own: &'a dyn Fn(u64) -> Option<u32>,
}

/// The info page of a stretch.
struct Current {
    first: u64,
    end: u64,
    space: u32,
    number: u32,
    bytes: PageRef,
}

/// Looks up checksums by place; remembers the last info page.
struct Checksums<'a, R: PageRead + ?Sized> {
    source: &'a Source<'a, R>,
    layout: &'a SpaceLayout,
    current: Option<Current>,
}

impl<R: PageRead + ?Sized> Checksums<'_, R> {
    /// The checksum of unit number `unit` of the volume.
    fn of(&mut self, unit: u64) -> Result<u32> {
        if let Some(own) = (self.source.own)(unit) {
            return Ok(own);
        }
        let per_page = self.layout.units() as u64;
        let page = unit / per_page;
        if !self.current.as_ref().is_some_and(|c| c.first <= page && page < c.end) {
            self.current = Some(self.load(PageNo(page))?);
        }
        let Some(c) = &self.current else {
            return Err(Error::page(PageNo(page), "no checksums"));
        };
        let info = SpaceInfo::open(*self.layout, c.space, c.number, &*c.bytes)?;
        info.crc((page - c.first) as u32, (unit % per_page) as usize)
    }

    fn load(&self, page: PageNo) -> Result<Current> {
        let s = super::apply::stretch_of(self.layout, page)?;
        let pages = self.source.pages;
        let bytes = pages.page(self.layout.dir_page(s.space), PageKind::SpaceDir)?;
        let info = SpaceDir::open(*self.layout, s.space, &*bytes)?.info_page(s.number)?;
        if info.is_none() {
            return Err(Error::page(page, "segment data without an info page"));
        }
        let bytes = pages.page(info, PageKind::SpaceInfo)?;
        Ok(Current { first: s.first, end: s.end, space: s.space, number: s.number, bytes })
    }
}

/// Reads `buf.len()` bytes from `offset` bytes behind the start of page `start`, all inside
/// one run of segment pages, and checks every unit touched. Cost: one disk read up to 16
/// KiB, beyond that one per MiB and at most two more; the directory and info page.
///
/// # Errors
/// [`Error::Corrupt`] naming the page, [`Error::Io`].
pub fn read_segment<R: PageRead + ?Sized>(
    pages: &R,
    layout: &SpaceLayout,
    disk: &dyn Disk,
    start: PageNo,
    offset: u64,
    buf: &mut [u8],
) -> Result<()> {
    read(&Source { pages, layout, own: &|_| None }, disk, start, offset, buf)
}

pub(super) fn read<R: PageRead + ?Sized>(
    source: &Source<'_, R>,
    disk: &dyn Disk,
    start: PageNo,
    offset: u64,
    buf: &mut [u8],
) -> Result<()> {
    let mut sums = Checksums { source, layout: source.layout, current: None };
    let size = source.layout.page_size() as u64;
    let at = start.0.checked_mul(size).and_then(|at| at.checked_add(offset));
    let at = at.filter(|at| *at < 1 << 62);
    let at = at.ok_or_else(|| Error::page(start, "segment data lies beyond every volume"))?;
    let unit = UNIT as u64;
    if buf.len() <= ONE_STEP {
        return read_through_copy(&mut sums, disk, at, buf);
    }
    let head = ((unit - at % unit) % unit) as usize;
    let (first, rest) = buf.split_at_mut(head);
    read_through_copy(&mut sums, disk, at, first)?;
    let whole = rest.len() / UNIT * UNIT;
    let (middle, last) = rest.split_at_mut(whole);
    let mut place = at + head as u64;
    for piece in middle.chunks_mut(PIECE) {
        read_checked(&mut sums, disk, place, piece)?;
        place += piece.len() as u64;
    }
    read_through_copy(&mut sums, disk, place, last)
}

/// Checks the units of `pages` pages from `start` on without keeping the bytes.
///
/// # Errors
/// As [`read_segment`].
pub fn check_segment<R: PageRead + ?Sized>(
    pages: &R,
    layout: &SpaceLayout,
    disk: &dyn Disk,
    start: PageNo,
    count: u64,
) -> Result<()> {
    let source = Source { pages, layout, own: &|_| None };
    let mut sums = Checksums { source: &source, layout, current: None };
    let size = layout.page_size() as u64;
    let last = start.0.checked_add(count).filter(|end| *end <= PageNo::MAX.0 + 1);
    let last = last.ok_or_else(|| Error::page(start, format!("run of {count} pages")))?;
    let (mut at, end) = (start.0 * size, last * size);
    let mut piece = vec![0; PIECE.min((end - at) as usize)];
    while at < end {
        let n = piece.len().min((end - at) as usize);
        read_checked(&mut sums, disk, at, &mut piece[..n])?;
        at += n as u64;
    }
    Ok(())
}

fn read_through_copy<R: PageRead + ?Sized>(
    sums: &mut Checksums<'_, R>,
    disk: &dyn Disk,
    at: u64,
    buf: &mut [u8],
) -> Result<()> {
    if buf.is_empty() {
        return Ok(());
    }
    let unit = UNIT as u64;
    let from = at / unit * unit;
    let to = (at + buf.len() as u64).next_multiple_of(unit);
    let skip = (at - from) as usize;
    if skip == 0 && (to - from) as usize == buf.len() {
        return read_checked(sums, disk, from, buf);
    }
    let (mut few, mut many) = ([0; 2 * UNIT], Vec::new());
    let copy = match few.get_mut(..(to - from) as usize) {
        Some(few) => few,
        None => {
            many.resize((to - from) as usize, 0);
            &mut many[..]
        }
    };
    read_checked(sums, disk, from, copy)?;
    buf.copy_from_slice(&copy[skip..skip + buf.len()]);
    Ok(())
}

/// Reads whole units at byte `at` of the volume and checks them.
fn read_checked<R: PageRead + ?Sized>(
    sums: &mut Checksums<'_, R>,
    disk: &dyn Disk,
    at: u64,
    buf: &mut [u8],
) -> Result<()> {
    let size = sums.layout.page_size() as u64;
    disk.read_at(at, buf).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            Error::page(PageNo(at / size), "segment data lies beyond the end of the file")
        }
        _ => Error::io(format!("reading {} bytes of segment data at {at}", buf.len()), e),
    })?;
    for (i, unit) in buf.chunks(UNIT).enumerate() {
        let number = at / UNIT as u64 + i as u64;
        let (stored, real) = (sums.of(number)?, crc(unit));
        if stored != real {
            let page = PageNo(number * UNIT as u64 / size);
            let detail = format!("segment data has checksum {real:08x}, stored {stored:08x}");
            return Err(Error::page(page, detail));
        }
    }
    Ok(())
}
