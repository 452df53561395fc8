//! Errors of a store whose file was emptied, or whose log is lost, foreign, damaged or not to
//! be opened: each in words of its own, and nothing is changed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Error, Options, Store};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const FORBIDDEN: &str = "HOLDALL_FORBIDDEN_LOG";

/// Copies of an open store and its log: what a kill leaves.
fn killed(dir: &Path, name: &str) -> (PathBuf, PathBuf) {
    let (path, log) = (dir.join(name), dir.join(format!("{name}-log")));
    let open = dir.join("open");
    let store = Options::default().background(false).create(&open).unwrap();
    store.write(|tx| tx.put("checkpointed", b"1")).unwrap();
    store.checkpoint().unwrap();
    for i in 0..9 {
        store.write(|tx| tx.put(format!("logged {i}"), &[i; 3000])).unwrap();
    }
    fs::copy(&open, &path).unwrap();
    fs::copy(dir.join("open-log"), &log).unwrap();
    drop(store);
    fs::remove_file(open).unwrap();
    (path, log)
}

/// What opening says, for writing and for reading.
fn said(path: &Path) -> String {
    let before = fs::read(path).unwrap();
    let write = Store::open(path).unwrap_err();
    let read = Store::open_read_only(path).unwrap_err();
    let either = Store::open_or_create(path).unwrap_err();
    assert_eq!(write.to_string(), read.to_string());
    assert_eq!(write.to_string(), either.to_string());
    assert!(fs::read(path).unwrap() == before, "the store was changed");
    write.to_string()
}

fn contains(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

#[test]
fn each_fault_of_a_log_has_its_words() {
    let dir = tempfile::tempdir().unwrap();
    let (path, log) = killed(dir.path(), "s");
    let kept = fs::read(&log).unwrap();
    fs::remove_file(&log).unwrap();
    assert!(matches!(Store::open(&path), Err(Error::NoLog { .. })));
    contains(&said(&path), &["s-log is missing", "last checkpoint", "put it back"]);
    fs::write(&log, &kept).unwrap();
    let other = tempfile::tempdir().unwrap();
    let (_, foreign) = killed(other.path(), "other");
    fs::copy(foreign, &log).unwrap();
    assert!(matches!(Store::open(&path), Err(Error::WrongLog { .. })));
    contains(&said(&path), &["belongs to another store", "move it away"]);
    fs::write(&log, &kept[..4096]).unwrap();
    contains(&said(&path), &["damaged: ", "s-log", "cut short", "restore from a copy"]);
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    contains(&said(&path), &["s-log is not a regular file"]);
    fs::remove_dir(&log).unwrap();
    fs::write(&log, &kept).unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(store.read().unwrap().get("logged 8").unwrap().unwrap(), [8; 3000]);
}

/// Runs as a user without rights, in a process of its own if this one is root's.
#[test]
fn forbidden() {
    let Ok(path) = std::env::var(FORBIDDEN) else { return };
    let opened = Store::open(&path);
    assert!(matches!(opened, Err(Error::WrongLog { .. })), "{opened:?}");
    let words = ["s-log", "cannot be opened", "permission denied", "chown --reference"];
    contains(&said(Path::new(&path)), &words);
}

#[test]
fn a_log_that_may_not_be_opened_is_not_called_missing() {
    let dir = tempfile::tempdir().unwrap();
    let (path, log) = killed(dir.path(), "s");
    for (file, mode) in [(dir.path(), 0o777), (&path, 0o666), (&log, 0)] {
        fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "forbidden", "--nocapture"]).env(FORBIDDEN, &path);
    if fs::read(&log).is_ok() {
        // Root may open anything.
        child.uid(65534);
    }
    match child.output() {
        Ok(done) => {
            let text = String::from_utf8_lossy(&done.stdout);
            assert!(done.status.success() && text.contains("1 passed"), "{text}");
        }
        Err(e) => println!("skipped: running this test as another user: {e}"),
    }
}

#[test]
fn an_emptied_store_is_not_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("closed");
    let store = Store::create(&path).unwrap();
    store.write(|tx| tx.put("a", b"1")).unwrap();
    let whole = store.stat().unwrap().file_bytes as usize;
    store.close().unwrap();
    for bytes in [vec![], vec![0; 8192], vec![0; whole.min(106_496)]] {
        fs::write(&path, bytes).unwrap();
        contains(&said(&path), &["closed is empty, or", "holds no store", "restore it"]);
        assert!(matches!(Store::open_or_create(&path), Err(Error::Unfinished { .. })));
    }
    // By the one call that says so.
    fs::write(&path, b"").unwrap();
    Store::create(&path).unwrap();
    // Not even by that beside a log.
    let (path, log) = killed(dir.path(), "killed");
    let kept = fs::read(&log).unwrap();
    fs::write(&path, b"").unwrap();
    contains(&said(&path), &["killed-log lies beside a store file that is empty", "move the log"]);
    assert!(matches!(Store::create(&path), Err(Error::WrongLog { .. })));
    assert!(fs::read(&log).unwrap() == kept && fs::read(&path).unwrap().is_empty());
}
