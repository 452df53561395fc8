//! Where in a page a record can lie so that few bytes of other records must move.
//!
//! Pure: places in, places out. Bytes that move are bytes that the log must carry.

use std::ops::Range;

/// Free bytes that lie together once the records between them have moved up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    /// Which records move, as positions in the list of records.
    pub(super) moved: Range<usize>,
    /// Where the free bytes end, and the records that move are to end.
    pub(super) end: usize,
}

/// The window of `need` bytes for which the fewest bytes move; of several the shortest, so
/// that longer ones stay whole. `records` go from the page's end downwards and do not
/// overlap; bytes from `floor` to `size` may be used. `None` if the records leave no such
/// window, or one lies below `floor`.
pub(super) fn least_moved(
    records: &[(u16, Range<usize>)],
    floor: usize,
    size: usize,
    need: usize,
) -> Option<Window> {
    // Free stretch `i` lies above record `i`, the last one below all.
    let top = |i: usize| if i == 0 { size } else { records[i - 1].1.start };
    let free = |i: usize| top(i).checked_sub(records.get(i).map_or(floor, |r| r.1.end));
    let (mut first, mut sum, mut moved) = (0, 0, 0);
    let mut best: Option<(usize, usize, Window)> = None;
    for last in 0..=records.len() {
        sum += free(last)?;
        if last > 0 {
            moved += records[last - 1].1.len();
        }
        // The stretches that the others do without come off.
        while first < last && sum - free(first)? >= need {
            sum -= free(first)?;
            moved -= records[first].1.len();
            first += 1;
        }
        let better = best.as_ref().is_none_or(|b| (moved, sum) < (b.0, b.1));
        if sum >= need && better {
            best = Some((moved, sum, Window { moved: first..last, end: top(first) }));
        }
    }
    best.map(|(_, _, window)| window)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    fn places(all: &[Range<usize>]) -> Vec<(u16, Range<usize>)> {
        all.iter().enumerate().map(|(i, r)| (i as u16, r.clone())).collect()
    }

    #[test]
    fn the_shortest_hole_that_serves_is_taken_and_nothing_moves() {
        // Free: 90..100, 50..60, 0..20 of a page of 100 bytes.
        let all = places(&[60..90, 20..50]);
        let window = |need| least_moved(&all, 0, 100, need);
        assert_eq!(window(10), Some(Window { moved: 0..0, end: 100 }));
        assert_eq!(window(11), Some(Window { moved: 2..2, end: 20 }));
        assert_eq!(window(21), Some(Window { moved: 1..2, end: 60 }));
        assert_eq!(window(31), Some(Window { moved: 0..2, end: 100 }));
        assert_eq!(window(41), None);
        assert_eq!(least_moved(&all, 21, 100, 1), None, "a record lies below the floor");
    }

    #[test]
    fn no_other_window_moves_less() {
        let mut rng = SmallRng::seed_from_u64(1);
        for _ in 0..2000 {
            let (mut all, mut end) = (Vec::new(), 1000);
            while all.len() < rng.random_range(0..12) && end > 200 {
                let upper = end - rng.random_range(0..40);
                end = upper - rng.random_range(1..60);
                all.push(end..upper);
            }
            let (floor, need) = (rng.random_range(0..=end.min(100)), rng.random_range(1..900));
            let all = places(&all);
            let cost = |first: usize, last: usize| {
                let bytes: usize = all[first..last].iter().map(|r| r.1.len()).sum();
                let top = if first == 0 { 1000 } else { all[first - 1].1.start };
                let bottom = all.get(last).map_or(floor, |r| r.1.end);
                (top - bottom - bytes >= need).then_some(bytes)
            };
            let pairs = (0..=all.len()).flat_map(|a| (a..=all.len()).map(move |b| (a, b)));
            let least = pairs.filter_map(|(a, b)| cost(a, b)).min();
            let found = least_moved(&all, floor, 1000, need);
            assert_eq!(found.as_ref().and_then(|w| cost(w.moved.start, w.moved.end)), least);
            let top =
                |w: &Window| if w.moved.start == 0 { 1000 } else { all[w.moved.start - 1].1.start };
            assert!(found.is_none_or(|w| w.end == top(&w)));
        }
    }
}
