//! Recovery: replaying the log over the volume.
//!
//! Owns: what happens between reading the superblock and the first snapshot. Runs alone.
//! The argument that any torn page ends as its last version is in docs/recovery.md.

use super::at_home;
use super::volume::{Volume, io_error};
use crate::log::{self, Expect, Scan};
use holdall_core::bytes::Reader;
use holdall_core::checksum::crc;
use holdall_core::log_format::{BLOCK, Part, Parts, Record, next_record};
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::superblock::Superblock;
use holdall_core::{Error, Lsn, PageNo, Result, page};
use holdall_io::Storage;
use std::collections::BTreeMap;

/// What recovery found and did.
#[derive(Debug, Clone, Default)]
pub struct Recovered {
    /// Commits replayed.
    pub commits: u64,
    /// Pages written home.
    pub pages: u64,
    /// Bytes of log read.
    pub log_bytes: u64,
}

struct Image {
    bytes: Vec<u8>,
    lsn: Lsn,
    checksum: u32,
}

/// Segment data of a record. Kept as in the log, whose size so bounds memory.
struct Segment {
    first: PageNo,
    pages: u64,
    data: Data,
}

enum Data {
    Bytes(Vec<u8>),
    /// Checksum, and the encoded parts.
    Composed(u32, Vec<u8>),
}

#[derive(Default)]
struct Replay {
    pages: BTreeMap<PageNo, Image>,
    segments: Vec<Segment>,
    commits: u64,
}

impl Replay {
    fn push_segment(
        &mut self,
        volume: &Volume,
        first: PageNo,
        bytes: u64,
        data: Data,
    ) -> Result<()> {
        let size = volume.page_size() as u64;
        let pages = bytes / size;
        let inside = first.0.checked_add(pages).is_some_and(|end| end <= PageNo::MAX.0);
        if !inside || !bytes.is_multiple_of(size) {
            return Err(Error::corrupt("log record", format!("segment at page {first}")));
        }
        self.segments.push(Segment { first, pages, data });
        Ok(())
    }
}

/// Brings the volume to its last durable commit. Afterwards the log holds nothing that
/// matters, the epoch is raised and the LSN is one lap ahead (rule 2). Cost: one pass over
/// the log, one read and one write of each page it names, three or four syncs; nothing
/// where the store was closed cleanly.
///
/// # Errors
/// [`Error::Corrupt`] where log or volume contradict what was acknowledged, [`Error::Io`].
pub fn recover(storage: &dyn Storage, volume: &Volume) -> Result<Recovered> {
    let sb = volume.superblock();
    let opened = storage.open_log().map_err(|e| Error::io("opening the log", e))?;
    let Some(disk) = opened else {
        if sb.log_required {
            let detail = "the log file is missing; put it back beside the store".to_owned();
            return Err(Error::corrupt(format!("{}-log", storage.name()), detail));
        }
        return Ok(Recovered::default());
    };
    let length = disk.len().map_err(|e| Error::io("reading the log's length", e))?;
    if sb.log_required && length < sb.log_bytes {
        let detail =
            format!("has {length} bytes, {} were prepared: it was cut short", sb.log_bytes);
        return Err(Error::corrupt(format!("{}-log", storage.name()), detail));
    }
    let expect = Expect {
        store_id: sb.store_id,
        epoch: sb.epoch,
        from: sb.replay,
        capacity: sb.log_bytes,
        required: sb.log_required,
    };
    // What a checkpoint was about to bring home, it found durable.
    let doubtful = |end: Lsn| end > sb.home;
    let scan = log::scan(&*disk, &expect, &mut |end, payload| {
        Ok(!doubtful(end) || at_home::holds(volume, payload)?)
    })?;
    refuse_contradictions(&sb, &scan)?;
    let replay = read_records(volume, &scan)?;
    if !scan.groups.is_empty() {
        // First the log, then what is derived from it: a second crash must find as much.
        let last = scan.groups.last().filter(|_| doubtful(scan.end));
        let at_home = last.map_or(Ok(false), |payload| at_home::write_again(volume, payload))?;
        log::harden(&*disk, sb.log_bytes, &scan)?;
        volume.write_superblock(|s| s.home = s.home.max(scan.end))?;
        if at_home {
            // Both copies alike, as in a checkpoint: the pages it lists may change now.
            volume.write_superblock(|_| {})?;
        }
        write_home(volume, &replay)?;
        volume.sync()?;
    }
    let lap = sb.log_bytes.next_multiple_of(BLOCK as u64);
    volume.write_superblock(|s| {
        s.epoch += 1;
        s.replay = Lsn(scan.end.0 + lap);
        s.home = s.home.max(scan.end);
    })?;
    // Both copies alike: blocks of the new epoch cannot show that an older one is too old.
    volume.write_superblock(|_| {})?;
    Ok(Recovered {
        commits: replay.commits,
        pages: replay.pages.len() as u64,
        log_bytes: scan.end.0 - sb.replay.0,
    })
}

fn refuse_contradictions(sb: &Superblock, scan: &Scan) -> Result<()> {
    if scan.end < sb.home {
        return Err(Error::corrupt(
            format!("log at LSN {}", scan.end),
            format!("ends there, but pages up to LSN {} are at home", sb.home),
        ));
    }
    if scan.checkpoint > sb.sequence {
        return Err(Error::corrupt(
            "superblock",
            format!(
                "copy {} is damaged; the other one ({}) is too old to go back to",
                scan.checkpoint, sb.sequence
            ),
        ));
    }
    Ok(())
}

fn read_records(volume: &Volume, scan: &Scan) -> Result<Replay> {
    let mut replay = Replay::default();
    for group in &scan.groups {
        let mut reader = Reader::new(group);
        let mut open = Vec::new();
        while let Some(record) = next_record(&mut reader)? {
            match record {
                Record::Commit { lsn } => {
                    for r in open.drain(..) {
                        apply(volume, &mut replay, r, lsn)?;
                    }
                    replay.commits += 1;
                }
                other => open.push(other),
            }
        }
        if !open.is_empty() {
            return Err(Error::corrupt("log", "a group ends inside a commit"));
        }
    }
    for (no, image) in &mut replay.pages {
        if page::seal(&mut image.bytes, image.lsn) != image.checksum {
            let detail = "replaying the log does not give the page that was committed";
            return Err(Error::page(*no, detail));
        }
    }
    Ok(replay)
}

fn apply(volume: &Volume, replay: &mut Replay, record: Record<'_>, lsn: Lsn) -> Result<()> {
    match record {
        Record::Page { page: no, new, checksum, ranges } => {
            if no > PageNo::MAX {
                return Err(Error::corrupt("log record", format!("impossible page {no}")));
            }
            if new {
                let bytes = vec![0; volume.page_size()];
                replay.pages.insert(no, Image { bytes, lsn, checksum });
            } else if let std::collections::btree_map::Entry::Vacant(slot) = replay.pages.entry(no)
            {
                slot.insert(Image { bytes: raw_page(volume, no)?, lsn, checksum });
            }
            if let Some(image) = replay.pages.get_mut(&no) {
                ranges.apply(&mut image.bytes)?;
                (image.lsn, image.checksum) = (lsn, checksum);
            }
        }
        Record::Segment { page, bytes } => {
            let data = Data::Bytes(bytes.to_vec());
            replay.push_segment(volume, page, bytes.len() as u64, data)?;
        }
        Record::Composed { page, checksum, parts } => {
            let bytes = parts.decode()?.iter().map(Part::len).sum();
            let data = Data::Composed(checksum, parts.encoded().to_vec());
            replay.push_segment(volume, page, bytes, data)?;
        }
        Record::Home { .. } | Record::Commit { .. } | Record::Skipped => {}
    }
    Ok(())
}

/// A page as it lies there, torn or not; zeros beyond the end of the file, whose growth the
/// crash may have undone.
fn raw_page(volume: &Volume, no: PageNo) -> Result<Vec<u8>> {
    let mut bytes = vec![0; volume.page_size()];
    let at = no.0 * volume.page_size() as u64;
    match volume.disk.read_at(at, &mut bytes) {
        Ok(()) => Ok(bytes),
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Ok(vec![0; bytes.len()]),
        Err(e) => Err(Error::io(format!("reading page {no} for replay"), e)),
    }
}

/// One past the last page that the replayed directories hold as allocated. Extents are
/// allocated before their pages are written, and their growth need not have been synced.
fn allocated_end(volume: &Volume, replay: &Replay) -> Result<u64> {
    let sb = volume.superblock();
    let layout = SpaceLayout::new(sb.page_size as usize, sb.space_pages)?;
    let mut end = 0;
    for (no, image) in &replay.pages {
        if page::kind(&image.bytes) != Some(page::PageKind::SpaceDir) {
            continue;
        }
        let (space, _) = layout.split(*no)?;
        let dir = SpaceDir::open(layout, space, &image.bytes[..])?;
        let last = (0..layout.space_pages()).rev().find(|i| dir.is_allocated(*i));
        end = end.max(last.map_or(0, |i| layout.page_at(space, i).0 + 1));
    }
    Ok(end)
}

/// Puts segment data together again and writes it home.
///
/// What it is copied from lies unchanged (rule 16), unless the other superblock was lost with a
/// checkpoint that allowed its reuse: then that checkpoint synced this data home, so it is
/// there, or was itself freed before, and nobody will read it. The checksum tells which.
fn compose(volume: &Volume, segment: &Segment, checksum: u32, parts: &[u8]) -> Result<()> {
    let size = volume.page_size() as u64;
    let mut bytes = vec![0; (segment.pages * size) as usize];
    let mut at = 0;
    let mut lost = None;
    for part in Parts::new(parts).decode()? {
        let to = &mut bytes[at..at + part.len() as usize];
        match part {
            Part::Bytes(new) => to.copy_from_slice(new),
            Part::Zeros(_) => {}
            Part::Copy { from, .. } => lost = read_part(volume, from, to).or(lost),
        }
        at += part.len() as usize;
    }
    if crc(&bytes) != checksum {
        let home = segment.first.0 * size;
        lost = read_part(volume, home, &mut bytes).or(lost);
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

fn write_home(volume: &Volume, replay: &Replay) -> Result<()> {
    let size = volume.page_size() as u64;
    let pages = replay.pages.keys().map(|no| no.0 + 1);
    let segments = replay.segments.iter().map(|s| s.first.0 + s.pages);
    let allocated = allocated_end(volume, replay)?;
    let end = pages.chain(segments).max().unwrap_or(0).max(allocated).saturating_mul(size);
    let length = volume.disk.len().map_err(|e| Error::io("reading the volume's length", e))?;
    if length < end {
        volume.disk.grow(end).map_err(|e| io_error("growing the volume", e))?;
    }
    // In the order of the log: what one commit wrote another may have copied.
    for segment in &replay.segments {
        match &segment.data {
            Data::Bytes(bytes) => volume.write_pages(segment.first, bytes)?,
            Data::Composed(checksum, parts) => compose(volume, segment, *checksum, parts)?,
        }
    }
    // Pages last: a run freed and a page allocated in one window never share a place.
    let mut batch: Vec<u8> = Vec::new();
    let mut first = PageNo(0);
    for (no, image) in &replay.pages {
        let follows = first.0 + batch.len() as u64 / size == no.0;
        if !batch.is_empty() && (!follows || batch.len() >= 1 << 20) {
            volume.write_pages(first, &batch)?;
            batch.clear();
        }
        if batch.is_empty() {
            first = *no;
        }
        batch.extend_from_slice(&image.bytes);
    }
    if batch.is_empty() { Ok(()) } else { volume.write_pages(first, &batch) }
}
