//! Packed entries of 4 bits, and searches over them 16 at a time.
//!
//! Owns no state. Entry i is the low half of byte i/2 if i is even, else the high half. The
//! searches return the same entry as a loop over single entries would; how many entries such a
//! loop looks at follows from the answer, so counts stay exact. Pure; no threads.

const LOW: u64 = 0x0F0F_0F0F_0F0F_0F0F;
const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;

/// Entry `i`.
#[inline]
pub fn get(bytes: &[u8], i: usize) -> u8 {
    (bytes[i / 2] >> (4 * (i % 2))) & 15
}

/// Sets entry `i`.
#[inline]
pub fn set(bytes: &mut [u8], i: usize, value: u8) {
    let shift = 4 * (i % 2);
    let byte = &mut bytes[i / 2];
    *byte = (*byte & !(15 << shift)) | ((value & 15) << shift);
}

/// The first of the entries `from..to` whose value is `low..=high`, which must be below 16.
/// Cost: one step per 16 entries.
pub fn find(bytes: &[u8], from: usize, to: usize, low: u8, high: u8) -> Option<usize> {
    let hit = |i: &usize| (low..=high).contains(&get(bytes, *i));
    let words_from = from.next_multiple_of(16).min(to);
    if let Some(i) = (from..words_from).find(hit) {
        return Some(i);
    }
    let words_to = words_from.max(to / 16 * 16);
    let at_least = ONES * (0x80 - u64::from(low));
    let above = ONES * (0x7F - u64::from(high));
    let inside = |v: u64| (v + at_least) & !(v + above) & TOPS;
    let words = bytes[words_from.div_ceil(2)..words_to.div_ceil(2)].chunks_exact(8);
    for (n, word) in words.enumerate() {
        let mut eight = [0; 8];
        eight.copy_from_slice(word);
        let word = u64::from_le_bytes(eight);
        if inside(word & LOW) | inside((word >> 4) & LOW) != 0 {
            let start = words_from + n * 16;
            return (start..start + 16).find(hit);
        }
    }
    (words_to..to).find(hit)
}

/// How many of the entries `from..to` have each value.
pub fn histogram(bytes: &[u8], from: usize, to: usize) -> [u32; 16] {
    let mut counts = [0; 16];
    for i in from..to {
        counts[usize::from(get(bytes, i))] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    #[test]
    fn finds_what_a_loop_finds() {
        let mut rng = SmallRng::seed_from_u64(1);
        for round in 0..3000 {
            let rare = round % 3;
            let mut bytes = vec![0; rng.random_range(0..60)];
            let n = bytes.len() * 2;
            for i in 0..n {
                if rng.random_range(0..=rare * 40) == 0 {
                    set(&mut bytes, i, rng.random_range(0..16));
                }
            }
            let to = rng.random_range(0..=n);
            let from = rng.random_range(0..=to);
            let low = rng.random_range(0..16);
            let high = rng.random_range(low..16);
            let slow = (from..to).find(|&i| (low..=high).contains(&get(&bytes, i)));
            assert_eq!(find(&bytes, from, to, low, high), slow, "{from}..{to} {low}..={high}");
            let counted: u32 = histogram(&bytes, from, to).iter().sum();
            assert_eq!(counted as usize, to - from);
        }
    }

    #[test]
    fn a_set_entry_changes_no_other() {
        let mut bytes = [0xA5; 4];
        set(&mut bytes, 3, 7);
        let all: Vec<u8> = (0..8).map(|i| get(&bytes, i)).collect();
        assert_eq!(all, [5, 10, 5, 7, 5, 10, 5, 10]);
    }
}
