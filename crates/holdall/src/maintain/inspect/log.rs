//! The log file of a store that is not open: its groups and records from the replay position
//! on, and what lies behind their end. Nothing is replayed.

use crate::engine::Options;
use crate::engine::format::read_slots;
use holdall_core::bytes::Reader;
use holdall_core::log_format::{self as format, BLOCK, BlockHeader, Record, next_record};
use holdall_core::superblock::Superblock;
use holdall_core::{Error, Lsn, Result};
use holdall_io::{Disk, Storage};
use std::sync::Arc;

/// The log beside a store that is not open: an iterator over its whole groups, their end, and
/// what lies behind it. An error is the last item. Memory: one group.
#[derive(Debug)]
#[non_exhaustive]
pub struct LogDump {
    /// Whether the store needs it.
    pub required: bool,
    /// Bytes of the file, if there is one. Nothing follows if it has none.
    pub file_bytes: Option<u64>,
    /// Bytes of the circular log.
    pub log_bytes: u64,
    /// The store it is of.
    pub store_id: [u8; 16],
    /// Its epoch.
    pub epoch: u32,
    /// Where replay begins.
    pub replay: Lsn,
    /// No page in place is newer than this.
    pub in_place: Lsn,
    disk: Option<Arc<dyn Disk>>,
    /// Holds the lock of the store.
    _volume: Arc<dyn Disk>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// A group may be at this place, behind one with this checksum.
    Groups(Lsn, Option<u32>),
    /// The groups ended at the first place; the second is the next block to be looked at.
    Behind(Lsn, u64),
    Done,
}

/// What lies in a log.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogPart {
    /// A whole group.
    Group(LogGroup),
    /// The groups end at this place.
    End(Lsn, LogEnd),
    /// The file is shorter than the log: no block behind the end is looked at.
    Short,
    /// Blocks behind the end from the first to the second place, which are alike. After a crash
    /// they are leftovers; they may also prove damage.
    Behind(Lsn, Lsn, LogBlock),
}

/// A group of records.
#[derive(Debug)]
#[non_exhaustive]
pub struct LogGroup {
    /// Its place.
    pub lsn: Lsn,
    /// Its blocks.
    pub blocks: u64,
    /// All groups before this place were durable when it was written.
    pub durable: Lsn,
    /// The superblock that was durable then.
    pub superblock: u64,
    /// Its checksum.
    pub checksum: u32,
    /// Its records, encoded.
    pub payload: Vec<u8>,
}

impl LogGroup {
    /// Its records in order; the last is an error with all that follows if it is no record that
    /// this build can read.
    pub fn records(&self) -> impl Iterator<Item = std::result::Result<Record<'_>, (Error, &[u8])>> {
        let mut left = Reader::new(&self.payload);
        std::iter::from_fn(move || {
            let next = next_record(&mut left).map_err(|e| (e, left.rest()));
            if next.is_err() {
                left = Reader::new(&[]);
            }
            next.transpose()
        })
    }
}

/// Why the groups end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogEnd {
    /// The log is full.
    Full,
    /// The block at this place is none of this lap.
    Block(Lsn, LogBlock),
    /// The block at the first place names the second as its group, or another group before it.
    Stray(Lsn, Lsn),
}

/// What lies where a block belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogBlock {
    /// The file ends before it.
    Beyond,
    /// Zeros.
    NeverWritten,
    /// No block with a right checksum.
    Damaged,
    /// A block of the store with this id.
    OtherStore([u8; 16]),
    /// A block of this epoch.
    OtherEpoch(u32),
    /// A block of an earlier lap.
    EarlierLap,
    /// A valid block of the unfinished group at this place.
    Unfinished(Lsn),
    /// A valid block, written when all before this place was durable: the log is damaged.
    Proof(Lsn),
}

pub(super) fn read(storage: &dyn Storage) -> Result<LogDump> {
    let sb: Superblock = read_slots(storage, &Options::default())?.best;
    let disk = storage.open_log().map_err(|e| Error::io("opening the log", e))?;
    let length = disk.as_ref().map(|disk| disk.len()).transpose();
    let file_bytes = length.map_err(|e| Error::io("reading the log's length", e))?;
    let groups = Stage::Groups(sb.replay, None);
    Ok(LogDump {
        required: sb.log_required,
        file_bytes,
        log_bytes: sb.log_bytes,
        store_id: sb.store_id,
        epoch: sb.epoch,
        replay: sb.replay,
        in_place: sb.in_place,
        disk,
        _volume: storage.volume(),
        stage: if file_bytes.is_some_and(|n| n > 0) { groups } else { Stage::Done },
    })
}

impl Iterator for LogDump {
    type Item = Result<LogPart>;

    fn next(&mut self) -> Option<Self::Item> {
        let part = match self.stage {
            Stage::Groups(at, previous) => self.group(at, previous).map(Some),
            Stage::Behind(..) if self.file_bytes.is_none_or(|n| n < self.log_bytes) => {
                self.stage = Stage::Done;
                Ok(Some(LogPart::Short))
            }
            Stage::Behind(end, from) => self.behind(end, from),
            Stage::Done => return None,
        };
        if !matches!(part, Ok(Some(_))) {
            self.stage = Stage::Done;
        }
        part.transpose()
    }
}

impl LogDump {
    /// Where the place behind the log is that lies on the same byte as the replay position.
    fn limit(&self) -> u64 {
        self.replay.0 + self.log_bytes
    }

    /// The group at `at`, or the end.
    fn group(&mut self, at: Lsn, previous: Option<u32>) -> Result<LogPart> {
        self.stage = Stage::Behind(at, at.0);
        let (mut payload, mut sum, mut next) = (Vec::new(), 0, at);
        let header = loop {
            if next.0 >= self.limit() {
                return Ok(LogPart::End(at, LogEnd::Full));
            }
            let (header, block) = match self.block(next)? {
                Ok(found) => found,
                Err(why) => return Ok(LogPart::End(at, LogEnd::Block(next, why))),
            };
            if header.group != at || previous.is_some_and(|p| p != header.previous) {
                return Ok(LogPart::End(at, LogEnd::Stray(next, header.group)));
            }
            sum = format::group_sum(sum, &block);
            payload.extend_from_slice(format::payload(&block, &header));
            next = Lsn(next.0 + BLOCK as u64);
            if header.last {
                break header;
            }
        };
        self.stage = Stage::Groups(next, Some(sum));
        Ok(LogPart::Group(LogGroup {
            lsn: at,
            blocks: (next.0 - at.0) / BLOCK as u64,
            durable: header.durable,
            superblock: header.checkpoint,
            checksum: sum,
            payload,
        }))
    }

    /// The block at `lsn` and its header, or what else lies there.
    fn block(&self, lsn: Lsn) -> Result<std::result::Result<(BlockHeader, Vec<u8>), LogBlock>> {
        let at = lsn.0 % self.log_bytes;
        let inside = self.file_bytes.is_some_and(|length| at + BLOCK as u64 <= length);
        let Some(disk) = self.disk.as_ref().filter(|_| inside) else {
            return Ok(Err(LogBlock::Beyond));
        };
        let mut block = vec![0; BLOCK];
        let read = disk.read_at(at, &mut block);
        read.map_err(|e| Error::io(format!("reading the log at byte {at}"), e))?;
        if block.iter().all(|b| *b == 0) {
            return Ok(Err(LogBlock::NeverWritten));
        }
        let Some(header) = BlockHeader::decode_any(&block) else {
            return Ok(Err(LogBlock::Damaged));
        };
        Ok(if header.store_id != self.store_id {
            Err(LogBlock::OtherStore(header.store_id))
        } else if header.epoch != self.epoch {
            Err(LogBlock::OtherEpoch(header.epoch))
        } else if header.lsn != lsn {
            Err(LogBlock::EarlierLap)
        } else {
            Ok((header, block))
        })
    }

    /// The blocks from `from` on that are alike.
    fn behind(&mut self, end: Lsn, from: u64) -> Result<Option<LogPart>> {
        let mut alike: Option<(Lsn, LogBlock)> = None;
        for lsn in (from..self.limit()).step_by(BLOCK).map(Lsn) {
            let state = match self.block(lsn)? {
                Ok((header, _)) if header.durable > end => LogBlock::Proof(header.durable),
                Ok((header, _)) => LogBlock::Unfinished(header.group),
                Err(state) => state,
            };
            match &mut alike {
                Some((_, first)) if *first != state => break,
                Some((last, _)) => *last = lsn,
                None => alike = Some((lsn, state)),
            }
        }
        Ok(alike.map(|(last, state)| {
            self.stage = Stage::Behind(end, last.0 + BLOCK as u64);
            LogPart::Behind(Lsn(from), last, state)
        }))
    }
}
