//! Bit operations on words of 64 pages: cutting a range into words, and buddy blocks
//! within a word. Pure functions, no state.

/// Pages of a word.
pub(crate) const PAGES: u32 = 64;
/// Order of a whole word.
pub(crate) const ORDER: u8 = 6;

/// At index k the bits at multiples of 2^k: where blocks of order k start.
const STARTS: [u64; 7] = [
    u64::MAX,
    0x5555_5555_5555_5555,
    0x1111_1111_1111_1111,
    0x0101_0101_0101_0101,
    0x0001_0001_0001_0001,
    0x0000_0001_0000_0001,
    0x0000_0000_0000_0001,
];

/// Words needed for `pages` bits.
pub(crate) const fn count(pages: u32) -> usize {
    pages.div_ceil(PAGES) as usize
}

/// The words that the range `start..start + len` touches, each with the mask of its bits in
/// the range. The caller has checked that the sum does not overflow.
pub(crate) fn pieces(start: u32, len: u32) -> impl Iterator<Item = (usize, u64)> {
    let end = start + len;
    let mut at = start;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let bit = at % PAGES;
        let n = (PAGES - bit).min(end - at);
        let piece = ((at / PAGES) as usize, (u64::MAX >> (PAGES - n)) << bit);
        at += n;
        Some(piece)
    })
}

/// The bits of word `w` below page `end`.
pub(crate) fn mask_below(w: usize, end: u32) -> u64 {
    let first = w as u64 * u64::from(PAGES);
    match u64::from(end).saturating_sub(first) {
        0 => 0,
        n if n >= u64::from(PAGES) => u64::MAX,
        n => (1 << n) - 1,
    }
}

/// Orders of the maximal free blocks in a word (bit set = page free), as a set: bit k is
/// set where a free aligned block of order k has a buddy that is not wholly free.
pub(crate) fn orders(free: u64) -> u16 {
    match free {
        0 => 0,
        u64::MAX => 1 << ORDER,
        _ => (0..ORDER).filter(|&k| maximal(free, k) != 0).fold(0, |set, k| set | 1 << k),
    }
}

/// First page in the word of the lowest maximal free block of `order`, if there is one.
pub(crate) fn lowest_block(free: u64, order: u8) -> Option<u32> {
    let starts = if order == ORDER { u64::from(free == u64::MAX) } else { maximal(free, order) };
    (starts != 0).then(|| starts.trailing_zeros())
}

/// Starts of the maximal free blocks of `order`, which is below [`ORDER`].
fn maximal(free: u64, order: u8) -> u64 {
    let mut whole = free;
    for k in 0..order {
        whole &= whole >> (1 << k) & STARTS[usize::from(k) + 1];
    }
    let half = 1 << order;
    let parents = whole & whole >> half & STARTS[usize::from(order) + 1];
    whole & !(parents | parents << half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    fn blocks(free: u64) -> Vec<(u8, u32)> {
        let whole = |k: u8, at: u32| (at..at + (1 << k)).all(|i| free >> i & 1 == 1);
        let mut found = Vec::new();
        for k in 0..=ORDER {
            for at in (0..PAGES).step_by(1 << k) {
                let parent = at & !((2u32 << k) - 1);
                if whole(k, at) && (k == ORDER || !whole(k + 1, parent)) {
                    found.push((k, at));
                }
            }
        }
        found
    }

    #[test]
    fn blocks_of_a_word_are_those_found_page_by_page() {
        let mut rng = SmallRng::seed_from_u64(1);
        for i in 0..3000 {
            let mut free = if i % 3 == 0 { 0 } else { u64::MAX };
            for _ in 0..rng.random_range(0..6) {
                let (start, len) = (rng.random_range(0..64), rng.random_range(1..33));
                let mask = pieces(start, len.min(64 - start)).next().unwrap().1;
                free = if rng.random() { free | mask } else { free & !mask };
            }
            let expected = blocks(free);
            assert_eq!(orders(free), expected.iter().fold(0, |s, b| s | 1 << b.0), "{free:x}");
            for k in 0..=ORDER {
                let lowest = expected.iter().find(|b| b.0 == k).map(|b| b.1);
                assert_eq!(lowest_block(free, k), lowest, "{free:x} order {k}");
            }
        }
    }

    #[test]
    fn a_range_is_cut_at_word_boundaries() {
        let cut: Vec<_> = pieces(60, 72).collect();
        assert_eq!(cut, [(0, 0xf << 60), (1, u64::MAX), (2, 0xf)]);
        assert_eq!(pieces(64, 0).count(), 0);
        assert_eq!(pieces(0, 64).collect::<Vec<_>>(), [(0, u64::MAX)]);
        assert_eq!([mask_below(1, 64), mask_below(1, 66), mask_below(1, 128)], [0, 3, u64::MAX]);
    }
}
