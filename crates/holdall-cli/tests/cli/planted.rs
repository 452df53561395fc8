//! Links, pipes and foreign files planted where the command reads or writes.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::support::{Home, bytes, sound};

fn fifo(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn is_fifo(path: &Path) -> bool {
    fs::symlink_metadata(path).unwrap().file_type().is_fifo()
}

/// A store of one object as a kill leaves it, and its log.
pub fn killed(home: &Home, name: &str) {
    let path = home.path("work");
    let store = holdall::Store::create(&path).unwrap();
    store.write(|tx| tx.put("kept", b"durable")).unwrap();
    fs::copy(&path, home.path(name)).unwrap();
    fs::copy(home.path("work-log"), home.path(&format!("{name}-log"))).unwrap();
    store.close().unwrap();
    fs::remove_file(path).unwrap();
}

#[test]
fn a_log_whose_store_was_moved_is_left_alone() {
    let home = Home::new();
    killed(&home, "s");
    let log = fs::read(home.path("s-log")).unwrap();
    fs::rename(home.path("s"), home.path("s.old")).unwrap();
    let says = "s-log is the log of another store: move it away, or if it belongs to a store \
                that was moved, put it back beside that store";
    home.file("in/file", "x");
    home.fails(&["create", "s"], 1, says);
    home.fails(&["put", "s", "x", "in/file"], 1, says);
    home.fails(&["import", "s", "in"], 1, says);
    assert!(!home.path("s").exists());
    assert!(fs::read(home.path("s-log")).unwrap() == log);
    fs::rename(home.path("s.old"), home.path("s")).unwrap();
    assert_eq!(home.ok(&["get", "s", "kept"]), b"durable");
    sound(&home, "s");
}

#[test]
fn a_file_of_the_user_in_the_logs_place_is_left_alone() {
    let home = Home::new();
    let file = home.file("in", "x");
    home.file("s-log", "my notes");
    let says = "s-log is not a log of this store: move it away";
    home.fails(&["create", "s"], 1, says);
    fs::remove_file(home.path("s-log")).unwrap();
    home.ok(&["put", "s", "a", "in"]);
    home.file("s-log", "my notes");
    assert_eq!(home.ok(&["ls", "s"]), b"a\n");
    sound(&home, "s");
    home.fails(&["put", "s", "b", "in"], 1, says);
    home.fails(&["rm", "s", "a"], 1, says);
    assert_eq!(fs::read(home.path("s-log")).unwrap(), b"my notes");
    assert_eq!(fs::read(file).unwrap(), b"x");
}

#[test]
fn a_link_or_pipe_in_the_logs_place_is_not_followed_nor_waited_for() {
    let home = Home::new();
    home.file("in", "x");
    home.ok(&["put", "s", "a", "in"]);
    killed(&home, "needs-log");
    let victim = home.file("victim", "untouched");
    let empty = home.file("empty", "");
    let plants: [&dyn Fn(&Path); 4] = [
        &|at| symlink(&victim, at).unwrap(),
        &|at| symlink(&empty, at).unwrap(),
        &|at| symlink(home.path("nowhere"), at).unwrap(),
        &fifo,
    ];
    for plant in plants {
        for name in ["s", "new", "needs-log"] {
            let log = home.path(&format!("{name}-log"));
            let _ = fs::remove_file(&log);
            plant(&log);
            let says = format!("{name}-log is not a regular file: move it away");
            home.fails(&["put", name, "b", "in"], 1, &says);
            match name {
                "s" => assert_eq!(home.ok(&["ls", name]), b"a\n"),
                "new" => home.fails(&["create", name], 1, &says),
                _ => home.fails(&["ls", name], 1, &says),
            }
            assert!(!fs::symlink_metadata(&log).unwrap().is_file(), "{name}-log is as it was");
        }
    }
    assert!(!home.path("nowhere").exists() && !home.path("new").exists());
    assert_eq!(fs::read(victim).unwrap(), b"untouched");
    assert_eq!(fs::read(empty).unwrap(), b"");
}

#[test]
fn a_store_that_is_a_pipe_is_refused_at_once() {
    let home = Home::new();
    home.file("in", "x");
    fifo(&home.path("pipe"));
    symlink(home.path("pipe"), home.path("link")).unwrap();
    for name in ["pipe", "link"] {
        let says = format!("{name} is not a Holdall store: it is not a regular file");
        home.fails(&["ls", name], 1, &says);
        home.fails(&["put", name, "a", "in"], 1, &says);
        home.fails(&["create", name], 1, "already exists");
        home.fails(&["inspect", name, "log"], 1, &says);
    }
    assert!(is_fifo(&home.path("pipe")));
}

#[test]
fn a_link_to_a_store_leads_to_it_and_its_log() {
    let home = Home::new();
    home.file("in", "x");
    fs::create_dir(home.path("dir")).unwrap();
    killed(&home, "dir/s");
    symlink("dir/s", home.path("alias")).unwrap();
    assert_eq!(home.ok(&["get", "alias", "kept"]), b"durable");
    home.ok(&["put", "alias", "b", "in"]);
    assert!(!home.path("alias-log").exists() && !home.path("dir/s-log").exists());
    assert_eq!(home.ok(&["ls", "dir/s"]), b"b\nkept\n");
}

#[test]
fn an_older_copy_beside_a_newer_log_is_named() {
    let home = Home::new();
    let path = home.path("s");
    let options = holdall::Options::default();
    let store = options.create(&path).unwrap();
    store.write(|tx| tx.put("kept", b"x")).unwrap();
    store.close().unwrap();
    fs::copy(&path, home.path("backup")).unwrap();
    let store = options.open(&path).unwrap();
    store.write(|tx| tx.put("later", b"y")).unwrap();
    fs::copy(home.path("s-log"), home.path("left")).unwrap();
    store.close().unwrap();
    fs::copy(home.path("left"), home.path("s-log")).unwrap();
    fs::copy(home.path("backup"), &path).unwrap();
    let says = "s-log is newer than the store: the store file is an older copy: put back the \
                store file that the log belongs to, or, to go on from the older copy, move the \
                log away";
    for args in [&["ls", "s"][..], &["verify", "s"], &["rm", "s", "kept"]] {
        home.fails(args, 1, says);
    }
    fs::rename(home.path("s-log"), home.path("away")).unwrap();
    assert_eq!(home.ok(&["ls", "s"]), b"kept\n");
    home.ok(&["rm", "s", "kept"]);
}

#[test]
fn export_follows_nothing_planted_in_its_tree() {
    let home = Home::new();
    home.file("tree/a/b/one", "1");
    home.file("tree/a/b/two", "2");
    home.file("tree/c", "3");
    home.ok(&["import", "s", "tree"]);
    let elsewhere = home.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let untouched = home.file("elsewhere/one", "untouched");
    home.ok(&["export", "s", "out"]);
    // Planted between two runs: a directory on the way, and files.
    fs::rename(home.path("out/a/b"), home.path("out/a/before")).unwrap();
    symlink(&elsewhere, home.path("out/a/b")).unwrap();
    fs::remove_file(home.path("out/c")).unwrap();
    symlink(&untouched, home.path("out/c")).unwrap();
    let run = home.run(&["export", "s", "out"]);
    assert_eq!(run.code, 1);
    let says = "out/a/b is a link where a directory is needed\n";
    assert_eq!(run.err.matches(says).count(), 2, "{}", run.err);
    assert!(fs::symlink_metadata(home.path("out/c")).unwrap().is_file());
    fs::remove_file(home.path("out/a/b")).unwrap();
    fifo(&home.path("out/a/b"));
    let run = home.run(&["export", "s", "out"]);
    assert!(run.err.contains("out/a/b is a file where a directory is needed"), "{}", run.err);
    // A pipe in a file's place is replaced, not written to.
    fs::remove_file(home.path("out/a/b")).unwrap();
    fifo(&home.path("out/a/b/one"));
    home.ok(&["export", "s", "out"]);
    assert_eq!(fs::read(home.path("out/a/b/one")).unwrap(), b"1");
    assert_eq!(fs::read(&untouched).unwrap(), b"untouched");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1);
    // The directory itself may be a link: it was named by the user.
    symlink(home.path("out"), home.path("alias")).unwrap();
    home.ok(&["export", "s", "alias"]);
}

#[test]
fn get_follows_a_link_and_replaces_its_file() {
    let home = Home::new();
    home.file("in", "new");
    home.ok(&["put", "s", "a", "in"]);
    let file = home.file("dir/file", "old");
    symlink("dir/file", home.path("link")).unwrap();
    home.ok(&["get", "s", "a", "-o", "link"]);
    assert_eq!(fs::read(file).unwrap(), b"new");
    assert!(home.path("link").is_symlink());
    assert_eq!(fs::read_dir(home.path("dir")).unwrap().count(), 1);
}

#[test]
fn holes_of_objects_are_holes_of_files() {
    let home = Home::new();
    let data = bytes(7, 300_000);
    let file = home.file("in", &data);
    home.ok(&["put", "s", "sparse", "in"]);
    // A hole behind it, then data, then a hole at the end; and one below what fits in memory.
    for (name, hole) in [("sparse", 64 << 20), ("short", 1 << 20)] {
        home.ok(&["put", "s", name, "in"]);
        home.ok(&["truncate", "s", name, &(data.len() + hole).to_string()]);
        home.ok(&["append", "s", name, "in"]);
        home.ok(&["truncate", "s", name, &(2 * (data.len() + hole)).to_string()]);
    }
    home.ok(&["export", "s", "out"]);
    home.ok(&["get", "s", "sparse", "-o", "got"]);
    home.ok(&["get", "s", "sparse", "--range", "100:", "-o", "part"]);
    let whole = home.ok(&["get", "s", "sparse"]);
    assert_eq!(whole.len(), 2 * (data.len() + (64 << 20)));
    let second = data.len() + (64 << 20);
    assert!(whole[..data.len()] == data && whole[second..][..data.len()] == data);
    assert_eq!(
        whole.iter().filter(|b| **b != 0).count(),
        2 * data.iter().filter(|b| **b != 0).count()
    );
    assert!(fs::read(home.path("out/short")).unwrap() == home.ok(&["get", "s", "short"]));
    for (name, from) in [("out/sparse", 0), ("got", 0), ("part", 100)] {
        assert!(fs::read(home.path(name)).unwrap() == whole[from..], "{name}");
    }
    for name in ["out/sparse", "out/short", "got", "part"] {
        let blocks = fs::metadata(home.path(name)).unwrap().blocks() * 512;
        assert!(blocks < 2 << 20, "{name} takes {blocks} bytes");
    }
    assert_eq!(fs::metadata(file).unwrap().len(), 300_000);
}

#[test]
fn an_object_larger_than_any_disk_is_refused_or_made_at_once() {
    let home = Home::new();
    home.file("in", bytes(8, 300_000));
    home.ok(&["put", "s", "huge", "in"]);
    home.ok(&["truncate", "s", "huge", &(1_u64 << 61).to_string()]);
    let run = home.run(&["get", "s", "huge", "-o", "out"]);
    // The file system decides whether it has files of that length.
    if run.code != 0 {
        run.failed(6, "the file system allows no larger file");
        assert!(!home.path("out").exists());
    }
}
