//! A page of a bucket: entries in no order, and the next page of its chain (Eickler §5.1: at most
//! 80 entries). Owns no state.

use holdall_core::techniques::bytes::{put_u16, put_u32, u16_at, u32_at};

use super::super::ENTRY;
use super::super::oid::{Handle, Oid};
use super::super::pages::HEAD;

/// Entries of a page.
pub const CAPACITY: usize = 80;
const COUNT: usize = 8;
const NEXT: usize = 12;

pub(super) fn count(bytes: &[u8]) -> usize {
    usize::from(u16_at(bytes, COUNT)).min(CAPACITY)
}

/// The next page of the chain; 0 is none.
pub(super) fn next(bytes: &[u8]) -> u32 {
    u32_at(bytes, NEXT)
}

pub(super) fn set_next(bytes: &mut [u8], next: u32) {
    put_u32(bytes, NEXT, next);
}

fn at(place: usize) -> usize {
    HEAD + place * ENTRY
}

pub(super) fn find(bytes: &[u8], oid: Oid) -> Option<usize> {
    (0..count(bytes)).find(|&i| bytes[at(i)..at(i) + Oid::BYTES] == *oid.bytes())
}

pub(super) fn handle(bytes: &[u8], place: usize) -> Handle {
    Handle::get(&bytes[at(place) + Oid::BYTES..])
}

pub(super) fn set_handle(bytes: &mut [u8], place: usize, handle: Handle) {
    handle.put(&mut bytes[at(place) + Oid::BYTES..]);
}

pub(super) fn oid(bytes: &[u8], place: usize) -> Oid {
    let mut oid = [0; Oid::BYTES];
    oid.copy_from_slice(&bytes[at(place)..at(place) + Oid::BYTES]);
    Oid::from_bytes(oid)
}

/// Adds an entry; `false` if the page is full.
pub(super) fn push(bytes: &mut [u8], oid: Oid, handle: Handle) -> bool {
    let n = count(bytes);
    if n == CAPACITY {
        return false;
    }
    bytes[at(n)..at(n) + Oid::BYTES].copy_from_slice(oid.bytes());
    set_handle(bytes, n, handle);
    put_u16(bytes, COUNT, n as u16 + 1);
    true
}

/// Takes an entry out; the last one takes its place.
pub(super) fn remove(bytes: &mut [u8], place: usize) {
    let last = count(bytes) - 1;
    bytes.copy_within(at(last)..at(last) + ENTRY, at(place));
    put_u16(bytes, COUNT, last as u16);
}

pub(super) fn entries(bytes: &[u8]) -> impl Iterator<Item = (Oid, Handle)> {
    (0..count(bytes)).map(|i| (oid(bytes, i), handle(bytes, i)))
}
