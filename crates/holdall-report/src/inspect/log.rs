//! The log in words.

use super::text_lines::{Hex, Text};
use holdall::Error;
use holdall::inspect::{InPlaceKind, LogBlock, LogDump, LogEnd, LogPart, Part, Ranges, Record};

/// What stands above the parts of a log.
pub fn log(log: &LogDump) -> String {
    let mut text = Text::default();
    match (log.file_bytes, log.required) {
        (None, true) => text.line(
            0,
            format_args!("log: missing, although the store needs it: put it back beside the store"),
        ),
        (None, false) => text.line(0, format_args!("log: none: the store was closed")),
        (Some(0), true) => text.line(
            0,
            format_args!(
                "log: empty, although the store needs it: put back the log that was beside the \
                 store"
            ),
        ),
        (Some(0), false) => {
            text.line(0, format_args!("log: empty, and the store, which was closed, needs none"))
        }
        (Some(length), _) => {
            let (used, id, epoch) = (log.log_bytes, Hex(&log.store_id), log.epoch);
            text.line(
                0,
                format_args!("log of {length} bytes, {used} in use; store {id}, epoch {epoch}"),
            );
            let (replay, in_place) = (log.replay, log.in_place);
            text.line(0, format_args!("replay from LSN {replay}, in place up to LSN {in_place}"));
        }
    }
    text.finish()
}

/// A part of a log; of a group, what stands above its records.
pub fn log_part(part: &LogPart) -> String {
    let mut text = Text::default();
    match part {
        LogPart::Group(group) => {
            let (at, blocks, bytes) = (group.lsn, group.blocks, group.payload.len());
            text.line(
                0,
                format_args!(
                    "group at LSN {at}: {blocks} blocks, {bytes} bytes, all before LSN {} \
                     durable, superblock {}, checksum {:08x}",
                    group.durable, group.superblock, group.checksum
                ),
            );
        }
        LogPart::End(at, LogEnd::Full) => {
            text.line(0, format_args!("end at LSN {at}: the log is full"));
        }
        LogPart::End(at, LogEnd::Block(next, found)) => {
            let found = block(found);
            text.line(0, format_args!("end at LSN {at}: the block at LSN {next} is {found}"));
        }
        LogPart::End(at, LogEnd::Stray(next, group)) => text.line(
            0,
            format_args!(
                "end at LSN {at}: the block at LSN {next} belongs to group {group} or does not \
                 follow the one before"
            ),
        ),
        LogPart::Short => text.line(
            0,
            format_args!("the file is shorter than the log: its other blocks are not shown"),
        ),
        LogPart::Behind(first, last, found) => {
            let found = block(found);
            text.line(0, format_args!("blocks at LSN {first} to {last}: {found}"));
        }
        // A newer engine may know more.
        _ => {}
    }
    text.finish()
}

/// What lies where a block belongs.
pub(super) fn block(found: &LogBlock) -> String {
    match found {
        LogBlock::Beyond => "beyond the end of the file".into(),
        LogBlock::NeverWritten => "never written".into(),
        LogBlock::Damaged => "torn or damaged: its checksum is wrong".into(),
        LogBlock::OtherStore(id) => format!("of another store, {}", Hex(id)),
        LogBlock::OtherEpoch(epoch) => format!("of epoch {epoch}"),
        LogBlock::EarlierLap => "of an earlier lap".into(),
        LogBlock::Unfinished(group) => format!("valid, of the unfinished group {group}"),
        LogBlock::Proof(durable) => format!(
            "valid, and written when all before LSN {durable} was durable: the log is damaged"
        ),
        // A newer engine may know more.
        _ => "of another sort".into(),
    }
}

/// A record of a group, or the bytes that are none.
pub fn record(record: &Result<Record<'_>, (Error, &[u8])>) -> String {
    let mut text = Text::default();
    match record {
        Ok(record) => show(&mut text, record),
        Err((e, rest)) => {
            text.line(1, format_args!("{e}"));
            text.hex(1, rest, 256);
        }
    }
    text.finish()
}

fn changes(text: &mut Text, what: std::fmt::Arguments<'_>, checksum: u32, ranges: &Ranges<'_>) {
    let (count, bytes) = ranges.iter().fold((0, 0), |(n, all), (_, b)| (n + 1, all + b.len()));
    let line =
        format_args!("{what}, {bytes} bytes in {count} ranges, then checksum {checksum:08x}");
    text.line(1, line);
    for (at, bytes) in ranges.iter() {
        let shown = bytes.get(..24).unwrap_or(bytes);
        let more = if shown.len() < bytes.len() { ".." } else { "" };
        let end = at + bytes.len();
        text.line(2, format_args!("{at}..{end}: {}{more}", Hex(shown)));
    }
}

fn show(text: &mut Text, record: &Record<'_>) {
    match record {
        Record::Page { page, new, checksum, ranges } => {
            let what = if *new { "new" } else { "changed" };
            changes(text, format_args!("page {page}: {what}"), *checksum, ranges);
        }
        Record::FromImage { page, image, before, checksum, ranges } => {
            let what = format_args!(
                "page {page}: from its image at page {image} with checksum {before:08x}"
            );
            changes(text, what, *checksum, ranges);
        }
        Record::Segment { page, bytes } => {
            text.line(1, format_args!("segment data from page {page}: {} bytes", bytes.len()));
        }
        Record::Composed { page, checksum, parts } => {
            match parts.iter().collect::<Result<Vec<_>, _>>() {
                Ok(parts) => {
                    let bytes: u64 = parts.iter().map(Part::len).sum();
                    let of = format_args!(
                        "segment data from page {page}: {bytes} bytes with checksum {checksum:08x}, of"
                    );
                    text.line(1, of);
                    parts.iter().for_each(|part| source(text, part));
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

fn source(text: &mut Text, part: &Part<'_>) {
    match part {
        Part::Bytes(b) => text.line(2, format_args!("{} new bytes", b.len())),
        Part::Copy { from, len } => {
            text.line(2, format_args!("{len} bytes that lie at byte {from}"));
        }
        Part::Zeros(len) => text.line(2, format_args!("{len} zeros")),
    }
}
