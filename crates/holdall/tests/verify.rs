//! Verification: sound stores are found sound whatever was done to them, and each kind of
//! damage is found, named, and does not hide the rest.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage;

use damage::quiet;
use holdall::{Options, Store, VerifyOptions};
use holdall_io::MemoryStorage;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::sync::Arc;

fn sound(store: &Store, context: &str) -> holdall::VerifyReport {
    let report = store.verify(&mut |_| {}).unwrap();
    assert!(report.is_sound(), "{context}: {:#?}", report.problems);
    report
}

#[test]
fn a_store_stays_sound_through_random_work() {
    for (seed, page_size, space_pages) in [(1, 4096, 64), (2, 4096, 200), (3, 16384, 64), (4, 8192, 1000)] {
        let storage = Arc::new(MemoryStorage::new());
        let options = Options { page_size, space_pages: Some(space_pages), ..quiet() };
        let mut store = Store::create_on(storage.clone(), &options).unwrap();
        sound(&store, "new");
        let mut rng = SmallRng::seed_from_u64(seed);
        for step in 0..60 {
            damage::random_step(&store, &mut rng);
            let context = format!("seed {seed} step {step}");
            let report = sound(&store, &context);
            assert_eq!(report.objects, store.stat().unwrap().objects, "{context}");
            match rng.random_range(0..8) {
                0 => store.checkpoint().unwrap(),
                1 => {
                    store.close().unwrap();
                    store = Store::open_on(storage.clone(), &options).unwrap();
                    sound(&store, &format!("{context} reopened"));
                }
                2 => {
                    // As a kill leaves it: recovered in memory, nothing written.
                    let killed = Arc::new(storage.fork());
                    let other = Store::open_read_only_on(killed, &options).unwrap();
                    sound(&other, &format!("{context} killed"));
                }
                _ => {}
            }
        }
    }
}

#[test]
fn progress_reaches_the_total_and_data_can_be_left_out() {
    let store = Store::create_on(Arc::new(MemoryStorage::new()), &quiet()).unwrap();
    store.write(|tx| tx.put("large", &vec![3; 5 << 20])).unwrap();
    let mut steps = Vec::new();
    let report = store.verify(&mut |p| steps.push(p)).unwrap();
    assert!(report.is_sound() && steps.len() > 3, "{report:?} {steps:?}");
    assert!(steps.windows(2).all(|w| w[0].done <= w[1].done && w[0].total == w[1].total));
    let last = steps.last().unwrap();
    assert_eq!((last.done, last.total), (last.total, report.pages * 4096));
    assert!(report.bytes_checked > 5 << 20);
    let quick = store.verify_with(&VerifyOptions { data: false }, &mut |_| {}).unwrap();
    assert!(quick.is_sound() && quick.bytes_checked < 1 << 20, "{quick:?}");
    assert_eq!(quick.pages, report.pages);
}
