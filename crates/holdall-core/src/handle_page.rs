//! Handle page: slots that turn an OID into the place of its record.
//!
//! Owns: the body of pages of kind `Handle` (docs/format.md "Handle page") and
//! [`Location`]. Direct mapping (Eickler §3.1.4): the OID names page and slot, so a look-up
//! is one page access. Slots from `touched` on were never used; freed ones form a chain, so
//! a page needs no preparation when it is formatted. Pure; no threads.

use crate::bytes::{put_u16, put_u32, put_u48, u16_at, u32_at, u48_at};
use crate::page::HEADER;
use crate::{Error, PageNo, Result};
use std::ops::Range;

const INDEX: usize = HEADER;
const LIVE: usize = HEADER + 4;
const TOUCHED: usize = HEADER + 6;
const FIRST_FREE: usize = HEADER + 8;
const ENTRIES: usize = HEADER + 12;
const ENTRY: usize = 12;
const NO_SLOT: u16 = u16::MAX;
const FREE: u64 = (1 << 48) - 1;

/// Where a record lies: heap page and slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The heap page.
    pub page: PageNo,
    /// Its slot.
    pub slot: u16,
}

impl Location {
    /// Whether a handle can hold this location: a real page, and not the mark of a free slot.
    pub fn is_valid(self) -> bool {
        !self.page.is_none() && self.page.0 < FREE
    }
}

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handle {
    /// No OID ever named this slot.
    Never,
    /// Its object was deleted.
    Free,
    /// A live object's.
    Live {
        /// Tells former owners of the slot apart.
        unique: u32,
        /// Where its record lies.
        loc: Location,
    },
}

/// Handles in a page of `page_size` bytes.
pub fn capacity(page_size: usize) -> usize {
    (page_size - ENTRIES) / ENTRY
}

/// Bytes of a page that each look at it begins with.
pub const HEAD: Range<usize> = 0..ENTRIES;

/// Where in its page the handle of `slot` lies.
#[inline]
pub fn place(slot: u16) -> Range<usize> {
    let at = ENTRIES + usize::from(slot) * ENTRY;
    at..at + ENTRY
}

/// Class of a handle page with `free` free slots, as its map entry has it: 1 if at least an
/// eighth is free, else 0. A nearly full page is left alone until more slots are free, so
/// that a run of creates does not visit a page for each (McAuliffe §3.2 on next-fit).
pub fn class(free: usize, page_size: usize) -> u8 {
    u8::from(free * 8 >= capacity(page_size))
}

/// The counts in a page's header.
#[derive(Debug, Clone, Copy)]
struct Head {
    /// Live handles.
    live: usize,
    /// Slots that were ever used.
    touched: usize,
    /// The first of the free chain, plus one; 0 if there is none.
    first_free: u16,
}

/// A handle page whose header has been checked.
#[derive(Debug, Clone, Copy)]
pub struct HandlePage<'a> {
    bytes: &'a [u8],
    no: PageNo,
    head: Head,
}

impl<'a> HandlePage<'a> {
    /// Looks into page `no`, which must have logical index `index`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if index or counts are wrong.
    #[inline]
    pub fn new(bytes: &'a [u8], no: PageNo, index: u32) -> Result<Self> {
        // One look at the length covers all fields.
        let Some(fields) = bytes.first_chunk::<ENTRIES>() else {
            return Err(Error::page(no, "too short for a handle page"));
        };
        let found = u32_at(fields, INDEX);
        if found != index {
            return Err(Error::page(no, format!("handle page {found}, not {index}")));
        }
        let field = |at| u16_at(fields, at);
        let live = usize::from(field(LIVE));
        let head = Head { live, touched: field(TOUCHED).into(), first_free: field(FIRST_FREE) };
        if live > head.touched || head.touched > capacity(bytes.len()) {
            return Err(Error::page(no, format!("handle page header is wrong: {head:?}")));
        }
        Ok(Self { bytes, no, head })
    }

    #[inline]
    fn live(&self) -> usize {
        self.head.live
    }

    #[inline]
    fn touched(&self) -> usize {
        self.head.touched
    }

    /// Slots that can be given out.
    #[inline]
    pub fn free(&self) -> usize {
        capacity(self.bytes.len()) - self.live()
    }

    /// The page's class for its map entry.
    pub fn class(&self) -> u8 {
        class(self.free(), self.bytes.len())
    }

    /// The slot that the next insertion takes; `None` if the page is full.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the free chain leads astray.
    #[inline]
    pub fn next_slot(&self) -> Result<Option<u16>> {
        let Head { first_free: first, touched, .. } = self.head;
        if first == 0 {
            return Ok((touched < capacity(self.bytes.len())).then_some(touched as u16));
        }
        if self.get(first - 1)? != Handle::Free {
            let detail = format!("free chain names slot {} in use", first - 1);
            return Err(Error::page(self.no, detail));
        }
        Ok(Some(first - 1))
    }

    /// This many slots, from [`HandlePage::next_slot`] on, are taken one after the other.
    pub fn next_in_order(&self) -> usize {
        let Head { first_free, touched, .. } = self.head;
        if first_free == 0 { capacity(self.bytes.len()) - touched } else { 1 }
    }

    /// What `slot` holds.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a live handle names no page.
    #[inline]
    pub fn get(&self, slot: u16) -> Result<Handle> {
        if usize::from(slot) >= self.touched() {
            return Ok(Handle::Never);
        }
        let at = place(slot).start;
        let page = u48_at(self.bytes, at + 4);
        if page == FREE {
            return Ok(Handle::Free);
        }
        if page == 0 {
            return Err(Error::page(self.no, format!("handle {slot} names page 0")));
        }
        let loc = Location { page: PageNo(page), slot: u16_at(self.bytes, at + 10) };
        Ok(Handle::Live { unique: u32_at(self.bytes, at), loc })
    }

    /// Slot and content of every live handle, in slot order.
    pub fn iter(self) -> impl Iterator<Item = Result<(u16, u32, Location)>> + use<'a> {
        (0..self.touched()).filter_map(move |slot| {
            let slot = u16::try_from(slot).ok()?;
            match self.get(slot) {
                Ok(Handle::Live { unique, loc }) => Some(Ok((slot, unique, loc))),
                Ok(_) => None,
                Err(e) => Some(Err(e)),
            }
        })
    }

    /// Checks the whole page: counts, and that the chain holds each free slot once.
    ///
    /// # Errors
    /// [`Error::Corrupt`] saying what is wrong.
    pub fn check(&self) -> Result<()> {
        let mut live = 0;
        for handle in self.iter() {
            handle?;
            live += 1;
        }
        if live != self.live() {
            let detail = format!("{live} live handles, counted {}", self.live());
            return Err(Error::page(self.no, detail));
        }
        let mut seen = vec![false; self.touched()];
        let mut slot = self.head.first_free;
        // The header keeps first-free plus one, so that a zeroed page has no chain.
        while slot != 0 {
            let at = usize::from(slot - 1);
            let fresh = seen.get_mut(at).is_some_and(|s| !std::mem::replace(s, true));
            if !fresh || self.get(slot - 1)? != Handle::Free {
                return Err(Error::page(self.no, format!("free chain is wrong at slot {at}")));
            }
            slot = self.next_free(slot - 1);
        }
        let chained = seen.iter().filter(|&&s| s).count();
        if chained != self.touched() - live {
            let detail = format!("{chained} chained of {} free handles", self.touched() - live);
            return Err(Error::page(self.no, detail));
        }
        Ok(())
    }

    /// The number of the last object that had free `slot`; 0 if it had none.
    pub fn last_unique(&self, slot: u16) -> u32 {
        if usize::from(slot) < self.touched() { u32_at(self.bytes, place(slot).start) } else { 0 }
    }

    fn next_free(&self, slot: u16) -> u16 {
        u16_at(self.bytes, ENTRIES + usize::from(slot) * ENTRY + 10)
    }
}

/// Makes an empty page handle page `index`.
pub fn init(bytes: &mut [u8], index: u32) {
    put_u32(bytes, INDEX, index);
}

/// A handle page to be changed.
#[derive(Debug)]
pub struct HandlePageMut<'a> {
    bytes: &'a mut [u8],
    no: PageNo,
    head: Head,
}

impl<'a> HandlePageMut<'a> {
    /// As [`HandlePage::new`].
    ///
    /// # Errors
    /// As [`HandlePage::new`].
    pub fn new(bytes: &'a mut [u8], no: PageNo, index: u32) -> Result<Self> {
        let head = HandlePage::new(bytes, no, index)?.head;
        Ok(Self { bytes, no, head })
    }

    /// The page for reading.
    #[inline]
    pub fn view(&self) -> HandlePage<'_> {
        HandlePage { bytes: self.bytes, no: self.no, head: self.head }
    }

    fn write_head(&mut self, head: Head) {
        self.head = head;
        let fields = &mut self.bytes[LIVE..ENTRIES];
        put_u16(fields, 0, head.live as u16);
        put_u16(fields, TOUCHED - LIVE, head.touched as u16);
        put_u16(fields, FIRST_FREE - LIVE, head.first_free);
    }

    fn put(&mut self, slot: u16, unique: u32, page: u64, tail: u16) {
        let entry = &mut self.bytes[place(slot)];
        put_u32(entry, 0, unique);
        put_u48(entry, 4, page);
        put_u16(entry, 10, tail);
    }

    /// Takes a free slot for an object; `None` if the page is full. `loc` must be valid.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the free chain leads astray.
    pub fn insert(&mut self, unique: u32, loc: Location) -> Result<Option<u16>> {
        debug_assert!(loc.is_valid(), "{loc:?}");
        let Some(slot) = self.view().next_slot()? else { return Ok(None) };
        let mut head = self.head;
        if usize::from(slot) == head.touched {
            head.touched += 1;
        } else {
            head.first_free = self.view().next_free(slot);
        }
        if head.live >= head.touched {
            return Err(Error::page(self.no, "more live handles than slots"));
        }
        head.live += 1;
        self.put(slot, unique, loc.page.0, loc.slot);
        self.write_head(head);
        Ok(Some(slot))
    }

    /// As [`HandlePageMut::insert`] for each of `handles`, which take slots from `first` on: at
    /// most [`HandlePage::next_in_order`].
    ///
    /// # Errors
    /// [`Error::Corrupt`] if these are not the slots that come next.
    pub fn insert_run(
        &mut self,
        first: u16,
        handles: impl ExactSizeIterator<Item = (u32, Location)>,
    ) -> Result<()> {
        let next = self.view().next_slot()?;
        if next != Some(first) || handles.len() > self.view().next_in_order() {
            let detail = format!("{} handles from {first} on are not the next", handles.len());
            return Err(Error::page(self.no, detail));
        }
        if self.head.first_free != 0 {
            // One, from the chain.
            for (unique, loc) in handles {
                self.insert(unique, loc)?;
            }
            return Ok(());
        }
        let Head { live, touched, first_free } = self.head;
        let end = touched + handles.len();
        let live = live + handles.len();
        for (slot, (unique, loc)) in (first..).zip(handles) {
            debug_assert!(loc.is_valid(), "{loc:?}");
            self.put(slot, unique, loc.page.0, loc.slot);
        }
        self.write_head(Head { live, touched: end, first_free });
        Ok(())
    }

    /// Takes free slot `slot` for an object that had it in another store; false if it is taken.
    /// Cost: the free chain up to it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the free chain leads astray, or the page has no such slot.
    pub fn claim(&mut self, slot: u16, unique: u32, loc: Location) -> Result<bool> {
        debug_assert!(loc.is_valid(), "{loc:?}");
        if usize::from(slot) >= capacity(self.bytes.len()) {
            return Err(Error::page(self.no, format!("has no handle {slot}")));
        }
        while self.head.touched <= usize::from(slot) {
            let Head { live, touched, first_free } = self.head;
            self.put(touched as u16, 0, FREE, first_free);
            self.write_head(Head { live, touched: touched + 1, first_free: touched as u16 + 1 });
        }
        if self.view().get(slot)? != Handle::Free {
            return Ok(false);
        }
        let (next, mut at) = (self.view().next_free(slot), self.head.first_free);
        let mut head = Head { live: self.head.live + 1, ..self.head };
        if at == slot + 1 {
            head.first_free = next;
        } else {
            let mut left = head.touched;
            while at != 0 && self.view().next_free(at - 1) != slot + 1 {
                left = left
                    .checked_sub(1)
                    .ok_or_else(|| Error::page(self.no, "a free chain goes round"))?;
                at = self.view().next_free(at - 1);
            }
            let before = at.checked_sub(1).filter(|s| usize::from(*s) < head.touched);
            let before =
                before.ok_or_else(|| Error::page(self.no, format!("no chain leads to {slot}")))?;
            put_u16(&mut self.bytes[place(before)], 10, next);
        }
        self.put(slot, unique, loc.page.0, loc.slot);
        self.write_head(head);
        Ok(true)
    }

    /// Points live handle `slot` elsewhere. The caller has looked at it with
    /// [`HandlePage::get`]; `unique` stays its own.
    pub fn update(&mut self, slot: u16, unique: u32, loc: Location) {
        debug_assert!(loc.is_valid() && matches!(self.view().get(slot), Ok(Handle::Live { .. })));
        self.put(slot, unique, loc.page.0, loc.slot);
    }

    /// Frees live handle `slot`. The caller has looked at it with [`HandlePage::get`].
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the page counts no live handles.
    pub fn remove(&mut self, slot: u16, unique: u32) -> Result<()> {
        let Head { live, touched, first_free } = self.head;
        if live == 0 || slot == NO_SLOT {
            return Err(Error::page(self.no, "a live handle in a page that counts none"));
        }
        self.put(slot, unique, FREE, first_free);
        self.write_head(Head { live: live - 1, touched, first_free: slot + 1 });
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
        init(&mut bytes, 3);
        bytes
    }

    fn loc(n: u64) -> Location {
        Location { page: PageNo(n + 1), slot: n as u16 }
    }

    #[test]
    fn random_use_equals_a_map() {
        let mut rng = SmallRng::seed_from_u64(1);
        for size in [4096, 65536] {
            let mut bytes = empty(size);
            let mut model = BTreeMap::new();
            for unique in 0..20_000u32 {
                let mut page = HandlePageMut::new(&mut bytes, PageNo(9), 3).unwrap();
                let filling = unique / 5000 % 2 == 0;
                if rng.random_bool(if filling { 0.7 } else { 0.3 }) {
                    let at = loc(rng.random_range(0..1 << 40));
                    match page.insert(unique, at).unwrap() {
                        Some(slot) => assert!(model.insert(slot, (unique, at)).is_none()),
                        None => assert_eq!(model.len(), capacity(size)),
                    }
                } else if let Some((&slot, &(u, _))) =
                    model.range(rng.random_range(0..100)..).next()
                {
                    page.remove(slot, u).unwrap();
                    model.remove(&slot);
                    assert_eq!(page.view().get(slot).unwrap(), Handle::Free);
                }
                assert_eq!(page.view().free(), capacity(size) - model.len());
            }
            let page = HandlePage::new(&bytes, PageNo(9), 3).unwrap();
            page.check().unwrap();
            let all: Vec<_> = page.iter().map(|h| h.unwrap()).collect();
            let want: Vec<_> = model.iter().map(|(&s, &(u, l))| (s, u, l)).collect();
            assert_eq!(all, want);
            assert_eq!(page.get(capacity(size) as u16).unwrap(), Handle::Never);
        }
    }

    #[test]
    fn any_free_slot_can_be_claimed() {
        let mut rng = SmallRng::seed_from_u64(3);
        let mut bytes = empty(4096);
        let mut model = BTreeMap::new();
        for unique in 0..2000_u32 {
            let mut page = HandlePageMut::new(&mut bytes, PageNo(9), 3).unwrap();
            let slot = rng.random_range(0..capacity(4096) as u16);
            if rng.random_bool(0.6) {
                let claimed = page.claim(slot, unique, loc(7)).unwrap();
                assert_eq!(claimed, !model.contains_key(&slot));
                model.entry(slot).or_insert(unique);
            } else if let Some(old) = model.remove(&slot) {
                page.remove(slot, old).unwrap();
                assert_eq!(page.view().last_unique(slot), old);
            }
            page.view().check().unwrap();
        }
        let page = HandlePage::new(&bytes, PageNo(9), 3).unwrap();
        let all: Vec<_> = page.iter().map(|h| h.unwrap()).map(|h| (h.0, h.1)).collect();
        assert_eq!(all, model.into_iter().collect::<Vec<_>>());
        let mut page = HandlePageMut::new(&mut bytes, PageNo(9), 3).unwrap();
        assert!(page.claim(capacity(4096) as u16, 1, loc(7)).is_err());
    }

    #[test]
    fn a_run_is_so_many_insertions() {
        let (mut one, mut many) = (empty(4096), empty(4096));
        let mut rng = SmallRng::seed_from_u64(4);
        for turn in 0..60 {
            let mut single = HandlePageMut::new(&mut one, PageNo(9), 3).unwrap();
            let mut run = HandlePageMut::new(&mut many, PageNo(9), 3).unwrap();
            let Some(first) = run.view().next_slot().unwrap() else { break };
            let n = rng.random_range(1..20).min(run.view().next_in_order());
            let handles = || (0..n as u32).map(|i| (turn * 100 + i, loc(u64::from(i))));
            assert!(run.insert_run(first + 1, handles()).is_err(), "not the next");
            run.insert_run(first, handles()).unwrap();
            for (slot, (unique, loc)) in (first..).zip(handles()) {
                assert_eq!(single.insert(unique, loc).unwrap(), Some(slot));
            }
            if turn % 3 == 0 {
                single.remove(first, turn * 100).unwrap();
                run.remove(first, turn * 100).unwrap();
            }
            let too_many = run.view().next_in_order() + 1;
            if let Some(next) = run.view().next_slot().unwrap() {
                let handles = (0..too_many as u32).map(|i| (i, loc(1)));
                assert!(run.insert_run(next, handles).is_err(), "too many");
            }
            assert_eq!(one, many, "turn {turn}");
        }
        HandlePage::new(&many, PageNo(9), 3).unwrap().check().unwrap();
    }

    #[test]
    fn check_finds_a_broken_chain_and_counts() {
        let mut bytes = empty(4096);
        let mut page = HandlePageMut::new(&mut bytes, PageNo(9), 3).unwrap();
        for unique in 0..9 {
            page.insert(unique, loc(5)).unwrap();
        }
        page.remove(2, 2).unwrap();
        page.remove(4, 4).unwrap();
        page.view().check().unwrap();
        for (at, value) in [(FIRST_FREE, 3), (FIRST_FREE, 9), (LIVE, 6), (TOUCHED, 8)] {
            let mut bad = bytes.clone();
            put_u16(&mut bad, at, value);
            let page = HandlePage::new(&bad, PageNo(9), 3).unwrap();
            assert!(page.check().is_err(), "{at} {value}");
        }
        assert!(HandlePage::new(&bytes, PageNo(9), 4).is_err());
    }

    #[test]
    fn random_bodies_never_panic() {
        let mut rng = SmallRng::seed_from_u64(2);
        for _ in 0..3000 {
            let mut bytes = empty(4096);
            let end = if rng.random_bool(0.5) { ENTRIES + 60 } else { 4096 };
            rng.fill(&mut bytes[LIVE..end]);
            bytes[LIVE + 1] &= 1;
            bytes[TOUCHED + 1] &= 1;
            let Ok(mut page) = HandlePageMut::new(&mut bytes, PageNo(9), 3) else { continue };
            let _ = page.view().check();
            for n in 0..8 {
                let slot = rng.random_range(0..400);
                if let Ok(Handle::Live { unique, .. }) = page.view().get(slot) {
                    let _ = page.remove(slot, unique);
                }
                let _ = page.insert(n, loc(1));
            }
        }
    }
}
