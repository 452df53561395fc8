//! A crashed store whose log was changed by somebody who can compute checksums: records edited,
//! dropped and made up, blocks sealed again. Opened for reading and for writing.

use super::Input;
use holdall::inspect::{self, LogPart};
use holdall::{Lsn, Options, PageNo, Store, Target};
use holdall_core::bytes::Reader;
use holdall_core::checksum::crc;
use holdall_core::log_format::{
    self as format, BLOCK, BlockHeader, InPlaceKind, MAX_COMPOSED, Part, Record,
};
use holdall_core::page::{self, PageKind};
use holdall_core::superblock::{SLOT_AT, SLOT_BYTES, Superblock};
use holdall_io::{MemoryStorage, Storage};
use std::sync::{Arc, OnceLock};

/// Bytes by which opening and a small commit may make the volume longer: the growth that replay
/// may make again, and a step of the allocator.
const MOST_GROWTH: u64 = (64 << 20) + (1 << 20);

fn options(page_size: usize) -> Options {
    Options::default()
        .background(false)
        .tuning(|t| t.auto_checkpoint(false))
        .page_size(page_size)
        .tuning(|t| t.space_pages(64).log_bytes(1 << 20).first_log_bytes(1 << 20))
        .cache_bytes(1 << 20)
        .max_bytes(128 << 20)
        .tuning(|t| t.store_id([9; 16]))
}

/// A store as a kill leaves it.
struct Crashed {
    volume: Vec<u8>,
    log: Vec<u8>,
    sb: Superblock,
    /// Header and payload of each group.
    groups: Vec<(BlockHeader, Vec<u8>)>,
}

/// Two crashed stores: pages of the least and of the largest size, every sort of record.
fn bases() -> &'static [Crashed] {
    static BASES: OnceLock<Vec<Crashed>> = OnceLock::new();
    BASES.get_or_init(|| [4096, 65536].map(crashed).into())
}

fn crashed(page_size: usize) -> Crashed {
    let storage = Arc::new(MemoryStorage::new());
    let store = options(page_size).create_on(storage.clone()).unwrap();
    let bytes: Vec<u8> = (0..20 * page_size).map(|i| (i / 3) as u8).collect();
    store.write(|tx| tx.put("old", b"old").and_then(|_| tx.put("large", &bytes))).unwrap();
    store.checkpoint().unwrap();
    store.write(|tx| tx.put("small", b"small")).unwrap();
    store.write(|tx| tx.insert("large", 9 * page_size as u64 + 5, b"inserted")).unwrap();
    store.write(|tx| tx.put("logged", &bytes[..page_size])).unwrap();
    store.write(|tx| tx.put("in place", &vec![7; 4 * page_size + (128 << 10)])).unwrap();
    store.write(|tx| tx.copy("large", Target::New).and_then(|_| tx.remove("old"))).unwrap();
    let (volume, log) = storage.snapshot();
    let slots = SLOT_AT.map(|at| Superblock::decode(&volume[at as usize..][..SLOT_BYTES]).unwrap());
    let sb = slots.into_iter().flatten().max_by_key(|sb| sb.sequence).unwrap();
    let log = log.unwrap();
    let groups = groups(&log, &sb);
    assert!(groups.len() >= 5, "{} groups", groups.len());
    Crashed { volume, log, sb, groups }
}

fn groups(log: &[u8], sb: &Superblock) -> Vec<(BlockHeader, Vec<u8>)> {
    let (mut at, mut found, mut payload) = (sb.replay.0, Vec::new(), Vec::new());
    loop {
        let block = &log[(at % sb.log_bytes) as usize..][..BLOCK];
        let header = BlockHeader::decode(block, &sb.store_id, sb.epoch);
        let Some(header) = header.filter(|h| h.lsn.0 == at) else { return found };
        payload.extend_from_slice(format::payload(block, &header));
        at += BLOCK as u64;
        if header.last {
            found.push((header, std::mem::take(&mut payload)));
        }
    }
}

/// Numbers that are likely to matter.
fn number(input: &mut Input<'_>, pages: u64) -> u64 {
    let small = u64::from(input.u8());
    match input.u8() % 8 {
        0 => small,
        1 => pages.saturating_sub(small),
        2 => pages + small,
        3 => pages + (small << 8),
        4 => 1 << (small % 64),
        5 => (1 << 48) - small,
        6 => u64::MAX - small,
        _ => u64::from(input.u16()),
    }
}

/// The checksum of `len` zeros.
fn zeros(len: u64) -> u32 {
    static SUMS: OnceLock<[u32; 2]> = OnceLock::new();
    let sums = SUMS.get_or_init(|| [1 << 20, MAX_COMPOSED].map(|n| crc(&vec![0; n as usize])));
    match len {
        MAX_COMPOSED => sums[1],
        _ => sums[0],
    }
}

/// Appends records that nobody wrote; those of pages have the checksum they must have in a
/// commit at `lsn`.
fn make_up(input: &mut Input<'_>, base: &Crashed, lsn: Lsn, out: &mut Vec<u8>) {
    let size = base.sb.page_size as usize;
    let pages = (base.volume.len() / size) as u64;
    let at = number(input, pages);
    let many = 1 + u64::from(input.u8()) * u64::from(input.u8() % 16);
    match input.u8() % 8 {
        // New pages, one behind the other or far apart.
        0 | 1 => {
            let (kind, step) = (1 + input.u8() % 9, u64::from(input.u8() % 64));
            let kind = PageKind::from_u8(kind).unwrap_or(PageKind::Heap);
            for i in 0..many {
                let no = PageNo(at.saturating_add(i * step.max(1)));
                let mut bytes = vec![0; size];
                page::format(&mut bytes, kind, PageNo(no.0 & PageNo::MAX.0), 0);
                input.edit(&mut bytes, page::HEADER, 4);
                page::seal(&mut bytes, lsn);
                format::push_page(out, no, None, &bytes);
            }
        }
        // A page that is there, changed.
        2 => {
            let at = at % pages;
            let old = &base.volume[at as usize * size..][..size];
            let mut bytes = old.to_vec();
            input.edit(&mut bytes, page::HEADER, 6);
            page::seal(&mut bytes, lsn);
            format::push_page(out, PageNo(at), Some(old), &bytes);
        }
        3 => format::push_segment(out, PageNo(at), &vec![1; size * usize::from(input.u8() % 4)]),
        4 | 5 => {
            let len = if input.u8() & 1 == 0 { 1 << 20 } else { MAX_COMPOSED };
            let from = number(input, base.volume.len() as u64);
            for i in 0..many {
                let part = if from & 1 == 0 { Part::Zeros(len) } else { Part::Copy { from, len } };
                let no = PageNo(at.saturating_add(i));
                format::push_composed(out, no, zeros(len), &[part]);
            }
        }
        6 => {
            let kind = if input.u8() & 1 == 0 { InPlaceKind::Units } else { InPlaceKind::Pages };
            format::push_in_place(out, PageNo(at), number(input, pages), kind, input.u32());
        }
        _ => format::push_commit(out, Lsn(number(input, lsn.0))),
    }
}

/// The LSN of a group's last commit.
fn commit_of(payload: &[u8]) -> Option<Lsn> {
    let (mut reader, mut last) = (Reader::new(payload), None);
    while let Ok(Some(record)) = format::next_record(&mut reader) {
        if let Record::Commit { lsn } = record {
            last = Some(lsn);
        }
    }
    last
}

/// The base's files with what the input changes.
fn changed(input: &mut Input<'_>, base: &Crashed) -> (Vec<u8>, Vec<u8>) {
    let (mut volume, mut log) = (base.volume.clone(), base.log.clone());
    let keep = base.groups.len() - usize::from(input.u8() % 3).min(base.groups.len() - 1);
    let target = usize::from(input.u8()) % keep;
    let (mut previous, mut at) = (base.groups[0].0.previous, base.sb.replay);
    for (i, (header, payload)) in base.groups[..keep].iter().enumerate() {
        let (mut payload, header) = (payload.clone(), BlockHeader { previous, lsn: at, ..*header });
        if i == target {
            let how = input.u8();
            if how & 1 == 0 {
                input.edit(&mut payload, 0, 4);
            }
            let lsn = commit_of(&payload).unwrap_or(Lsn(at.0 + 1));
            let mut made = Vec::new();
            for _ in 0..how >> 1 & 3 {
                make_up(input, base, lsn, &mut made);
            }
            // In front: all of it is one commit with what follows.
            payload.splice(0..0, made);
        }
        let (mut blocks, mut sum) = format::build_group(&header, &payload);
        if i == target && input.u8() & 3 == 0 {
            sum = 0;
            for block in blocks.chunks_mut(BLOCK) {
                input.edit(block, 24, 2);
                let seal = crc(&block[4..]).to_le_bytes();
                block[..4].copy_from_slice(&seal);
                sum = format::group_sum(sum, block);
            }
        }
        for block in blocks.chunks(BLOCK) {
            log[(at.0 % base.sb.log_bytes) as usize..][..BLOCK].copy_from_slice(block);
            at = Lsn(at.0 + BLOCK as u64);
        }
        previous = sum;
    }
    if input.u8() & 7 == 0 {
        // A superblock in both places that says something else.
        let mut slot = base.sb.encode();
        input.edit(&mut slot[56..140], 0, 3);
        let seal = crc(&slot[12..]).to_le_bytes();
        slot[8..12].copy_from_slice(&seal);
        for at in SLOT_AT {
            volume[at as usize..][..SLOT_BYTES].copy_from_slice(&slot);
        }
    }
    (volume, log)
}

/// A crashed store whose log ends with one more group of one commit: `records` gives it, called
/// with the commit's LSN and the pages of the volume.
pub fn one_more_group(
    page_size: usize,
    records: impl FnOnce(Lsn, u64) -> Vec<u8>,
) -> (MemoryStorage, Options) {
    let base = crashed(page_size);
    let mut log = base.log;
    let (last, payload) = &base.groups[base.groups.len() - 1];
    let (blocks, sum) = format::build_group(last, payload);
    let at = Lsn(last.group.0 + blocks.len() as u64);
    let mut payload = records(Lsn(at.0 + 1), (base.volume.len() / page_size) as u64);
    format::push_commit(&mut payload, Lsn(at.0 + 1));
    let header = BlockHeader { lsn: at, group: at, durable: at, previous: sum, ..*last };
    let (blocks, _) = format::build_group(&header, &payload);
    for (i, block) in blocks.chunks(BLOCK).enumerate() {
        let at = at.0 + (i * BLOCK) as u64;
        log[(at % base.sb.log_bytes) as usize..][..BLOCK].copy_from_slice(block);
    }
    (MemoryStorage::from_bytes(base.volume, Some(log)), options(page_size))
}

/// Reads what there is; whatever is nonsense is an error.
fn read_all(store: &Store) {
    let _ = (store.verify(), store.stat());
    let Ok(reader) = store.read() else { return };
    for name in ["small", "large", "logged", "in place"] {
        let read = reader.open(name).and_then(|object| {
            let mut buf = vec![0; object.size().min(1 << 20) as usize];
            object.read_at(0, &mut buf)
        });
        let _ = (read, reader.metadata(name), reader.segments(name));
    }
}

/// Looks at each record of the log, as far as they go.
fn dump_log(storage: &dyn Storage) {
    let Ok(log) = inspect::log_of(storage) else { return };
    for part in log {
        let Ok(LogPart::Group(group)) = part else { continue };
        for record in group.records() {
            match record {
                Ok(Record::Page { ranges, .. }) => drop(ranges.iter().count()),
                Ok(Record::Composed { parts, .. }) => drop(parts.iter().count()),
                _ => {}
            }
        }
    }
}

/// Opens a crashed store with a changed log, first for reading, then for writing.
pub fn hostile_log(data: &[u8]) {
    let mut input = Input(data);
    let base = &bases()[usize::from(input.u8() & 1)];
    let (volume, log) = changed(&mut input, base);
    let before = volume.len() as u64;
    let storage = Arc::new(MemoryStorage::from_bytes(volume, Some(log)));
    let options = options(base.sb.page_size as usize);
    if let Ok(store) = options.open_read_only_on(storage.clone()) {
        read_all(&store);
    }
    dump_log(&*storage);
    if let Ok(store) = options.open_on(storage.clone()) {
        let _ = store.write(|tx| tx.put("after", b"after"));
        read_all(&store);
        let _ = store.close();
    }
    let after = storage.volume().len().unwrap();
    assert!(after <= before + MOST_GROWTH, "grown from {before} to {after} bytes");
}
