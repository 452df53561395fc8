//! Reading segment data, checked.
//!
//! Owns: the checksum unit of 4 KiB (rule 22) and its lookup by place. Segment pages do not
//! pass through the pool: they are read straight into the caller's buffer if the range
//! covers whole units, and through a copy at its ragged ends (Biliris §3.2, the 3-step read).
//! Every byte is checked: what the page cache holds may be read anew from the device at any
//! time.
//!
//! The bytes come from one of three places (docs/decisions/mechanisms.md): from the device past
//! the page cache, if a long read is new to that cache; from the mapping of the page cache;
//! or by a call. What the mapping gave is checked in the caller's copy; if it is wrong it is
//! read by call, whose answer counts.

use holdall_core::checksum::crc;
use holdall_core::space_dir::SpaceLayout;
use holdall_core::{Error, PageNo, PageRead, Result};
use holdall_io::Disk;
use sums::Checksums;

mod sums;

/// Bytes under one checksum.
pub const UNIT: usize = 4096;
/// Ranges up to this length are read in one step through a copy: a second read costs as much
/// as copying about this many bytes.
const ONE_STEP: usize = 4 * UNIT;
/// Longer ranges are read in pieces of this size: what the device delivers at once.
const BYTES_PER_PIECE: usize = 512 * UNIT;
/// What the system gives is checked in steps of this size: that of a call is then still in the
/// processor's caches.
const STEP: usize = 64 * UNIT;
/// Reads of this many bytes go past the page cache if they are new to it.
pub const LEAST_NEW: usize = 64 * UNIT;

/// Which places a read may take its bytes from beside a call, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadHow {
    /// The mapping of the page cache.
    pub mapped: bool,
    /// The device, past the page cache, in long reads of what is new there.
    pub direct: bool,
}

/// Where checksums come from.
pub(super) struct Source<'a, R: PageRead + ?Sized> {
    pub(super) pages: &'a R,
    pub(super) layout: &'a SpaceLayout,
    /// Checksums by unit that are in no info page yet.
    pub(super) own: &'a dyn Fn(u64) -> Option<u32>,
}

/// The byte of the volume that lies `offset` bytes behind the start of page `start`.
fn place(layout: &SpaceLayout, start: PageNo, offset: u64) -> Result<u64> {
    let at = start.0.checked_mul(layout.page_size() as u64).and_then(|at| at.checked_add(offset));
    let at = at.filter(|at| *at < 1 << 62);
    at.ok_or_else(|| Error::page(start, "segment data lies beyond every volume"))
}

/// Reads `buf.len()` bytes from `offset` bytes behind the start of page `start`, all inside
/// one run of segment pages, and checks every unit touched. Cost: one disk read up to 16
/// KiB, beyond that one per MiB and at most two more, none for what the mapping has; the
/// directory and info page.
///
/// # Errors
/// [`Error::Corrupt`] naming the page, [`Error::Io`].
pub fn read_segment<R: PageRead + ?Sized>(
    pages: &R,
    layout: &SpaceLayout,
    (disk, how): (&dyn Disk, ReadHow),
    start: PageNo,
    offset: u64,
    buf: &mut [u8],
) -> Result<()> {
    read(&Source { pages, layout, own: &|_| None }, (disk, how), start, offset, buf)
}

pub(super) fn read<R: PageRead + ?Sized>(
    source: &Source<'_, R>,
    (disk, how): (&dyn Disk, ReadHow),
    start: PageNo,
    offset: u64,
    buf: &mut [u8],
) -> Result<()> {
    let mut sums = Checksums::new(source, how);
    let at = place(source.layout, start, offset)?;
    if how.mapped && buf.len() <= ONE_STEP {
        disk.approach(at, buf.len());
        // Looked up while the processor waits for the bytes.
        let (first, end) = (at / UNIT as u64, (at + buf.len() as u64).div_ceil(UNIT as u64));
        sums.get(first, (end - first) as usize)?;
    }
    let done = if how.direct { read_new(&mut sums, disk, at, buf)? } else { 0 };
    read_disk(&mut sums, disk, at + done as u64, &mut buf[done..])
}

/// Reads whole units that the system has in its cache, without calls. Returns whether all of
/// them were there and right.
fn read_step<R: PageRead + ?Sized>(
    sums: &mut Checksums<'_, R>,
    disk: &dyn Disk,
    at: u64,
    step: &mut [u8],
) -> Result<bool> {
    let mut real = [0; STEP / UNIT];
    let real = &mut real[..step.len() / UNIT];
    if !disk.read_resident(at, step, real) {
        return Ok(false);
    }
    let (first, count) = (at / UNIT as u64, real.len());
    for (i, real) in real.iter().enumerate() {
        if sums.get(first + i as u64, count - i)? != *real {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads past the page cache, as long as it is new there. Returns how many bytes of `buf`
/// are filled.
fn read_new<R: PageRead + ?Sized>(
    sums: &mut Checksums<'_, R>,
    disk: &dyn Disk,
    at: u64,
    buf: &mut [u8],
) -> Result<usize> {
    let mut done = 0;
    while buf.len() - done >= LEAST_NEW {
        let place = at + done as u64;
        let skip = (place % UNIT as u64) as usize;
        let end = buf.len().min(done + BYTES_PER_PIECE - skip);
        // Units of which only a part is wanted are read with the others.
        let (mut before, mut behind) = ([0; UNIT], [0; UNIT]);
        let (first, rest) = buf[done..end].split_at_mut((UNIT - skip) % UNIT);
        let (middle, last) = rest.split_at_mut(rest.len() / UNIT * UNIT);
        let heads = if first.is_empty() { 0 } else { UNIT };
        let tails = if last.is_empty() { 0 } else { UNIT };
        let from = place - skip as u64;
        let mut parts = [&mut before[..heads], &mut *middle, &mut behind[..tails]];
        let mut real = [0; BYTES_PER_PIECE / UNIT];
        let real = &mut real[..parts.iter().map(|part| part.len()).sum::<usize>() / UNIT];
        if !disk.read_bulk(from, &mut parts, real) {
            break;
        }
        compare(sums, from, real)?;
        first.copy_from_slice(&before[UNIT - first.len()..]);
        last.copy_from_slice(&behind[..last.len()]);
        done = end;
    }
    Ok(done)
}

/// Fills `buf` with the bytes from byte `at` of the volume on.
fn read_disk<R: PageRead + ?Sized>(
    sums: &mut Checksums<'_, R>,
    disk: &dyn Disk,
    at: u64,
    buf: &mut [u8],
) -> Result<()> {
    let unit = UNIT as u64;
    if buf.len() <= ONE_STEP {
        return read_through_copy(sums, disk, at, buf);
    }
    let head = ((unit - at % unit) % unit) as usize;
    let (first, rest) = buf.split_at_mut(head);
    read_through_copy(sums, disk, at, first)?;
    let whole = rest.len() / UNIT * UNIT;
    let (middle, last) = rest.split_at_mut(whole);
    let mut place = at + head as u64;
    for piece in middle.chunks_mut(BYTES_PER_PIECE) {
        // The few bytes of the last unit come from where those before them came from.
        let mapped = read_checked(sums, disk, place, piece)?;
        place += piece.len() as u64;
        sums.how.mapped &= mapped || place < at + (head + whole) as u64;
    }
    read_through_copy(sums, disk, place, last)
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
    let mut sums = Checksums::new(&source, ReadHow::default());
    let size = layout.page_size() as u64;
    let last = start.0.checked_add(count).filter(|end| *end <= PageNo::MAX.0 + 1);
    let last = last.ok_or_else(|| Error::page(start, format!("run of {count} pages")))?;
    let (mut at, end) = (start.0 * size, last * size);
    let mut piece = vec![0; BYTES_PER_PIECE.min((end - at) as usize)];
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
        return read_checked(sums, disk, from, buf).map(drop);
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

/// Reads whole units at byte `at` of the volume and checks them. Returns whether the mapping had
/// all of them.
fn read_checked<R: PageRead + ?Sized>(
    sums: &mut Checksums<'_, R>,
    disk: &dyn Disk,
    at: u64,
    buf: &mut [u8],
) -> Result<bool> {
    let (mut place, mut mapped) = (at, true);
    for step in buf.chunks_mut(STEP) {
        // Each step asks anew: what is read by call counts towards the use of the mapping.
        if !(sums.how.mapped && read_step(sums, disk, place, step)?) {
            mapped = false;
            read_step_by_call(sums, disk, place, step)?;
        }
        place += step.len() as u64;
    }
    Ok(mapped)
}

/// Reads whole units by a call and checks them.
fn read_step_by_call<R: PageRead + ?Sized>(
    sums: &mut Checksums<'_, R>,
    disk: &dyn Disk,
    at: u64,
    step: &mut [u8],
) -> Result<()> {
    disk.read_at(at, step).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            let page = PageNo(at / sums.layout.page_size() as u64);
            Error::page(page, "segment data lies beyond the end of the file")
        }
        _ => Error::io(format!("reading {} bytes of segment data at {at}", step.len()), e),
    })?;
    check(sums, at, step)
}

/// Checks whole units that lie at byte `at` of the volume.
fn check<R: PageRead + ?Sized>(sums: &mut Checksums<'_, R>, at: u64, bytes: &[u8]) -> Result<()> {
    let mut real = [0; STEP / UNIT];
    for (i, step) in bytes.chunks(STEP).enumerate() {
        let units = step.chunks(UNIT);
        let real = &mut real[..units.len()];
        real.iter_mut().zip(units).for_each(|(real, unit)| *real = crc(unit));
        compare(sums, at + (i * STEP) as u64, real)?;
    }
    Ok(())
}

/// Compares the checksums of units that were read from byte `at` of the volume on.
fn compare<R: PageRead + ?Sized>(sums: &mut Checksums<'_, R>, at: u64, all: &[u32]) -> Result<()> {
    for (i, real) in all.iter().enumerate() {
        let number = at / UNIT as u64 + i as u64;
        let stored = sums.get(number, all.len() - i)?;
        if stored != *real {
            let page = PageNo(number * UNIT as u64 / sums.layout.page_size() as u64);
            let detail = format!("segment data has checksum {real:08x}, stored {stored:08x}");
            return Err(Error::page(page, detail));
        }
    }
    Ok(())
}
