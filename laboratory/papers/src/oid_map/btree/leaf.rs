//! A leaf of the B+-tree with prefix compression (Eickler §3.1.2).
//!
//! Owns the format: the bytes that all keys begin with are kept once, behind the head; entries
//! follow in order of their keys, each with the rest of its key. `issued` is the greatest OID
//! that was ever given out in the leaf's range, so that none is given out again. Pure.

use holdall_core::techniques::bytes::{put_u16, u16_at};

use super::super::ENTRY;
use super::super::oid::{Handle, Oid};
use super::super::pages::{HEAD, PAGE};
use crate::mutation::{Mutation, is};

const COUNT: usize = 8;
const PREFIX_LEN: usize = 10;
const ISSUED: usize = HEAD;
const PREFIX: usize = HEAD + Oid::BYTES;

/// Key and handle.
pub(super) type Entry = (Oid, Handle);

pub(super) fn count(bytes: &[u8]) -> usize {
    usize::from(u16_at(bytes, COUNT))
}

fn prefix(bytes: &[u8]) -> usize {
    usize::from(u16_at(bytes, PREFIX_LEN)).min(Oid::BYTES - 1)
}

fn step(prefix: usize) -> usize {
    ENTRY - prefix
}

fn at(prefix: usize, place: usize) -> usize {
    PREFIX + prefix + place * step(prefix)
}

/// This many entries fit if the keys have `prefix` bytes in common.
pub(super) fn capacity(prefix: usize) -> usize {
    (PAGE - PREFIX - prefix) / step(prefix)
}

pub(super) fn key(bytes: &[u8], place: usize) -> Oid {
    let (common, from) = (prefix(bytes), at(prefix(bytes), place));
    let mut key = [0; Oid::BYTES];
    key[..common].copy_from_slice(&bytes[PREFIX..PREFIX + common]);
    key[common..].copy_from_slice(&bytes[from..from + Oid::BYTES - common]);
    Oid::from_bytes(key)
}

pub(super) fn handle(bytes: &[u8], place: usize) -> Handle {
    let common = prefix(bytes);
    Handle::get(&bytes[at(common, place) + Oid::BYTES - common..])
}

pub(super) fn set_handle(bytes: &mut [u8], place: usize, handle: Handle) {
    let common = prefix(bytes);
    handle.put(&mut bytes[at(common, place) + Oid::BYTES - common..]);
}

/// Where the key is, or would be.
pub(super) fn find(bytes: &[u8], wanted: Oid) -> Result<usize, usize> {
    let (mut low, mut high) = (0, count(bytes));
    while low < high {
        let middle = usize::midpoint(low, high);
        match key(bytes, middle).cmp(&wanted) {
            std::cmp::Ordering::Equal => return Ok(middle),
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    Err(low)
}

pub(super) fn issued(bytes: &[u8]) -> Oid {
    let mut oid = [0; Oid::BYTES];
    oid.copy_from_slice(&bytes[ISSUED..ISSUED + Oid::BYTES]);
    Oid::from_bytes(oid)
}

pub(super) fn entries(bytes: &[u8]) -> Vec<Entry> {
    (0..count(bytes)).map(|i| (key(bytes, i), handle(bytes, i))).collect()
}

/// The prefix of these entries, which are in order; one byte of a key at least is kept apart.
fn common(entries: &[Entry]) -> usize {
    match entries {
        _ if is(Mutation::LeafPrefix) => 0,
        [] => Oid::BYTES - 1,
        [first, .., last] => first.0.common(&last.0),
        [_] => Oid::BYTES - 1,
    }
}

/// Whether these entries, in order, fit one leaf.
pub(super) fn fits(entries: &[Entry]) -> bool {
    entries.len() <= capacity(common(entries))
}

/// Writes a leaf of these entries, which fit.
pub(super) fn write(bytes: &mut [u8], entries: &[Entry], issued: Oid) {
    let common = common(entries);
    bytes[ISSUED..ISSUED + Oid::BYTES].copy_from_slice(issued.bytes());
    put_u16(bytes, COUNT, entries.len() as u16);
    put_u16(bytes, PREFIX_LEN, common as u16);
    if let Some((first, _)) = entries.first() {
        bytes[PREFIX..PREFIX + common].copy_from_slice(&first.bytes()[..common]);
    }
    for (place, (key, handle)) in entries.iter().enumerate() {
        let from = at(common, place);
        bytes[from..from + Oid::BYTES - common].copy_from_slice(&key.bytes()[common..]);
        set_handle(bytes, place, *handle);
    }
}

/// Inserts at `place`, if the key belongs; `false` if the leaf is over-full by it.
pub(super) fn insert(bytes: &mut [u8], place: usize, key: Oid, handle: Handle) -> bool {
    let (n, common) = (count(bytes), prefix(bytes));
    let issued = issued(bytes).max(key);
    if n == 0 || key.bytes()[..common] != bytes[PREFIX..PREFIX + common] {
        let mut all = entries(bytes);
        all.insert(place, (key, handle));
        let fits = fits(&all);
        if fits {
            write(bytes, &all, issued);
        }
        return fits;
    }
    if n >= capacity(common) {
        return false;
    }
    let from = at(common, place);
    bytes.copy_within(from..at(common, n), from + step(common));
    bytes[from..from + Oid::BYTES - common].copy_from_slice(&key.bytes()[common..]);
    set_handle(bytes, place, handle);
    bytes[ISSUED..ISSUED + Oid::BYTES].copy_from_slice(issued.bytes());
    put_u16(bytes, COUNT, n as u16 + 1);
    true
}

/// Takes the entry at `place` out; the prefix stays as it is.
pub(super) fn remove(bytes: &mut [u8], place: usize) {
    let (n, common) = (count(bytes), prefix(bytes));
    bytes.copy_within(at(common, place + 1)..at(common, n), at(common, place));
    put_u16(bytes, COUNT, n as u16 - 1);
}
