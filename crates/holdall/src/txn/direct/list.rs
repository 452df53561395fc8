//! The list of data in place that a commit relies on, and what recovery does with it.
//!
//! Owns: [`List`]. The volume is synced while the group is, so that a commit of up to 32 MiB costs
//! the time of one sync. A crash may then leave the group without its data: the last group counts
//! only if all that it lists is there (docs/recovery.md, "One sync").

use crate::log::io_error;
use crate::txn::Volume;
use holdall_core::bytes::Reader;
use holdall_core::checksum::crc;
use holdall_core::log_format::{InPlaceKind, Record, next_record, push_in_place};
use holdall_core::{Error, PageNo, PageRun, Result, page};
use std::ops::ControlFlow;

/// Most bytes in place that a group may list: recovery reads them twice and writes them once.
/// More are synced before their commit, which then takes little of its time.
const MOST_BYTES: u64 = 32 << 20;
/// Bytes under one checksum of segment data.
const UNIT: usize = 4096;
/// Recovery reads and writes pieces of this size.
const BYTES_PER_READ: usize = 1 << 20;

/// What a transaction wrote in place, with checksums.
#[derive(Debug, Default)]
pub(super) struct List {
    /// Records for the log.
    records: Vec<u8>,
    bytes: u64,
}

impl List {
    /// Lists `run`, of `bytes` bytes, with the checksums of its parts.
    pub(super) fn push(
        &mut self,
        run: PageRun,
        bytes: u64,
        kind: InPlaceKind,
        checksums: impl Iterator<Item = u32>,
    ) {
        self.bytes += bytes;
        if self.bytes <= MOST_BYTES {
            let sums: Vec<u8> = checksums.flat_map(u32::to_le_bytes).collect();
            push_in_place(&mut self.records, run.start, run.len, kind, crc(&sums));
        }
    }

    /// Lists neighbouring sealed pages.
    pub(super) fn push_pages(&mut self, first: PageNo, pages: &[&[u8]]) {
        let bytes: usize = pages.iter().map(|page| page.len()).sum();
        let run = PageRun::new(first, pages.len() as u64);
        let sums = pages.iter().map(|page| page::stored_checksum(page));
        self.push(run, bytes as u64, InPlaceKind::Pages, sums);
    }

    /// Whether the group, which lists `others` bytes already, may list it too.
    pub(super) fn fits(&self, others: u64) -> bool {
        others.saturating_add(self.bytes) <= MOST_BYTES
    }

    /// It has been synced: nothing is left to list.
    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.bytes = 0;
    }

    /// Bytes listed.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The records, for the log.
    pub(super) fn take_records(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.records)
    }
}

/// Whether all that a group lists lies in place as it was written. Cost: one read of it.
///
/// # Errors
/// [`Error::Io`]; [`Error::Corrupt`] if the group is none.
pub fn holds(volume: &Volume, payload: &[u8]) -> Result<bool> {
    let mut all = true;
    each(payload, volume.page_size(), |run, kind, checksum| {
        all = run_holds(volume, run, kind, checksum)?;
        Ok(if all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(all)
}

/// Writes again and syncs what a group lists: the sync may have failed before the crash, and
/// what is read now may still be lost (rule 7). Returns whether it lists anything. Cost: a read
/// and a write of it, one sync.
///
/// # Errors
/// As [`holds`].
pub fn write_again(volume: &Volume, payload: &[u8]) -> Result<bool> {
    let mut any = false;
    each(payload, volume.page_size(), |run, _, _| {
        any = true;
        pieces(volume, run, |first, bytes| volume.write_bulk(first, bytes))?;
        Ok(ControlFlow::Continue(()))
    })?;
    if any {
        volume.sync()?;
    }
    Ok(any)
}

fn each(
    payload: &[u8],
    page_size: usize,
    mut f: impl FnMut(PageRun, InPlaceKind, u32) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let mut reader = Reader::new(payload);
    let mut left = MOST_BYTES / page_size as u64;
    while let Some(record) = next_record(&mut reader)? {
        let Record::InPlace { page, count, kind, checksum } = record else { continue };
        let end = page.0.checked_add(count).filter(|end| *end <= PageNo::MAX.0);
        // A record of 28 bytes may name the whole volume, to be read twice and written.
        if count == 0 || end.is_none() || count > left {
            return Err(Error::corrupt("log record", format!("{count} pages at page {page}")));
        }
        left -= count;
        if f(PageRun::new(page, count), kind, checksum)?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

fn run_holds(volume: &Volume, run: PageRun, kind: InPlaceKind, checksum: u32) -> Result<bool> {
    let size = volume.page_size();
    let (mut sums, mut whole) = (Vec::new(), true);
    let there = pieces(volume, run, |first, bytes| {
        match kind {
            InPlaceKind::Units => {
                sums.extend(bytes.chunks(UNIT).flat_map(|u| crc(u).to_le_bytes()))
            }
            InPlaceKind::Pages => {
                for (no, page) in (first.0..).zip(bytes.chunks_exact(size)) {
                    whole &= page::check(page, PageNo(no)).is_ok();
                    sums.extend(page::stored_checksum(page).to_le_bytes());
                }
            }
        }
        Ok(())
    })?;
    Ok(there && whole && crc(&sums) == checksum)
}

/// Reads a run piece by piece. Returns whether the file reaches so far: the crash may have
/// undone its growth.
fn pieces(
    volume: &Volume,
    run: PageRun,
    mut f: impl FnMut(PageNo, &[u8]) -> Result<()>,
) -> Result<bool> {
    let size = volume.page_size() as u64;
    let most = BYTES_PER_READ as u64 / size;
    let (mut at, mut buffer) = (run.start.0, Vec::new());
    while at < run.end() {
        let count = most.min(run.end() - at);
        buffer.resize((count * size) as usize, 0);
        match volume.disk.read_at(at * size, &mut buffer) {
            Ok(()) => f(PageNo(at), &buffer)?,
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(e) => return Err(io_error(format!("reading {count} pages at page {at}"), e)),
        }
        at += count;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::txn::fixture;
    use holdall_core::Lsn;
    use holdall_core::log_format::push_commit;
    use holdall_core::page::PageKind;
    use holdall_io::MemoryDisk;
    use std::sync::Arc;

    const SIZE: usize = 4096;

    fn volume() -> Volume {
        fixture::volume(Arc::new(MemoryDisk::from_bytes(vec![0; 600 * SIZE])), SIZE)
    }

    /// Two sealed pages at 10 and a run of segment data at 20, longer than a piece.
    fn group(volume: &Volume) -> Vec<u8> {
        let mut list = List::default();
        let pages = [10, 11].map(|no| {
            let mut page = vec![0; SIZE];
            page::format(&mut page, PageKind::Heap, PageNo(no), 0);
            page::seal(&mut page, Lsn(5));
            page
        });
        volume.write_pages(PageNo(10), &pages.concat()).unwrap();
        list.push_pages(PageNo(10), &[&pages[0], &pages[1]]);
        let data: Vec<u8> = (0..300 * SIZE).map(|i| (i / 7) as u8).collect();
        volume.write_pages(PageNo(20), &data).unwrap();
        let run = PageRun::new(PageNo(20), 300);
        list.push(run, data.len() as u64, InPlaceKind::Units, data.chunks(UNIT).map(crc));
        assert_eq!(list.bytes(), 302 * SIZE as u64);
        let mut payload = list.take_records();
        push_commit(&mut payload, Lsn(6));
        payload
    }

    #[test]
    fn a_group_holds_until_a_byte_of_what_it_lists_is_another() {
        let volume = volume();
        let payload = group(&volume);
        assert!(holds(&volume, &payload).unwrap());
        for at in [10 * SIZE, 12 * SIZE - 1, 20 * SIZE, 319 * SIZE + 77] {
            let mut byte = [0];
            volume.disk.read_at(at as u64, &mut byte).unwrap();
            volume.disk.write_at(at as u64, &[byte[0] ^ 1]).unwrap();
            assert!(!holds(&volume, &payload).unwrap(), "byte {at}");
            volume.disk.write_at(at as u64, &byte).unwrap();
        }
        // Neighbours are of no account.
        volume.disk.write_at(12 * SIZE as u64, &[1]).unwrap();
        assert!(holds(&volume, &payload).unwrap());
        assert!(write_again(&volume, &payload).unwrap());
        assert!(!write_again(&volume, &[]).unwrap(), "nothing is listed");
        assert!(holds(&volume, &payload).unwrap());
    }

    #[test]
    fn a_file_cut_before_the_data_does_not_hold_it() {
        let volume = volume();
        let payload = group(&volume);
        volume.disk.truncate(319 * SIZE as u64).unwrap();
        assert!(!holds(&volume, &payload).unwrap());
    }

    #[test]
    fn impossible_runs_and_more_than_a_group_may_list_are_errors() {
        let volume = volume();
        let none = crc(&crc(&[0; SIZE]).to_le_bytes());
        let most = MOST_BYTES / SIZE as u64;
        for (page, count) in
            [(PageNo(u64::MAX), 1), (PageNo(3), u64::MAX), (PageNo(3), 0), (PageNo(3), most)]
        {
            let mut payload = Vec::new();
            push_in_place(&mut payload, PageNo(0), 1, InPlaceKind::Units, none);
            push_in_place(&mut payload, page, count, InPlaceKind::Pages, 0);
            assert!(matches!(holds(&volume, &payload), Err(Error::Corrupt { .. })));
        }
    }

    #[test]
    fn a_group_lists_so_much_and_no_more() {
        let mut list = List::default();
        list.push(PageRun::new(PageNo(1), 9), MOST_BYTES, InPlaceKind::Units, [1].into_iter());
        assert!(list.fits(0) && !list.fits(1) && !list.records.is_empty());
        list.push(PageRun::new(PageNo(20), 1), 1, InPlaceKind::Units, [1].into_iter());
        assert!(!list.fits(0));
        list.clear();
        assert!(list.fits(MOST_BYTES) && list.records.is_empty());
    }
}
