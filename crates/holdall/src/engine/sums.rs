//! Sums of objects' bytes beside the store: [`Options::debug_sums`](super::Options::debug_sums).
//!
//! Owns: [`Sums`], the file `STORE-sums` and what it says, all of it in memory. The checksums of
//! segment data are of places: old bytes in the place of newer ones have right ones. A sum here
//! is of an object's version, which no other bytes ever get (rule 26), wherever they lie.
//!
//! An entry is added once its commit is installed, before it is acknowledged. An entry of a
//! commit that a crash takes back is never looked for again. One that is missing means that its
//! version is not compared. So the file needs no sync, and a store is as safe with it as without.
//!
//! The file is one record of 48 bytes behind the other, numbers little-endian. The first: the
//! eight letters `holdsums`; the format, 1 (4 bytes); the store's id (16); zeros (16). All others:
//! OID (12); epoch (4) and number (8) of the version; length (8) and CRC-64/NVME (8) of the
//! bytes; zeros (4). Each ends with the CRC-32C of its other bytes. A record that is torn or
//! contradicts its CRC is passed over; of two for a version the later one counts.
//!
//! Threads: any; a mutex orders additions.

use holdall_core::bytes::{put_u32, put_u64, u32_at, u64_at};
use holdall_core::checksum::{Sum, crc};
use holdall_core::version::Change;
use holdall_core::{Error, Lsn, Oid, Result};
use holdall_io::{Disk, Storage};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

const RECORD: usize = 48;
const CRC_AT: usize = RECORD - 4;
const MAGIC: &[u8; 8] = b"holdsums";
const FORMAT: u32 = 1;
/// Records read at once.
const RECORDS_PER_READ: usize = 4096;

/// What an object's bytes are at one of its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) oid: Oid,
    pub(crate) change: Change,
    pub(crate) sum: Sum,
}

/// An entry of one object, and the commit that made it: LSN 0 for one of an earlier opening.
#[derive(Debug, Clone, Copy)]
struct Known {
    lsn: Lsn,
    change: Change,
    sum: Sum,
}

/// All sums of a store.
#[derive(Debug)]
pub(crate) struct Sums {
    disk: Arc<dyn Disk>,
    state: Mutex<SumsState>,
}

#[derive(Debug, Default)]
struct SumsState {
    /// Where the next record goes.
    end: u64,
    /// In the order of their commits.
    known: HashMap<Oid, Vec<Known>>,
}

impl SumsState {
    fn add(&mut self, lsn: Lsn, Entry { oid, change, sum }: Entry) {
        self.known.entry(oid).or_default().push(Known { lsn, change, sum });
    }
}

impl Sums {
    /// Reads the file, and makes it if it is missing or of another store, unless `read_only`.
    /// Cost: all of the file; memory of about 60 bytes for each change of an object.
    ///
    /// # Errors
    /// [`Error::NotFound`] with `read_only` if there are no sums of this store;
    /// [`Error::Invalid`] if something else has the file's name; [`Error::Io`].
    pub(crate) fn open(
        storage: &dyn Storage,
        store_id: &[u8; 16],
        read_only: bool,
    ) -> Result<Self> {
        let name = format!("{}-sums", storage.name());
        let fail = |e| Error::io("opening the sums", e);
        let missing = || Error::NotFound(format!("sums of this store in {name}"));
        let disk = storage.open_sums(!read_only).map_err(fail)?.ok_or_else(missing)?;
        let len = disk.len().map_err(fail)?;
        let mut first = [0; RECORD];
        let start = &mut first[..RECORD.min(usize::try_from(len).unwrap_or(RECORD))];
        disk.read_at(0, start).map_err(fail)?;
        let letters = &start[..start.len().min(MAGIC.len())];
        if !MAGIC.starts_with(letters) {
            return Err(Error::Invalid(format!("{name} is no file of sums; move it away")));
        }
        let head = header(store_id);
        if first == head {
            let state = load(&*disk, len).map_err(fail)?;
            return Ok(Self { disk, state: Mutex::new(state) });
        }
        if read_only {
            return Err(missing());
        }
        // Torn, or of a store that was here before.
        disk.truncate(0).and_then(|()| disk.write_at(0, &head)).map_err(fail)?;
        let state = SumsState { end: RECORD as u64, ..SumsState::default() };
        Ok(Self { disk, state: Mutex::new(state) })
    }

    /// Adds what the commit `lsn` made of objects.
    pub(crate) fn add(&self, lsn: Lsn, entries: &[Entry]) {
        let bytes: Vec<u8> = entries.iter().flat_map(encode).collect();
        let mut state = self.state.lock();
        // The commit has happened: what cannot be written here is only not compared later.
        if self.disk.write_at(state.end, &bytes).is_ok() {
            state.end += bytes.len() as u64;
        }
        entries.iter().for_each(|entry| state.add(lsn, *entry));
    }

    /// The sum of an object's bytes at this version, if it was noted.
    pub(crate) fn get(&self, oid: Oid, change: Change) -> Option<Sum> {
        let state = self.state.lock();
        let known = state.known.get(&oid)?.iter().rev();
        known.into_iter().find(|k| k.change == change).map(|k| k.sum)
    }

    /// The newest version of an object that a state at `seen` must have, if one of `epoch` was
    /// noted. Epochs end with a crash, which may take commits back, so others prove nothing.
    pub(crate) fn newest(&self, oid: Oid, epoch: u32, seen: Lsn) -> Option<Change> {
        let state = self.state.lock();
        let known = state.known.get(&oid)?.iter().rev();
        known.into_iter().find(|k| k.change.epoch == epoch && k.lsn <= seen).map(|k| k.change)
    }
}

fn header(store_id: &[u8; 16]) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[..8].copy_from_slice(MAGIC);
    put_u32(&mut record, 8, FORMAT);
    record[12..28].copy_from_slice(store_id);
    sealed(record)
}

fn encode(entry: &Entry) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[..Oid::BYTES].copy_from_slice(&entry.oid.to_bytes());
    put_u32(&mut record, 12, entry.change.epoch);
    put_u64(&mut record, 16, entry.change.count);
    put_u64(&mut record, 24, entry.sum.len);
    put_u64(&mut record, 32, entry.sum.crc);
    sealed(record)
}

fn sealed(mut record: [u8; RECORD]) -> [u8; RECORD] {
    let sum = crc(&record[..CRC_AT]);
    put_u32(&mut record, CRC_AT, sum);
    record
}

fn decode(record: &[u8]) -> Option<Entry> {
    let record: &[u8; RECORD] = record.try_into().ok()?;
    if crc(&record[..CRC_AT]) != u32_at(record, CRC_AT) {
        return None;
    }
    let oid = Oid::from_bytes(record[..Oid::BYTES].try_into().ok()?);
    let change = Change { epoch: u32_at(record, 12), count: u64_at(record, 16) };
    let sum = Sum { len: u64_at(record, 24), crc: u64_at(record, 32) };
    Some(Entry { oid, change, sum })
}

/// All entries of a file of `len` bytes. A torn end is where the next record goes.
fn load(disk: &dyn Disk, len: u64) -> std::io::Result<SumsState> {
    let end = len / RECORD as u64 * RECORD as u64;
    let mut state = SumsState { end, ..SumsState::default() };
    let (mut at, mut buffer) = (RECORD as u64, vec![0; RECORDS_PER_READ * RECORD]);
    while at < end {
        let n = buffer.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
        disk.read_at(at, &mut buffer[..n])?;
        let entries = buffer[..n].chunks_exact(RECORD).filter_map(decode);
        entries.for_each(|entry| state.add(Lsn(0), entry));
        at += n as u64;
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_io::MemoryStorage;

    const ID: [u8; 16] = [7; 16];

    fn oid(unique: u32) -> Oid {
        Oid { site: 0, page: 1, slot: 2, unique }
    }

    fn entry(unique: u32, (epoch, count): (u32, u64), bytes: &[u8]) -> Entry {
        Entry { oid: oid(unique), change: Change { epoch, count }, sum: Sum::compute(bytes) }
    }

    #[test]
    fn entries_are_there_after_reopening_and_a_torn_end_is_passed_over() {
        let storage = MemoryStorage::new();
        let sums = Sums::open(&storage, &ID, false).unwrap();
        let entries = [entry(1, (0, 0), b"a"), entry(1, (3, 1), b"b"), entry(2, (3, 1), b"c")];
        sums.add(Lsn(10), &entries[..2]);
        sums.add(Lsn(20), &entries[2..]);
        let disk = storage.open_sums(false).unwrap().unwrap();
        assert_eq!(disk.len().unwrap(), 4 * RECORD as u64);
        disk.truncate(4 * RECORD as u64 - 1).unwrap();
        let sums = Sums::open(&storage, &ID, true).unwrap();
        assert_eq!(sums.get(oid(1), Change::NONE), Some(Sum::compute(b"a")));
        assert_eq!(sums.get(oid(1), entries[1].change), Some(Sum::compute(b"b")));
        assert_eq!(sums.get(oid(2), entries[2].change), None);
        // The next one lies over it, and a later one for a version counts.
        let sums = Sums::open(&storage, &ID, false).unwrap();
        sums.add(Lsn(30), &[entries[2], entry(1, (3, 1), b"d")]);
        disk.write_at(RECORD as u64 + 30, b"x").unwrap();
        let sums = Sums::open(&storage, &ID, true).unwrap();
        assert_eq!(sums.get(oid(1), Change::NONE), None, "its CRC is wrong");
        assert_eq!(sums.get(oid(1), entries[1].change), Some(Sum::compute(b"d")));
        assert_eq!(sums.get(oid(2), entries[2].change), Some(Sum::compute(b"c")));
    }

    #[test]
    fn the_newest_version_is_of_the_epoch_and_of_what_is_seen() {
        let storage = MemoryStorage::new();
        let sums = Sums::open(&storage, &ID, false).unwrap();
        sums.add(Lsn(10), &[entry(1, (3, 1), b"a")]);
        sums.add(Lsn(20), &[entry(1, (3, 2), b"b")]);
        let newest = |sums: &Sums, epoch, seen| {
            sums.newest(oid(1), epoch, Lsn(seen)).map(|change| change.count)
        };
        assert_eq!(
            [9, 10, 19, 20].map(|seen| newest(&sums, 3, seen)).to_vec(),
            [None, Some(1), Some(1), Some(2)]
        );
        assert_eq!(newest(&sums, 4, 20), None);
        let sums = Sums::open(&storage, &ID, true).unwrap();
        assert_eq!(newest(&sums, 3, 0), Some(2));
    }

    #[test]
    fn only_sums_are_written_over_and_only_by_a_writer() {
        let storage = MemoryStorage::new();
        assert!(matches!(Sums::open(&storage, &ID, true), Err(Error::NotFound(_))));
        Sums::open(&storage, &ID, false).unwrap().add(Lsn(1), &[entry(1, (0, 0), b"a")]);
        let disk = storage.open_sums(false).unwrap().unwrap();
        // Those of another store are begun anew.
        assert!(matches!(Sums::open(&storage, &[8; 16], true), Err(Error::NotFound(_))));
        assert_eq!(disk.len().unwrap(), 2 * RECORD as u64);
        let sums = Sums::open(&storage, &[8; 16], false).unwrap();
        assert_eq!((disk.len().unwrap(), sums.get(oid(1), Change::NONE)), (RECORD as u64, None));
        disk.truncate(5).unwrap();
        Sums::open(&storage, &ID, false).unwrap();
        for text in [&b"hold"[..], b"text", b"a longer text than the head of a file of sums has"] {
            disk.truncate(0).unwrap();
            disk.write_at(0, text).unwrap();
            let opened = Sums::open(&storage, &ID, false);
            assert_eq!(opened.is_ok(), text == b"hold", "{text:?}");
        }
    }
}
