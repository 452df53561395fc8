//! Pages of one byte with T = 1, as over a bucket: cuts are exact to the byte, and what an
//! edit does not name is neither read nor written nor moved.

use super::testing::Counts;
use super::*;

/// A store of either kind, and what was done to it.
trait Counted: Store {
    fn so_far(&self) -> &Counts;
}

impl Counted for InPlace {
    fn so_far(&self) -> &Counts {
        self.counts()
    }
}

impl Counted for Immutable {
    fn so_far(&self) -> &Counts {
        self.counts()
    }
}

/// Where each byte of an object lies: its page, none for zeros.
fn places<S: NodeRead>(store: &S, d: &Descriptor) -> Vec<Option<u64>> {
    let mut all = Vec::new();
    for located in slices(store, &d.tree, 0..d.tree.size) {
        let Slice { kind, reference, len, offset, .. } = located.unwrap().slice;
        assert_eq!(offset, 0);
        all.extend((0..len).map(|i| (kind == SliceKind::Run).then_some(reference + i)));
    }
    all
}

/// Does an edit and looks at what it did: `before` are the old object's places and bytes, which
/// become the new one's.
fn exact<S: Counted>(
    store: &mut S,
    d: &Descriptor,
    edit: &Edit,
    o: &Options,
    before: &(Vec<Option<u64>>, Vec<u8>),
) -> (Descriptor, (Vec<Option<u64>>, Vec<u8>)) {
    let at = format!("{:?} by {} of kind {}", edit.range, edit.bytes.len(), edit.kind);
    let counts = store.so_far().clone();
    let new = apply(store, d, edit, o).unwrap_or_else(|e| panic!("{at}: {e}"));
    let after = store.so_far();
    assert_eq!(after.pages_read, counts.pages_read, "{at}: bytes were copied");
    assert_eq!(after.runs_read, counts.runs_read, "{at}");
    let written = if edit.kind == 0 { 0 } else { edit.bytes.len() };
    assert_eq!(after.pages_written - counts.pages_written, written as u64, "{at}");
    assert_eq!(new.tail, [], "{at}");

    let (range, len) = (edit.range.start as usize..edit.range.end as usize, edit.bytes.len());
    let (mut old, mut model) = before.clone();
    let now = places(store, &new);
    let middle = now[range.start..range.start + len].to_vec();
    let fresh = |place: &Option<u64>| place.is_none() == (edit.kind == 0);
    assert!(middle.iter().all(fresh), "{at}");
    assert!(middle.iter().flatten().all(|p| !old.contains(&Some(*p))), "{at}");
    old.splice(range.clone(), middle);
    assert!(now == old, "{at}: a byte has moved");
    model.splice(range, edit.bytes.iter().copied());
    assert!(content(store, &new) == model, "{at}");
    let report = check(store, &new, &check_options(o, 1, false)).unwrap();
    assert_eq!(report.problems, [], "{at}");
    (new, (now, model))
}

fn random_shape(rng: &mut SmallRng) -> (Shape, Options) {
    let shape = Shape {
        page_size: 1,
        leaf_fanout: rng.random_range(4..7),
        inner_fanout: rng.random_range(4..7),
        max_run: [3, u64::MAX][rng.random_range(0..2)],
        reuse: rng.random(),
    };
    let max_segment_pages = [1, 5, 40, 1 << 23][rng.random_range(0..4)];
    let max_inline = [0, 3, 20][rng.random_range(0..3)];
    (shape, Options { max_inline, ..options(1, max_segment_pages, 1) })
}

#[test]
fn edits_in_place_copy_and_move_no_byte() {
    for seed in 0..100 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let (shape, o) = random_shape(&mut rng);
        let o = Options { shuffle_bytes: seed % 2 == 1, ..o };
        let mut store = InPlace::new(shape);
        let (mut d, mut state) = (Descriptor::default(), Default::default());
        for _ in 0..100 {
            let edit = random_edit(&mut rng, &store, &d, 8, 1000);
            (d, state) = exact(&mut store, &d, &edit, &o, &state);
            assert_eq!(owned(&store, &d), (store.pages(), store.nodes()));
        }
    }
}

#[test]
fn edits_of_immutable_objects_copy_and_move_no_byte() {
    for seed in 0..60 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let (shape, o) = random_shape(&mut rng);
        let mut store = Immutable::new(shape, seed, 3);
        let mut state = Default::default();
        for _ in 0..80 {
            let old = store.descriptor().unwrap();
            let edit = random_edit(&mut rng, &store, &old, 8, 1000);
            state = loop {
                let (new, after) = exact(&mut store, &old, &edit, &o, &state);
                if store.swap(&new) {
                    break after;
                }
            };
            let d = store.descriptor().unwrap();
            assert_eq!(owned(&store, &d), (store.pages(), store.nodes()));
        }
    }
}

#[test]
fn an_insert_writes_its_bytes_and_a_path_of_nodes() {
    let o = options(1, 1 << 23, 1);
    let shape = Shape { leaf_fanout: 8, inner_fanout: 8, ..BYTES };
    let mut store = Immutable::new(shape, 1, u64::MAX);
    let runs = (0..2000).map(|i| Slice::run(100 * i + 1, 90));
    let tree = build(&mut store, runs, o.max_inline).unwrap();
    let Top::Root { height, .. } = tree.top else { panic!("inline") };
    let levels = u64::from(height) + 1;
    let d = Descriptor { tree, ..Descriptor::default() };
    let mut rng = SmallRng::seed_from_u64(1);
    for _ in 0..200 {
        let before = store.counts().clone();
        let mut copy = store.clone();
        let at = rng.random_range(0..=d.size());
        splice(&mut copy, &d, at..at, Content::Bytes(b"middle"), &o).unwrap();
        let after = copy.counts();
        assert_eq!((after.pages_read.get(), after.pages_written), (0, 6));
        assert!(after.nodes_written - before.nodes_written <= 2 * levels + 1);
        assert!(after.nodes_read.get() - before.nodes_read.get() <= 4 * levels + 4);
    }
}
