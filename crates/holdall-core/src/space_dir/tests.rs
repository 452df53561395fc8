//! The directory page against plain lists, and damaged pages.

use super::*;
use crate::PageKind;
use proptest::prelude::*;

fn formatted(layout: SpaceLayout, space: u32) -> Vec<u8> {
    let mut bytes = vec![0xee; layout.page_size()];
    page::format(&mut bytes, PageKind::SpaceDir, layout.dir_page(space), u64::from(space));
    SpaceDir::init(layout, space, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_new_directory_has_only_the_fixed_pages() {
    for size in [4096, 8192, 16_384, 32_768, 65_536] {
        for pages in [64, 101, SpaceLayout::default_space_pages(size)] {
            let layout = SpaceLayout::new(size, pages).unwrap();
            for space in [0, 1, 9] {
                let bytes = formatted(layout, space);
                let dir = SpaceDir::open(layout, space, &bytes[..]).unwrap();
                let fixed: Vec<_> = layout.fixed_pages(space).collect();
                assert_eq!(dir.count_allocated() as usize, fixed.len());
                assert!((0..pages).all(|i| dir.is_allocated(i) == fixed.contains(&i)));
                assert!(dir.is_allocated(pages));
                dir.check().unwrap();
                let tree = dir.tree(pages).unwrap();
                assert_eq!(tree.free_pages(), pages - fixed.len() as u32);
                assert!(tree.largest() <= Some(layout.largest_order()));
                if pages.is_power_of_two() {
                    assert_eq!(tree.largest(), Some(layout.largest_order()));
                }
                assert_eq!(dir.tree(0).unwrap().free_pages(), 0);
                assert!(dir.tree(pages + 1).is_err());
                assert!(bytes[layout.dir_bytes()..].iter().all(|&b| b == 0));
            }
        }
    }
}

#[derive(Debug, Clone)]
enum Op {
    Set(u32, u32, bool),
    Flip(u32),
    Segments(u32, i64),
    Info(u32, u64),
    Change(u32, u32, u64),
}

fn op(pages: u32) -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..pages + 3, 0..pages, any::<bool>()).prop_map(|(s, l, a)| Op::Set(s, l / 4, a)),
        (0..pages).prop_map(Op::Flip),
        (0..6u32, -400..400i64).prop_map(|(j, d)| Op::Segments(j, d)),
        (0..6u32, prop_oneof![Just(0), 1..=PageNo::MAX.0]).prop_map(|(j, p)| Op::Info(j, p)),
        (0..pages + 3, 0..pages, any::<u64>()).prop_map(|(s, l, n)| Op::Change(s, l, n)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_page_does_what_lists_do(
        (pages, space, ops) in (64u32..1400, 0u32..3).prop_flat_map(|(n, s)| {
            (Just(n), Just(s), prop::collection::vec(op(n), 1..60))
        }),
    ) {
        let layout = SpaceLayout::new(4096, pages).unwrap();
        let mut bytes = formatted(layout, space);
        let mut bits = vec![false; pages as usize];
        let fixed: Vec<u32> = layout.fixed_pages(space).collect();
        fixed.iter().for_each(|&i| bits[i as usize] = true);
        let stretches = layout.stretches();
        let mut segments = vec![(0u64, 0i64); stretches as usize];
        let mut changes = vec![0u64; layout.granules() as usize];
        for op in ops {
            let mut dir = SpaceDir::open(layout, space, &mut bytes[..]).unwrap();
            match op {
                Op::Set(start, len, to) => {
                    let range = start..start + len;
                    let ok = range.end <= pages
                        && range.clone().all(|i| bits[i as usize] != to && !fixed.contains(&i));
                    prop_assert_eq!(dir.set_range(start, len, to).is_ok(), ok);
                    if ok {
                        range.for_each(|i| bits[i as usize] = to);
                    }
                }
                Op::Flip(i) => {
                    let to = !bits[i as usize];
                    let ok = !fixed.contains(&i);
                    prop_assert_eq!(dir.set_range(i, 1, to).is_ok(), ok);
                    bits[i as usize] ^= ok;
                }
                Op::Segments(j, delta) => {
                    let entry = segments.get_mut(j as usize);
                    let room = layout.stretch_run(j).map_or(0, |r| i64::from(r.len));
                    let got = dir.add_segment_pages(j, delta).ok().map(i64::from);
                    let new = entry.as_ref().map(|e| e.1 + delta).filter(|n| (0..=room).contains(n));
                    prop_assert_eq!(got, new);
                    if let (Some(entry), Some(new)) = (entry, new) {
                        entry.1 = new;
                    }
                }
                Op::Info(j, info) => {
                    let entry = segments.get_mut(j as usize).filter(|e| info != 0 || e.1 == 0);
                    prop_assert_eq!(dir.set_info_page(j, PageNo(info)).is_ok(), entry.is_some());
                    if let Some(entry) = entry {
                        entry.0 = info;
                    }
                }
                Op::Change(start, len, lsn) => {
                    let ok = start + len <= pages;
                    prop_assert_eq!(dir.note_change(start, len, Lsn(lsn)).is_ok(), ok);
                    for i in (start..start + len).take_while(|_| ok) {
                        let granule = &mut changes[i as usize / 256];
                        *granule = lsn.max(*granule);
                    }
                }
            }
            let dir = SpaceDir::open(layout, space, &bytes[..]).unwrap();
            prop_assert!((0..pages).all(|i| dir.is_allocated(i) == bits[i as usize]));
            prop_assert_eq!(dir.count_allocated() as usize, bits.iter().filter(|b| **b).count());
            let mut sound = true;
            for (j, &(info, live)) in (0..).zip(&segments) {
                prop_assert_eq!(dir.info_page(j).unwrap(), PageNo(info));
                prop_assert_eq!(i64::from(dir.segment_pages(j).unwrap()), live);
                let run = layout.stretch_run(j).unwrap();
                let used = dir.count_allocated_in(run.start, run.len).unwrap();
                sound &= live <= i64::from(used) && (live == 0 || info != 0);
            }
            prop_assert_eq!(dir.check().is_ok(), sound);
            for (g, &lsn) in (0..).zip(&changes) {
                prop_assert_eq!(dir.last_change(g).unwrap(), Lsn(lsn));
            }
            let tree = dir.tree(pages).unwrap();
            prop_assert!((0..pages).all(|i| tree.is_free(i, 1) != bits[i as usize]));
        }
    }

    #[test]
    fn nonsense_gives_errors_and_never_a_panic(noise in prop::collection::vec(any::<u8>(), 4096)) {
        let layout = SpaceLayout::new(4096, 1000).unwrap();
        let mut bytes = noise;
        prop_assert!(SpaceDir::open(layout, 1, &bytes[..]).is_err());
        put_u32(&mut bytes, SPACE, 1);
        put_u32(&mut bytes, SPACE_PAGES, 1000);
        bytes[BITMAP] |= 1;
        prop_assert!(SpaceDir::open(layout, 1, &bytes[..]).is_err() || bytes[BITMAP + 125] == 0);
        bytes[BITMAP + 125..BITMAP + 128].fill(0);
        let mut dir = SpaceDir::open(layout, 1, &mut bytes[..]).unwrap();
        let _ = dir.check();
        for j in 0..=layout.stretches() {
            let _ = (dir.info_page(j), dir.segment_pages(j), dir.add_segment_pages(j, i64::MAX));
            let _ = (dir.add_segment_pages(j, i64::MIN), dir.set_info_page(j, PageNo(u64::MAX)));
        }
        for (start, len) in [(0, u32::MAX), (u32::MAX, u32::MAX), (1000, 1), (999, 2)] {
            prop_assert!(dir.set_range(start, len, false).is_err());
            prop_assert!(dir.note_change(start, len, Lsn(1)).is_err());
            prop_assert!(dir.count_allocated_in(start, len).is_err());
        }
        prop_assert!(dir.last_change(layout.granules()).is_err());
        prop_assert!(dir.set_range(0, 1, false).is_err());
        prop_assert!(dir.tree(1000).unwrap().free_pages() <= 999);
        prop_assert_eq!(dir.free_word(16), 0);
    }
}

#[test]
fn a_directory_of_another_space_or_with_its_own_page_free_is_refused() {
    let layout = SpaceLayout::new(4096, 101).unwrap();
    let bytes = formatted(layout, 2);
    assert!(SpaceDir::open(layout, 3, &bytes[..]).is_err());
    assert!(SpaceDir::open(SpaceLayout::new(4096, 102).unwrap(), 2, &bytes[..]).is_err());
    assert!(SpaceDir::open(layout, 2, &bytes[..4095]).is_err());
    for (at, bit) in [(0, 0), (12, 5), (15, 7)] {
        let mut damaged = bytes.clone();
        damaged[BITMAP + at] ^= 1 << bit;
        assert!(SpaceDir::open(layout, 2, &damaged[..]).is_err(), "byte {at} bit {bit}");
    }
}

#[test]
fn an_error_names_the_page_freed_twice() {
    let layout = SpaceLayout::new(4096, 1000).unwrap();
    let mut bytes = formatted(layout, 1);
    let mut dir = SpaceDir::open(layout, 1, &mut bytes[..]).unwrap();
    dir.set_range(100, 500, true).unwrap();
    dir.set_range(300, 1, false).unwrap();
    let error = dir.set_range(200, 200, false).unwrap_err().to_string();
    assert!(error.contains("page 1300") && error.contains("freed twice"), "{error}");
    assert_eq!(dir.count_allocated(), 1 + 499);
}

#[test]
fn a_fixed_page_inside_a_range_is_not_freed() {
    let layout = SpaceLayout::new(4096, 1000).unwrap();
    let mut bytes = formatted(layout, 0);
    let mut dir = SpaceDir::open(layout, 0, &mut bytes[..]).unwrap();
    dir.set_range(1, 2, true).unwrap();
    dir.set_range(4, 12, true).unwrap();
    for (start, len) in [(1, 3), (2, 8), (4, 13)] {
        assert!(dir.set_range(start, len, false).is_err(), "{len} from {start}");
    }
    assert_eq!(dir.count_allocated(), 17);
    dir.set_range(4, 12, false).unwrap();
}

#[test]
fn a_change_is_noted_for_its_own_granules_only() {
    let layout = SpaceLayout::new(4096, 1024).unwrap();
    let mut bytes = formatted(layout, 1);
    let mut dir = SpaceDir::open(layout, 1, &mut bytes[..]).unwrap();
    dir.note_change(256, 512, Lsn(9)).unwrap();
    dir.note_change(767, 1, Lsn(5)).unwrap();
    dir.note_change(768, 0, Lsn(7)).unwrap();
    let noted: Vec<_> = (0..4).map(|g| dir.last_change(g).unwrap().0).collect();
    assert_eq!(noted, [0, 9, 9, 0]);
}

#[test]
fn counts_that_contradict_the_bitmap_are_found() {
    let layout = SpaceLayout::new(4096, 1000).unwrap();
    let mut bytes = formatted(layout, 1);
    let mut dir = SpaceDir::open(layout, 1, &mut bytes[..]).unwrap();
    dir.set_range(337, 10, true).unwrap();
    dir.add_segment_pages(1, 10).unwrap();
    assert!(dir.check().is_err(), "no info page");
    dir.set_info_page(1, PageNo(77)).unwrap();
    dir.check().unwrap();
    assert!(dir.set_info_page(1, PageNo::NONE).is_err());
    dir.add_segment_pages(1, 1).unwrap();
    assert!(dir.check().is_err(), "11 live of 10 in use");
}
