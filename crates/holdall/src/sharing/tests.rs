//! The tree of shared pages against a count per page.

use super::*;
use holdall_core::pages::MemPages;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

fn all(sharing: &Sharing, pages: &MemPages) -> Vec<Shared> {
    let everything = PageRun::new(PageNo(1), 1 << 40);
    sharing.overlapping(pages, everything).unwrap()
}

/// Counts of references by page; what the tree must say.
fn check(sharing: &Sharing, pages: &MemPages, counts: &[u64]) {
    let mut told = vec![None; counts.len()];
    for shared in all(sharing, pages) {
        for page in shared.run.start.0..shared.run.end() {
            assert_eq!(told[page as usize].replace(shared.references), None);
        }
    }
    for (page, count) in counts.iter().enumerate() {
        assert_eq!(told[page], (*count > 1).then_some(*count), "page {page}");
    }
}

#[test]
fn counts_are_those_of_a_model() {
    for seed in 0..30 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut pages = MemPages::new(4096);
        let mut sharing = Sharing::default();
        // Each page has an owner; runs with references are what slices would be.
        let mut counts = vec![1_u64; 400];
        let mut runs: Vec<PageRun> = vec![PageRun::new(PageNo(1), 399)];
        counts[0] = 0;
        for _ in 0..300 {
            let i = rng.random_range(0..runs.len());
            let whole = runs[i];
            let from = rng.random_range(0..whole.len);
            let len = rng.random_range(1..=whole.len - from);
            let part = PageRun::new(PageNo(whole.start.0 + from), len);
            let pages_of = part.start.0 as usize..part.end() as usize;
            if rng.random_bool(0.5) {
                sharing.share(&mut pages, part).unwrap();
                counts[pages_of].iter_mut().for_each(|c| *c += 1);
                runs.push(part);
            } else {
                let unused = sharing.release(&mut pages, part).unwrap();
                let mut want = Vec::new();
                for page in pages_of {
                    counts[page] -= 1;
                    if counts[page] == 0 {
                        want.push(page as u64);
                    }
                }
                let got: Vec<u64> = unused.iter().flat_map(|r| r.start.0..r.end()).collect();
                assert_eq!(got, want, "seed {seed}");
                runs.swap_remove(i);
                for (a, b) in [(whole.start.0, part.start.0), (part.end(), whole.end())] {
                    if a < b {
                        runs.push(PageRun::new(PageNo(a), b - a));
                    }
                }
                if runs.is_empty() {
                    break;
                }
            }
            check(&sharing, &pages, &counts);
        }
        for run in runs {
            sharing.release(&mut pages, run).unwrap();
        }
        assert!(sharing.is_empty() && pages.live().is_empty(), "seed {seed}");
    }
}

#[test]
fn damaged_entries_are_errors() {
    let value = |bytes: &[u8]| Value::new(bytes).unwrap();
    let key = 9_u64.to_be_bytes();
    assert!(Shared::decode(&key, &value(&[3, 2])).is_ok());
    for bad in [&[0, 2][..], &[11, 2], &[3, 1], &[3], &[3, 2, 0], &[10, 2], &[0xff; 12]] {
        assert!(Shared::decode(&key, &value(bad)).is_err(), "{bad:?}");
    }
    assert!(Shared::decode(&key[..7], &value(&[3, 2])).is_err());
    assert!(Shared::decode(&[0xff; 8], &value(&[3, 2])).is_err());
    let mut pages = MemPages::new(4096);
    let mut sharing = Sharing::default();
    sharing.share(&mut pages, PageRun::new(PageNo(10), 10)).unwrap();
    sharing.tree.insert(&mut pages, OWNER, &25_u64.to_be_bytes(), &[8, 2]).unwrap();
    let err = sharing.release(&mut pages, PageRun::new(PageNo(15), 10)).unwrap_err();
    assert!(matches!(err, Error::Corrupt { .. }), "{err}");
}
