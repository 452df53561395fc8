//! Filling a disk to its end costs few calls: what was refused is not asked for again at once.

use holdall::{Error, Options};
use holdall_testkit::{FaultPlan, FaultyStorage};
use std::sync::Arc;

fn storage(bytes: u64) -> Arc<FaultyStorage> {
    let storage = Arc::new(FaultyStorage::new(1));
    storage.set_plan(FaultPlan { full_at_bytes: Some(bytes), ..FaultPlan::default() });
    storage
}

#[test]
fn the_last_megabytes_of_a_disk_are_filled_with_few_calls() {
    for (known, free) in [(true, 14_000_000), (false, 14_000_000), (true, 13_333_333)] {
        let storage = storage(free);
        let store = Options::default().background(false).create_on(storage.clone()).unwrap();
        store.write(|tx| tx.put("kept", b"some bytes")).unwrap();
        let begun = storage.reshaped();
        let mut tx = store.begin_write().unwrap();
        let expected_size = known.then_some(30_000_000);
        let options = holdall::PutOptions { expected_size, ..holdall::PutOptions::default() };
        let mut writer = tx.writer("large", options).unwrap();
        let mut taken = 0;
        let refused = loop {
            match writer.push(&[7; 1 << 20]) {
                Ok(()) => taken += 1 << 20,
                Err(e) => break e,
            }
        };
        assert!(matches!(refused, Error::Full(_)), "{refused}");
        // Nearly all of what there is was used before it was refused.
        assert!(taken > free - 3_000_000, "{taken} of {free}");
        drop(writer);
        drop(tx);
        let calls = storage.reshaped().grown - begun.grown;
        assert!(calls < 100, "{calls} calls to grow the file");
        // Room that others free is found at once, and the store goes on.
        storage.set_plan(FaultPlan { full_at_bytes: Some(60_000_000), ..FaultPlan::default() });
        store.write(|tx| tx.put("large", &vec![7; 30_000_000])).unwrap();
        let reader = store.read().unwrap();
        assert_eq!(reader.get("kept").unwrap().unwrap(), b"some bytes");
        assert!(reader.get("large").unwrap().unwrap() == vec![7; 30_000_000]);
    }
}

#[test]
fn a_log_is_made_before_data_takes_its_room() {
    // Staged alone, in a transaction, and from memory.
    for how in 0..3 {
        let storage = storage(5_000_000);
        let store = Options::default().background(false).create_on(storage.clone()).unwrap();
        let data = vec![7; 20_000_000];
        let refused = match how {
            0 => {
                let mut staged = store.stage("large", holdall::PutOptions::default()).unwrap();
                data.chunks(1 << 20).try_for_each(|part| staged.push(part)).unwrap_err()
            }
            1 => {
                let mut tx = store.begin_write().unwrap();
                let mut writer = tx.writer("large", holdall::PutOptions::default()).unwrap();
                data.chunks(1 << 20).try_for_each(|part| writer.push(part)).unwrap_err()
            }
            _ => store.write(|tx| tx.put("large", &data)).unwrap_err(),
        };
        assert!(matches!(refused, Error::Full(_)), "{how}: {refused}");
        for i in 0..10 {
            store.write(|tx| tx.put(format!("{i}"), &[i; 100_000])).unwrap();
        }
        for i in 0..10 {
            let found = store.read().unwrap().get(format!("{i}")).unwrap().unwrap();
            assert!(found == [i; 100_000]);
        }
        assert!(store.verify().unwrap().is_sound());
    }
}

#[test]
fn on_a_small_disk_the_log_leaves_the_room_to_the_volume() {
    let log_after = |disk: u64| {
        let storage = storage(disk);
        let store = Options::default().background(false).create_on(storage).unwrap();
        for i in 0..1500_u32 {
            let bytes = vec![i as u8; 64 << 10];
            store.write(|tx| tx.put(format!("object {}", i % 20), &bytes)).unwrap();
        }
        for i in 1480..1500_u32 {
            let bytes = store.get(format!("object {}", i % 20)).unwrap().unwrap();
            assert!(bytes == vec![i as u8; 64 << 10], "object {i}");
        }
        store.stat().unwrap().log_capacity
    };
    assert_eq!(log_after(10 << 30), 32 << 20);
    let small = log_after(64 << 20);
    // An eighth of what was free each time that it grew.
    assert!((2 << 20..=16 << 20).contains(&small), "{small} bytes of log");
}
