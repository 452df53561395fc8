//! A file in the log's place that is not this store's log is never emptied or removed, and
//! the error names it; what crashes leave of logs does not stop a store.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use holdall::{Error, Options, Store};
use holdall_io::{MemoryStorage, Storage};
use holdall_testkit::{CrashKind, FaultPlan, FaultyStorage, LossPolicy};
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn options(id: u8) -> Options {
    let (store_id, log_bytes, first_log_bytes) = (Some([id; 16]), 64 << 10, 64 << 10);
    let first = Options::default().tuning(|t| t.first_log_bytes(first_log_bytes));
    first.background(false).page_size(4096).tuning(|t| t.store_id(store_id).log_bytes(log_bytes))
}

type Files = (Vec<u8>, Option<Vec<u8>>);

fn storage((volume, log): &Files) -> Arc<MemoryStorage> {
    Arc::new(MemoryStorage::from_bytes(volume.clone(), log.clone()))
}

fn put(store: &Store, name: &str) -> holdall::Result<()> {
    store.write(|tx| tx.put(name, name.as_bytes())).map(drop)
}

/// A store closed after a commit, and as a kill leaves it after one more.
fn closed_and_killed(id: u8) -> (Files, Files) {
    let first = Arc::new(MemoryStorage::new());
    let store = options(id).create_on(first.clone()).unwrap();
    put(&store, "old").unwrap();
    store.close().unwrap();
    let closed = first.snapshot();
    let store = options(id).open_on(first.clone()).unwrap();
    put(&store, "new").unwrap();
    (closed, first.snapshot())
}

#[track_caller]
fn refused<T>(result: holdall::Result<T>, parts: &[&str]) {
    match result.map(drop) {
        Err(e @ Error::WrongLog { .. }) => {
            let text = e.to_string();
            assert!(parts.iter().all(|p| text.contains(p)), "{text:?} does not say {parts:?}");
        }
        other => panic!("{other:?}, should say {parts:?}"),
    }
}

/// What is no log of store 1 and not blank: another store's log, and no log at all.
fn foreign() -> Vec<(Vec<u8>, &'static str)> {
    let other = closed_and_killed(2).1.1.unwrap();
    let mut far = vec![0; 3 << 20];
    far.push(1);
    vec![
        (other, "memory-log is the log of another store"),
        (b"my own notes".to_vec(), "memory-log is not a log of this store"),
        (far, "memory-log is not a log of this store"),
    ]
}

#[test]
fn a_foreign_file_stops_writing_and_is_left_as_it_is() {
    let (closed, _) = closed_and_killed(1);
    for (log, what) in foreign() {
        let place = storage(&(closed.0.clone(), Some(log.clone())));
        for write in [true, false, true] {
            let store = options(1).open_on(place.clone()).unwrap();
            assert_eq!(store.read().unwrap().get("old").unwrap().unwrap(), b"old");
            if write {
                refused(put(&store, "new"), &[what, "move it away", "put it back beside"]);
            }
            store.close().unwrap();
            assert!(place.snapshot() == (closed.0.clone(), Some(log.clone())), "{what}");
        }
        let log = place.open_log().unwrap().unwrap();
        place.remove_log(&*log).unwrap();
        let store = options(1).open_on(place).unwrap();
        put(&store, "new").unwrap();
    }
}

#[test]
fn a_new_store_takes_no_place_where_another_log_lies() {
    // Not even that of a store of the same id: a new store has none.
    let own = closed_and_killed(1).1.1.unwrap();
    for (log, what) in foreign().into_iter().chain([(own, "is the log of another store")]) {
        let place = storage(&(Vec::new(), Some(log.clone())));
        refused(options(1).create_on(place.clone()), &[what]);
        assert!(place.snapshot() == (Vec::new(), Some(log)), "{what}");
    }
    for blank in [Vec::new(), vec![0; 100], vec![0; 1 << 20]] {
        let store = options(1).create_on(storage(&(Vec::new(), Some(blank)))).unwrap();
        put(&store, "new").unwrap();
        assert!(store.verify().unwrap().is_sound());
    }
}

#[test]
fn a_log_of_zeros_is_used_whatever_its_length() {
    let (closed, _) = closed_and_killed(1);
    for length in [0, 100, 64 << 10, 5 << 20] {
        let place = storage(&(closed.0.clone(), Some(vec![0; length])));
        let store = options(1).open_on(place.clone()).unwrap();
        put(&store, "new").unwrap();
        let (volume, log) = place.snapshot();
        assert_eq!(log.as_ref().map(Vec::len), Some(64 << 10));
        let again = options(1).open_on(storage(&(volume, log))).unwrap();
        assert_eq!(again.read().unwrap().get("new").unwrap().unwrap(), b"new");
    }
}

#[test]
fn a_log_of_another_store_in_place_of_a_needed_one_is_named() {
    let (_, killed) = closed_and_killed(1);
    let (_, other) = closed_and_killed(2);
    let mixed = (killed.0, other.1);
    refused(options(1).open_on(storage(&mixed)), &["memory-log belongs to another store"]);
}

#[test]
fn an_older_copy_beside_a_newer_log_is_told_from_damage() {
    let says = ["memory-log is newer", "older copy", "put back the store", "move the log away"];
    let (closed, killed) = closed_and_killed(1);
    // A recovery later: another epoch.
    let place = storage(&killed);
    let store = options(1).open_on(place.clone()).unwrap();
    put(&store, "newer").unwrap();
    let later = place.snapshot();
    // Checkpoints later: the same epoch, but a later superblock.
    store.checkpoint().unwrap();
    put(&store, "newest").unwrap();
    let latest = place.snapshot();
    // And once the log has gone round, so that its start is written over.
    let around: Vec<_> = (0..40)
        .map(|n| {
            if n % 5 == 0 {
                store.checkpoint().unwrap();
            }
            put(&store, &format!("n{n}")).unwrap();
            place.snapshot()
        })
        .collect();
    drop(store);
    let pairs = [(&closed, &killed), (&closed, &later), (&killed, &later), (&later, &latest)];
    let gone_round = around[15..].iter().flat_map(|new| [(&closed, new), (&later, new)]);
    for (old, new) in pairs.into_iter().chain(gone_round) {
        let mixed = (old.0.clone(), new.1.clone());
        refused(options(1).open_read_only_on(storage(&mixed)), &says);
        let place = storage(&mixed);
        refused(options(1).open_on(place.clone()), &says);
        assert!(place.snapshot() == mixed, "nothing is changed");
    }
    // What is advised, if the copy was clean.
    let store = options(1).open_on(storage(&(closed.0, None))).unwrap();
    put(&store, "other").unwrap();
    assert_eq!(store.read().unwrap().get("old").unwrap().unwrap(), b"old");
    // A damaged copy of the superblock is still called that.
    let (mut volume, log) = latest;
    let newest = [0, 65536].into_iter().max_by_key(|at| volume[at + 80]).unwrap();
    volume[newest + 50] ^= 1;
    let text = options(1).open_on(storage(&(volume, log))).unwrap_err().to_string();
    assert!(text.contains("is damaged; the other one"), "{text}");
}

/// Runs `work` with a crash at each of its changes, and checks the store after each.
fn at_every_crash(files: &Files, work: impl Fn(Arc<FaultyStorage>)) {
    for change in 1.. {
        let (volume, log) = files;
        let place = Arc::new(FaultyStorage::from_bytes(volume, log.as_deref(), change).unwrap());
        place.set_plan(FaultPlan { crash_at_change: Some(change), ..FaultPlan::default() });
        work(place.clone());
        if !place.crashed() {
            assert!(change > 3, "only {change} changes");
            return;
        }
        let losses = [LossPolicy::LoseAll, LossPolicy::KeepAll].into_iter();
        for (seed, loss) in losses.chain([LossPolicy::Random; 40]).enumerate() {
            let found = place.crash(CrashKind::PowerCut(loss), seed as u64).unwrap();
            let store = options(1).open_on(Arc::new(found)).unwrap();
            put(&store, "after").unwrap_or_else(|e| panic!("change {change}, {loss:?}: {e}"));
            assert_eq!(store.read().unwrap().get("old").unwrap().unwrap(), b"old");
            assert!(store.verify().unwrap().is_sound());
        }
    }
}

fn open_and_close(place: Arc<FaultyStorage>) {
    let _ = options(1).open_on(place).and_then(Store::close);
}

fn open_and_put(place: Arc<FaultyStorage>) {
    let _ = options(1).open_on(place).and_then(|store| put(&store, "more"));
}

#[test]
fn no_crash_leaves_a_log_that_the_store_does_not_know_again() {
    let (closed, mut killed) = closed_and_killed(1);
    at_every_crash(&closed, open_and_put);
    at_every_crash(&killed, open_and_close);
    // The only group is torn so that nothing shows whose log it is.
    let log = killed.1.as_mut().unwrap();
    let at = log.iter().position(|b| *b != 0).unwrap() / 4096 * 4096;
    log[at..at + 32].fill(0);
    assert!(log.iter().any(|b| *b != 0));
    at_every_crash(&killed, open_and_close);
    at_every_crash(&killed, open_and_put);
    // Left by a crash in the midst of closing: what is in it is torn as it is emptied.
    let place = storage(&closed);
    let store = options(1).open_on(place.clone()).unwrap();
    store.write(|tx| tx.put("longer", &[1; 3000])).unwrap();
    let log = place.snapshot().1;
    store.close().unwrap();
    at_every_crash(&(place.snapshot().0, log), open_and_put);
}

fn as_left_by_a_kill(from: &Path, to: &Path) {
    let store = options(3).create(from).unwrap();
    for n in 0..50 {
        put(&store, &format!("n{n}")).unwrap();
    }
    for end in ["", "-log"] {
        let name = |path: &Path| format!("{}{end}", path.display());
        fs::copy(name(from), name(to)).unwrap();
    }
}

#[test]
fn a_store_moved_away_from_its_log_can_be_moved_back() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    as_left_by_a_kill(&at("first"), &at("s"));
    let log = fs::read(at("s-log")).unwrap();
    fs::rename(at("s"), at("s.old")).unwrap();
    let path = at("s");
    for opened in [options(4).create(&path), options(4).open_or_create(&path)] {
        refused(opened, &["s-log is the log of another store"]);
        assert!(!at("s").exists());
    }
    assert!(fs::read(at("s-log")).unwrap() == log);
    fs::rename(at("s.old"), at("s")).unwrap();
    let store = options(3).open(at("s")).unwrap();
    assert_eq!(store.stat().unwrap().objects, 50);
}

#[test]
fn a_long_file_of_zeros_is_looked_at_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let log = fs::File::create(dir.path().join("s-log")).unwrap();
    log.set_len(256 << 20).unwrap();
    let store = options(5).create(dir.path().join("s")).unwrap();
    put(&store, "new").unwrap();
    store.close().unwrap();
    assert!(!dir.path().join("s-log").exists());
}

#[test]
fn a_link_in_the_logs_place_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("victim"), b"").unwrap();
    let plant = || std::os::unix::fs::symlink(at("victim"), at("s-log")).unwrap();
    plant();
    let says = ["s-log is not a regular file", "move it away"];
    refused(options(6).create(at("s")), &says);
    fs::remove_file(at("s-log")).unwrap();
    let store = options(6).create(at("s")).unwrap();
    plant();
    refused(put(&store, "new"), &says);
    store.close().unwrap();
    options(6).open_read_only(at("s")).unwrap();
    assert_eq!(fs::read(at("victim")).unwrap(), b"");
    assert!(at("s-log").is_symlink());
}
