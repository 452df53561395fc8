//! Recovery: replaying the log over the volume.
//!
//! Owns: what happens between reading the superblock and the first snapshot, but for the
//! records ([`replay`]). Runs alone.
//! The argument that any torn page ends as its last version is in docs/recovery.md.

mod blocks;
mod lenient;
pub(super) mod replay;

pub use lenient::{Remade, remake, without_log};

use super::direct;
use super::volume::{Volume, slots_are_whole};
use crate::log::{self, Expect, Scan, io_error};
use holdall_core::checksum::crc;
use holdall_core::log_format::{BLOCK, Part, Parts};
use holdall_core::mutation::{self, Mutation};
use holdall_core::space_dir::SpaceLayout;
use holdall_core::superblock::Superblock;
use holdall_core::{Error, Lsn, PageNo, PageRun, Result};
use holdall_io::{Disk, Storage};
use replay::{Data, Replay, Segment};
use std::sync::Arc;

/// What recovery found and did.
#[derive(Debug, Clone, Default)]
pub struct Recovered {
    /// Commits replayed.
    pub commits: u64,
    /// Pages written in place.
    pub pages: u64,
    /// Bytes of log read.
    pub log_bytes: u64,
    /// The log that was read.
    pub log: Option<Arc<dyn Disk>>,
}

/// Bytes that deleting and closing need after a recovery if everything that changes is written
/// to a new place: stores on a full Btrfs were emptied once 8 MiB were free, not with 2.
const AFTERWARDS: u64 = 6 << 20;

/// Brings the volume to its last durable commit. Afterwards the log holds nothing that
/// matters, the epoch is raised and the LSN is one lap ahead (rule 2). Cost: one pass over
/// the log, one read and one write of each page it names, at most five syncs; nothing
/// if the store was closed cleanly.
///
/// # Errors
/// [`Error::Corrupt`] if log or volume contradict what was acknowledged, [`Error::Io`].
pub fn recover(storage: &dyn Storage, volume: &Volume) -> Result<Recovered> {
    let mut room = 1 << 20;
    replayed(storage, volume, &mut room).map_err(|e| match e {
        // A full disk: nothing is lost, and the same log is found once there is room.
        Error::Full(lacks) => Error::NoRoom {
            what: format!("{} cannot be recovered for writing", storage.name()),
            lacks,
            advice: format!(
                "free {} MiB on the disk and open it again, or open it for reading, which writes \
                 nothing",
                (room + AFTERWARDS).div_ceil(1 << 20)
            ),
        },
        e => e,
    })
}

/// As [`recover`]. Into `room` goes how much there must be for it on a file system that writes
/// everything to a new place.
fn replayed(storage: &dyn Storage, volume: &Volume, room: &mut u64) -> Result<Recovered> {
    let sb = volume.superblock();
    let Some(disk) = log::place::to_recover(storage, &sb)? else {
        volume.complete_creation()?;
        volume.renew_superblock()?;
        return Ok(Recovered::default());
    };
    let length = disk.len().map_err(|e| Error::io("reading the log's length", e))?;
    let expect = Expect::of(&sb);
    // What a checkpoint was about to bring in place, it found durable.
    let doubtful = |end: Lsn| end > sb.in_place || mutation::is(Mutation::R13DirectDoubt);
    let scan = log::scan(&*disk, &expect, &mut |end, payload| {
        let trusted = !doubtful(end) || mutation::is(Mutation::R13DirectHolds);
        Ok(trusted || direct::holds(volume, payload)?)
    })?;
    refuse_contradictions(storage, &sb, &scan)?;
    volume.renew_superblock()?;
    let replay = Replay::read(volume, &scan.groups, sb.log_bytes.min(length))?;
    *room += replay.bytes_to_write(volume)? + scan.groups.last().map_or(0, |g| g.len() as u64);
    let flagged_clean = mutation::is(Mutation::R05Flag) && sb.epoch <= 1;
    if !scan.groups.is_empty() && !flagged_clean {
        // First the log, then what is derived from it: a second crash must find as much.
        let last = scan.groups.last().filter(|_| doubtful(scan.end));
        let in_place = match last {
            Some(_) if mutation::is(Mutation::R07InPlace) => true,
            Some(payload) => direct::write_again(volume, payload)?,
            None => false,
        };
        if !mutation::is(Mutation::R07Harden) {
            log::harden(&*disk, sb.log_bytes, &scan)?;
        }
        volume.write_superblock(|s| s.in_place = s.in_place.max(scan.end))?;
        if in_place {
            // Both copies alike, as in a checkpoint: the pages it lists may change now.
            volume.write_superblock(|_| {})?;
        }
        write_in_place(volume, &replay)?;
        if !mutation::is(Mutation::R07Sync) {
            volume.sync()?;
        }
    }
    let lap = sb.log_bytes.next_multiple_of(BLOCK as u64);
    volume.write_superblock(|s| {
        let stays = mutation::is(Mutation::R02Both);
        s.epoch += u32::from(!stays && !mutation::is(Mutation::R02Epoch));
        let lap = if stays || mutation::is(Mutation::R02Lap) { 0 } else { lap };
        s.replay = Lsn(scan.end.0 + lap);
        s.in_place = s.in_place.max(scan.end);
    })?;
    // Both copies alike: blocks of the new epoch cannot show that an older one is too old.
    volume.write_superblock(|_| {})?;
    Ok(Recovered {
        commits: replay.commits,
        pages: replay.pages,
        log_bytes: scan.end.0 - sb.replay.0,
        log: Some(disk),
    })
}

fn refuse_contradictions(storage: &dyn Storage, sb: &Superblock, scan: &Scan) -> Result<()> {
    if scan.foreign {
        return Err(log::place::wrong(storage, "belongs to another store"));
    }
    if scan.newest.is_after(sb) && slots_are_whole(&*storage.volume())? {
        return Err(log::place::older_copy(storage));
    }
    if scan.end < sb.in_place && !mutation::is(Mutation::R04Refuse) {
        return Err(Error::corrupt(
            format!("log at LSN {}", scan.end),
            format!("ends there, but pages up to LSN {} are in place", sb.in_place),
        ));
    }
    if scan.newest.is_after(sb) && !mutation::is(Mutation::R15Fallback) {
        return Err(Error::corrupt(
            "superblock",
            format!(
                "copy {} is damaged; the other one ({}) is too old to go back to",
                scan.newest.checkpoint, sb.sequence
            ),
        ));
    }
    Ok(())
}

/// Puts segment data together again and writes it in place.
///
/// What it is copied from lies unchanged (rule 16), unless the other superblock was lost with a
/// checkpoint that allowed its reuse: then that checkpoint synced this data in place, so it is
/// there, or was itself freed before, and nobody will read it. The checksum decides.
fn compose(volume: &Volume, segment: &Segment<'_>, checksum: u32, parts: &Parts<'_>) -> Result<()> {
    let size = volume.page_size() as u64;
    // At most MAX_COMPOSED.
    let mut bytes = vec![0; (segment.pages * size) as usize];
    let mut at = 0;
    let mut lost = None;
    for part in parts.iter() {
        let part = part?;
        let to = &mut bytes[at..at + part.len() as usize];
        match part {
            Part::Bytes(new) => to.copy_from_slice(new),
            Part::Zeros(_) => {}
            Part::Copy { from, .. } => lost = read_part(volume, from, to).or(lost),
        }
        at += part.len() as usize;
    }
    if crc(&bytes) != checksum {
        let at = segment.first.0 * size;
        lost = read_part(volume, at, &mut bytes).or(lost);
        if crc(&bytes) != checksum {
            // Not read wrong later either: its units have checksums of their own.
            return lost.map_or(Ok(()), Err);
        }
    }
    volume.write_pages(segment.first, &bytes)
}

/// Reads bytes of the volume. An error that is not the end of the file is no failure yet: the
/// bytes may be found elsewhere.
fn read_part(volume: &Volume, from: u64, to: &mut [u8]) -> Option<Error> {
    match volume.disk.read_at(from, to) {
        Ok(()) => None,
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => None,
        Err(e) => Some(Error::io(format!("reading segment data at {from} for replay"), e)),
    }
}

/// Makes growth again that the crash undid, in small steps if there is little room: a file
/// system may ask for more than a step takes.
fn grow_to(volume: &Volume, length: u64, end: u64) -> Result<()> {
    const STEP: u64 = 1 << 20;
    if length >= end {
        return Ok(());
    }
    match volume.grow(end) {
        Err(e) if e.kind() == std::io::ErrorKind::StorageFull => {
            let mut steps = (length..end).step_by(STEP as usize);
            steps.try_for_each(|at| volume.grow(end.min(at + STEP)))
        }
        result => result,
    }
    .map_err(|e| io_error("growing the volume", e))
}

fn write_in_place(volume: &Volume, replay: &Replay<'_>) -> Result<()> {
    let size = volume.page_size() as u64;
    let end = replay.end.saturating_mul(size);
    let length = volume.disk.len().map_err(|e| Error::io("reading the volume's length", e))?;
    grow_to(volume, length, end)?;
    let sb = volume.superblock();
    let (holes, layout) = (sb.holes, SpaceLayout::new(sb.page_size as usize, sb.space_pages)?);
    // A crash may have undone that a run got blocks. If it has them still, a full disk may
    // refuse to reserve them: the next write shows it.
    let fill = |first: PageNo, pages: u64| match volume.fill_holes(PageRun::new(first, pages)) {
        Err(Error::Full(_)) => Ok(()),
        result => result,
    };
    let fill = |first, pages| if holes { fill(first, pages) } else { Ok(()) };
    let write = |first: PageNo, bytes: &[u8]| {
        fill(first, bytes.len() as u64 / size)?;
        volume.write_pages(first, bytes)
    };
    // In the order of the log: what one commit wrote another may have copied.
    for segment in &replay.segments {
        match &segment.data {
            Data::Bytes(_) if mutation::is(Mutation::R07Segments) => {}
            Data::Bytes(bytes) => write(segment.first, bytes)?,
            Data::Composed(..) if mutation::is(Mutation::R07Composed) => {}
            Data::Composed(checksum, parts) => {
                fill(segment.first, segment.pages)?;
                compose(volume, segment, *checksum, parts)?;
            }
        }
    }
    // Pages last: a run freed and a page allocated in one window never share a place.
    let mut batch: Vec<u8> = Vec::new();
    let mut first = PageNo(0);
    replay.each_page(volume, &mut |no, bytes| {
        blocks::fill_allocated(&layout, (no, bytes), sb.replay, &fill)?;
        let follows = first.0 + batch.len() as u64 / size == no.0;
        if !batch.is_empty() && (!follows || batch.len() >= 1 << 20) {
            write(first, &batch)?;
            batch.clear();
        }
        if batch.is_empty() {
            first = no;
        }
        batch.extend_from_slice(bytes);
        Ok(())
    })?;
    if batch.is_empty() { Ok(()) } else { write(first, &batch) }
}
