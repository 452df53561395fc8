//! An inner node of the B+-tree: separators of 12 bytes and page numbers of 8.
//!
//! Owns the format. With 204 children to a node, three levels of inner nodes lead to the large
//! base and two to the small one, the heights of Eickler §5.1. An entry's child has the keys from
//! its separator on; the first child those below it too. Pure.

use holdall_core::techniques::bytes::{put_u16, put_u64, u16_at, u64_at};

use super::super::oid::Oid;
use super::super::pages::{HEAD, PAGE};

const COUNT: usize = 8;
const STEP: usize = Oid::BYTES + 8;
/// Children of a node.
pub const FANOUT: usize = (PAGE - HEAD) / STEP;

/// Separator and child.
pub(super) type Entry = (Oid, u32);

pub(super) fn count(bytes: &[u8]) -> usize {
    usize::from(u16_at(bytes, COUNT)).min(FANOUT)
}

pub(super) fn key(bytes: &[u8], place: usize) -> Oid {
    let from = HEAD + place * STEP;
    let mut key = [0; Oid::BYTES];
    key.copy_from_slice(&bytes[from..from + Oid::BYTES]);
    Oid::from_bytes(key)
}

pub(super) fn child(bytes: &[u8], place: usize) -> u32 {
    u64_at(bytes, HEAD + place * STEP + Oid::BYTES) as u32
}

/// The child that a key is under.
pub(super) fn find(bytes: &[u8], wanted: Oid) -> usize {
    let (mut low, mut high) = (1, count(bytes));
    while low < high {
        let middle = usize::midpoint(low, high);
        if key(bytes, middle) <= wanted {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low - 1
}

pub(super) fn entries(bytes: &[u8]) -> Vec<Entry> {
    (0..count(bytes)).map(|i| (key(bytes, i), child(bytes, i))).collect()
}

/// Writes a node of these entries, at most [`FANOUT`].
pub(super) fn write(bytes: &mut [u8], entries: &[Entry]) {
    put_u16(bytes, COUNT, entries.len() as u16);
    for (place, (key, child)) in entries.iter().enumerate() {
        let from = HEAD + place * STEP;
        bytes[from..from + Oid::BYTES].copy_from_slice(key.bytes());
        put_u64(bytes, from + Oid::BYTES, u64::from(*child));
    }
}
