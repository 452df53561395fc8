//! One byte of a closed store differs: whatever is read is right or an error that names the
//! place, and verification finds every byte that is in use.
//!
//! A sample of 64 bytes in each page, which HOLDALL_FLIP_SEED moves; HOLDALL_FLIP_STEP=1
//! flips every byte, which takes minutes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage;

use damage::{Flipped, Model, pages_in_use, pages_of, quiet, sample_with_images};
use holdall::Error;
use holdall_core::page::PageKind;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a flip did.
#[derive(Debug, Default)]
struct Outcome {
    detected: bool,
    read_errors: usize,
}

fn try_flip(volume: &Arc<Vec<u8>>, model: &Model, at: u64, mask: u8) -> Outcome {
    let flipped = Flipped { volume: volume.clone(), at, mask };
    let context = || format!("byte {at} flipped by {mask:#x}");
    let options = quiet().cache_bytes(1 << 20);
    let store = match options.open_read_only_on(Arc::new(flipped)) {
        Ok(store) => store,
        Err(e) => {
            assert!(
                matches!(e, Error::Corrupt { .. } | Error::Unsupported { .. }),
                "{e:?}: {}",
                context()
            );
            return Outcome { detected: true, read_errors: 1 };
        }
    };
    let read_errors = model.check(&store, &context);
    let report = store.verify().unwrap();
    for p in &report.problems {
        assert!(!p.place.is_empty() && p.detail.contains("; "), "{p}");
    }
    let detected = !report.is_sound();
    assert!(detected || read_errors == 0, "reads found what verify did not: {}", context());
    Outcome { detected, read_errors }
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

fn flip_all(page_size: usize) {
    let (volume, model) = sample_with_images(page_size);
    let volume = Arc::new(volume);
    let store = quiet()
        .open_read_only_on(Arc::new(Flipped { volume: volume.clone(), at: 0, mask: 0 }))
        .unwrap();
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{:#?}", report.problems);
    assert_eq!(model.check(&store, &|| "unchanged".into()), 0);
    assert_eq!(report.objects as usize, model.objects());
    assert!(report.blank_pages > 0, "pages that hold nothing are part of the sample");
    assert!(report.divided > 0, "divided records are part of the sample");
    let used = pages_in_use(&volume);
    for kind in PageKind::ALL {
        assert!(!pages_of(&volume, page_size, kind).is_empty(), "no page of kind {kind:?}");
    }
    assert!(used.len() * 4 > volume.len() / page_size, "mostly in use");

    let mut rng = SmallRng::seed_from_u64(number("HOLDALL_FLIP_SEED").unwrap_or(1) as u64);
    let step = number("HOLDALL_FLIP_STEP").unwrap_or(page_size / 64);
    let (mut at, mut silent, mut read_errors) = (0, BTreeSet::new(), 0);
    while at < volume.len() {
        let offset = (at + rng.random_range(0..step)).min(volume.len() - 1) as u64;
        let outcome = try_flip(&volume, &model, offset, 1 << rng.random_range(0..8));
        let page = offset / page_size as u64;
        if used.contains(&page) && !outcome.detected {
            silent.insert(page);
        }
        read_errors += outcome.read_errors;
        at += step;
    }
    // Only pages allocated for later, which hold nothing yet, may change unseen.
    assert_eq!(silent.len() as u64, report.blank_pages, "pages {silent:?}");
    assert!(read_errors > 500, "{read_errors}: the flips hit nothing");
}

#[test]
fn flips_in_pages_of_4096_bytes() {
    flip_all(4096);
}

#[test]
fn flips_in_pages_of_16384_bytes() {
    flip_all(16384);
}
