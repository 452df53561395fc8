//! Slotted page with reserved space.
//!
//! Owns the bytes of a heap page of the lab: 84 bytes of header (McAuliffe §4), slots of 4 bytes
//! from the front, records from the end. The header has a table of five reservations, each
//! (transaction, bytes). A record deleted by a transaction leaves a ghost: its slot keeps the
//! length and the place of the reservation, and neither slot nor bytes go to another transaction
//! before [`PageMut::purge`] finds the deleter ended (the lazy way, McAuliffe §3.3). A deleted
//! record's bytes are counted as free at once; [`PageMut::available`] takes off what others have
//! reserved.
//!
//! Invariants: free bytes + what a transaction created here ≥ its reservation, so a rollback in
//! reverse order always finds room. Threads: none.

use super::buckets::OVERHEAD;
use crate::kit::error::{Error, Result};
use crate::mutation::{Mutation, is};
use holdall_core::techniques::bytes::{put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};

/// Reservations a page has room for: the most transactions that may be active at once.
pub const RESERVATIONS: usize = 5;
/// Bytes of a slot: what a record costs beyond its own.
pub const SLOT: usize = 4;

const MAGIC: u32 = 0x4650_4C48;
const NO: usize = 0;
const MARK: usize = 4;
const SLOTS: usize = 8;
const FREE_SLOTS: usize = 10;
/// Bytes from the lowest record to the end of the page.
const TOP: usize = 12;
/// Unused bytes among them.
const HOLES: usize = 14;
const TABLE: usize = 24;
const ENTRY: usize = 12;
/// Offsets from here on mark a ghost of the reservation in the low 4 bits.
const GHOST: u16 = 0xFFF0;

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Free,
    Record { at: usize, len: usize },
    Ghost { entry: usize, len: usize },
}

/// A page to look into and to change.
#[derive(Debug)]
pub struct PageMut<'a> {
    pub(super) bytes: &'a mut [u8],
}

/// The record in `slot` of a page; `None` if the slot holds none.
pub fn record(bytes: &[u8], slot: u16) -> Option<&[u8]> {
    let slot = usize::from(slot);
    if slot >= usize::from(u16_at(bytes, SLOTS)) {
        return None;
    }
    match slot_at(bytes, slot) {
        Slot::Record { at, len } => bytes.get(at..at + len),
        _ => None,
    }
}

/// The records of a page with their slots.
#[cfg(test)]
pub fn records(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    (0..u16_at(bytes, SLOTS)).filter_map(move |slot| Some((slot, record(bytes, slot)?)))
}

/// Whether the bytes are a heap page with number `no`.
pub fn is_page(bytes: &[u8], no: u32) -> bool {
    u32_at(bytes, NO) == no && u32_at(bytes, MARK) == MAGIC
}

fn slot_at(bytes: &[u8], slot: usize) -> Slot {
    let at = OVERHEAD + slot * SLOT;
    let (offset, len) = (u16_at(bytes, at), usize::from(u16_at(bytes, at + 2)));
    match offset {
        0 => Slot::Free,
        GHOST.. => Slot::Ghost { entry: usize::from(offset - GHOST), len },
        _ => Slot::Record { at: usize::from(offset), len },
    }
}

impl<'a> PageMut<'a> {
    /// Makes zeroed bytes an empty page.
    pub fn init(bytes: &'a mut [u8], no: u32) -> Self {
        put_u32(bytes, NO, no);
        put_u32(bytes, MARK, MAGIC);
        Self { bytes }
    }

    /// An existing page.
    /// Errors: [`Error::Corrupt`] if the bytes are not page `no`.
    pub fn new(bytes: &'a mut [u8], no: u32) -> Result<Self> {
        if is_page(bytes, no) {
            return Ok(Self { bytes });
        }
        Err(Error::Corrupt(format!("page {no} holds something else")))
    }

    /// A page just checked by [`PageMut::new`].
    pub fn view(bytes: &'a mut [u8]) -> Self {
        Self { bytes }
    }

    fn get(&self, at: usize) -> usize {
        usize::from(u16_at(self.bytes, at))
    }

    fn put(&mut self, at: usize, value: usize) {
        put_u16(self.bytes, at, value as u16);
    }

    fn put_slot(&mut self, slot: usize, offset: u16, len: usize) {
        let at = OVERHEAD + slot * SLOT;
        self.put(at, usize::from(offset));
        self.put(at + 2, len);
    }

    fn reservation(&self, entry: usize) -> (u64, usize) {
        let at = TABLE + entry * ENTRY;
        (u64_at(self.bytes, at), self.get(at + 8))
    }

    fn put_reservation(&mut self, entry: usize, tx: u64, bytes: usize) {
        let at = TABLE + entry * ENTRY;
        put_u64(self.bytes, at, tx);
        self.put(at + 8, bytes);
    }

    /// Free bytes, those reserved included.
    pub fn free(&self) -> usize {
        let records = self.get(TOP) - self.get(HOLES);
        self.bytes.len() - OVERHEAD - self.get(SLOTS) * SLOT - records
    }

    /// Free bytes that `tx` may use: those that no other transaction has reserved.
    pub fn available(&self, tx: u64) -> usize {
        let all = (0..RESERVATIONS).map(|entry| self.reservation(entry));
        if is(Mutation::Reserved) {
            return self.free();
        }
        let others: usize = all.filter(|&(owner, _)| owner != tx).map(|(_, bytes)| bytes).sum();
        self.free().saturating_sub(others)
    }

    /// Whether it holds neither record nor ghost.
    pub fn is_empty(&self) -> bool {
        self.get(SLOTS) == self.get(FREE_SLOTS)
    }

    /// Whether a record of `len` bytes of `tx` fits.
    pub fn fits(&self, tx: u64, len: usize) -> bool {
        let slot = if self.get(FREE_SLOTS) > 0 { 0 } else { SLOT };
        len + slot <= self.available(tx)
    }

    /// Puts a record on the page; `None` if it does not fit. Cost: the record's length, the
    /// page's if it must be compacted.
    pub fn insert(&mut self, tx: u64, record: &[u8]) -> Option<u16> {
        if !self.fits(tx, record.len()) {
            return None;
        }
        let slots = self.get(SLOTS);
        let slot = match self.get(FREE_SLOTS) {
            0 => slots,
            _ => (0..slots).find(|&slot| slot_at(self.bytes, slot) == Slot::Free)?,
        };
        if slot < slots {
            self.put(FREE_SLOTS, self.get(FREE_SLOTS) - 1);
        } else {
            self.make_gap(SLOT);
            self.put(SLOTS, slots + 1);
            self.put_slot(slot, 0, 0);
        }
        self.place(slot, record);
        Some(slot as u16)
    }

    /// Deletes the record in `slot` for `tx` and reserves its bytes and its slot. Gives the
    /// record's bytes to `keep`, for a rollback.
    /// Errors: [`Error::Misuse`] if there is no such record or no room for another reservation.
    pub fn delete(&mut self, tx: u64, slot: u16, keep: &mut Vec<u8>) -> Result<()> {
        keep.extend_from_slice(record(self.bytes, slot).ok_or(Error::Misuse("no such object"))?);
        let entry = self.entry_of(tx)?;
        let len = self.take_out(usize::from(slot));
        self.put_reservation(entry, tx, self.reservation(entry).1 + len);
        self.put_slot(usize::from(slot), GHOST + entry as u16, len);
        Ok(())
    }

    /// Takes a record out for good, without reserving anything: the rollback of its creation.
    /// Errors: [`Error::Misuse`] if there is no such record.
    pub fn remove(&mut self, slot: u16) -> Result<()> {
        record(self.bytes, slot).ok_or(Error::Misuse("no such object"))?;
        self.take_out(usize::from(slot));
        self.put_slot(usize::from(slot), 0, 0);
        self.put(FREE_SLOTS, self.get(FREE_SLOTS) + 1);
        self.trim();
        Ok(())
    }

    /// Puts a deleted record back into its slot: the rollback of its deletion by `tx`.
    /// Errors: [`Error::Corrupt`] if the slot is no ghost of `tx` or the room is gone.
    pub fn restore(&mut self, tx: u64, slot: u16, record: &[u8]) -> Result<()> {
        let slot = usize::from(slot);
        let broken = || Error::Corrupt("reserved space is gone".to_owned());
        let Slot::Ghost { entry, len } = slot_at(self.bytes, slot) else { return Err(broken()) };
        let (owner, bytes) = self.reservation(entry);
        if owner != tx || len != record.len() || bytes < len || self.free() < len {
            return Err(broken());
        }
        self.put_reservation(entry, if bytes == len { 0 } else { tx }, bytes - len);
        self.place(slot, record);
        Ok(())
    }

    /// Gives up the reservations of transactions that are not active any more; says whether
    /// there was one. Cost: a look at five entries, at all slots if one is given up.
    pub fn purge(&mut self, active: impl Fn(u64) -> bool) -> bool {
        let mut any = false;
        for entry in 0..RESERVATIONS {
            let (tx, _) = self.reservation(entry);
            if tx == 0 || active(tx) {
                continue;
            }
            any = true;
            self.put_reservation(entry, 0, 0);
            for slot in 0..self.get(SLOTS) {
                if matches!(slot_at(self.bytes, slot), Slot::Ghost { entry: e, .. } if e == entry) {
                    self.put_slot(slot, 0, 0);
                    self.put(FREE_SLOTS, self.get(FREE_SLOTS) + 1);
                }
            }
            self.trim();
        }
        any
    }

    /// Whether a reservation is noted, of whomever.
    pub fn has_reservations(&self) -> bool {
        (0..RESERVATIONS).any(|entry| self.reservation(entry).0 != 0)
    }

    fn entry_of(&self, tx: u64) -> Result<usize> {
        let find = |tx| (0..RESERVATIONS).find(|&entry| self.reservation(entry).0 == tx);
        find(tx).or_else(|| find(0)).ok_or(Error::Misuse("too many transactions reserve space"))
    }

    /// Takes a record's bytes out of the books; its slot is the caller's business.
    fn take_out(&mut self, slot: usize) -> usize {
        let Slot::Record { at, len } = slot_at(self.bytes, slot) else { return 0 };
        if at == self.bytes.len() - self.get(TOP) {
            self.put(TOP, self.get(TOP) - len);
        } else {
            self.put(HOLES, self.get(HOLES) + len);
        }
        len
    }

    /// Writes a record for a slot that exists; the caller has made sure that it fits.
    fn place(&mut self, slot: usize, record: &[u8]) {
        self.make_gap(record.len());
        let top = self.get(TOP) + record.len();
        let at = self.bytes.len() - top;
        self.bytes[at..at + record.len()].copy_from_slice(record);
        self.put(TOP, top);
        self.put_slot(slot, at as u16, record.len());
    }

    /// Moves the records together if the gap before them has less than `len` bytes.
    fn make_gap(&mut self, len: usize) {
        let size = self.bytes.len();
        if size - self.get(TOP) - OVERHEAD - self.get(SLOTS) * SLOT >= len {
            return;
        }
        let old = self.bytes.to_vec();
        let mut top = 0;
        for slot in 0..self.get(SLOTS) {
            if let Slot::Record { at, len } = slot_at(&old, slot) {
                top += len;
                self.bytes[size - top..size - top + len].copy_from_slice(&old[at..at + len]);
                self.put_slot(slot, (size - top) as u16, len);
            }
        }
        self.put(TOP, top);
        self.put(HOLES, 0);
    }

    /// Takes free slots off the end of the slot array.
    fn trim(&mut self) {
        while let Some(last) = self.get(SLOTS).checked_sub(1)
            && slot_at(self.bytes, last) == Slot::Free
        {
            self.put(SLOTS, last);
            self.put(FREE_SLOTS, self.get(FREE_SLOTS) - 1);
        }
        if self.get(SLOTS) == 0 {
            self.put(TOP, 0);
            self.put(HOLES, 0);
        }
    }
}
