//! A store that somebody renames, deletes or replaces while it is open: what nobody would find is
//! not acknowledged, what was acknowledged is in the store's file, and no other file is touched.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use holdall::{Durability, Error, Options, Store};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn options() -> Options {
    Options::default()
        .background(false)
        .tuning(|t| t.log_bytes(256 << 10).first_log_bytes(64 << 10))
}

/// A directory for stores.
struct StoreDir(tempfile::TempDir);

impl StoreDir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.at(from), self.at(to)).unwrap();
    }

    /// A store `s` with an object `old`, and a log.
    fn store(&self) -> Store {
        let store = options().create(self.at("s")).unwrap();
        put(&store, "old").unwrap();
        store
    }

    /// A sound store that holds these objects and no others.
    fn holds(&self, name: &str, objects: &[&str]) {
        let store = options().open(self.at(name)).unwrap();
        assert_eq!(names(&store), objects);
        assert!(store.verify().unwrap().is_sound());
        store.close().unwrap();
        assert!(!self.at(&format!("{name}-log")).exists());
    }

    /// As [`StoreDir::holds`], for the files as a kill would leave them now.
    fn holds_if_killed(&self, name: &str, objects: &[&str]) {
        for end in ["", "-log"] {
            let from = self.at(&format!("{name}{end}"));
            fs::copy(from, self.at(&format!("killed{end}"))).unwrap();
        }
        self.holds("killed", objects);
        fs::remove_file(self.at("killed")).unwrap();
    }
}

fn put(store: &Store, name: &str) -> holdall::Result<()> {
    store.write(|tx| tx.put(name, name.as_bytes())).map(drop)
}

fn names(store: &Store) -> Vec<String> {
    let reader = store.read().unwrap();
    reader.names("").map(|entry| String::from_utf8(entry.unwrap().name).unwrap()).collect()
}

#[track_caller]
fn moved<T>(result: holdall::Result<T>, parts: &[&str]) {
    match result.map(drop) {
        Err(e @ Error::Moved { .. }) => {
            let text = e.to_string();
            assert!(parts.iter().all(|p| text.contains(p)), "{text:?} does not say {parts:?}");
        }
        other => panic!("{other:?}, should say {parts:?}"),
    }
}

const RENAMED: [&str; 2] = ["/s no longer leads to the open store", "close the store"];

#[test]
fn a_store_renamed_with_its_log_leaves_its_successor_alone() {
    let place = StoreDir::new();
    let a = place.store();
    place.rename("s", "t");
    place.rename("s-log", "t-log");
    let b = options().create(place.at("s")).unwrap();
    put(&b, "b1").unwrap();
    moved(put(&a, "new"), &RENAMED);
    assert_eq!(names(&a), ["old"], "what was refused did not happen");
    place.holds_if_killed("t", &["old"]);
    put(&b, "b2").unwrap();
    moved(a.close(), &RENAMED);
    put(&b, "b3").unwrap();
    place.holds_if_killed("s", &["b1", "b2", "b3"]);
    b.close().unwrap();
    place.holds("s", &["b1", "b2", "b3"]);
    assert!(place.at("t-log").exists(), "it is not at the log's name");
    place.holds("t", &["old"]);
}

#[test]
fn a_log_left_behind_is_closed_with_the_store() {
    let place = StoreDir::new();
    let a = place.store();
    place.rename("s", "t");
    moved(put(&a, "new"), &RENAMED);
    let made = options().open_or_create(place.at("s")).unwrap_err();
    let text = made.to_string();
    assert!(matches!(made, Error::WrongLog { .. }) && text.contains("that is open"), "{text}");
    assert!(!place.at("s").exists());
    moved(a.close(), &RENAMED);
    assert!(!place.at("s-log").exists());
    place.holds("t", &["old"]);
}

#[test]
fn a_first_log_is_not_made_beside_another_store() {
    let place = StoreDir::new();
    place.store().close().unwrap();
    for with_log in [false, true] {
        let a = options().open(place.at("s")).unwrap();
        place.rename("s", "t");
        let b = options().create(place.at("s")).unwrap();
        if with_log {
            put(&b, "b").unwrap();
        }
        moved(put(&a, "new"), &RENAMED);
        assert_eq!(place.at("s-log").exists(), with_log);
        a.close().unwrap();
        put(&b, "c").unwrap();
        place.holds_if_killed("s", if with_log { &["b", "c"] } else { &["c"] });
        b.close().unwrap();
        place.holds("t", &["old"]);
        place.rename("t", "s");
    }
}

#[test]
fn a_log_grows_by_its_file() {
    let place = StoreDir::new();
    let a = place.store();
    // Enough that the next transaction makes the log longer.
    a.write(|tx| (0..20).try_for_each(|n| tx.put(format!("n{n}"), &[n; 2500]).map(drop))).unwrap();
    let logs = |name: &str| fs::metadata(place.at(name)).unwrap().len();
    assert_eq!(logs("s-log"), 64 << 10);
    place.rename("s", "t");
    place.rename("s-log", "t-log");
    let b = options().create(place.at("s")).unwrap();
    put(&b, "b").unwrap();
    moved(put(&a, "new"), &RENAMED);
    assert_eq!((logs("t-log"), logs("s-log")), (256 << 10, 64 << 10));
    place.holds_if_killed("s", &["b"]);
    assert_eq!(a.read().unwrap().get("n7").unwrap().unwrap(), [7; 2500]);
    moved(a.close(), &RENAMED);
    let a = options().open(place.at("t")).unwrap();
    assert_eq!(a.stat().unwrap().objects, 21);
}

#[test]
fn a_deleted_store_acknowledges_nothing_and_can_be_read() {
    let place = StoreDir::new();
    let a = place.store();
    fs::remove_file(place.at("s")).unwrap();
    for name in ["new", "newer"] {
        moved(put(&a, name), &["/s was deleted", "read out of the store"]);
    }
    assert_eq!(names(&a), ["old"]);
    moved(a.close(), &["/s was deleted"]);
    assert_eq!(fs::read_dir(place.0.path()).unwrap().count(), 0);
}

#[test]
fn a_replaced_store_is_completed_nowhere_else() {
    let place = StoreDir::new();
    options().create(place.at("other")).unwrap().close().unwrap();
    for link in [false, true] {
        let a = options().open_or_create(place.at("s")).unwrap();
        put(&a, "old").unwrap();
        let before = fs::read(place.at("other")).unwrap();
        fs::hard_link(place.at("s"), place.at("kept")).unwrap();
        if link {
            fs::remove_file(place.at("s")).unwrap();
            symlink(place.at("other"), place.at("s")).unwrap();
        } else {
            fs::copy(place.at("other"), place.at("copy")).unwrap();
            place.rename("copy", "s");
        }
        moved(put(&a, "new"), &RENAMED);
        let opened = options().open(place.at("kept"));
        assert!(matches!(opened, Err(Error::Locked { .. })), "{opened:?}");
        moved(a.close(), &RENAMED);
        assert!(fs::read(place.at("s")).unwrap() == before);
        place.holds("kept", &["old"]);
        fs::remove_file(place.at("s")).unwrap();
        fs::remove_file(place.at("kept")).unwrap();
    }
}

#[test]
fn a_copy_in_a_stores_place_does_not_take_its_log() {
    let place = StoreDir::new();
    let a = place.store();
    put(&a, "older").unwrap();
    fs::copy(place.at("s"), place.at("copy")).unwrap();
    place.rename("s", "t");
    place.rename("copy", "s");
    for opened in [options().open(place.at("s")), options().open_read_only(place.at("s"))] {
        assert!(matches!(opened, Err(Error::WrongLog { .. })), "{opened:?}");
    }
    moved(put(&a, "new"), &RENAMED);
    moved(a.close(), &RENAMED);
    place.holds("t", &["old", "older"]);
}

#[test]
fn without_its_log_a_store_acknowledges_nothing_until_it_is_opened_again() {
    type Change = fn(&Path);
    let changes: [Change; 5] = [
        |log| fs::remove_file(log).unwrap(),
        |log| {
            fs::copy(log, log.with_file_name("backup")).unwrap();
            fs::rename(log.with_file_name("backup"), log).unwrap();
        },
        |log| {
            fs::remove_file(log).unwrap();
            fs::create_dir(log).unwrap();
        },
        |log| {
            fs::rename(log, log.with_file_name("elsewhere")).unwrap();
            symlink("elsewhere", log).unwrap();
        },
        |log| {
            fs::remove_file(log).unwrap();
            fs::write(log, b"notes").unwrap();
        },
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let place = StoreDir::new();
        let (a, log) = (place.store(), place.at("s-log"));
        change(&log);
        let there = log.symlink_metadata().map(|m| (m.file_type(), m.len())).ok();
        moved(put(&a, "new"), &["/s-log no longer leads to the log", "put it back, or close"]);
        assert_eq!(names(&a), ["old"]);
        a.close().unwrap();
        let left = log.symlink_metadata().map(|m| (m.file_type(), m.len())).ok();
        assert_eq!(left, there, "change {n}");
        let a = options().open(place.at("s")).unwrap();
        assert_eq!(names(&a), ["old"]);
        match put(&a, "new") {
            Ok(()) => a.close().unwrap(),
            Err(Error::WrongLog { .. }) if n > 1 => {
                let left = log.symlink_metadata().map(|m| (m.file_type(), m.len())).ok();
                assert_eq!(left, there, "change {n}");
            }
            Err(e) => panic!("change {n}: {e}"),
        }
    }
}

#[test]
fn what_was_recovered_is_not_written_to_another_log() {
    let place = StoreDir::new();
    let a = place.store();
    for end in ["", "-log"] {
        fs::copy(place.at(&format!("s{end}")), place.at(&format!("k{end}"))).unwrap();
    }
    a.close().unwrap();
    let k = options().open(place.at("k")).unwrap();
    // Read at the opening, not used yet.
    place.rename("k-log", "away");
    fs::write(place.at("k-log"), vec![7; 64 << 10]).unwrap();
    moved(put(&k, "new"), &["/k-log no longer leads"]);
    k.close().unwrap();
    assert!(fs::read(place.at("k-log")).unwrap() == vec![7; 64 << 10]);
    fs::remove_file(place.at("k-log")).unwrap();
    place.holds("k", &["old"]);
}

#[test]
fn a_store_put_back_goes_on() {
    let place = StoreDir::new();
    let a = place.store();
    place.rename("s", "t");
    moved(put(&a, "lost"), &RENAMED);
    place.rename("t", "s");
    put(&a, "new").unwrap();
    place.rename("s-log", "t");
    moved(put(&a, "lost"), &["/s-log"]);
    place.rename("t", "s-log");
    put(&a, "newer").unwrap();
    place.holds_if_killed("s", &["new", "newer", "old"]);
    a.close().unwrap();
    place.holds("s", &["new", "newer", "old"]);
}

#[test]
fn a_directory_above_may_be_renamed() {
    let place = StoreDir::new();
    fs::create_dir_all(place.at("a/b")).unwrap();
    let a = options().create(place.at("a/b/s")).unwrap();
    place.rename("a", "c");
    put(&a, "old").unwrap();
    assert!(place.at("c/b/s-log").exists());
    // Nor does another one in its place matter.
    fs::create_dir_all(place.at("a/b")).unwrap();
    fs::write(place.at("a/b/s-log"), b"notes").unwrap();
    place.rename("c/b", "d");
    put(&a, "new").unwrap();
    a.close().unwrap();
    assert_eq!(fs::read(place.at("a/b/s-log")).unwrap(), b"notes");
    place.holds("d/s", &["new", "old"]);
}

#[test]
fn deferred_commits_tell_when_they_become_durable() {
    let place = StoreDir::new();
    let a = place.store();
    let deferred = |name: &str| {
        a.write(|tx| {
            tx.set_durability(Durability::Deferred);
            tx.put(name, b"1")
        })
    };
    deferred("first").unwrap();
    a.flush().unwrap();
    place.rename("s", "t");
    deferred("second").unwrap();
    moved(a.flush(), &RENAMED);
    moved(deferred("third"), &RENAMED);
    moved(a.close(), &RENAMED);
    place.holds("t", &["first", "old", "second"]);
}

const STORE: &str = "HOLDALL_MOVED_STORE";

/// Runs only in the child: puts one object at each line it reads, and says what came of it.
#[test]
fn child() {
    let Ok(path) = std::env::var(STORE) else { return };
    let store = options().open_or_create(path).unwrap();
    for line in std::io::stdin().lines() {
        let name = line.unwrap();
        match put(&store, &name) {
            Ok(()) => println!("\nput {name}"),
            Err(e) => println!("\nfailed {e}"),
        }
    }
}

#[test]
fn after_a_kill_both_stores_are_whole() {
    if std::env::var(STORE).is_ok() {
        return;
    }
    let place = StoreDir::new();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(STORE, place.at("s"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut ask = |name: &str| {
        writeln!(input, "{name}").unwrap();
        lines.find(|line| line.starts_with("put ") || line.starts_with("failed ")).unwrap()
    };
    assert_eq!(ask("a1"), "put a1");
    place.rename("s", "t");
    place.rename("s-log", "t-log");
    let b = options().create(place.at("s")).unwrap();
    put(&b, "b1").unwrap();
    assert!(ask("a2").contains("no longer leads to the open store"));
    child.kill().unwrap();
    child.wait().unwrap();
    place.holds("t", &["a1"]);
    put(&b, "b2").unwrap();
    place.holds_if_killed("s", &["b1", "b2"]);
    b.close().unwrap();
    place.holds("s", &["b1", "b2"]);
}
