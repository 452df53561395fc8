//! Commits that find the log full wait for the checkpoint under way.

use holdall::Options;
use holdall_io::MemoryStorage;
use holdall_testkit::{CostModel, CountedStorage};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

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
                // If it gets not as far as to a full log, nothing is shown, and nothing fails.
                thread::sleep(Duration::from_millis(200));
            }
        };
        store.checkpoint_with(between).unwrap();
    });
    // That one's: before its pages, behind them, and for what begins the log.
    assert_eq!(storage.volume_stats().syncs - before, 3, "one checkpoint");
    assert_eq!(store.read().unwrap().get("39").unwrap().unwrap(), [13; 2500]);
}
