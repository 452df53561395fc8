//! Objects of random bytes with a marker every 1 KB, and what the markers tell (Sears §5.2).
//!
//! Owns: the marker's format, the content of an object's version, the search for markers in
//! any bytes and the count of fragments. Pure functions of bytes; no files, no threads.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use memchr::memmem::Finder;
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

/// Bytes of an object from one marker to the next.
pub const STEP: usize = 1024;

const MAGIC: [u8; 8] = *b"\xf1HoldMk\x9c";
/// Bytes of a marker: magic, object, version, number within the object, check.
pub(super) const MARK: usize = 24;

/// Bytes between two markers of an object, in order of address, that lie in one region: two
/// steps, as one marker may be cut by a page border, and headers of pages and rows.
const REGION_GAP: u64 = 3 * STEP as u64;
/// How far back the next marker may lie in one region: a slotted page is filled from its end.
const BACK: i64 = 4 * STEP as i64;
/// How far ahead it may lie: from the last row of a slotted page to the first of the next.
const AHEAD: i64 = 16 * STEP as i64;

/// A marker that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Which object.
    pub object: u32,
    /// Which of its versions.
    pub version: u32,
    /// The marker's number within the object, from 0.
    pub number: u32,
}

impl Mark {
    fn bytes(self) -> [u8; MARK] {
        let mut out = [0; MARK];
        out[..8].copy_from_slice(&MAGIC);
        let check = self.object.rotate_left(7) ^ self.version.rotate_left(19) ^ !self.number;
        for (at, word) in [self.object, self.version, self.number, check].into_iter().enumerate() {
            out[8 + 4 * at..12 + 4 * at].copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    /// The marker that `bytes` begin with.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let whole: &[u8; MARK] = bytes.first_chunk()?;
        let word = |at: usize| {
            let mut raw = [0; 4];
            raw.copy_from_slice(&whole[8 + 4 * at..12 + 4 * at]);
            u32::from_le_bytes(raw)
        };
        let mark = Self { object: word(0), version: word(1), number: word(2) };
        (mark.bytes() == *whole).then_some(mark)
    }
}

/// How many markers an object of `size` bytes has.
pub fn marks_of(size: usize) -> usize {
    (size + STEP - MARK) / STEP
}

/// Makes the bytes of objects.
pub struct Content {
    noise: Vec<u8>,
}

impl Content {
    /// Draws the random bytes by `seed`. Costs 4 MB of memory.
    pub fn new(seed: u64) -> Self {
        let mut noise = vec![0; 4 << 20];
        SmallRng::seed_from_u64(seed).fill_bytes(&mut noise);
        Self { noise }
    }

    /// Fills `out` with `size` bytes of version `version` of `object`.
    pub fn fill(&self, object: u32, version: u32, size: usize, out: &mut Vec<u8>) {
        out.clear();
        let start = object.wrapping_mul(0x9e37_79b1) ^ version.wrapping_mul(0x85eb_ca6b);
        let mut from = start as usize % self.noise.len();
        while out.len() < size {
            let end = self.noise.len().min(from + size - out.len());
            out.extend_from_slice(&self.noise[from..end]);
            from = 0;
        }
        for number in 0..marks_of(size) {
            let mark = Mark { object, version, number: number as u32 }.bytes();
            out[number * STEP..number * STEP + MARK].copy_from_slice(&mark);
        }
    }
}

/// Checks that `bytes` are version `version` of `object`, by size and markers.
pub fn check(bytes: &[u8], object: u32, version: u32, size: usize) -> Result<()> {
    ensure!(bytes.len() == size, "object {object} has {} bytes, not {size}", bytes.len());
    for number in 0..marks_of(size) {
        let found = Mark::parse(&bytes[number * STEP..]);
        let number = number as u32;
        let expected = Mark { object, version, number };
        ensure!(
            found == Some(expected),
            "object {object}, version {version}: marker {number} is {found:?}"
        );
    }
    Ok(())
}

/// Gives every marker of `bytes` with its offset to `seen`. A marker cut by the end is missed:
/// pieces of a larger whole overlap by `MARK` − 1 bytes.
pub fn search(bytes: &[u8], mut seen: impl FnMut(usize, Mark)) {
    for at in Finder::new(&MAGIC).find_iter(bytes) {
        if let Some(mark) = Mark::parse(&bytes[at..]) {
            seen(at, mark);
        }
    }
}

/// Where the markers of live versions were found.
#[derive(Debug, Default)]
pub struct Places {
    by_object: HashMap<u32, Vec<(u32, u64)>>,
}

impl Places {
    /// Marker `number` of `object` lies at `address`; it may lie elsewhere too.
    pub fn add(&mut self, object: u32, number: u32, address: u64) {
        self.by_object.entry(object).or_default().push((number, address));
    }

    /// Fragments of `object`, and how many of its markers were found.
    pub fn fragments(&mut self, object: u32) -> (u32, usize) {
        let Some(found) = self.by_object.get_mut(&object) else { return (0, 0) };
        found.sort_unstable();
        let chain = chain(found);
        (count(&chain), chain.len())
    }
}

/// One address for each number, in order: of several copies the one nearest behind the marker
/// before it. A store may keep a copy of what it moved in a page's free space.
fn chain(found: &[(u32, u64)]) -> Vec<u64> {
    let mut out: Vec<u64> = Vec::with_capacity(found.len());
    for same in found.chunk_by(|a, b| a.0 == b.0) {
        let expected = out.last().map_or(0, |before| before + STEP as u64);
        let nearest = same.iter().map(|(_, address)| *address);
        out.extend(nearest.min_by_key(|address| address.abs_diff(expected)));
    }
    out
}

/// Fragments of an object whose markers lie at `addresses`, in order of the object.
///
/// A fragment ends where the next marker lies in another region of the disk, or so far back or
/// ahead in the same one that reading on would need a seek. Bytes between two markers that are
/// no more than a page's headers do not end it.
fn count(addresses: &[u64]) -> u32 {
    let mut sorted = addresses.to_vec();
    sorted.sort_unstable();
    // The first address of each region.
    let mut regions = Vec::new();
    let mut last = None;
    for address in sorted {
        if last.is_none_or(|last| address - last > REGION_GAP) {
            regions.push(address);
        }
        last = Some(address);
    }
    let region = |address: u64| regions.partition_point(|first| *first <= address);
    let breaks = addresses.windows(2).filter(|pair| {
        let step = pair[1].cast_signed() - pair[0].cast_signed();
        region(pair[0]) != region(pair[1]) || !(-BACK..AHEAD).contains(&step)
    });
    breaks.count() as u32 + u32::from(!addresses.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(object: u32, version: u32, size: usize) -> Vec<u8> {
        let mut out = Vec::new();
        Content::new(1).fill(object, version, size, &mut out);
        out
    }

    #[test]
    fn content_is_checked_by_size_and_every_marker() {
        for size in [0, 23, 24, 1023, 1024, 1047, 1048, 5000, 70_000] {
            let bytes = filled(3, 4, size);
            assert_eq!(bytes.len(), size);
            check(&bytes, 3, 4, size).unwrap();
            let mut found = 0;
            search(&bytes, |at, mark| {
                assert_eq!(at, mark.number as usize * STEP);
                found += 1;
            });
            assert_eq!(found, marks_of(size));
        }
        let mut bytes = filled(3, 4, 5000);
        assert!(check(&bytes, 3, 5, 5000).is_err());
        assert!(check(&bytes[..4999], 3, 4, 5000).is_err());
        bytes[2 * STEP + 9] ^= 1;
        assert!(check(&bytes, 3, 4, 5000).is_err());
    }

    #[test]
    fn fragments_of_scripted_layouts() {
        let steps = |from: u64, n: u64| (0..n).map(move |i| from + i * 1024);
        let fragments = |a: Vec<u64>| count(&a);
        assert_eq!(fragments(vec![]), 0);
        assert_eq!(fragments(steps(0, 100).collect()), 1);
        // One foreign block of 4 KB between two runs.
        assert_eq!(fragments(steps(0, 8).chain(steps(12 << 10, 8)).collect()), 2);
        // Two runs that lie one behind the other in the wrong order.
        assert_eq!(fragments(steps(32 << 10, 32).chain(steps(0, 32)).collect()), 2);
        // Pages of 4 KB in reversed order: every page is a seek.
        let reversed = (0..8).rev().flat_map(|page| steps(page * 4096, 4));
        assert_eq!(fragments(reversed.collect()), 8);
        // Page headers of 24 bytes every 8 KB.
        let headers = (0..64).map(|i| i * 1024 + i / 8 * 24);
        assert_eq!(fragments(headers.collect()), 1);
        // Slotted pages of 8 KB, each filled from its end with rows of 2 KB.
        let slotted = (0..4).flat_map(|page| {
            (0..4).flat_map(move |row| steps(page * 8192 + 64 + (3 - row) * 2032, 2))
        });
        assert_eq!(fragments(slotted.collect()), 1);
        // A marker lost to a page border.
        assert_eq!(fragments(steps(0, 9).filter(|a| *a != 4096).collect()), 1);
    }

    #[test]
    fn of_two_copies_the_one_that_goes_on_counts() {
        let mut places = Places::default();
        for number in 0..10 {
            places.add(1, number, 50_000 + u64::from(number) * 1024);
            // A copy in a log, with one marker missing.
            if number != 3 {
                places.add(1, number, 900_000 + u64::from(number) * 1100);
            }
        }
        assert_eq!(places.fragments(1), (1, 10));
        assert_eq!(places.fragments(2), (0, 0));
    }
}
