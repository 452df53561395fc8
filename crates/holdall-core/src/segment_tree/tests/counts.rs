//! What edits cost: nodes and pages touched, whatever the object's size.

use super::*;

fn large(pages: u64, o: &Options, segment_pages: u64) -> (InPlace, Descriptor) {
    let mut store = InPlace::new(SHAPE);
    let mut all = Vec::new();
    let bytes = vec![7; (segment_pages * 16) as usize];
    for _ in 0..pages / segment_pages {
        let mut source = bytes.as_slice();
        let (runs, _) = stage(&mut store, &mut source, bytes.len() as u64, None, o).unwrap();
        all.extend(runs);
    }
    let tree = build(&mut store, all, o.max_inline).unwrap();
    (store, Descriptor { tree, ..Descriptor::default() })
}

#[test]
fn an_insert_in_the_middle_costs_the_same_in_a_large_object() {
    for (pages, threshold) in [(1000, 1), (1000, 4), (20_000, 4), (20_000, 16)] {
        let o = options(threshold, 100, 16);
        let (store, d) = large(pages, &o, 100);
        let Top::Root { height, .. } = d.tree.top else { panic!("inline") };
        let mut rng = SmallRng::seed_from_u64(pages);
        for _ in 0..50 {
            let before = store.counts().clone();
            let mut copy = store.clone();
            // Away from the segment's ends, if a small rest would be copied whole.
            let at = rng.random_range(0..pages / 100) * 1600 + rng.random_range(40 * 16..60 * 16);
            let new = splice(&mut copy, &d, at..at, Content::Bytes(b"middle"), &o).unwrap();
            assert_eq!(new.size(), d.size() + 6);
            let after = copy.counts();
            let levels = u64::from(height) + 1;
            let wrote = after.nodes_written - before.nodes_written;
            assert!(wrote <= 2 * levels + 1, "{wrote} nodes written for {levels} levels");
            let read = after.nodes_read.get() - before.nodes_read.get();
            assert!(read <= 4 * levels + 4, "{read} nodes read for {levels} levels");
            let limit = u64::from(threshold) + 2;
            let wrote = after.pages_written - before.pages_written;
            assert!(wrote <= limit, "{wrote} pages written for T {threshold}");
            let read = after.pages_read.get() - before.pages_read.get();
            assert!(read <= limit, "{read} pages read for T {threshold}");
        }
    }
}

#[test]
fn any_small_edit_copies_a_few_times_the_threshold_at_most() {
    for threshold in [1u64, 4, 8] {
        let o = options(threshold as u16, 100, 16);
        let (mut store, mut d) = large(4000, &o, 100);
        let mut rng = SmallRng::seed_from_u64(threshold);
        for _ in 0..600 {
            let before = store.counts().pages_written;
            let at = rng.random_range(0..=d.size());
            let end = (at + rng.random_range(0..30)).min(d.size());
            let bytes = random_bytes(&mut rng, 15);
            d = splice(&mut store, &d, at..end, Content::Bytes(&bytes), &o).unwrap();
            let wrote = store.counts().pages_written - before;
            assert!(wrote <= 4 * threshold + 3, "{wrote} pages for T {threshold}");
        }
        let report = check(&store, &d, &check_options(&o, 16, false)).unwrap();
        assert_eq!(report.problems, []);
    }
}

/// Biliris §4.1: what can be one access must not be two.
#[test]
fn copied_pieces_that_are_neighbours_are_read_at_once() {
    let o = options(8, 100, 16);
    let (store, d) = large(400, &o, 100);
    let model = content(&store, &d);
    // Near a segment's front pages are borrowed behind the cut, near its end before it. Each
    // time they and the page that is cut are neighbours; so are the two ends of a short delete,
    // and those of one across a page's border.
    for page in [100 + 20, 100 + 80] {
        for (within, gone, new) in [(5, 0, 3), (5, 4, 0), (5, 3, 20), (9, 14, 0), (9, 14, 1)] {
            let at = page * 16 + within;
            let mut copy = store.clone();
            let (reads, pages) = (copy.counts().runs_read.get(), copy.counts().pages_read.get());
            let bytes = vec![9; new];
            let range = at..at + gone;
            let edited = splice(&mut copy, &d, range, Content::Bytes(&bytes), &o).unwrap();
            let what = format!("page {page}, {gone} bytes at {within} by {new}");
            assert_eq!(copy.counts().runs_read.get() - reads, 1, "{what}");
            assert!(copy.counts().pages_read.get() - pages <= 9, "{what}");
            let mut model = model.clone();
            model.splice(at as usize..(at + gone) as usize, bytes);
            assert!(content(&copy, &edited) == model, "{what}");
        }
    }
}

#[test]
fn appends_of_whole_pages_extend_the_last_run_and_copy_nothing() {
    let o = options(8, 1000, 16);
    let mut store = InPlace::new(SHAPE);
    let mut d = Descriptor::default();
    for n in 1..=500u64 {
        let size = d.size();
        d = splice(&mut store, &d, size..size, Content::Bytes(&[1; 16]), &o).unwrap();
        assert_eq!(store.counts().pages_written, n);
        assert_eq!(store.counts().pages_read.get(), 0);
    }
    let numbers = stats(&store, &d, 16).unwrap();
    assert_eq!((numbers.segments, numbers.levels), (1, 0));
    assert_eq!(numbers.utilization(16), 1.0);
}

#[test]
fn small_appends_stay_in_the_tail_until_they_fill_pages() {
    let o = options(4, 1000, 16);
    let mut store = InPlace::new(SHAPE);
    let (mut d, mut model) = (Descriptor::default(), Vec::new());
    for n in 0..300u16 {
        let size = d.size();
        let byte = [n as u8];
        d = splice(&mut store, &d, size..size, Content::Bytes(&byte), &o).unwrap();
        model.extend(byte);
        assert!(d.tail.len() <= 8);
        assert_eq!(content(&store, &d), model);
    }
}

#[test]
fn deleting_all_reads_no_data_and_a_range_only_its_ends() {
    let o = options(4, 40, 16);
    let (mut store, d) = large(8000, &o, 40);
    let mut copy = store.clone();
    let d2 = splice(&mut copy, &d, 1000..d.size() - 1000, Content::Zeros(0), &o).unwrap();
    assert!(copy.counts().pages_read.get() <= 10);
    assert_eq!(owned(&copy, &d2), (copy.pages(), copy.nodes()));
    delete_all(&mut store, &d.tree).unwrap();
    assert_eq!(store.counts().pages_read.get(), 0);
    assert_eq!((store.pages(), store.nodes()), Default::default());
}

#[test]
fn a_cut_leaves_no_page_for_a_few_bytes_at_the_end() {
    let o = options(4, 40, 16);
    let mut store = InPlace::new(SHAPE);
    let bytes: Vec<u8> = (0..160).collect();
    let whole = Content::Bytes(&bytes);
    let d = splice(&mut store, &Descriptor::default(), 0..0, whole, &o).unwrap();
    for (to, pages, tail) in [(155, 10, 0), (150, 9, 6), (145, 9, 1), (144, 9, 0), (5, 0, 5)] {
        let mut copy = store.clone();
        let cut = splice(&mut copy, &d, to..160, Content::Bytes(&[]), &o).unwrap();
        assert_eq!(content(&copy, &cut), bytes[..to as usize]);
        assert_eq!((copy.pages().len(), cut.tail.len()), (pages, tail), "cut to {to}");
        assert_eq!(copy.counts().pages_written, 10, "nothing is copied but into the tail");
    }
}

#[test]
fn zeros_take_no_pages_and_leave_no_crumbs() {
    let o = options(4, 40, 16);
    let mut store = InPlace::new(SHAPE);
    let empty = Descriptor::default();
    let mut d = splice(&mut store, &empty, 0..0, Content::Zeros(1 << 40), &o).unwrap();
    assert_eq!(store.pages().len(), 0);
    // Writes 40 bytes apart leave less than T pages of zeros between: one run of all.
    for n in 0..20 {
        let at = (1 << 30) + 40 * n;
        d = splice(&mut store, &d, at..at + 8, Content::Bytes(&[1; 8]), &o).unwrap();
    }
    let numbers = stats(&store, &d, 16).unwrap();
    assert_eq!((d.size(), numbers.zeros), (1 << 40, (1 << 40) - 19 * 40 - 8));
    assert!(numbers.segments <= 3 && numbers.pages <= 55, "{numbers:?}");
}
