//! Which files a store takes for its own, by whatever name.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::Barrier;

use holdall::{FileId, Options, Store};

fn id(path: &Path) -> FileId {
    FileId::from_metadata(&fs::metadata(path).unwrap())
}

#[test]
fn a_store_knows_its_files_by_every_name() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let store = Store::create(at("s")).unwrap();
    store.write(|tx| tx.put("a", b"1")).unwrap();
    fs::hard_link(at("s"), at("hard")).unwrap();
    fs::hard_link(at("s-log"), at("hard-log")).unwrap();
    std::os::unix::fs::symlink("s", at("soft")).unwrap();
    fs::write(at("other"), "x").unwrap();
    for (name, own) in
        [("s", true), ("hard", true), ("soft", true), ("s-log", true), ("hard-log", true)]
            .into_iter()
            .chain([("other", false), ("", false)])
    {
        assert_eq!(store.is_own_file(id(&at(name))).unwrap(), own, "{name}");
    }
    // What a crash leaves is reported by readers, too.
    fs::create_dir(at("left")).unwrap();
    fs::copy(at("s"), at("left/s")).unwrap();
    fs::copy(at("s-log"), at("left/s-log")).unwrap();
    store.close().unwrap();
    let left = Store::open_read_only(at("left/s")).unwrap();
    assert!(left.is_own_file(id(&at("left/s"))).unwrap());
    assert!(left.is_own_file(id(&at("left/s-log"))).unwrap());
    assert!(!left.is_own_file(id(&at("s"))).unwrap());
    let closed = Store::open_read_only(at("s")).unwrap();
    assert!(closed.is_own_file(id(&at("hard"))).unwrap(), "without a log");
    assert!(!closed.is_own_file(id(&at("hard-log"))).unwrap(), "its log is gone");
    assert!(!Store::in_memory().unwrap().is_own_file(id(&at("s"))).unwrap());
}

#[test]
fn who_asks_while_a_log_is_made_meets_no_lock() {
    let dir = tempfile::tempdir().unwrap();
    let other = FileId::from_metadata(&fs::metadata(dir.path()).unwrap());
    // A log that takes a while to be made, and is there meanwhile.
    let options = Options::default().tuning(|t| t.first_log_bytes(16 << 20));
    for round in 0..10 {
        let store = options.create(dir.path().join(round.to_string())).unwrap();
        let begun = Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    begun.wait();
                    (0..2000).for_each(|_| assert!(!store.is_own_file(other).unwrap()));
                });
            }
            begun.wait();
            store.write(|tx| tx.put("a", b"1")).unwrap();
        });
        store.close().unwrap();
    }
}

#[test]
fn what_is_no_log_is_not_the_stores() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    Store::create(at("s")).unwrap().close().unwrap();
    fs::write(at("notes"), "mine").unwrap();
    std::os::unix::fs::symlink("notes", at("s-log")).unwrap();
    let store = Store::open_read_only(at("s")).unwrap();
    assert!(!store.is_own_file(id(&at("notes"))).unwrap());
}

#[test]
fn the_place_of_the_log_is_beside_the_real_file() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("real")).unwrap();
    Store::create(at("real/s")).unwrap().close().unwrap();
    std::os::unix::fs::symlink("real/s", at("alias")).unwrap();
    std::os::unix::fs::symlink("real", at("dir")).unwrap();
    let store = Store::open_read_only(at("alias")).unwrap();
    let is = |dir: &str, name: &str| store.is_log_place(id(&at(dir)), OsStr::new(name)).unwrap();
    assert!(is("real", "s-log") && is("dir", "s-log"));
    assert!(!is("", "alias-log") && !is("", "s-log") && !is("real", "s"));
    let memory = Store::in_memory().unwrap();
    assert!(!memory.is_log_place(id(&at("real")), OsStr::new("s-log")).unwrap());
}
