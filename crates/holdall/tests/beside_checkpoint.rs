//! Commits beside a checkpoint do not wait for its pages.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use holdall::{Options, Store};
use holdall_io::MemoryStorage;
use holdall_testkit::{CostModel, CountedStorage};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const OBJECTS: usize = 3500;

/// A store whose log has grown and many of whose pages are dirty.
fn busy() -> (Arc<MemoryStorage>, Arc<CountedStorage>, Store) {
    let memory = Arc::new(MemoryStorage::new());
    let storage = Arc::new(CountedStorage::new(memory.clone(), CostModel::default()));
    // Else a checkpoint would follow the last commit.
    let options = Options::default().background(false).tuning(|t| t.auto_checkpoint(false));
    let store = options.create_on(storage.clone()).unwrap();
    for byte in [1, 2, 3] {
        // The second time all pages exist, and pass through a log that grows for it.
        store
            .write(|tx| {
                (0..OBJECTS).try_for_each(|i| tx.put(format!("{i:04}"), &[byte; 2500]).map(drop))
            })
            .unwrap();
    }
    (memory, storage, store)
}

#[test]
fn a_checkpoint_writes_its_pages_out_as_it_goes() {
    let (_, storage, store) = busy();
    let before = storage.volume_stats();
    store.checkpoint().unwrap();
    let done = storage.volume_stats() - before;
    let hints = done.calls - done.reads - done.writes - done.syncs;
    // A part has at least one MiB and less than two; each is waited for but the last.
    let mib = done.bytes_written >> 20;
    assert!(mib >= 8 && (mib - 1..=2 * mib).contains(&hints), "{hints} calls for {mib} MiB");
}

#[test]
fn a_commit_that_finds_the_log_full_waits_for_the_checkpoint_under_way() {
    let storage = CountedStorage::new(Arc::new(MemoryStorage::new()), CostModel::default());
    let storage = Arc::new(storage);
    // The log stays as small as it begins, and nobody else makes room in it.
    let small = Options::default().tuning(|t| t.log_bytes(1 << 20).first_log_bytes(1 << 20));
    let options = small.background(false).tuning(|t| t.auto_checkpoint(false));
    let store = options.create_on(storage.clone()).unwrap();
    let commit = |byte: u8| {
        let put = |i| (i, [byte; 2500]);
        let all = (0..40).map(put);
        store.write(|tx| all.clone().try_for_each(|(i, b)| tx.put(format!("{i}"), &b).map(drop)))
    };
    // Some 100 KiB each: seven leave room for two or three.
    (1..8).for_each(|byte| commit(byte).unwrap());
    let before = storage.volume_stats().syncs;
    thread::scope(|scope| {
        let mut writer = None;
        let more = || (8..14).for_each(|byte| commit(byte).unwrap());
        let between = &mut || {
            if writer.is_none() {
                writer = Some(scope.spawn(more));
                // Where it gets not as far as to a full log, nothing is shown, and nothing fails.
                thread::sleep(Duration::from_millis(200));
            }
        };
        store.checkpoint_with(between).unwrap();
    });
    // That one's: before its pages, behind them, and for what begins the log.
    assert_eq!(storage.volume_stats().syncs - before, 3, "one checkpoint");
    assert_eq!(store.read().unwrap().get("39").unwrap().unwrap(), [13; 2500]);
}
