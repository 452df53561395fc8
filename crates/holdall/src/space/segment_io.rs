//! Reading segment data, checked.
//!
//! Owns: the checksum unit of 4 KiB (rule 22) and its lookup by place. Segment pages do not
//! pass through the pool: they are read straight into the caller's buffer where the range
//! covers whole units, and through a copy at its ragged ends (Biliris §3.2, the 3-step read).
//! Every byte that comes from the disk is checked: what the page cache holds may be read
//! anew from the device at any time. What was checked may stay in memory
//! ([`Units`]), from where it is given out again to who demands the same checksum.
//!
//! A read of up to 64 KiB asks the mapping of the page cache, then units in memory, then the
//! disk. A longer one reads past the page cache what is new there; what is not, from the mapping
//! where the page cache has its first byte, else from units or by calls. What the mapping gave is
//! checked in the caller's copy; where it is wrong it is read by call, whose answer counts.

use super::InfoPages;
use crate::pager::Units;
use crate::stream;
use holdall_core::checksum::crc;
use holdall_core::space_dir::SpaceLayout;
use holdall_core::{Error, PageNo, PageRead, Result};
use holdall_io::Disk;
use sums::Checksums;

mod sums;

pub use sums::Sums;

/// Bytes under one checksum.
pub const UNIT: usize = 4096;
/// Ranges up to this length are read in one step through a copy: a second read costs as much
/// as copying about so much.
const ONE_STEP: usize = 4 * UNIT;
/// Longer ranges are read in pieces of this size.
const PIECE: usize = 256 * UNIT;
/// Asked for before the first piece is read; then the system has seen that reads follow one
/// another.
const FIRST: usize = 8 * PIECE;
/// What is in the page cache is read and checked in steps of this size, so that it is
/// still in the processor's when it is checked.
const STEP: usize = 64 * UNIT;
/// What goes to memory much larger than the caches is read and checked in parts of this size,
/// in the processor's nearest cache.
const NEAR: usize = 4 * UNIT;
/// Reads of so much go past the page cache where they are new to it.
pub const LEAST_NEW: usize = 64 * UNIT;
/// So much is read past it at a time.
const MOST_NEW: usize = PIECE;
/// Reads of up to so many units look for each of them in memory.
const SHORT: usize = 16;
/// Bytes in memory that are worth a call less and one more: what lies around fewer is read in
/// one.
const WORTH: usize = 4 * UNIT;

/// Ranges up to this length are looked for first in the page cache, without a call of the
/// system, longer ones when a call found their first byte there: a look in vain may cost some
/// microseconds.
const MAPPED: usize = SHORT * UNIT;

/// Where segment data may lie in memory.
#[derive(Debug, Clone, Copy)]
pub struct InMemory<'a> {
    /// Data that was read before.
    pub units: &'a Units,
    /// Whether to read what is in the page cache without calls.
    pub mapped: bool,
    /// Whether long reads of what is new to that cache go past it.
    pub direct: bool,
    /// Whether it is read to memory much larger than the processor's caches.
    pub streamed: bool,
    /// Info pages of the state whose data it is.
    pub infos: &'a InfoPages,
    /// Checksums that [`approach`] looked up for this read.
    pub known: Option<&'a Sums>,
}

/// Where checksums come from.
pub(super) struct Source<'a, R: PageRead + ?Sized> {
    pub(super) pages: &'a R,
    pub(super) layout: &'a SpaceLayout,
    /// Checksums by unit that are in no info page yet.
    pub(super) own: &'a dyn Fn(u64) -> Option<u32>,
    /// Where data may lie in memory, if it is looked for there.
    pub(super) memory: Option<InMemory<'a>>,
}

/// Begins a short read of what the system may have in its cache: has its first bytes brought
/// closer and, while they come, looks up its checksums in `pages`, which are those at hand.
/// Returns whether it did; where not, pages are not at hand, or the read will tell what is
/// wrong.
///
/// The caller has its pin before the bytes are asked for: to take one is to wait for all that
/// the processor was asked before, and the first of these bytes takes it long to find.
pub fn approach<R: PageRead + ?Sized>(
    pages: &R,
    layout: &SpaceLayout,
    (disk, infos): (&dyn Disk, &InfoPages),
    (start, offset): (PageNo, u64),
    (len, sums): (usize, &mut Sums),
) -> bool {
    if len == 0 || len > MAPPED {
        return false;
    }
    let Ok(at) = place(layout, start, offset) else { return false };
    disk.approach(at, len);
    let (first, wanted) = units_of(at, len);
    sums.look_up((pages, Some(infos)), layout, first, wanted).is_ok()
}

/// The first unit of `len` bytes from byte `at` of the volume on, and how many they touch.
fn units_of(at: u64, len: usize) -> (u64, usize) {
    let first = at / UNIT as u64;
    (first, ((at + len as u64).div_ceil(UNIT as u64) - first) as usize)
}

/// The byte of the volume that lies `offset` bytes behind the start of page `start`.
fn place(layout: &SpaceLayout, start: PageNo, offset: u64) -> Result<u64> {
    let at = start.0.checked_mul(layout.page_size() as u64).and_then(|at| at.checked_add(offset));
    let at = at.filter(|at| *at < 1 << 62);
    at.ok_or_else(|| Error::page(start, "segment data lies beyond every volume"))
}

/// Reads `buf.len()` bytes from `offset` bytes behind the start of page `start`, all inside
/// one run of segment pages, and checks every unit touched. Cost: one disk read up to 16
/// KiB, beyond that one per MiB and at most two more (calls of 256 KiB where the system has
/// the bytes in its cache), none for what is in `units`; the directory and info page.
///
/// # Errors
/// [`Error::Corrupt`] naming the page, [`Error::Io`].
pub fn read_segment<R: PageRead + ?Sized>(
    pages: &R,
    layout: &SpaceLayout,
    (disk, memory): (&dyn Disk, Option<InMemory<'_>>),
    start: PageNo,
    offset: u64,
    buf: &mut [u8],
) -> Result<()> {
    read(&Source { pages, layout, own: &|_| None, memory }, disk, start, offset, buf)
}

pub(super) fn read<R: PageRead + ?Sized>(
    source: &Source<'_, R>,
    disk: &dyn Disk,
    start: PageNo,
    offset: u64,
    buf: &mut [u8],
) -> Result<()> {
    let mut sums = Checksums::new(source);
    let at = place(source.layout, start, offset)?;
    match source.memory {
        Some(memory) if !buf.is_empty() => {
            let short = memory.mapped && buf.len() <= MAPPED;
            if short && read_mapped(&mut sums, disk, at, buf)? {
                return Ok(());
            }
            read_through(&mut sums, memory, disk, at, buf)
        }
        _ => read_disk(&mut sums, disk, at, buf),
    }
}

/// Reads what the system has in its cache, without calls. Returns whether all of it was there
/// and right; what was not is to be read by other ways, which tell what is wrong with it.
fn read_mapped<R: PageRead + ?Sized>(
    sums: &mut Checksums<'_, R>,
    disk: &dyn Disk,
    at: u64,
    buf: &mut [u8],
) -> Result<bool> {
    if sums.known.is_none() {
        disk.approach(at, buf.len());
        let (first, wanted) = units_of(at, buf.len());
        // Looked up now, while the processor waits for the data.
        sums.of(first, wanted)?;
    }
    let mut done = 0;
    while done < buf.len() {
        let (place, left) = (at + done as u64, buf.len() - done);
        let skip = (place % UNIT as u64) as usize;
        let whole = left / UNIT * UNIT;
        let found = if skip == 0 && whole > 0 {
            let units = &mut buf[done..done + whole];
            done += whole;
            disk.read_resident(place, units) && is_right(sums, place, units)?
        } else {
            let (mut unit, n) = ([0; UNIT], left.min(UNIT - skip));
            let from = place - skip as u64;
            let found = disk.read_resident(from, &mut unit) && is_right(sums, from, &unit)?;
            buf[done..done + n].copy_from_slice(&unit[skip..skip + n]);
            done += n;
            found
        };
        if !found {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads whole units that the system has in its cache, without calls. Returns whether all of
/// them were there and right.
fn read_step<R: PageRead + ?Sized>(
    sums: &mut Checksums<'_, R>,
    disk: &dyn Disk,
    at: u64,
    step: &mut [u8],
) -> Result<bool> {
    // Whether a stretch is resident is asked sooner for the step than for small parts of it.
    Ok(sums.streamed && stream_step(sums, disk, at, step)?
        || disk.read_resident(at, step) && is_right(sums, at, step)?)
}

/// As [`read_step`], checked where it is near, and not looked at again where it goes.
fn stream_step<R: PageRead + ?Sized>(
    sums: &mut Checksums<'_, R>,
    disk: &dyn Disk,
    at: u64,
    step: &mut [u8],
) -> Result<bool> {
    let mut near = [0; NEAR];
    let mut place = at;
    for part in step.chunks_mut(NEAR) {
        let near = &mut near[..part.len()];
        if !(disk.read_resident(place, near) && is_right(sums, place, near)?) {
            return Ok(false);
        }
        stream::copy(near, part);
        place += part.len() as u64;
    }
    Ok(true)
}

/// Whether whole units that lie at byte `at` of the volume have their checksums.
fn is_right<R: PageRead + ?Sized>(
    sums: &mut Checksums<'_, R>,
    at: u64,
    bytes: &[u8],
) -> Result<bool> {
    let (first, count) = (at / UNIT as u64, bytes.len() / UNIT);
    for (i, unit) in bytes.chunks(UNIT).enumerate() {
        if sums.of(first + i as u64, count - i)? != crc(unit) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads what is in memory from there and the rest from the disk, and keeps of that what is
/// worth it. A long read looks there only where its first unit is there: what it costs is the
/// system's copy more than its calls.
fn read_through<'a, R: PageRead + ?Sized>(
    sums: &mut Checksums<'a, R>,
    memory: InMemory<'a>,
    disk: &dyn Disk,
    mut at: u64,
    mut buf: &mut [u8],
) -> Result<()> {
    let units = memory.units;
    if units_of(at, buf.len()).1 > SHORT {
        let done = if memory.direct { read_new(sums, disk, at, buf)? } else { 0 };
        (at, buf) = (at + done as u64, &mut buf[done..]);
        if buf.is_empty() {
            return Ok(());
        }
        if memory.mapped && disk.read_cached(at, &mut [0]) == 1 {
            // Cheaper than a copy of each unit, and there is no need to keep it twice.
            (sums.mapped, sums.streamed) = (true, memory.streamed);
            return read_disk(sums, disk, at, buf);
        }
        // What is left, where a part of it was read.
        let (first, count) = units_of(at, buf.len());
        sums.keep = units.wants_long(first, count).map(|how| (units, how));
        if units.is_empty() || !units.has(first, sums.of(first, count)?) {
            return read_disk(sums, disk, at, buf);
        }
    }
    read_missing(sums, units, disk, at, buf)
}

/// Looks for each unit in memory, and reads from the disk what is not there.
fn read_missing<'a, R: PageRead + ?Sized>(
    sums: &mut Checksums<'a, R>,
    units: &'a Units,
    disk: &dyn Disk,
    at: u64,
    buf: &mut [u8],
) -> Result<()> {
    let (first, count) = units_of(at, buf.len());
    let end = first + count as u64;
    // Where the bytes begin that are to be read, and those behind them that are here.
    let (mut missing, mut here) = (None, None);
    let mut done = 0;
    for number in first..end {
        let skip = (at + done as u64 - number * UNIT as u64) as usize;
        let next = buf.len().min(done + UNIT - skip);
        let sum = sums.of(number, (end - number) as usize)?;
        if units.copy(number, sum, skip, &mut buf[done..next]) {
            here = here.or(Some(done));
        } else {
            match (missing, here.take()) {
                (Some(from), Some(to)) if done - to >= WORTH => {
                    read_disk(sums, disk, at + from as u64, &mut buf[from..to])?;
                    missing = Some(done);
                }
                (None, _) => {
                    missing = Some(done);
                    if count <= SHORT {
                        sums.keep = units.wants(count).map(|how| (units, how));
                    }
                }
                // What is here in between is read again with its neighbours.
                (Some(_), _) => {}
            }
        }
        done = next;
    }
    match missing {
        Some(from) => {
            let to = here.unwrap_or(buf.len());
            read_disk(sums, disk, at + from as u64, &mut buf[from..to])
        }
        None => Ok(()),
    }
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
        let end = buf.len().min(done + MOST_NEW - skip);
        // Units of which only a part is wanted are read with the others.
        let (mut before, mut behind) = ([0; UNIT], [0; UNIT]);
        let (first, rest) = buf[done..end].split_at_mut((UNIT - skip) % UNIT);
        let (middle, last) = rest.split_at_mut(rest.len() / UNIT * UNIT);
        let heads = if first.is_empty() { 0 } else { UNIT };
        let tails = if last.is_empty() { 0 } else { UNIT };
        let from = place - skip as u64;
        let mut parts = [&mut before[..heads], &mut *middle, &mut behind[..tails]];
        if !disk.read_bulk(from, &mut parts) {
            break;
        }
        check(sums, from, &before[..heads])?;
        check(sums, from + heads as u64, middle)?;
        check(sums, from + (heads + middle.len()) as u64, &behind[..tails])?;
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
    if middle.len() > PIECE {
        // The system takes the first pieces for single reads and would wait for each before it
        // began the next. A hint: what is wrong shows in the read.
        let _ = disk.read_hint(place, middle.len().min(FIRST) as u64);
    }
    for piece in middle.chunks_mut(PIECE) {
        read_checked(sums, disk, place, piece)?;
        place += piece.len() as u64;
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
    let source = Source { pages, layout, own: &|_| None, memory: None };
    let mut sums = Checksums::new(&source);
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
    let mut done = 0;
    if sums.mapped || buf.len() > STEP {
        while done < buf.len() {
            let end = buf.len().min(done + STEP);
            let (step, place) = (&mut buf[done..end], at + done as u64);
            if sums.mapped && read_step(sums, disk, place, step)? {
                done = end;
                continue;
            }
            let got = disk.read_cached(at + done as u64, step) / UNIT * UNIT;
            if got == 0 {
                break;
            }
            check(sums, at + done as u64, &step[..got])?;
            done += got;
        }
    }
    let (at, rest) = (at + done as u64, &mut buf[done..]);
    if rest.is_empty() {
        return Ok(());
    }
    disk.read_at(at, rest).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            let page = PageNo(at / sums.layout.page_size() as u64);
            Error::page(page, "segment data lies beyond the end of the file")
        }
        _ => Error::io(format!("reading {} bytes of segment data at {at}", rest.len()), e),
    })?;
    check(sums, at, rest)
}

/// Checks whole units that lie at byte `at` of the volume.
fn check<R: PageRead + ?Sized>(sums: &mut Checksums<'_, R>, at: u64, bytes: &[u8]) -> Result<()> {
    let count = bytes.len().div_ceil(UNIT);
    for (i, unit) in bytes.chunks(UNIT).enumerate() {
        let number = at / UNIT as u64 + i as u64;
        let (stored, real) = (sums.of(number, count - i)?, crc(unit));
        if stored != real {
            let page = PageNo(number * UNIT as u64 / sums.layout.page_size() as u64);
            let detail = format!("segment data has checksum {real:08x}, stored {stored:08x}");
            return Err(Error::page(page, detail));
        }
        if let Some((units, how)) = sums.keep {
            units.keep(number, stored, unit, how);
        }
    }
    Ok(())
}
