//! The log file of a store that is not open: its groups and records from the replay position
//! on, and what lies behind their end. Nothing is replayed.

use super::text::{Hex, Text, runs};
use crate::engine::Options;
use crate::engine::format::read_slots;
use holdall_core::bytes::Reader;
use holdall_core::log_format::next_record;
use holdall_core::log_format::{self as format, BLOCK, BlockHeader, InPlaceKind, Part, Record};
use holdall_core::superblock::Superblock;
use holdall_core::{Error, Lsn, Result};
use holdall_io::{Disk, Storage};

pub(super) fn dump(storage: &dyn Storage) -> Result<String> {
    let sb = read_slots(storage, &Options::default())?.best;
    let mut text = Text::default();
    let log = storage.open_log().map_err(|e| Error::io("opening the log", e))?;
    let Some(disk) = log else {
        let why = if sb.log_required {
            "missing, although the store needs it: put it back beside the store"
        } else {
            "none: the store was closed"
        };
        text.line(0, format_args!("log: {why}"));
        return Ok(text.finish());
    };
    let length = disk.len().map_err(|e| Error::io("reading the log's length", e))?;
    if length == 0 {
        let why = if sb.log_required {
            "although the store needs it: put back the log that was beside the store"
        } else {
            "and the store, which was closed, needs none"
        };
        text.line(0, format_args!("log: empty, {why}"));
        return Ok(text.finish());
    }
    text.line(
        0,
        format_args!(
            "log of {length} bytes, {} in use; store {}, epoch {}",
            sb.log_bytes,
            Hex(&sb.store_id),
            sb.epoch
        ),
    );
    text.line(0, format_args!("replay from LSN {}, in place up to LSN {}", sb.replay, sb.in_place));
    let file = File { disk: &*disk, sb: &sb, length };
    let end = groups(&mut text, &file)?;
    behind(&mut text, &file, end)?;
    Ok(text.finish())
}

struct File<'a> {
    disk: &'a dyn Disk,
    sb: &'a Superblock,
    length: u64,
}

impl File<'_> {
    fn read(&self, lsn: Lsn) -> Result<Option<Vec<u8>>> {
        let at = lsn.0 % self.sb.log_bytes;
        if at + BLOCK as u64 > self.length {
            return Ok(None);
        }
        let mut block = vec![0; BLOCK];
        let read = self.disk.read_at(at, &mut block);
        read.map_err(|e| Error::io(format!("reading the log at byte {at}"), e))?;
        Ok(Some(block))
    }

    /// The block at `lsn` and its header, or what else lies there.
    fn block(&self, lsn: Lsn) -> Result<std::result::Result<(BlockHeader, Vec<u8>), String>> {
        let Some(block) = self.read(lsn)? else {
            return Ok(Err("beyond the end of the file".into()));
        };
        if block.iter().all(|b| *b == 0) {
            return Ok(Err("never written".into()));
        }
        let Some(header) = BlockHeader::decode_any(&block) else {
            return Ok(Err("torn or damaged: its checksum is wrong".into()));
        };
        Ok(if header.store_id != self.sb.store_id {
            Err(format!("of another store, {}", Hex(&header.store_id)))
        } else if header.epoch != self.sb.epoch {
            Err(format!("of epoch {}", header.epoch))
        } else if header.lsn != lsn {
            Err("of an earlier lap".into())
        } else {
            Ok((header, block))
        })
    }
}

/// Shows all whole groups; returns where they end.
fn groups(text: &mut Text, file: &File<'_>) -> Result<Lsn> {
    let (mut at, mut previous) = (file.sb.replay, None);
    let limit = file.sb.replay.0 + file.sb.log_bytes;
    loop {
        let (mut payload, mut sum, mut next) = (Vec::new(), 0, at);
        let header = loop {
            if next.0 >= limit {
                text.line(0, format_args!("end at LSN {at}: the log is full"));
                return Ok(at);
            }
            let (header, block) = match file.block(next)? {
                Ok(found) => found,
                Err(why) => {
                    text.line(0, format_args!("end at LSN {at}: the block at LSN {next} is {why}"));
                    return Ok(at);
                }
            };
            if header.group != at || previous.is_some_and(|p| p != header.previous) {
                let group = header.group;
                let why = format!("belongs to group {group} or does not follow the one before");
                text.line(0, format_args!("end at LSN {at}: the block at LSN {next} {why}"));
                return Ok(at);
            }
            sum = format::group_sum(sum, &block);
            payload.extend_from_slice(format::payload(&block, &header));
            next = Lsn(next.0 + BLOCK as u64);
            if header.last {
                break header;
            }
        };
        let (blocks, bytes) = ((next.0 - at.0) / BLOCK as u64, payload.len());
        text.line(
            0,
            format_args!(
                "group at LSN {at}: {blocks} blocks, {bytes} bytes, all before LSN {} durable, \
                 superblock {}, checksum {sum:08x}",
                header.durable, header.checkpoint
            ),
        );
        records(text, &payload);
        (at, previous) = (next, Some(sum));
    }
}

fn records(text: &mut Text, payload: &[u8]) {
    let mut reader = Reader::new(payload);
    loop {
        match next_record(&mut reader) {
            Ok(None) => return,
            Ok(Some(record)) => show(text, &record),
            Err(e) => {
                text.line(1, format_args!("{e}"));
                return text.hex(1, reader.rest(), 256);
            }
        }
    }
}

fn show(text: &mut Text, record: &Record<'_>) {
    match record {
        Record::Page { page, new, checksum, ranges } => {
            let what = if *new { "new" } else { "changed" };
            let (count, bytes) =
                ranges.iter().fold((0, 0), |(n, all), (_, b)| (n + 1, all + b.len()));
            let line = format_args!(
                "page {page}: {what}, {bytes} bytes in {count} ranges, then checksum {checksum:08x}"
            );
            text.line(1, line);
            for (at, bytes) in ranges.iter() {
                let shown = bytes.get(..24).unwrap_or(bytes);
                let more = if shown.len() < bytes.len() { ".." } else { "" };
                let end = at + bytes.len();
                text.line(2, format_args!("{at}..{end}: {}{more}", Hex(shown)));
            }
        }
        Record::Segment { page, bytes } => {
            text.line(1, format_args!("segment data from page {page}: {} bytes", bytes.len()));
        }
        Record::Composed { page, checksum, parts } => {
            match parts.iter().collect::<Result<Vec<_>>>() {
                Ok(parts) => {
                    let bytes: u64 = parts.iter().map(Part::len).sum();
                    let of = format_args!(
                        "segment data from page {page}: {bytes} bytes with checksum {checksum:08x}, of"
                    );
                    text.line(1, of);
                    for part in parts {
                        match part {
                            Part::Bytes(b) => text.line(2, format_args!("{} new bytes", b.len())),
                            Part::Copy { from, len } => {
                                text.line(2, format_args!("{len} bytes that lie at byte {from}"));
                            }
                            Part::Zeros(len) => text.line(2, format_args!("{len} zeros")),
                        }
                    }
                }
                Err(e) => text.line(1, format_args!("segment data from page {page}: {e}")),
            }
        }
        Record::InPlace { page, count, kind, checksum } => {
            let of = match kind {
                InPlaceKind::Units => "segment data",
                InPlaceKind::Pages => "new pages",
            };
            let line = format_args!(
                "pages {page} to {}: {of} in place, checksum {checksum:08x}",
                page.0.saturating_add(count.saturating_sub(1))
            );
            text.line(1, line);
        }
        Record::Commit { lsn } => text.line(1, format_args!("commit {lsn}")),
        Record::Skipped => text.line(1, format_args!("a record of a newer version, passed over")),
    }
}

/// Shows what the blocks behind the end hold: of a crash, leftovers; of damage, proof.
fn behind(text: &mut Text, file: &File<'_>, end: Lsn) -> Result<()> {
    if file.length < file.sb.log_bytes {
        text.line(
            0,
            format_args!("the file is shorter than the log: its other blocks are not shown"),
        );
        return Ok(());
    }
    let mut states = Vec::new();
    let (from, limit) = (end.0, file.sb.replay.0 + file.sb.log_bytes);
    for lsn in (from..limit).step_by(BLOCK) {
        states.push(match file.block(Lsn(lsn))? {
            Ok((header, _)) if header.durable > end => format!(
                "valid, and written when all before LSN {} was durable: the log is damaged",
                header.durable
            ),
            Ok((header, _)) => format!("valid, of the unfinished group {}", header.group),
            Err(why) => why,
        });
    }
    for (first, last, state) in runs(states.into_iter()) {
        let at = |i: usize| from + (i * BLOCK) as u64;
        let (first, last) = (at(first), at(last));
        text.line(0, format_args!("blocks at LSN {first} to {last}: {state}"));
    }
    Ok(())
}
