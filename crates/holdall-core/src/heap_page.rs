//! Slotted heap page: records of one collection.
//!
//! Owns: the body of pages of kind `Heap` (docs/format.md "Heap page"). The slot array grows
//! from the front, records from the end; a live record never changes its slot. A change
//! touches only its own bytes, its slot and the header, so that the logged byte difference
//! is small; other records move only if the free bytes suffice but do not lie together,
//! and then as few of their bytes as can be. Every number read from the page is checked, so a
//! page with nonsense in it gives errors. Pure; no threads.

mod window;

use crate::bytes::{put_u16, put_u32, u16_at, u32_at};
use crate::page::HEADER;
use crate::{Error, PageNo, Result};
use std::ops::Range;

const INDEX: usize = HEADER;
const SLOTS: usize = HEADER + 4;
const FREE_SLOTS: usize = HEADER + 6;
const TOP: usize = HEADER + 8;
const HOLES: usize = HEADER + 10;
const ARRAY: usize = HEADER + 12;
const SLOT: usize = 4;

/// The longest record a page of `page_size` bytes can hold.
pub fn max_record(page_size: usize) -> usize {
    page_size - ARRAY - SLOT
}

/// Bytes of a page that each look at it begins with.
pub const HEAD: Range<usize> = 0..ARRAY;

/// Where in its page a slot lies.
#[inline]
pub fn place(slot: u16) -> Range<usize> {
    let at = ARRAY + usize::from(slot) * SLOT;
    at..at + SLOT
}

/// Makes an empty page a heap page without records, number `index` of its file.
pub fn init(bytes: &mut [u8], index: u32) {
    put_u32(bytes, INDEX, index);
}

/// What a heap file keeps book of for each page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSpace {
    /// Length of the longest record that can be inserted now (0 if none can).
    pub free: usize,
    /// The page holds no record.
    pub empty: bool,
}

/// The header, checked against the page size.
#[derive(Debug, Clone, Copy)]
struct Head {
    /// Length of the slot array.
    slots: usize,
    /// Unused slots in it.
    free_slots: usize,
    /// Bytes from the lowest record to the page's end.
    top: usize,
    /// Unused bytes among them.
    holes: usize,
}

impl Head {
    #[inline]
    fn read(bytes: &[u8], no: PageNo) -> Result<Self> {
        // One look at the length covers all fields.
        let Some(fields) = bytes.first_chunk::<ARRAY>() else {
            return Err(Error::page(no, "too short for a heap page"));
        };
        let at = |at| usize::from(u16_at(fields, at));
        let head =
            Self { slots: at(SLOTS), free_slots: at(FREE_SLOTS), top: at(TOP), holes: at(HOLES) };
        let fits = ARRAY + head.slots * SLOT + head.top <= bytes.len();
        if !fits || head.holes > head.top || head.free_slots > head.slots {
            return Err(Error::page(no, format!("heap page header is wrong: {head:?}")));
        }
        Ok(head)
    }

    fn write(self, bytes: &mut [u8]) {
        let fields = &mut bytes[SLOTS..ARRAY];
        put_u16(fields, 0, self.slots as u16);
        put_u16(fields, FREE_SLOTS - SLOTS, self.free_slots as u16);
        put_u16(fields, TOP - SLOTS, self.top as u16);
        put_u16(fields, HOLES - SLOTS, self.holes as u16);
    }

    /// Bytes between the slot array and the lowest record.
    fn gap(self, size: usize) -> usize {
        size - self.top - ARRAY - self.slots * SLOT
    }

    fn room(self, size: usize) -> FreeSpace {
        let slot = if self.free_slots > 0 { 0 } else { SLOT };
        let free = (self.gap(size) + self.holes).saturating_sub(slot).min(max_record(size));
        FreeSpace { free, empty: self.slots == self.free_slots }
    }

    /// Takes a record's bytes out of the books.
    fn drop_bytes(&mut self, no: PageNo, range: &Range<usize>, size: usize) -> Result<()> {
        if range.start == size - self.top {
            self.top -= range.len();
        } else {
            self.holes += range.len();
        }
        if self.holes > self.top {
            return Err(Error::page(no, "records overlap: more bytes freed than used"));
        }
        Ok(())
    }
}

/// A heap page whose header has been checked.
#[derive(Debug, Clone, Copy)]
pub struct HeapPage<'a> {
    bytes: &'a [u8],
    no: PageNo,
    head: Head,
}

impl<'a> HeapPage<'a> {
    /// Looks into page `no`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the header cannot be.
    #[inline]
    pub fn new(bytes: &'a [u8], no: PageNo) -> Result<Self> {
        Ok(Self { bytes, no, head: Head::read(bytes, no)? })
    }

    /// The page's logical index in its file.
    pub fn index(&self) -> u32 {
        u32_at(self.bytes, INDEX)
    }

    /// Live records.
    pub fn live(&self) -> usize {
        self.head.slots - self.head.free_slots
    }

    /// Room for records.
    pub fn room(&self) -> FreeSpace {
        self.head.room(self.bytes.len())
    }

    /// The longest record that can be inserted, its slot being paid for.
    pub fn free_bytes(&self) -> usize {
        self.room().free
    }

    /// Where in the page the record of `slot` lies; `None` if the slot holds none.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it would lie outside the record area.
    #[inline]
    pub fn range(&self, slot: u16) -> Result<Option<Range<usize>>> {
        if usize::from(slot) >= self.head.slots {
            return Ok(None);
        }
        let at = place(slot).start;
        let start = usize::from(u16_at(self.bytes, at));
        let len = usize::from(u16_at(self.bytes, at + 2));
        if start == 0 {
            return Ok(None);
        }
        let (size, end) = (self.bytes.len(), start + len);
        if start < size - self.head.top || end > size || len == 0 {
            let detail = format!("slot {slot} claims bytes {start}..{end}");
            return Err(Error::page(self.no, detail));
        }
        Ok(Some(start..end))
    }

    /// The record of `slot`, if there is one.
    ///
    /// # Errors
    /// As [`HeapPage::range`].
    pub fn get(&self, slot: u16) -> Result<Option<&'a [u8]>> {
        Ok(self.range(slot)?.map(|range| &self.bytes[range]))
    }

    /// Slot and place of every record, in slot order.
    pub fn iter(self) -> impl Iterator<Item = Result<(u16, Range<usize>)>> + use<'a> {
        (0..self.head.slots as u16).filter_map(move |slot| match self.range(slot) {
            Ok(range) => range.map(|range| Ok((slot, range))),
            Err(e) => Some(Err(e)),
        })
    }

    /// The records from the page's end downwards.
    fn descending(&self) -> Result<Vec<(u16, Range<usize>)>> {
        let mut all = self.iter().collect::<Result<Vec<_>>>()?;
        all.sort_unstable_by_key(|(_, range)| std::cmp::Reverse(range.start));
        let overlap = all.windows(2).find(|pair| pair[1].1.end > pair[0].1.start);
        if let Some([a, b]) = overlap {
            return Err(Error::page(self.no, format!("records {} and {} overlap", a.0, b.0)));
        }
        Ok(all)
    }

    /// Checks the whole page: slots in range, no overlap, counts and sums right.
    ///
    /// # Errors
    /// [`Error::Corrupt`] saying what is wrong.
    pub fn check(&self) -> Result<()> {
        let all = self.descending()?;
        let bytes: usize = all.iter().map(|(_, range)| range.len()).sum();
        let head = self.head;
        let lowest = all.last().map_or(self.bytes.len(), |(_, range)| range.start);
        // A delete at the lower end lowers `top` only to the next byte, which may be a hole.
        let top_ok = head.top >= self.bytes.len() - lowest;
        let trimmed = head.slots == 0 || self.range(head.slots as u16 - 1)?.is_some();
        if all.len() != self.live() || bytes + head.holes != head.top || !top_ok || !trimmed {
            let detail = format!("{} records of {bytes} bytes against {head:?}", all.len());
            return Err(Error::page(self.no, detail));
        }
        Ok(())
    }
}

/// A heap page to be changed.
#[derive(Debug)]
pub struct HeapPageMut<'a> {
    bytes: &'a mut [u8],
    no: PageNo,
    head: Head,
}

impl<'a> HeapPageMut<'a> {
    /// As [`HeapPage::new`].
    ///
    /// # Errors
    /// As [`HeapPage::new`].
    pub fn new(bytes: &'a mut [u8], no: PageNo) -> Result<Self> {
        let head = Head::read(bytes, no)?;
        Ok(Self { bytes, no, head })
    }

    /// Bytes to be written to.
    fn at(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.bytes[range]
    }

    fn write_head(&mut self) {
        self.head.write(self.bytes);
    }

    /// The page for reading.
    pub fn view(&self) -> HeapPage<'_> {
        HeapPage { bytes: self.bytes, no: self.no, head: self.head }
    }

    /// Inserts a record of 1..=[`max_record`] bytes; `None` if there is no room. Moves
    /// other records only if the room does not lie together.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the page contradicts itself.
    pub fn insert(&mut self, record: &[u8]) -> Result<Option<u16>> {
        self.insert_with(record.len(), |to| {
            to.copy_from_slice(record);
            Ok(())
        })
    }

    /// As [`HeapPageMut::insert`], for a record of `len` bytes that `write` writes all of.
    ///
    /// # Errors
    /// As [`HeapPageMut::insert`], and those of `write`, after which the page is not to be used.
    #[inline]
    pub fn insert_with(
        &mut self,
        len: usize,
        write: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Option<u16>> {
        debug_assert!(len > 0, "empty record");
        if len > self.view().free_bytes() {
            return Ok(None);
        }
        let slot = if self.head.free_slots > 0 { self.free_slot()? } else { self.head.slots };
        let grow = if slot == self.head.slots { SLOT } else { 0 };
        let start = self.make_room(len, grow)?;
        if slot == self.head.slots {
            self.head.slots += 1;
        } else {
            self.head.free_slots -= 1;
        }
        write(self.at(start..start + len))?;
        self.set_slot(slot, start, len);
        self.write_head();
        Ok(Some(slot as u16))
    }

    /// Replaces the record of `slot`; `false`, and nothing changed, if the new one does
    /// not fit. A record that does not grow stays where it is.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the slot holds no record or the page contradicts itself.
    pub fn replace(&mut self, slot: u16, record: &[u8]) -> Result<bool> {
        debug_assert!(!record.is_empty(), "empty record");
        let old = self.record(slot)?;
        let size = self.bytes.len();
        if record.len() <= old.len() {
            let end = old.start + record.len();
            self.at(old.start..end).copy_from_slice(record);
            self.set_slot(usize::from(slot), old.start, record.len());
            self.head.holes += old.len() - record.len();
            if self.head.holes > self.head.top {
                return Err(Error::page(self.no, "records overlap: more bytes freed than used"));
            }
        } else {
            if record.len() > self.head.gap(size) + self.head.holes + old.len() {
                return Ok(false);
            }
            self.head.drop_bytes(self.no, &old, size)?;
            self.set_slot(usize::from(slot), 0, 0);
            let start = self.make_room(record.len(), 0)?;
            self.place(usize::from(slot), start, record);
        }
        self.write_head();
        Ok(true)
    }

    /// Removes the record of `slot` and returns its length.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the slot holds no record or the page contradicts itself.
    pub fn delete(&mut self, slot: u16) -> Result<usize> {
        let old = self.record(slot)?;
        self.head.drop_bytes(self.no, &old, self.bytes.len())?;
        self.set_slot(usize::from(slot), 0, 0);
        self.head.free_slots += 1;
        while self.head.slots > 0 && self.slot_is_free(self.head.slots - 1) {
            if self.head.free_slots == 0 {
                return Err(Error::page(self.no, "more free slots than counted"));
            }
            self.head.slots -= 1;
            self.head.free_slots -= 1;
        }
        if self.head.slots == 0 {
            self.head = Head { slots: 0, free_slots: 0, top: 0, holes: 0 };
        }
        self.write_head();
        Ok(old.len())
    }

    fn record(&self, slot: u16) -> Result<Range<usize>> {
        let missing = || Error::page(self.no, format!("slot {slot} holds no record"));
        self.view().range(slot)?.ok_or_else(missing)
    }

    fn slot_is_free(&self, slot: usize) -> bool {
        u16_at(self.bytes, ARRAY + slot * SLOT) == 0
    }

    fn free_slot(&self) -> Result<usize> {
        let wrong = || Error::page(self.no, "fewer free slots than counted");
        (0..self.head.slots).find(|&slot| self.slot_is_free(slot)).ok_or_else(wrong)
    }

    fn set_slot(&mut self, slot: usize, start: usize, len: usize) {
        let at = ARRAY + slot * SLOT;
        put_u32(self.at(at..at + SLOT), 0, start as u32 & 0xffff | (len as u32) << 16);
    }

    /// Puts a record where [`HeapPageMut::make_room`] made room for it.
    fn place(&mut self, slot: usize, start: usize, record: &[u8]) {
        self.at(start..start + record.len()).copy_from_slice(record);
        self.set_slot(slot, start, record.len());
    }

    /// Finds `len` bytes for a record, counts them as used and returns where they begin;
    /// `grow` bytes more are needed behind the slots. The caller knows that there is room.
    /// Other records move only if it does not lie together, and few of them.
    fn make_room(&mut self, len: usize, grow: usize) -> Result<usize> {
        let size = self.bytes.len();
        let fits_gap = self.head.gap(size) >= len + grow;
        // A hole that serves is taken first, so that the gap lasts.
        if !fits_gap || self.head.holes >= len {
            let all = self.view().descending()?;
            let floor = ARRAY + self.head.slots * SLOT + grow;
            let window = window::least_moved(&all, floor, size, len);
            if let Some(window) = window.filter(|w| !fits_gap || w.moved.is_empty()) {
                return self.clear(&all, &window, len);
            }
            if !fits_gap {
                self.compact(&all)?;
            }
        }
        self.head.top += len;
        Ok(size - self.head.top)
    }

    /// Moves the window's records up, so that `len` bytes below them are free, and counts
    /// these as used.
    fn clear(
        &mut self,
        all: &[(u16, Range<usize>)],
        window: &window::Window,
        len: usize,
    ) -> Result<usize> {
        let total = self.total(all)?;
        let end = self.move_up(&all[window.moved.clone()], window.end);
        let (start, size) = (end - len, self.bytes.len());
        // The lowest record is the new one, or one below the window.
        let below = all[window.moved.end..].last();
        let lowest = below.map_or(start, |(_, range)| range.start);
        self.head.top = size - lowest;
        self.head.holes = self.head.top - total - len;
        Ok(start)
    }

    /// Bytes of all records, if the header agrees.
    fn total(&self, all: &[(u16, Range<usize>)]) -> Result<usize> {
        let total: usize = all.iter().map(|(_, range)| range.len()).sum();
        if total + self.head.holes != self.head.top {
            let detail = format!("{total} bytes of records against {:?}", self.head);
            return Err(Error::page(self.no, detail));
        }
        Ok(total)
    }

    /// Moves records, from the page's end downwards, together so that the first ends at
    /// `end`; returns where the last one then begins.
    fn move_up(&mut self, records: &[(u16, Range<usize>)], mut end: usize) -> usize {
        for (slot, range) in records {
            let start = end - range.len();
            if start != range.start {
                self.bytes.copy_within(range.clone(), start);
                self.set_slot(usize::from(*slot), start, range.len());
            }
            end = start;
        }
        end
    }

    /// Moves all records together at the page's end.
    fn compact(&mut self, all: &[(u16, Range<usize>)]) -> Result<()> {
        self.head.top = self.total(all)?;
        self.head.holes = 0;
        self.move_up(all, self.bytes.len());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};
    use std::collections::BTreeMap;

    fn empty(size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        init(&mut bytes, 5);
        bytes
    }

    fn record(rng: &mut SmallRng, max: usize) -> Vec<u8> {
        let len = rng.random_range(1..=max);
        let first = rng.random::<u8>();
        (0..len).map(|i| first.wrapping_add(i as u8)).collect()
    }

    /// Bytes a model page takes, against which `free_bytes` is checked.
    fn expect_free(size: usize, model: &BTreeMap<u16, Vec<u8>>) -> usize {
        let slots = model.keys().next_back().map_or(0, |&s| usize::from(s) + 1);
        let extra = if slots > model.len() { 0 } else { SLOT };
        let used: usize = model.values().map(Vec::len).sum();
        (size - ARRAY - slots * SLOT - used).saturating_sub(extra)
    }

    #[test]
    fn random_use_equals_a_map() {
        let mut rng = SmallRng::seed_from_u64(1);
        for (size, max) in [(4096, 4048), (4096, 300), (16384, 900), (65536, 65488), (65536, 8000)]
        {
            let (mut bytes, mut model) = (empty(size), BTreeMap::new());
            for step in 0..6000 {
                let mut page = HeapPageMut::new(&mut bytes, PageNo(1)).unwrap();
                let free = page.view().free_bytes();
                assert_eq!(free, expect_free(size, &model), "step {step}");
                let rec = record(&mut rng, max);
                let pick = model.keys().nth(rng.random_range(0..model.len().max(1))).copied();
                match (rng.random_range(0..3), pick) {
                    (0, Some(slot)) => {
                        let old = model.remove(&slot).unwrap();
                        assert_eq!(page.delete(slot).unwrap(), old.len());
                        assert!(page.view().get(slot).unwrap().is_none());
                        assert!(page.delete(slot).is_err());
                    }
                    (1, Some(slot)) => {
                        let old = &model[&slot];
                        let fits = page.replace(slot, &rec).unwrap();
                        if rec.len() <= old.len() + free {
                            assert!(fits);
                        }
                        if fits {
                            model.insert(slot, rec);
                        }
                    }
                    _ => match page.insert(&rec).unwrap() {
                        Some(slot) => {
                            assert!(rec.len() <= free);
                            assert!(model.insert(slot, rec).is_none());
                        }
                        None => assert!(rec.len() > free),
                    },
                }
                let view = HeapPage::new(&bytes, PageNo(1)).unwrap();
                view.check().unwrap();
                assert_eq!((view.live(), view.index()), (model.len(), 5));
                if step % 64 == 0 {
                    let all = view.iter().map(|r| r.unwrap());
                    let all: Vec<_> = all.map(|(s, r)| (s, bytes[r].to_vec())).collect();
                    assert!(all.iter().map(|(s, r)| (s, r)).eq(model.iter()));
                }
            }
        }
    }

    #[test]
    fn the_longest_record_fits_alone() {
        for size in [4096, 32768, 65536] {
            let mut bytes = empty(size);
            let mut page = HeapPageMut::new(&mut bytes, PageNo(1)).unwrap();
            let rec = vec![7; max_record(size)];
            assert_eq!(page.view().room(), FreeSpace { free: rec.len(), empty: true });
            assert_eq!(page.insert(&rec).unwrap(), Some(0));
            assert_eq!(page.insert(&[1]).unwrap(), None);
            assert_eq!(page.view().get(0).unwrap(), Some(&rec[..]));
            page.view().check().unwrap();
            page.delete(0).unwrap();
            assert_eq!(page.view().room(), FreeSpace { free: rec.len(), empty: true });
        }
    }

    #[test]
    fn an_insert_changes_only_its_own_bytes() {
        let mut bytes = empty(4096);
        for n in 0..20 {
            HeapPageMut::new(&mut bytes, PageNo(1)).unwrap().insert(&[n; 100]).unwrap();
        }
        let before = bytes.clone();
        HeapPageMut::new(&mut bytes, PageNo(1)).unwrap().insert(&[99; 100]).unwrap();
        let changed = before.iter().zip(&bytes).filter(|(a, b)| a != b).count();
        assert!(changed <= 100 + SLOT + ARRAY - INDEX, "{changed} bytes changed");
    }

    #[test]
    fn random_bodies_never_panic() {
        let mut rng = SmallRng::seed_from_u64(3);
        for round in 0..4000 {
            let mut bytes = empty(4096);
            for n in 0..30 {
                HeapPageMut::new(&mut bytes, PageNo(1)).unwrap().insert(&[n; 100]).unwrap();
            }
            HeapPageMut::new(&mut bytes, PageNo(1)).unwrap().delete(4).unwrap();
            for _ in 0..rng.random_range(1..6) {
                let end = if round % 2 == 0 { ARRAY } else { ARRAY + 120 };
                let at = rng.random_range(SLOTS..end);
                bytes[at] = bytes[at].wrapping_add(rng.random_range(1..5));
            }
            let _ = HeapPage::new(&bytes, PageNo(1)).and_then(|page| page.check());
            for _ in 0..10 {
                let Ok(mut page) = HeapPageMut::new(&mut bytes, PageNo(1)) else { break };
                let rec = record(&mut rng, 400);
                let slot = rng.random_range(0..32);
                let _ = page.delete(rng.random_range(0..32));
                let _ = page.replace(slot, &rec);
                let _ = page.insert(&rec);
                let _ = page.view().get(slot);
            }
        }
    }
}
