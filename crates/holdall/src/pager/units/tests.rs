//! Segment data in memory: what is kept, what is given up, and that it is what was put in.

use super::*;
use crate::pager::pool::Pool;
use holdall_core::checksum::crc;
use holdall_core::page::{self, PageKind};
use holdall_core::{Lsn, PageNo, PageRef};
use holdall_io::MemoryDisk;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::sync::Arc;

/// Bytes of a unit in its life number `life`, and their checksum.
fn unit(number: u64, life: u64) -> (u32, Vec<u8>) {
    let word = (number << 20 | life).to_le_bytes();
    let bytes = word.repeat(UNIT / 8);
    (crc(&bytes), bytes)
}

fn keep(units: &Units, number: u64, life: u64, how: Keep) {
    let (sum, bytes) = unit(number, life);
    units.keep(number, sum, &bytes, how);
}

/// Whether that life of the unit is here; what comes is compared.
fn found(units: &Units, number: u64, life: u64) -> bool {
    let (sum, bytes) = unit(number, life);
    let (skip, mut out) = (number as usize % 64, vec![0; 4000]);
    let found = units.copy(number, sum, skip, &mut out);
    assert!(!found || out == bytes[skip..skip + 4000], "other bytes");
    found
}

#[test]
fn a_unit_is_found_by_its_number_and_checksum_only() {
    let units = Units::new(1 << 20);
    assert!(!found(&units, 7, 1) && units.is_empty());
    keep(&units, 7, 1, Keep::InRoom);
    assert!(found(&units, 7, 1) && !found(&units, 7, 2) && !found(&units, 8, 1));
    keep(&units, 7, 2, Keep::InRoom);
    assert!(!found(&units, 7, 1) && found(&units, 7, 2), "the later life has its place");
    assert_eq!(units.bytes(), UNIT);
    let (sum, bytes) = unit(9, 1);
    units.keep(9, sum, &bytes[..UNIT - 1], Keep::ForOther);
    assert!(!units.has(9, sum), "not a whole unit");
    assert!(units.has(7, unit(7, 2).0) && !units.has(7, 1) && !units.has(8, unit(7, 2).0));
    assert!(!units.copy(7, unit(7, 2).0, 4000, &mut [0; 97]), "beyond the unit's end");
    keep(&units, u64::MAX, 1, Keep::ForOther);
    assert!(!found(&units, u64::MAX, 1), "no unit has this number");
}

#[test]
fn what_is_written_over_is_forgotten() {
    let units = Units::new(1 << 20);
    units.forget(0, u64::MAX);
    (0..20).for_each(|n| keep(&units, n, 1, Keep::InRoom));
    units.forget(5, 10);
    assert!((0..20).all(|n| found(&units, n, 1) != (5..15).contains(&n)));
    assert_eq!(units.bytes(), 10 * UNIT);
    units.forget(0, u64::MAX);
    assert!(units.is_empty(), "and then ends");
}

#[test]
fn without_a_budget_nothing_is_kept() {
    let units = Units::new(UNIT - 1);
    assert!((0..20).all(|n| units.wants(1).is_none() && units.wants_long(n, 20).is_none()));
    keep(&units, 3, 1, Keep::ForOther);
    assert!(units.is_empty() && !found(&units, 3, 1));
}

#[test]
fn a_full_table_replaces_what_was_not_used() {
    let units = Units::new(64 * UNIT);
    let hot = |n: u64| n.is_multiple_of(4);
    for n in 0..64 {
        keep(&units, n, 1, Keep::InRoom);
    }
    let kept: Vec<u64> = (0..64).filter(|n| hot(*n) && found(&units, *n, 1)).collect();
    assert!(kept.len() >= 12, "{} of 16 found a place", kept.len());
    for scanned in 1000..5000 {
        keep(&units, scanned, 1, Keep::ForOther);
        // Used now and then.
        if scanned % 4 == 0 {
            kept.iter().for_each(|n| _ = found(&units, *n, 1));
        }
        assert!(units.bytes() <= 64 * UNIT);
    }
    let left = kept.iter().filter(|n| found(&units, **n, 1)).count();
    assert!(left * 4 >= kept.len() * 3, "{left} of {} survive what is read once", kept.len());
    keep(&units, 9000, 1, Keep::InRoom);
    let all = (0..64).chain(1000..5000).filter(|n| found(&units, *n, 1)).count();
    assert!(all * UNIT <= units.bytes(), "{all} units in {} bytes", units.bytes());
}

#[test]
fn once_full_one_of_eight_short_reads_is_kept_and_no_long_one() {
    let units = Units::new(64 * UNIT);
    assert_eq!(units.wants(16), Some(Keep::InRoom));
    assert_eq!(units.wants_long(5, 20), None, "the first time");
    assert_eq!(units.wants_long(5, 20), Some(Keep::InRoom));
    assert_eq!(units.wants_long(5, 65), None, "more than there is room for");
    units.pages_came(60 * UNIT);
    let kept = (0..80).filter(|_| units.wants(5) == Some(Keep::ForOther)).count();
    assert_eq!(kept, 10);
    assert_eq!(units.wants(4), Some(Keep::InRoom));
    units.pages_came(4 * UNIT);
    assert!((0..80).all(|_| units.wants(1).is_none()), "pages take it all");
    units.pages_went(64 * UNIT);
    assert_eq!(units.wants_long(5, 20), Some(Keep::InRoom));
}

#[test]
fn data_much_larger_than_the_budget_is_looked_for_in_some_sets_only() {
    let budget = 2048;
    let units = Units::new(budget * UNIT);
    let mut rng = SmallRng::seed_from_u64(9);
    let mut read = |of: u64| {
        let n = rng.random_range(0..of);
        if !found(&units, n, 1)
            && let Some(how) = units.wants(1)
        {
            keep(&units, n, 1, how);
        }
    };
    (0..60_000).for_each(|_| read(40 * budget as u64));
    let looked = (0..10_000).filter(|n| units.worthwhile(*n)).count();
    assert!((800..2000).contains(&looked), "{looked} of 10000");
    // What fits for the most part is soon looked for everywhere again.
    (0..120_000).for_each(|_| read(budget as u64));
    assert!((0..10_000).all(|n| units.worthwhile(n)));
    let here = (0..budget as u64).filter(|n| found(&units, *n, 1)).count();
    assert!(here > budget / 2, "{here} of {budget}");
}

#[test]
fn pages_go_before_units() {
    const PAGE: usize = 8192;
    let (budget, disk) = (64 * PAGE, Arc::new(MemoryDisk::new()));
    let pool = Pool::new(disk, PAGE, budget);
    let needed = crate::pager::Horizon::new(Lsn(0)).needed(|| [Lsn(0); 2]);
    let mut rng = SmallRng::seed_from_u64(4);
    let mut most = 0;
    for n in 0..400 {
        for _ in 0..20 {
            keep(pool.units(), rng.random_range(0..400), 1, Keep::ForOther);
        }
        if n % 2 == 0 {
            let mut bytes = vec![0; PAGE];
            page::format(&mut bytes, PageKind::Heap, PageNo(n), 0);
            page::seal(&mut bytes, Lsn(n + 1));
            let bytes: PageRef = bytes.into();
            pool.install(PageNo(n), (Lsn(n + 1), bytes), None, true, &needed);
        } else if n > 300 {
            pool.forget(PageNo(n - 101));
        }
        let stats = pool.stats();
        let (pages, units) = (stats.pages as usize * PAGE, stats.unit_bytes as usize);
        assert!(pages + units <= budget.max(pages), "{pages} of pages and {units} of units");
        most = most.max(units);
    }
    assert!(most > budget / 2, "units had at most {most} bytes");
}

#[test]
fn threads_find_whole_units_and_stay_within_the_budget() {
    let rounds = if cfg!(miri) { 30 } else { 20_000 };
    let budget = 48 * UNIT;
    let units = Units::new(budget);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let units = &units;
            scope.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(thread);
                let mut hits = 0;
                for _ in 0..rounds {
                    let (number, life) = (rng.random_range(0..60), rng.random_range(0..3));
                    match rng.random_range(0..16) {
                        0 => units.pages_came(16 * UNIT),
                        1 => units.pages_came(0),
                        2..8 => keep(units, number, life, Keep::ForOther),
                        _ => hits += usize::from(found(units, number, life)),
                    }
                    if units.pages.load(SeqCst) > thread as usize * 8 * UNIT {
                        // Of what others have brought, too: all that matters is the sum.
                        let take = |p: usize| p.checked_sub(16 * UNIT);
                        let _ = units.pages.fetch_update(SeqCst, SeqCst, take);
                    }
                }
                assert!(cfg!(miri) || hits > 0);
            });
        }
    });
    units.pages_came(0);
    assert!(units.bytes() <= units.limit());
    let here = |n: u64, life| units.has(n, unit(n, life).0);
    let kept: usize = (0..60).map(|n| (0..3).filter(|l| here(n, *l)).count()).sum();
    assert_eq!(kept * UNIT, units.bytes());
}
