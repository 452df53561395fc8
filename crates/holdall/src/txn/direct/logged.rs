//! Segment data that passes through the log.
//!
//! Owns: its records, and how much may go that way.

use super::copied::COPIED_MOST;
use crate::txn::Limits;
use holdall_core::PageNo;
use holdall_core::checksum::crc;
use holdall_core::log_format::{MAX_COMPOSED, Part, push_composed, push_segment};

/// Beyond this many bytes copied by one edit a sync costs less than copying them again after a
/// crash.
const EDIT_COPIED_MOST: u64 = 1 << 20;

/// Most bytes of an object that pass through the log; a longer one is written in place.
pub fn most_logged(limits: &Limits) -> usize {
    limits.log_data_bytes
}

/// Bytes to keep of an object that is put together of `new` ones and `copied` ones, which lie in
/// the volume already; `None` if it is written in place.
pub fn most_composed(limits: &Limits, new: u64, copied: u64) -> Option<u64> {
    let all = new.checked_add(copied).filter(|all| *all <= MAX_COMPOSED)?;
    let fits = copied > 0 && new <= most_logged(limits) as u64 && copied <= EDIT_COPIED_MOST;
    fits.then_some(all)
}

/// What a transaction is given of new segment data.
#[derive(Debug)]
pub enum Given<'a> {
    /// It lies in place.
    Written,
    /// All bytes.
    Bytes(&'a [u8]),
    /// All bytes, and what they are put together of. What is copied lies in pages that stay as
    /// they are until a checkpoint makes them reusable (rule 16), so replay can read them again.
    Composed(&'a [u8], Vec<Part<'a>>),
}

/// Records of segment data.
#[derive(Debug, Default)]
pub(super) struct Logged {
    records: Vec<u8>,
    /// New bytes that they hold.
    bytes: usize,
    /// Bytes that they stand for and do not hold.
    copied: u64,
}

impl Logged {
    /// Adds a record of data at `start`, if no more than `most` bytes gather; returns whether.
    pub(super) fn add(&mut self, start: PageNo, given: Given<'_>, most: usize) -> bool {
        match given {
            Given::Written => return false,
            Given::Bytes(bytes) => {
                self.bytes += bytes.len();
                if self.bytes > most {
                    return false;
                }
                push_segment(&mut self.records, start, bytes);
            }
            Given::Composed(bytes, parts) => {
                let new = |p: &Part<'_>| matches!(p, Part::Bytes(_)).then_some(p.len() as usize);
                self.bytes += parts.iter().filter_map(new).sum::<usize>();
                self.copied += parts.iter().map(Part::unlogged).sum::<u64>();
                if self.bytes > most || self.copied > COPIED_MOST {
                    return false;
                }
                push_composed(&mut self.records, start, crc(bytes), &parts);
            }
        }
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Forgets the records: the data does not go this way.
    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.copied = 0;
    }

    /// Bytes that replay would have to copy.
    pub(super) fn copied(&self) -> u64 {
        self.copied
    }

    pub(super) fn take_records(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.records)
    }
}
