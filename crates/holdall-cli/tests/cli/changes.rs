//! What an import takes for changed, what it leaves out, and what it removes.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::support::{Home, bytes, sound};

fn set_time(path: &Path, time: SystemTime) {
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// Imports and gives one count.
fn count(home: &Home, args: &[&str], field: &str) -> u64 {
    let args = [&["import", "s", "tree", "--json"], args].concat();
    home.json(&args)[field].as_u64().unwrap()
}

fn names(home: &Home, args: &[&str]) -> Vec<String> {
    let listed = home.ok(&[&["ls", "s"], args].concat());
    String::from_utf8(listed).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_mode_alone_is_a_change() {
    let home = Home::new();
    for (name, len) in [("tree/small", 10), ("tree/large", 6 << 20)] {
        let path = home.file(name, bytes(1, len));
        fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    }
    home.ok(&["import", "s", "tree"]);
    for name in ["small", "large"] {
        fs::set_permissions(home.path("tree").join(name), Permissions::from_mode(0o600)).unwrap();
    }
    assert_eq!(count(&home, &[], "updated"), 2);
    for (name, len) in [("small", 10), ("large", 6 << 20)] {
        let data = home.json(&["stat", "s", name, "--json"]);
        assert_eq!(data["attributes"]["mode"], "600");
        assert!(home.ok(&["get", "s", name]) == bytes(1, len));
    }
    assert_eq!(count(&home, &[], "updated"), 0);
    sound(&home, "s");
}

#[test]
fn a_change_of_the_same_size_and_time_is_noticed() {
    let home = Home::new();
    let old = SystemTime::now() - Duration::from_secs(1_000_000);
    for (name, len) in [("small", 10), ("large", 6 << 20)] {
        let path = home.file(&format!("tree/{name}"), bytes(1, len));
        set_time(&path, old);
        home.ok(&["import", "s", "tree"]);
        // Written at once, and given the old time: a clock that stands still does the same.
        home.file(&format!("tree/{name}"), bytes(2, len));
        set_time(&path, old);
        assert_eq!(count(&home, &[], "replaced"), 1, "{name}");
        assert!(home.ok(&["get", "s", name]) == bytes(2, len));
        // What did not change is not stored anew, however young.
        assert_eq!(count(&home, &[], "files"), 0, "{name}");
    }
    sound(&home, "s");
}

#[test]
fn bytes_are_compared_or_stored_anew_if_asked() {
    let home = Home::new();
    home.file("tree/a", "one");
    home.file("tree/b", bytes(3, 5 << 20));
    home.ok(&["import", "s", "tree"]);
    assert_eq!(count(&home, &["--force"], "replaced"), 2);
    let later = SystemTime::now() + Duration::from_secs(100_000);
    set_time(&home.path("tree/a"), later);
    set_time(&home.path("tree/b"), later);
    // With another time, but the same bytes.
    let compared = home.json(&["import", "s", "tree", "--checksum", "--json"]);
    assert_eq!((&compared["files"], &compared["updated"]), (&0.into(), &2.into()));
    home.file("tree/a", "two");
    assert_eq!(count(&home, &["--checksum"], "replaced"), 1);
    assert_eq!(home.ok(&["get", "s", "a"]), b"two");
    home.run(&["import", "s", "tree", "--force", "--checksum"]).usage();
}

#[test]
fn what_patterns_and_sizes_leave_out() {
    let home = Home::new();
    for name in ["a.o", "src/b.o", "src/c.c", "target/x", "src/target/y", "src/target2"] {
        home.file(&format!("tree/{name}"), name);
    }
    home.file("tree/big", bytes(1, 5000));
    let args =
        ["import", "s", "tree", "--exclude", "*.o", "--exclude", "target/", "--max-size", "4K"];
    let result = home.json(&[&args[..], &["--json"]].concat());
    assert_eq!(names(&home, &[]), ["src/c.c", "src/target2"]);
    assert_eq!((&result["excluded"], &result["skipped_large"]), (&4.into(), &1.into()));
    let run = home.run(&[&args[..], &["--verbose"]].concat());
    assert_eq!(run.code, 0);
    for line in ["big: larger than --max-size", "src/target/: excluded", "a.o: excluded"] {
        assert!(run.err.contains(&format!("skipped: {line}\n")), "{}", run.err);
    }
    let classes =
        ["import", "t", "tree", "--exclude", "[[:alpha:]]*.[[:lower:]]", "--max-size", "1.5kib"];
    assert_eq!(home.json(&[&classes[..], &["--json"]].concat())["files"], 3);
    assert_eq!(home.ok(&["ls", "t"]), b"src/target/y\nsrc/target2\ntarget/x\n");
    for bad in ["", "a//b", "[a", "../x", "[:digit:]*", "[[:digit]]", "[a/b]"] {
        home.fails(&["import", "new", "tree", "--exclude", bad], 2, "pattern");
    }
    assert!(!home.path("new").exists());
}

#[test]
fn delete_removes_what_is_gone_and_nothing_else() {
    let home = Home::new();
    for name in ["a", "b/c", "b/d", "b-e", "f", "kept.log", "old/kept.log", "old/x"] {
        home.file(&format!("tree/{name}"), name);
    }
    home.ok(&["import", "s", "tree", "--prefix", "in/"]);
    for name in ["outside", "in", "in/a//b", "in/a/b", "io"] {
        home.feed(&["put", "s", name], b"x");
    }
    fs::remove_file(home.path("tree/a")).unwrap();
    fs::remove_file(home.path("tree/b/c")).unwrap();
    fs::remove_dir_all(home.path("tree/old")).unwrap();
    fs::remove_file(home.path("tree/f")).unwrap();
    home.file("tree/f/now a directory", "x");
    fs::remove_file(home.path("tree/b-e")).unwrap();
    std::os::unix::fs::symlink("b", home.path("tree/b-e")).unwrap();
    let args = ["--prefix", "in/", "--exclude", "*.log", "--delete"];
    assert_eq!(count(&home, &args, "deleted"), 6);
    let left = [
        "in",
        "in/b-e",
        "in/b/d",
        "in/f/now a directory",
        "in/kept.log",
        "in/old/kept.log",
        "io",
        "outside",
    ];
    assert_eq!(names(&home, &[]), left);
    assert_eq!(count(&home, &args, "deleted"), 0);
    sound(&home, "s");
}

#[test]
fn delete_removes_nothing_if_a_directory_cannot_be_read() {
    use std::os::unix::process::CommandExt;
    let home = Home::new();
    for name in ["a", "shut/b", "z"] {
        home.file(&format!("tree/{name}"), name);
    }
    home.ok(&["import", "s", "tree"]);
    fs::remove_file(home.path("tree/a")).unwrap();
    fs::set_permissions(home.path("tree/shut"), Permissions::from_mode(0o0)).unwrap();
    fs::set_permissions(home.path(""), Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(home.path("s"), Permissions::from_mode(0o666)).unwrap();
    let mut command = home.command(&["import", "s", "tree", "--delete", "--json"]);
    if fs::read_dir(home.path("tree/shut")).is_ok() {
        // Root reads everything; somebody else must be able to run the program.
        fs::copy(crate::support::HOLDALL, home.path("holdall")).unwrap();
        command = std::process::Command::new(home.path("holdall"));
        command.args(["import", "s", "tree", "--delete", "--json"]).uid(2345).gid(2345);
        command.current_dir(home.path(""));
    }
    let run = crate::support::Run::of(command.output().unwrap());
    fs::set_permissions(home.path("tree/shut"), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(run.err.contains("not imported: shut/: Permission denied"), "{}", run.err);
    assert!(run.err.contains("no more objects are deleted"), "{}", run.err);
    let result: Value = serde_json::from_slice(&run.out).unwrap();
    assert_eq!(result["deleted"], 0);
    assert_eq!(names(&home, &[]), ["a", "shut/b", "z"]);
    assert_eq!(count(&home, &["--delete"], "deleted"), 1);
    assert_eq!(names(&home, &[]), ["shut/b", "z"]);
}
