//! Reading the log back after a crash.
//!
//! Owns: finding the durable groups from the replay position on, and telling a torn tail
//! from damage (rules 3, 4). Reads only.

use super::place::Newest;
use super::{io_error, write_circular};
use holdall_core::log_format::{self as format, BLOCK, BlockHeader};
use holdall_core::mutation::{self, Mutation};
use holdall_core::superblock::Superblock;
use holdall_core::{Error, Lsn, Result};
use holdall_io::Disk;
use std::io::ErrorKind;

/// What the log holds from the replay position on.
#[derive(Debug, Default)]
pub struct Scan {
    /// Payloads of the groups found, in order.
    pub groups: Vec<Vec<u8>>,
    /// One past the last valid group.
    pub end: Lsn,
    /// The last group's blocks and where they lie: rewritten before anything relies on it.
    pub last_group: Option<(Lsn, Vec<u8>)>,
    /// What the groups name, and the blocks behind them that this store's log cannot hold.
    pub newest: Newest,
    /// Whether one of those blocks is of another store.
    pub foreign: bool,
}

/// What to expect of the log.
#[derive(Debug, Clone, Copy)]
pub struct Expect {
    /// The store's id.
    pub store_id: [u8; 16],
    /// The epoch the superblock names.
    pub epoch: u32,
    /// Where replay begins.
    pub from: Lsn,
    /// Bytes of the circular log.
    pub capacity: u64,
    /// The superblock's sequence number.
    pub sequence: u64,
    /// Whether the store needs its log; else a file that is not its log is passed over.
    pub required: bool,
}

impl Expect {
    /// What a superblock says of the log.
    pub fn of(sb: &Superblock) -> Self {
        Self {
            store_id: sb.store_id,
            epoch: sb.epoch,
            from: sb.replay,
            capacity: sb.log_bytes,
            sequence: sb.sequence,
            required: sb.log_required,
        }
    }
}

/// Reads all durable groups from `expect.from` on. Cost: one pass over the log, read in
/// blocks of up to 256 KiB.
///
/// `holds` is given the end and the payload of the last group and returns whether the data in place
/// that it lists is there. If not, its sync had not returned, and the group is left out.
///
/// # Errors
/// [`Error::Corrupt`] if a later block proves that a missing or damaged one was durable;
/// those of `holds`.
pub fn scan(
    disk: &dyn Disk,
    expect: &Expect,
    holds: &mut dyn FnMut(Lsn, &[u8]) -> Result<bool>,
) -> Result<Scan> {
    let length = disk.len().map_err(|e| Error::io("reading the log's length", e))?;
    let limit = expect.from.0 + expect.capacity;
    let mut window = Window::new(disk, expect, length, limit);
    let mut found = Scan { end: expect.from, ..Scan::default() };
    let mut previous = None;
    while let Some((blocks, payload, sum)) = read_group(&mut window, found.end, limit, previous)? {
        let header = BlockHeader::decode(&blocks[..BLOCK], &expect.store_id, expect.epoch);
        header.iter().for_each(|h| found.newest.add(h));
        previous = Some(sum);
        let start = found.end;
        found.end = Lsn(start.0 + blocks.len() as u64);
        found.groups.push(payload);
        found.last_group = Some((start, blocks));
    }
    if let (Some(payload), Some((start, _))) = (found.groups.last(), &found.last_group)
        && !holds(found.end, payload)?
    {
        // The group before it is durable, or this one would not have been written.
        found.end = *start;
        found.last_group = None;
        found.groups.pop();
    }
    find_damage(&mut window, &mut found, limit)?;
    Ok(found)
}

/// What a reader beside a writer found in the log.
#[derive(Debug)]
pub struct Followed {
    /// Payloads of the groups, in order.
    pub groups: Vec<Vec<u8>>,
    /// One past the last group.
    pub end: Lsn,
    /// Checksum of the last group, by which the next one names it.
    pub last: Option<u32>,
}

/// Reads the groups from `expect.from` on up to `upto`, where the writer says that its log is
/// durable; without that, as far as a later block says so. `previous` is the checksum of the group
/// before. `None`: the log does not lead there any more, or not yet. Cost: a read of these
/// bytes.
///
/// # Errors
/// [`Error::Io`].
pub fn follow(
    disk: &dyn Disk,
    expect: &Expect,
    mut previous: Option<u32>,
    upto: Option<Lsn>,
) -> Result<Option<Followed>> {
    let length = disk.len().map_err(|e| Error::io("reading the log's length", e))?;
    let limit = upto.map_or(expect.from.0 + expect.capacity, |upto| upto.0);
    if limit < expect.from.0 || limit - expect.from.0 > expect.capacity {
        return Ok(None);
    }
    let mut window = Window::new(disk, expect, length, limit);
    let mut found = Followed { groups: Vec::new(), end: expect.from, last: previous };
    let mut before = None;
    loop {
        let (blocks, payload, sum) = match read_group(&mut window, found.end, limit, previous) {
            Ok(Some(group)) => group,
            Ok(None) => break,
            // The writer has cut it since.
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::UnexpectedEof => break,
            Err(e) => return Err(e),
        };
        let start = found.end;
        found.end = Lsn(start.0 + blocks.len() as u64);
        found.groups.push(payload);
        before = Some((start, found.last.replace(sum)));
        previous = Some(sum);
    }
    match (upto, before) {
        (Some(upto), _) => Ok((found.end == upto).then_some(found)),
        // Of the last group nothing says that it is durable. That before it was, when it was written.
        (None, Some((start, last))) => {
            found.groups.pop();
            (found.end, found.last) = (start, last);
            Ok(Some(found))
        }
        (None, None) => Ok(Some(found)),
    }
}

/// Writes the last group again and syncs: its sync may have failed before the crash, and
/// what is read now may still be lost (rule 7).
///
/// # Errors
/// [`Error::Full`], [`Error::Io`].
pub fn harden(disk: &dyn Disk, capacity: u64, scan: &Scan) -> Result<()> {
    let Some((lsn, blocks)) = &scan.last_group else { return Ok(()) };
    write_circular(disk, capacity, *lsn, blocks)
        .and_then(|()| disk.sync())
        .map_err(|e| io_error("writing the log's last group again", e))
}

struct Window<'a> {
    disk: &'a dyn Disk,
    expect: &'a Expect,
    length: u64,
    /// Nothing from here on is asked for.
    limit: u64,
    buffer: Vec<u8>,
    start: u64,
}

const AHEAD: u64 = 64 * BLOCK as u64;

impl<'a> Window<'a> {
    fn new(disk: &'a dyn Disk, expect: &'a Expect, length: u64, limit: u64) -> Self {
        Self { disk, expect, length, limit, buffer: Vec::new(), start: u64::MAX }
    }

    /// The block at `lsn` and its header, if it is a valid block of this store and epoch,
    /// whatever LSN it carries.
    fn block(&mut self, lsn: Lsn) -> Result<Option<(BlockHeader, &[u8])>> {
        let expect = self.expect;
        let Some(block) = self.bytes(lsn)? else { return Ok(None) };
        let header = BlockHeader::decode(block, &expect.store_id, expect.epoch);
        Ok(header.map(|h| (h, block)))
    }

    /// Whether the place of `lsn` holds what no log writes there: neither zeros nor a block,
    /// whole or torn. Notes a whole block of another store or of a later epoch.
    fn is_strange(&mut self, lsn: Lsn, found: &mut Scan) -> Result<bool> {
        let expect = self.expect;
        let Some(block) = self.bytes(lsn)? else { return Ok(false) };
        let header = BlockHeader::decode_any(block);
        match &header {
            Some(h) if h.store_id != expect.store_id => found.foreign = true,
            Some(h) if h.epoch > expect.epoch => found.newest.add(h),
            _ => {}
        }
        Ok(header.is_none() && !format::may_be_block(block))
    }

    /// The bytes of the block at `lsn`; `None` beyond the end of the file.
    fn bytes(&mut self, lsn: Lsn) -> Result<Option<&[u8]>> {
        let at = lsn.0 % self.expect.capacity;
        if at + BLOCK as u64 > self.length {
            return Ok(None);
        }
        let inside = at >= self.start && at + BLOCK as u64 <= self.start + self.buffer.len() as u64;
        if !inside {
            let ahead = AHEAD.min(self.limit.saturating_sub(lsn.0)).max(BLOCK as u64);
            let end = (at + ahead).min(self.length).min(self.expect.capacity);
            self.buffer.resize((end - at) as usize, 0);
            self.start = at;
            self.disk
                .read_at(at, &mut self.buffer)
                .map_err(|e| Error::io(format!("reading the log at {at}"), e))?;
        }
        let from = (at - self.start) as usize;
        Ok(self.buffer.get(from..from + BLOCK))
    }
}

type Group = (Vec<u8>, Vec<u8>, u32);

fn read_group(
    window: &mut Window<'_>,
    start: Lsn,
    limit: u64,
    previous: Option<u32>,
) -> Result<Option<Group>> {
    let (mut blocks, mut payload, mut sum) = (Vec::new(), Vec::new(), 0);
    let mut at = start;
    while at.0 < limit {
        let Some((header, block)) = window.block(at)? else { return Ok(None) };
        let chained =
            previous.is_none_or(|p| p == header.previous) || mutation::is(Mutation::R01Chain);
        if header.lsn != at || header.group != start || !chained {
            return Ok(None);
        }
        sum = format::group_sum(sum, block);
        payload.extend_from_slice(format::payload(block, &header));
        blocks.extend_from_slice(block);
        if header.last {
            return Ok(Some((blocks, payload, sum)));
        }
        at = Lsn(at.0 + BLOCK as u64);
    }
    Ok(None)
}

/// A block beyond the end that was written when the log was durable past the end proves
/// that what is missing was acknowledged. A block of another store, or of an epoch this
/// store has not reached, proves that log and volume do not belong together.
fn find_damage(window: &mut Window<'_>, found: &mut Scan, limit: u64) -> Result<()> {
    let (end, mut damage) = (found.end, None);
    let (mut at, mut blocks, mut strange) = (end, 0u64, 0u64);
    let (capacity, length) = (window.expect.capacity, window.length);
    while at.0 < limit {
        if at.0 % capacity + BLOCK as u64 > length {
            // A superblock may claim a terabyte: on to where the file begins again.
            at = Lsn(at.0 + (capacity - at.0 % capacity));
            continue;
        }
        if let Some((header, _)) = window.block(at)? {
            found.newest.add(&header);
            let blind = mutation::is(Mutation::R04Middle);
            if header.lsn == at && header.durable > end && !blind {
                damage.get_or_insert((at, header.durable));
            }
        }
        if window.expect.required {
            blocks += 1;
            strange += u64::from(window.is_strange(at, found)?);
        }
        at = Lsn(at.0 + BLOCK as u64);
    }
    if found.newest.checkpoint > window.expect.sequence {
        // Nothing of the log is missing, but the superblock that it was written under.
        return Ok(());
    }
    if let Some((at, durable)) = damage {
        let detail = format!(
            "damaged in its middle: the block at LSN {at} was written when all before {durable} \
             was durable"
        );
        return Err(Error::corrupt(format!("log at LSN {end}"), detail));
    }
    // A few may be what a device left of a torn write.
    if end == window.expect.from && strange * 2 > blocks {
        let detail = format!("{strange} of its {blocks} blocks are none: it is no log");
        return Err(Error::corrupt("log", detail));
    }
    Ok(())
}
