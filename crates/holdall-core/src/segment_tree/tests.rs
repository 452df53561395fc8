//! The tree against a plain vector of bytes, on both stores, with tiny pages and nodes.

use super::testing::{Immutable, InPlace, Shape};
use super::*;
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use std::collections::BTreeSet;
use std::ops::Range;

mod bytes;
mod counts;
mod formats;
mod needed;

const SHAPE: Shape =
    Shape { page_size: 16, leaf_fanout: 4, inner_fanout: 4, max_run: u64::MAX, reuse: true };

/// Every byte a page of its own: with T = 1 cuts are exact and there is no tail.
const BYTES: Shape = Shape { page_size: 1, ..SHAPE };

pub(super) fn options(threshold: u16, max_segment_pages: u64, page_size: usize) -> Options {
    let max_tail = page_size / 2;
    Options { threshold, shuffle_bytes: false, max_tail, max_inline: 3, max_segment_pages }
}

fn random_bytes(rng: &mut SmallRng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill_bytes(&mut bytes);
    bytes
}

/// An offset at 0, the end, a border of a page or segment, one beside, or anywhere.
fn offset<S: NodeRead>(rng: &mut SmallRng, store: &S, d: &Descriptor, page: usize) -> u64 {
    let size = d.size();
    let spot = match rng.random_range(0..6) {
        0 => 0,
        1 => size,
        2 => rng.random_range(0..=size) / page as u64 * page as u64,
        3 if d.tree.size > 0 => {
            let at = rng.random_range(0..d.tree.size);
            slices(store, &d.tree, at..at + 1).next().unwrap().unwrap().end()
        }
        _ => rng.random_range(0..=size),
    };
    let beside = spot.saturating_add(rng.random_range(0..3)).saturating_sub(1);
    if rng.random() { beside.min(size) } else { spot }
}

/// One random edit: the range and what kind of content.
struct Edit {
    range: Range<u64>,
    bytes: Vec<u8>,
    kind: u32,
}

fn random_edit<S: NodeRead>(
    rng: &mut SmallRng,
    store: &S,
    d: &Descriptor,
    page: usize,
    most: u64,
) -> Edit {
    let (mut start, mut end) = (offset(rng, store, d, page), offset(rng, store, d, page));
    match rng.random_range(0..10) {
        0..4 => end = start,
        4 => (start, end) = (d.size(), d.size()),
        5 if d.size() < most => end = (start + rng.random_range(0..3 * page as u64)).min(d.size()),
        _ => {}
    }
    let range = start.min(end)..start.max(end);
    let longest = [page / 2, 2 * page, 20 * page, 80 * page][rng.random_range(0..4)];
    let mut len = rng.random_range(0..=longest);
    if d.size() > most || rng.random_range(0..4) == 0 {
        len = 0;
    }
    let kind = rng.random_range(0..6);
    let bytes = if kind == 0 { vec![0; len] } else { random_bytes(rng, len) };
    Edit { range, bytes, kind }
}

fn apply<S: Store>(store: &mut S, d: &Descriptor, edit: &Edit, o: &Options) -> Result<Descriptor> {
    let Edit { range, bytes, kind } = edit;
    let len = bytes.len() as u64;
    match kind {
        0 => splice(store, d, range.clone(), Content::Zeros(len), o),
        1 => {
            let (slices, tail) = stage(store, &mut bytes.as_slice(), len, None, o)?;
            let content = Content::Staged { head: &[], slices, tail: &tail };
            splice(store, d, range.clone(), content, o)
        }
        2 => {
            let mut source = ReadSource(bytes.as_slice());
            splice(store, d, range.clone(), Content::Stream(&mut source, len), o)
        }
        _ => splice(store, d, range.clone(), Content::Bytes(bytes), o),
    }
}

pub(super) fn content<S: NodeRead + SegmentRead>(store: &S, d: &Descriptor) -> Vec<u8> {
    let mut all = vec![0xaa; d.size() as usize];
    read_at(store, d, 0, &mut all).unwrap();
    all
}

/// Pages and nodes that the object has.
fn owned<S: NodeRead + SegmentRead>(
    store: &S,
    d: &Descriptor,
) -> (BTreeSet<u64>, BTreeSet<NodeRef>) {
    let (mut pages, mut nodes) = (BTreeSet::new(), BTreeSet::new());
    walk(store, &d.tree, &mut |visit| {
        match visit {
            Visit::Node { node, .. } => assert!(nodes.insert(node)),
            Visit::Slice { slice, .. } if slice.is_run() => {
                let end = slice.end_page(store.page_size() as u64);
                (slice.reference..end).for_each(|p| assert!(pages.insert(p)));
            }
            Visit::Slice { .. } => {}
            Visit::Unreadable { error, .. } => return Err(error),
        }
        Ok(())
    })
    .unwrap();
    (pages, nodes)
}

pub(super) fn check_options(o: &Options, page_size: usize, fragmented: bool) -> CheckOptions {
    CheckOptions {
        page_size,
        threshold: if fragmented { 0 } else { o.threshold },
        max_segment_pages: o.max_segment_pages,
        max_inline: o.max_inline,
        max_tail: o.max_tail,
    }
}

fn run_in_place(seed: u64, edits: usize) {
    let mut rng = SmallRng::seed_from_u64(seed);
    let page = [1, 7, 16, 64][rng.random_range(0..4)];
    let fragmented = rng.random_range(0..4) == 0;
    let shape = Shape {
        page_size: page,
        leaf_fanout: rng.random_range(4..7),
        inner_fanout: rng.random_range(4..7),
        max_run: if fragmented { 3 } else { u64::MAX },
        reuse: rng.random(),
    };
    let threshold = [0, 1, 2, 4, 9][rng.random_range(0..5)];
    let o = options(threshold, [1, 5, 12, 40, 1000][rng.random_range(0..5)], page);
    let o = Options { shuffle_bytes: seed % 2 == 1, ..o };
    let mut store = InPlace::new(shape);
    // T is the store's, or the object's own.
    let own = if rng.random() { 0 } else { rng.random_range(1..6) };
    let empty = Descriptor { flags: 0x81, threshold: own, ..Descriptor::default() };
    let (mut d, mut model) = (empty.clone(), Vec::new());
    let most = 400 * page as u64;
    for step in 0..edits {
        let edit = random_edit(&mut rng, &store, &d, page, most);
        let at = format!("seed {seed} step {step} {:?} {}", edit.range, edit.bytes.len());
        d = apply(&mut store, &d, &edit, &o).unwrap_or_else(|e| panic!("{at}: {e}"));
        let range = edit.range.start as usize..edit.range.end as usize;
        model.splice(range, edit.bytes.iter().copied());
        assert!(content(&store, &d) == model, "{at}");
        assert_eq!((d.flags, d.threshold), (0x81, own));
        let unchecked = Descriptor { threshold: 0, ..d.clone() };
        let checked = if fragmented { &unchecked } else { &d };
        let report = check(&store, checked, &check_options(&o, page, fragmented)).unwrap();
        assert_eq!(report.problems, [], "{at} {shape:?} {o:?}");
        assert_eq!(owned(&store, &d), (store.pages(), store.nodes()), "{at}");
        let mut bytes = Vec::new();
        d.encode(&mut bytes);
        assert_eq!(Descriptor::decode(&bytes).unwrap(), d);
        let (from, to) = (rng.random_range(0..=model.len()), rng.random_range(0..=model.len()));
        let mut part = vec![0; from.max(to) - from.min(to)];
        read_at(&store, &d, from.min(to) as u64, &mut part).unwrap();
        assert_eq!(part, model[from.min(to)..from.max(to)]);
        if rng.random_range(0..100) == 0 {
            delete_all(&mut store, &d.tree).unwrap();
            assert_eq!((store.pages(), store.nodes()), Default::default(), "{at}");
            (d, model) = (empty.clone(), Vec::new());
        }
    }
}

#[test]
fn edits_in_place_agree_with_a_vector() {
    (0..300).for_each(|seed| run_in_place(seed, 120));
}

fn run_immutable(seed: u64, shape: Shape, threshold: u16) -> usize {
    let (mut lost, page) = (0, shape.page_size);
    let mut rng = SmallRng::seed_from_u64(seed);
    let o = options(threshold, 30, page);
    let mut store = Immutable::new(shape, seed, 3);
    let mut model = Vec::new();
    for step in 0..80 {
        let old = store.descriptor().unwrap();
        let edit = random_edit(&mut rng, &store, &old, page, 375 * page as u64);
        let new = loop {
            let new = apply(&mut store, &old, &edit, &o).unwrap();
            // Written, not swapped: the old object is all there.
            assert!(content(&store, &old) == model, "seed {seed} step {step}");
            if store.swap(&new) {
                break new;
            }
            lost += 1;
            assert!(content(&store, &old) == model, "seed {seed} step {step}");
            assert_eq!(owned(&store, &old), (store.pages(), store.nodes()));
        };
        let range = edit.range.start as usize..edit.range.end as usize;
        model.splice(range, edit.bytes.iter().copied());
        assert_eq!(store.descriptor().unwrap(), new);
        assert!(content(&store, &new) == model, "seed {seed} step {step}");
        assert_eq!(owned(&store, &new), (store.pages(), store.nodes()), "{seed} {step}");
        let report = check(&store, &new, &check_options(&o, page, false)).unwrap();
        assert_eq!(report.problems, [], "seed {seed} step {step}");
    }
    lost
}

#[test]
fn edits_of_immutable_objects_survive_lost_swaps() {
    for (shape, thresholds) in [(SHAPE, [1, 3, 8]), (BYTES, [1, 1, 3])] {
        let run = |seed| run_immutable(seed, shape, thresholds[seed as usize % 3]);
        let lost: usize = (0..60).map(run).sum();
        assert!(lost > 500, "{lost} swaps lost");
    }
}

#[test]
fn an_edit_that_fails_leaves_the_old_object_readable() {
    for (shape, threshold) in [(SHAPE, 3), (BYTES, 1)] {
        let o = options(threshold, 30, shape.page_size);
        let mut store = Immutable::new(shape, 1, u64::MAX);
        let bytes: Vec<u8> = (0..3000u32).map(|n| n as u8).collect();
        let empty = Descriptor::default();
        let d = splice(&mut store, &empty, 0..0, Content::Bytes(&bytes), &o).unwrap();
        let mut short = &bytes[..50];
        assert!(splice(&mut store, &d, 100..900, Content::Stream(&mut short, 600), &o).is_err());
        assert_eq!(content(&store, &d), bytes);
        let beyond = splice(&mut store, &d, 2999..3001, Content::Zeros(1), &o);
        assert!(matches!(beyond, Err(Error::Range { size: 3000, .. })));
        let large = splice(&mut store, &d, 0..0, Content::Zeros(MAX_OBJECT - 2999), &o);
        assert!(matches!(large, Err(Error::Invalid(_))));
        let most = splice(&mut store, &d, 0..0, Content::Zeros(MAX_OBJECT - 3000), &o).unwrap();
        let mut end = [0; 3];
        read_at(&store, &most, MAX_OBJECT - 3, &mut end).unwrap();
        assert_eq!(end, bytes[2997..]);
    }
}

#[test]
fn bulk_building_and_appending_slices_fill_nodes() {
    for (n, shape) in (0..200u64).flat_map(|n| [(n, SHAPE), (n, BYTES)]) {
        let mut store = InPlace::new(shape);
        let slices_of = |n| (0..n).map(|i| Slice::run(1 + 30 * i, 16 + i % 3)).collect::<Vec<_>>();
        let all = slices_of(n);
        let tree = build(&mut store, all.clone(), 3).unwrap();
        let (mut grown, mut at) = (Tree::empty(), 0);
        let mut other = InPlace::new(shape);
        for batch in [1, 2, 5, 30, 1].iter().cycle() {
            let to = (at + batch).min(all.len());
            grown = append_slices(&mut other, &grown, &all[at..to], 3).unwrap();
            at = to;
            if at == all.len() {
                break;
            }
        }
        for (store, tree) in [(&store, tree), (&other, grown)] {
            let found: Vec<_> =
                slices(store, &tree, 0..u64::MAX).map(|l| l.unwrap().slice).collect();
            assert_eq!(found, all);
            let d = Descriptor { tree, ..Descriptor::default() };
            let o = options(0, 5, shape.page_size);
            let report = check(store, &d, &check_options(&o, shape.page_size, true)).unwrap();
            assert_eq!(report.problems, [], "{n}");
            let leaves = n.div_ceil(4) + 1;
            assert!(report.stats.nodes <= leaves + leaves.div_ceil(3) + 6, "{:?}", report.stats);
        }
    }
}
