//! Listings against one made by hand from the model.

use super::*;
use crate::names::{Line, ListOptions};
use rand::SeedableRng;

fn find(key: &[u8], from: usize, delimiter: &[u8]) -> Option<usize> {
    (from..=key.len()).find(|&i| key[i..].starts_with(delimiter)).map(|i| i + delimiter.len())
}

/// Everything the options admit, in order, without limit.
fn by_hand(model: &Model, options: &ListOptions<'_>) -> Vec<Vec<u8>> {
    let delimiter = options.delimiter.filter(|d| !d.is_empty());
    let rolled = |key: &[u8]| delimiter.and_then(|d| find(key, options.prefix.len(), d));
    let mut lines: Vec<Vec<u8>> = Vec::new();
    for key in model.keys().filter(|key| key.starts_with(options.prefix)) {
        let line = rolled(key).map_or(&key[..], |end| &key[..end]);
        if let Some(after) = options.start_after {
            let whole = after.starts_with(options.prefix) && rolled(after) == Some(after.len());
            if key.as_slice() <= after || (whole && line == after) {
                continue;
            }
        }
        if lines.last().is_none_or(|last| last != line) {
            lines.push(line.to_vec());
        }
    }
    lines
}

fn line(entry: &Line) -> Vec<u8> {
    match entry {
        Line::Key(key, _) | Line::Prefix(key) => key.clone(),
    }
}

#[test]
fn listings_agree_with_the_model_in_parts_and_whole() {
    let mut rng = SmallRng::seed_from_u64(11);
    let mut t = Pair::new(4096);
    for _ in 0..3000 {
        t.insert(&hard_key(&mut rng), &[7; 12]);
    }
    let delimiters: [Option<&[u8]>; 6] =
        [None, Some(b"/"), Some(b"\xff"), Some(b"aa"), Some(b""), Some(b"/\xff")];
    for _ in 0..600 {
        let mut prefix = hard_key(&mut rng);
        prefix.truncate(rng.random_range(0..5));
        let after = hard_key(&mut rng);
        let mut options = ListOptions {
            prefix: &prefix,
            start_after: rng.random::<bool>().then_some(&after),
            delimiter: delimiters[rng.random_range(0..6)],
            limit: usize::MAX,
        };
        let want = by_hand(&t.model, &options);
        let listing = t.names.list(&t.pages, &options).unwrap();
        assert!(listing.next.is_none());
        let got: Vec<_> = listing.entries.iter().map(line).collect();
        assert_eq!(got, want, "{options:?}");
        for entry in &listing.entries {
            if let Line::Key(key, value) = entry {
                assert_eq!(t.model[key], **value);
            }
        }
        options.limit = rng.random_range(1..9).max(got.len() / 20);
        let (mut parts, mut next) = (Vec::new(), options.start_after.map(<[u8]>::to_vec));
        loop {
            let part = ListOptions { start_after: next.as_deref(), ..options };
            let listing = t.names.list(&t.pages, &part).unwrap();
            assert!(listing.entries.len() == options.limit || listing.next.is_none());
            parts.extend(listing.entries);
            let Some(more) = listing.next else { break };
            next = Some(more);
        }
        assert_eq!(parts, listing.entries);
    }
}

#[test]
fn rolled_up_keys_cost_nothing() {
    let mut t = Pair::new(4096);
    for folder in 0..5 {
        for i in 0..8000 {
            t.insert(format!("top/{folder}/{i:06}").as_bytes(), &[1; 12]);
        }
    }
    let height = u64::from(t.check().height);
    let options = ListOptions { prefix: b"top/", delimiter: Some(b"/"), ..ListOptions::default() };
    let before = t.pages.reads.get();
    assert_eq!(t.names.list(&t.pages, &options).unwrap().entries.len(), 5);
    let reads = t.pages.reads.get() - before;
    assert!(reads <= 6 * (height + 1), "{reads} reads at height {height}");
    let none = ListOptions { limit: 0, ..options };
    let listing = t.names.list(&t.pages, &none).unwrap();
    assert!(listing.entries.is_empty() && listing.next.is_none());
}
