//! A store is not written over by its own command, nor put into itself, by whatever name.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Stdio;

use crate::planted::killed;
use crate::support::{Home, Run, bytes, sound};

/// A store with objects that have the names of its files.
fn named_alike() -> Home {
    let home = Home::new();
    home.file("in", bytes(1, 300_000));
    for name in ["big", "s", "s-log", "dir/s", "s-log/below"] {
        home.ok(&["put", "s", name, "in"]);
    }
    fs::create_dir(home.path("dir")).unwrap();
    fs::hard_link(home.path("s"), home.path("hard")).unwrap();
    symlink("s", home.path("soft")).unwrap();
    symlink("../soft", home.path("dir/s")).unwrap();
    home
}

/// What the store is, which nothing here changes.
fn state(home: &Home) -> (u64, Vec<u8>) {
    (fs::metadata(home.path("s")).unwrap().ino(), fs::read(home.path("s")).unwrap())
}

/// Runs with the file `name` opened by `options` as standard output.
fn with_output(home: &Home, args: &[&str], options: &OpenOptions, name: &str) -> Run {
    let out = options.open(home.path(name)).unwrap();
    Run::of(home.command(args).stdout(out).stderr(Stdio::piped()).output().unwrap())
}

#[test]
fn outputs_by_any_name_are_refused() {
    let home = named_alike();
    let before = state(&home);
    let full = home.path("s");
    for name in ["s", "./s", "hard", "soft", "dir/s", "dir/../s", full.to_str().unwrap()] {
        let says = format!("{name} belongs to the store: give another file");
        home.fails(&["get", "s", "big", "-o", name], 1, &says);
        home.fails(&["get", "soft", "big", "-o", name], 1, &says);
        home.fails(&["frag", "s", "--svg", name], 1, &says);
        home.fails(&["frag", "s", "--html", name], 1, &says);
    }
    symlink("s-log", home.path("to-log")).unwrap();
    for name in ["s-log", "dir/../s-log", "to-log"] {
        let says = "s-log is the place of the store's log: give another file";
        home.fails(&["get", "s", "big", "-o", name], 1, says);
        home.fails(&["get", "soft", "big", "-o", name], 1, says);
        home.fails(&["frag", "s", "--html", name], 1, says);
    }
    for name in ["s-control", "dir/../s-control"] {
        let says = "s-control is the place of the store's control socket: give another file";
        home.fails(&["get", "s", "big", "-o", name], 1, says);
        home.fails(&["frag", "soft", "--html", name], 1, says);
    }
    assert!(fs::symlink_metadata(home.path("s-log")).is_err());
    assert!(fs::symlink_metadata(home.path("s-control")).is_err());
    assert!(state(&home) == before);
    home.ok(&["get", "s", "big", "-o", "soft-log"]);
    home.ok(&["get", "s", "big", "-o", "dir/s-log"]);
    home.ok(&["rm", "s", "big"]);
}

#[test]
fn export_leaves_the_store_and_the_place_of_its_log_alone() {
    let home = named_alike();
    let before = state(&home);
    for store in ["s", "soft"] {
        let run = home.run(&["export", store, "."]);
        assert_eq!(run.code, 1);
        for line in [
            "not exported: s: a file of the store has that name: export into another directory\n",
            "not exported: dir/s: a file of the store has that name: export into",
            "not exported: s-log: the store's log belongs there: export into",
            "not exported: s-log/below: the store's log belongs there: export into",
        ] {
            assert!(run.err.contains(line), "{line}: {}", run.err);
        }
        assert!(run.text().contains("exported 1 files") && run.text().contains("4 failed"));
        assert!(fs::read(home.path("big")).unwrap() == bytes(1, 300_000), "the others are");
    }
    for dir in ["s-log", "s-log/sub", "./s-log"] {
        home.fails(&["export", "s", dir], 1, "s-log is the place of the store's log");
    }
    assert!(fs::symlink_metadata(home.path("s-log")).is_err());
    assert!(state(&home) == before);
    assert!(home.path("dir/s").is_symlink());
    let run = home.run(&["export", "s", "elsewhere"]);
    assert!(run.err.matches("not exported").count() == 1, "{}", run.err);
    assert!(fs::read(home.path("elsewhere/s")).unwrap() == bytes(1, 300_000));
}

#[test]
fn inputs_by_any_name_are_refused() {
    let home = named_alike();
    let before = state(&home);
    for name in ["s", "hard", "soft", "dir/s", "/dev/stdin", "/dev/fd/0", "-"] {
        for args in [
            &["put", "s", "self", name][..],
            &["append", "s", "big", name],
            &["insert", "s", "big", name, "--at", "0"],
            &["replace", "s", "big", name, "--at", "0"],
        ] {
            let mut command = home.command(args);
            command.stdin(File::open(home.path("hard")).unwrap());
            Run::of(command.output().unwrap()).failed(1, " belongs to the store: give another");
        }
    }
    assert!(state(&home) == before);
    home.ok(&["put", "other", "copy", "s"]);
    assert!(home.ok(&["get", "other", "copy"]) == before.1, "another store's file is a file");
}

#[test]
fn import_leaves_out_the_stores_files_by_any_name() {
    let home = Home::new();
    home.file("tree/file", "x");
    killed(&home, "tree/s");
    fs::hard_link(home.path("tree/s"), home.path("tree/hard")).unwrap();
    fs::hard_link(home.path("tree/s-log"), home.path("tree/hard-log")).unwrap();
    symlink("s", home.path("tree/soft")).unwrap();
    let run = home.run(&["import", "tree/s", "tree", "--verbose"]);
    assert_eq!(run.code, 0, "{}", run.err);
    for name in ["s", "s-log", "hard"] {
        let line = format!("skipped: {name}: a file of the store itself\n");
        assert!(run.err.contains(&line), "{}", run.err);
    }
    // Recovery may have begun another log; the old one is then a file like others.
    let listed = home.ok(&["ls", "tree/s"]);
    let names = String::from_utf8(listed).unwrap();
    assert!(names.contains("file\n") && names.contains("kept\n"), "{names}");
    assert!(!names.lines().any(|name| ["s", "s-log", "hard", "soft"].contains(&name)), "{names}");
    fs::remove_file(home.path("tree/hard-log")).unwrap();
    let size = fs::metadata(home.path("tree/s")).unwrap().len();
    for _ in 0..2 {
        let json = home.json(&["import", "tree/s", "tree", "--json"]);
        assert_eq!((&json["skipped_own"], &json["skipped_links"]), (&2.into(), &1.into()));
    }
    assert_eq!(fs::metadata(home.path("tree/s")).unwrap().len(), size);
    let text = String::from_utf8(home.ok(&["import", "tree/s", "tree"])).unwrap();
    assert!(text.contains("1 special files, 2 files of the store itself; 0 failed"), "{text}");
    sound(&home, "tree/s");
}

#[test]
fn the_log_of_a_crashed_store_is_neither_output_nor_input() {
    let home = Home::new();
    killed(&home, "s");
    let log = fs::read(home.path("s-log")).unwrap();
    fs::hard_link(home.path("s-log"), home.path("hard")).unwrap();
    symlink("s-log", home.path("soft")).unwrap();
    for name in ["s-log", "hard", "soft"] {
        home.fails(&["get", "s", "kept", "-o", name], 1, "store");
        home.fails(&["put", "s", "log", name], 1, &format!("{name} belongs to the store"));
    }
    let run = with_output(&home, &["ls", "s"], File::options().append(true), "hard");
    run.failed(1, "standard output is a file of the store s: send it elsewhere");
    assert!(fs::read(home.path("s-log")).unwrap() == log);
    assert_eq!(home.ok(&["get", "s", "kept"]), b"durable");
}

#[test]
fn streams_into_the_store_are_refused() {
    let home = named_alike();
    home.file("tree/file", "x");
    let before = state(&home);
    let mut lists = crate::bad_input::on_each("s");
    lists.extend([vec!["create", "s"], vec!["get", "s", "big", "-o", "/dev/stdout"]]);
    lists.push(vec!["put", "s", "x", "missing"]);
    #[cfg(feature = "serve")]
    lists.push(vec!["serve", "s"]);
    for args in lists {
        for options in [File::options().append(true), File::options().write(true)] {
            let run = with_output(&home, &args, options, "hard");
            run.failed(1, "standard output is a file of the store s: send it elsewhere");
            let out = options.open(home.path("s")).unwrap();
            let run = home.command(&args).stdout(Stdio::null()).stderr(out).status().unwrap();
            assert_eq!(run.code(), Some(1), "{args:?}");
        }
        assert!(state(&home) == before, "{args:?}");
    }
    // The place of a log that is not there is one too, as it is for a store to be made.
    for (args, log) in [(["ls", "s"], "s-log"), (["create", "new"], "new-log")] {
        let made = File::options().create(true).append(true).clone();
        with_output(&home, &args, &made, log).failed(1, "standard output is a file of the store");
        fs::remove_file(home.path(log)).unwrap();
    }
    assert!(!home.path("new").exists());
}
