//! New data that is written in place while its transaction is at work: transactions that end
//! without a commit leave nothing, whichever transaction gets their pages next; readers of the same
//! transaction see it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Error, Oid, Options, Result, Store, WriteTx};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn options() -> Options {
    Options::default().cache_bytes(8 << 20).tuning(|t| t.log_bytes(4 << 20))
}

fn bytes(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| ((i / 8).wrapping_mul(seed | 1).wrapping_add(i) >> 3) as u8).collect()
}

/// Lengths that go into records, into small segments and into large ones.
fn len_of(i: u64) -> usize {
    [180, 3_000, 5_000, 20_000, 60_000, 300_000][i as usize % 6] + i as usize % 97
}

fn assert_sound(path: &Path) {
    let store = options().open(path).unwrap();
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{:#?}", report.problems);
}

#[test]
fn pages_of_a_dropped_transaction_are_safely_anothers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.holdall");
    let store = options().create(&path).unwrap();
    let over = AtomicBool::new(false);
    let kept: Vec<(Oid, u64)> = std::thread::scope(|scope| {
        // Fills pages and segments and drops them, over and over.
        let dropper = scope.spawn(|| {
            let mut turns = 0;
            while !over.load(Relaxed) {
                let dropped: Result<()> = store.write(|tx| {
                    (0..400).try_for_each(|i| tx.create(&bytes(i, len_of(i))).map(drop))?;
                    Err(Error::Invalid("dropped".into()))
                });
                assert!(matches!(dropped, Err(Error::Invalid(_))), "{dropped:?}");
                turns += 1;
            }
            turns
        });
        let put = |i| (store.write(|tx| tx.create(&bytes(i, len_of(i)))).unwrap(), i);
        let kept = (0..60).map(put).collect();
        over.store(true, Relaxed);
        assert!(dropper.join().unwrap() > 0, "no transaction was dropped meanwhile");
        kept
    });
    let check = |store: &Store| {
        for (oid, i) in &kept {
            let found = store.read().unwrap().get(*oid).unwrap().unwrap();
            assert!(found == bytes(*i, len_of(*i)), "object {i}");
        }
    };
    check(&store);
    store.close().unwrap();
    check(&options().open(&path).unwrap());
    assert_sound(&path);
}

#[test]
fn a_transaction_reads_what_it_has_only_handed_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.holdall");
    let store = options().create(&path).unwrap();
    let all = store.write(make_and_change).unwrap();
    for (i, (oid, content)) in all.iter().enumerate() {
        let found = store.read().unwrap().get(*oid);
        if i % 3 == 0 {
            assert!(found.is_err(), "object {i} is still there");
        } else {
            assert!(found.unwrap().as_ref() == Some(content), "object {i}");
        }
    }
    store.close().unwrap();
    assert_sound(&path);
}

/// Makes objects, reads and changes some, and gives every third up again, all in one
/// transaction. Returns what each was.
fn make_and_change(tx: &mut WriteTx) -> Result<Vec<(Oid, Vec<u8>)>> {
    let mut all: Vec<(Oid, Vec<u8>)> = Vec::new();
    for i in 0..300 {
        let mut content = bytes(i, len_of(i));
        let oid = tx.create(&content)?;
        if i % 7 == 6 {
            let (older, content) = &all[i as usize / 2];
            assert!(tx.get(*older)?.unwrap() == *content, "object {}", i / 2);
        }
        if i % 5 == 0 && content.len() > 10_000 {
            // What may just be on its way changes, twice.
            tx.write_at(oid, 4_000, b"changed")?;
            tx.insert(oid, 9_000, b"put in")?;
            content[4_000..4_007].copy_from_slice(b"changed");
            content.splice(9_000..9_000, *b"put in");
            assert!(tx.get(oid)?.unwrap() == content, "object {i}");
        }
        all.push((oid, content));
    }
    all.iter().step_by(3).try_for_each(|(oid, _)| tx.remove(*oid).map(drop))?;
    Ok(all)
}
