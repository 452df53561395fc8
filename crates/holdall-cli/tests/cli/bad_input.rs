//! What users get wrong, and what the world does to them: code, one line, no panic.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Command;

use holdall_core::checksum::crc;
use holdall_core::superblock::{SLOT_AT, SLOT_BYTES};

use crate::support::{Home, Run, bytes, sound};

fn with_object() -> Home {
    let home = Home::new();
    home.file("in", bytes(1, 200_000));
    home.ok(&["put", "s", "a", "in"]);
    home
}

/// Every command that opens a store, on `store`.
pub fn on_each(store: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["get", store, "a"],
        vec!["put", store, "a", "in"],
        vec!["rm", store, "a"],
        vec!["mv", store, "a", "b"],
        vec!["cp", store, "a", "c"],
        vec!["insert", store, "a", "in", "--at", "0"],
        vec!["delete-range", store, "a", "--range", "0:1"],
        vec!["replace", store, "a", "in", "--at", "0"],
        vec!["append", store, "a", "in"],
        vec!["truncate", store, "a", "1"],
        vec!["ls", store],
        vec!["stat", store],
        vec!["stat", store, "a"],
        vec!["frag", store],
        vec!["defrag", store],
        vec!["compact", store],
        vec!["checkpoint", store],
        vec!["backup", store, "backed-up"],
        vec!["verify", store],
        vec!["export", store, "out"],
        vec!["import", store, "tree"],
        vec!["inspect", store, "names"],
    ]
}

#[test]
fn every_command_is_tried() {
    let help = String::from_utf8(with_object().ok(&["--help"])).unwrap();
    let listed = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let named: Vec<&str> = listed.lines().filter_map(|l| l.split_whitespace().next()).collect();
    let tried: Vec<&str> = on_each("s").iter().map(|args| args[0]).collect();
    assert!(named.len() > 10 && named.contains(&"get"), "{named:?}");
    // `create` makes a store, `serve` does not end: both have tests of their own, and so have `copy`,
    // `bucket`, `backups`, `restore` and `salvage`. Two open none.
    let own = [
        "create",
        "copy",
        "bucket",
        "backups",
        "restore",
        "salvage",
        "serve",
        "completions",
        "man",
        "help",
    ];
    let missing: Vec<_> = named.iter().filter(|n| !tried.contains(n) && !own.contains(n)).collect();
    assert!(missing.is_empty(), "on_each lacks {missing:?}");
}

#[test]
fn a_missing_store_or_object() {
    let home = with_object();
    for args in on_each("none") {
        if ["put", "import"].contains(&args[0]) {
            continue;
        }
        home.fails(&args, 3, "not found: there is no store none");
    }
    assert!(!home.path("none").exists());
    home.fails(&["get", "s", "b"], 3, "b");
    home.fails(&["get", "s", "oid:0.0.7.9"], 3, "not found");
    home.fails(&["stat", "s", "b"], 3, "b");
    home.fails(&["inspect", "s", "object", "b"], 3, "b");
}

#[test]
fn a_file_that_is_no_store() {
    let home = Home::new();
    home.file("in", "x");
    home.file("tree/in", "x");
    home.file("text", "just text\n".repeat(10_000));
    home.file("short", "x");
    for store in ["text", "short"] {
        let before = fs::read(home.path(store)).unwrap();
        for args in on_each(store) {
            home.fails(&args, 1, "is not a Holdall store");
        }
        assert!(fs::read(home.path(store)).unwrap() == before, "{store} was changed");
    }
    home.fails(&["create", "text"], 1, "already exists");
}

#[test]
fn a_file_that_holds_nothing_is_made_a_store_by_create_alone() {
    let home = Home::new();
    home.file("in", "x");
    home.file("tree/in", "x");
    // A creation gives the file its length in one step.
    for zeros in [0, 81_920] {
        for args in on_each("s") {
            home.file("s", vec![0; zeros]);
            home.fails(&args, 1, "s is empty or was cut short while it was created");
            assert!(fs::read(home.path("s")).unwrap() == vec![0; zeros]);
        }
        home.ok(&["create", "s"]);
        sound(&home, "s");
        home.fails(&["create", "s"], 1, "already exists");
    }
}

#[test]
fn what_a_terminal_would_act_on_or_hide_is_escaped() {
    let home = Home::new();
    let name = "a\u{9b}31m\u{7f}\u{202e}gpj\u{200b}\u{2066}\u{feff}\u{61c}z";
    home.file(&format!("tree/{name}"), "x");
    home.file("in", "x");
    let hidden = |c: char| {
        c.is_control() && c != '\n' || !c.is_ascii() && !c.is_alphanumeric() && c != '\u{fffd}'
    };
    home.ok(&["import", "s", "tree"]);
    let shown = |args: &[&str]| {
        let run = home.run(args);
        let text = format!("{}{}", run.text(), run.err);
        assert!(!text.chars().any(hidden), "{args:?}: {text:?}");
        text
    };
    let escaped = r"a\xc2\x9b31m\x7f\xe2\x80\xaegpj\xe2\x80\x8b\xe2\x81\xa6\xef\xbb\xbf\xd8\x9cz";
    for args in [&["ls", "s"][..], &["ls", "s", "--long"], &["stat", "s", name]] {
        assert!(shown(args).contains(escaped), "{args:?}");
    }
    let in_json = r"a\u009b31m\u007f\u202egpj\u200b\u2066\ufeff\u061cz";
    for args in [
        &["ls", "s", "--json"][..],
        &["stat", "s", name, "--json"],
        &["put", "s", name, "in", "--json"],
        &["rm", "s", name, "--json"],
    ] {
        assert!(shown(args).contains(in_json), "{args:?}");
    }
    shown(&["get", "s", name]);
    shown(&["get", "s", "in", "--range", name]);
    shown(&["ls", name]);
    shown(&["import", name, "none"]);
    fs::create_dir(home.path("out")).unwrap();
    home.file(&format!("tree/{name}"), "x");
    home.ok(&["import", "s", "tree"]);
    fs::create_dir_all(home.path(&format!("out/{name}"))).unwrap();
    assert!(shown(&["export", "s", "out"]).contains("not exported: a\\xc2\\x9b31m"));
    shown(&["inspect", "s", "names"]);
}

#[test]
fn a_newer_format() {
    let home = with_object();
    let file = File::options().read(true).write(true).open(home.path("s")).unwrap();
    for at in SLOT_AT {
        let mut slot = vec![0; SLOT_BYTES];
        file.read_exact_at(&mut slot, at).unwrap();
        slot[12..16].copy_from_slice(&99u32.to_le_bytes());
        let sum = crc(&slot[12..]);
        slot[8..12].copy_from_slice(&sum.to_le_bytes());
        file.write_all_at(&slot, at).unwrap();
    }
    home.file("tree/in", "x");
    for args in on_each("s") {
        home.fails(&args, 1, "version 99");
    }
    home.fails(&["ls", "s"], 1, "use a newer Holdall");
}

#[test]
fn a_truncated_store() {
    let home = with_object();
    home.file("tree/in", "x");
    let len = fs::metadata(home.path("s")).unwrap().len();
    for part in [1, 2, 3] {
        File::options()
            .write(true)
            .open(home.path("s"))
            .unwrap()
            .set_len(len * (4 - part) / 4)
            .unwrap();
        for args in on_each("s") {
            home.fails(&args, 4, "damaged");
        }
    }
}

#[test]
fn flipped_bytes_are_found() {
    let home = with_object();
    let content = bytes(1, 200_000);
    let store = fs::read(home.path("s")).unwrap();
    let at = store.windows(64).position(|window| window == &content[100_000..100_064]).unwrap();
    let mut bad = store;
    bad[at] ^= 1;
    fs::write(home.path("s"), bad).unwrap();
    home.fails(&["get", "s", "a", "-o", "out"], 4, "damaged");
    assert!(!home.path("out").exists(), "no wrong bytes are left");
    let run = home.run(&["verify", "s", "--json"]);
    run.failed(4, "is damaged");
    let report: serde_json::Value = serde_json::from_slice(&run.out).unwrap();
    assert_eq!(
        (&report["sound"], report["problems"].as_array().unwrap().is_empty()),
        (&false.into(), false)
    );
    let run = home.run(&["export", "s", "dir"]);
    assert_eq!(run.code, 4);
    assert!(run.err.contains("not exported: a: damaged"), "{}", run.err);
    assert_eq!(fs::read_dir(home.path("dir")).unwrap().count(), 0);
}

#[test]
fn names_too_long() {
    let home = with_object();
    let (fits, long) = ("n".repeat(1024), "n".repeat(1025));
    home.ok(&["put", "s", &fits, "in"]);
    home.fails(&["put", "s", &long, "in"], 1, "too long");
    home.fails(&["put", "new", &long, "in"], 1, "too long");
    assert!(!home.path("new").exists());
    home.fails(&["mv", "s", "a", &long], 1, "too long");
    home.fails(&["get", "s", &long], 3, "not found");
}

#[test]
fn a_directory_where_a_file_is_meant() {
    let home = with_object();
    fs::create_dir(home.path("dir")).unwrap();
    home.fails(&["put", "s", "b", "dir"], 1, "dir is a directory");
    home.fails(&["put", "new", "b", "dir"], 1, "dir is a directory");
    assert!(!home.path("new").exists());
    home.fails(&["get", "s", "a", "-o", "dir"], 1, "dir is a directory");
    home.fails(&["import", "s", "in"], 1, "in is not a directory");
    home.fails(&["import", "s", "none"], 1, "none");
    home.fails(&["export", "s", "in"], 1, "in");
    home.file("tree/in", "x");
    for args in on_each("dir") {
        home.fails(&args, 1, "dir is a directory");
    }
    home.fails(&["create", "dir"], 1, "dir is a directory");
    home.fails(&["put", "s", "b", "none"], 1, "none");
    home.fails(&["get", "s", "a", "-o", "none/out"], 1, "none/out");
    home.fails(&["create", "none/s"], 3, "none/s");
}

#[test]
fn creation_refuses_what_is_there_and_what_cannot_be() {
    let home = with_object();
    home.fails(&["create", "s"], 1, "already exists");
    home.fails(&["create", "t", "--page-size", "5000"], 1, "page size 5000");
    assert!(!home.path("t").exists());
    assert_eq!(home.run(&["create", "t", "--page-size", "x"]).code, 2);
    assert_eq!(home.ok(&["create", "t"]), b"");
    assert_eq!(home.json(&["stat", "t", "--json"])["objects"], 0);
}

#[test]
fn usage() {
    let home = Home::new();
    for args in [[].as_slice(), &["unknown"], &["get", "s"], &["rm", "s"], &["ls", "s", "--no"]] {
        let run = home.run(args);
        assert_eq!(run.code, 2, "{args:?}");
    }
    assert_eq!(home.run(&["--help"]).code, 0);
    assert_eq!(home.run(&["--version"]).code, 0);
}

/// Runs the command as a user who may not do everything, where the test itself may.
#[test]
fn no_permission() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    let home = with_object();
    let mode = |path: &str, mode| {
        fs::set_permissions(home.path(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    home.file("tree/secret", "x");
    home.file("tree/seen", "x");
    mode("tree/secret", 0o000);
    let is_root = fs::metadata(home.path("s")).unwrap().uid() == 0;
    // The binary may lie where another user cannot reach it.
    let binary = home.path("holdall");
    // Copied by another process: a child of another test could inherit our open copy, and a
    // file open for writing cannot be run.
    let copied = Command::new("cp").arg(crate::support::HOLDALL).arg(&binary).status();
    assert!(copied.unwrap().success());
    mode("holdall", 0o755);
    mode("", 0o755);
    fs::create_dir(home.path("open")).unwrap();
    mode("open", 0o777);
    let run = |args: &[&str]| {
        let mut command = Command::new(&binary);
        command.args(args).current_dir(home.path(""));
        if is_root {
            command.uid(65534).gid(65534);
        }
        Run::of(command.output().unwrap())
    };
    let partly = run(&["import", "open/new", "tree"]);
    assert_eq!(partly.code, 1);
    assert!(partly.err.contains("not imported: secret: "), "{}", partly.err);
    assert!(partly.text().contains("imported 1 files") && partly.text().contains("1 failed"));
    run(&["put", "open/new", "b", "tree/secret"]).failed(1, "tree/secret");

    mode("s", 0o000);
    for args in on_each("s") {
        run(&args).failed(1, "permission");
    }
    mode("s", 0o444);
    assert_eq!(run(&["get", "s", "a"]).out.len(), 200_000, "reading needs no right to write");
    run(&["rm", "s", "a"]).failed(1, "permission");
    mode("", 0o555);
    run(&["create", "other"]).failed(1, "permission");
    run(&["get", "s", "a", "-o", "out"]).failed(1, "permission");
    run(&["export", "s", "exported"]).failed(1, "permission");
    mode("", 0o755);
}
