//! Names that a file system takes for one, and modes and times that it cannot set.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::disks::{Mounted, succeeds};
use crate::support::{Home, Run, files};

/// Directories in which capitals do not count, of the kinds that the system has.
fn folding(test: impl Fn(&Home, &str)) {
    let home = Home::new();
    let ext4 = ["mkfs.ext4", "-q", "-F", "-O", "casefold", "-E", "encoding=utf8"];
    if let Some(mounted) = Mounted::new(&home, &ext4) {
        let dir = mounted.0.join("folding");
        fs::create_dir(&dir).unwrap();
        if succeeds(Command::new("chattr").arg("+F").arg(&dir)) {
            test(&home, "disk/folding");
        }
    }
    let home = Home::new();
    if let Some(_mounted) = Mounted::new(&home, &["mkfs.vfat"]) {
        test(&home, "disk");
    }
    let home = Home::new();
    fs::create_dir(home.path("disk")).unwrap();
    if let Some(_mounted) = Mounted::exfat(&home) {
        test(&home, "disk");
    }
}

fn counted(run: &Run) -> (u64, u64) {
    let result: serde_json::Value = serde_json::from_slice(&run.out).unwrap();
    (result["files"].as_u64().unwrap(), result["failed"].as_u64().unwrap())
}

fn content(home: &Home, dir: &str) -> Vec<String> {
    let found = files(&home.path(dir)).into_iter();
    found.map(|(_, bytes)| String::from_utf8(bytes).unwrap()).collect()
}

#[test]
fn two_names_of_one_file_are_both_named() {
    folding(|home, dir| {
        let names = ["Dir/x", "FILE", "File", "dir/x", "dir/y", "file", "other"];
        for name in names {
            home.feed(&["put", "s", name], name.as_bytes());
        }
        // A new directory, the same again, one that the export did not make.
        let new = format!("{dir}/out");
        for (at, out) in [new.as_str(), new.as_str(), dir].into_iter().enumerate() {
            if at > 0 {
                // What was there before is replaced, whatever its spelling.
                let _ = fs::remove_file(home.path(out).join("other"));
                fs::write(home.path(out).join("Other"), "old").unwrap();
            }
            let run = home.run(&["export", "s", out, "--json"]);
            assert_eq!((run.code, counted(&run)), (1, (3, 4)), "{}", run.err);
            for line in [
                "not exported: File: File is the same as FILE in this file system, which was",
                "not exported: file: file is the same as FILE in this file system",
                "not exported: dir/x: dir is the same as Dir in this file system",
                "not exported: dir/y: dir is the same as Dir in this file system",
            ] {
                assert!(run.err.contains(line), "{line}: {}", run.err);
            }
            for (name, text) in [("Dir/x", "Dir/x"), ("FILE", "FILE"), ("other", "other")] {
                assert_eq!(fs::read_to_string(home.path(out).join(name)).unwrap(), text);
            }
        }
        let left = fs::read_dir(home.path(dir)).unwrap().map(|e| e.unwrap().file_name());
        let left: Vec<_> = left.filter(|n| n.to_string_lossy().starts_with(".holdall")).collect();
        assert!(left.is_empty(), "{left:?}");
    });
}

#[test]
fn a_file_where_a_directory_is_needed_is_no_other_spelling() {
    folding(|home, dir| {
        for name in ["a", "a/b", "c/d", "C"] {
            home.feed(&["put", "s", name], name.as_bytes());
        }
        let new = format!("{dir}/out");
        for out in [new.as_str(), new.as_str(), dir] {
            let run = home.run(&["export", "s", out, "--json"]);
            assert_eq!((run.code, counted(&run)), (1, (2, 2)), "{}", run.err);
            assert!(run.err.contains("a is a file where a directory is needed"), "{}", run.err);
            assert!(run.err.contains("c/d: c is the same as C in this file system"), "{}", run.err);
            for name in ["C", "a"] {
                assert_eq!(fs::read_to_string(home.path(out).join(name)).unwrap(), name);
            }
        }
    });
}

#[test]
fn two_spellings_of_one_letter_are_both_named() {
    folding(|home, dir| {
        let (apart, whole) = ("e\u{301}", "\u{e9}");
        fs::write(home.path(dir).join(apart), "").unwrap();
        if !home.path(dir).join(whole).exists() {
            println!("skipped: a file system that normalises names");
            return;
        }
        for name in [apart, whole] {
            home.feed(&["put", "s", name], name.as_bytes());
        }
        for out in [format!("{dir}/new"), dir.to_owned()] {
            let run = home.run(&["export", "s", &out, "--json"]);
            assert_eq!((run.code, counted(&run)), (1, (1, 1)), "{}", run.err);
            assert!(run.err.contains(&format!("{whole} is the same as {apart} in")), "{}", run.err);
            assert_eq!(fs::read(home.path(&out).join(whole)).unwrap(), apart.as_bytes());
        }
    });
}

#[test]
fn a_mode_that_cannot_be_set_does_not_drop_the_file() {
    let home = Home::new();
    let vfat = Mounted::new(&home, &["mkfs.vfat"]);
    if vfat.is_none() {
        let _ = fs::create_dir(home.path("disk"));
    }
    let Some(_disk) = vfat.or_else(|| Mounted::exfat(&home)) else { return };
    home.file("tree/d/private", "private");
    set_mode(&home.path("tree/d/private"), 0o600);
    set_mode(&home.path("tree/d"), 0o700);
    home.ok(&["import", "s", "tree"]);
    let run = home.run(&["export", "s", "disk/out"]);
    assert_eq!(run.code, 1, "{}", run.err);
    // One line for all of a kind.
    let says = "exported all the same: d/private and 2 more: their modes cannot be set: ";
    assert!(
        run.err.contains(says) && run.err.matches(" cannot be set").count() == 1,
        "{}",
        run.err
    );
    assert!(run.text().contains("exported 1 files, 7 bytes"), "{}", run.text());
    assert!(
        run.text().contains("0 failed; ") && run.text().ends_with(" modes and times not set\n")
    );
    assert_eq!(content(&home, "disk/out"), ["private"]);
    // Without a mode of its own nothing is missing.
    home.feed(&["put", "t", "a"], b"x");
    home.ok(&["export", "t", "disk/out"]);
}

#[test]
fn a_time_that_cannot_be_set_does_not_drop_the_file() {
    let home = Home::new();
    let store = holdall::Store::create(home.path("s")).unwrap();
    let time = (i128::from(i64::MAX) * 4_000_000_000).to_string();
    let attributes = holdall::Attributes::from([("mtime".to_owned(), time.into_bytes())]);
    let options = holdall::PutOptions::with_attributes(attributes);
    store.write(|tx| tx.put_with("a", b"kept", &options).map(drop)).unwrap();
    store.close().unwrap();
    let run = home.run(&["export", "s", "out"]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("exported all the same: a: its time cannot be set"), "{}", run.err);
    assert_eq!(content(&home, "out"), ["kept"]);
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
