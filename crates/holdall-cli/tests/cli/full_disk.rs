//! A disk without room: the command says so with its own code, and the store stays sound.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use crate::support::{Home, Run, bytes, files, sound};

/// A file system of a few MB, unmounted at the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None`, with a message, if this user may not mount.
    fn mount(home: &Home, below: &str, megabytes: u32) -> Option<Self> {
        let path = home.path(below);
        fs::create_dir(&path).unwrap();
        let size = format!("size={megabytes}m");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "holdall-test"])
            .arg(&path)
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            eprintln!("SKIPPED: mounting a tmpfs is not permitted here");
        }
        mounted.then_some(Self(path))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn output_to_a_full_device() {
    let home = Home::new();
    home.file("in", bytes(1, 100_000));
    home.ok(&["put", "s", "a", "in"]);
    for args in [["get", "s", "a"].as_slice(), &["ls", "s"], &["ls", "s", "--json"], &["stat", "s"]]
    {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = home.command(args).stdout(full).output().unwrap();
        Run::of(output).failed(6, "standard output");
    }
    home.fails(&["get", "s", "a", "-o", "/dev/full"], 6, "/dev/full");
}

#[test]
fn a_store_on_a_full_disk() {
    let home = Home::new();
    let Some(_disk) = SmallDisk::mount(&home, "disk", 16) else { return };
    home.file("small", bytes(1, 1_000_000));
    home.file("large", bytes(2, 32 << 20));
    home.ok(&["put", "disk/s", "kept", "small"]);
    home.fails(&["put", "disk/s", "large", "large"], 6, "no space");
    sound(&home, "disk/s");
    assert_eq!(home.ok(&["ls", "disk/s"]), b"kept\n");
    // The store stays usable.
    home.ok(&["put", "disk/s", "again", "small"]);
    home.ok(&["rm", "disk/s", "kept"]);
    assert!(home.ok(&["get", "disk/s", "again"]) == bytes(1, 1_000_000));
    home.fails(&["get", "disk/s", "again", "-o", "disk/s/x"], 1, "disk/s/x");
    sound(&home, "disk/s");
}

#[test]
fn a_backup_or_restore_on_a_full_disk_leaves_what_was_there() {
    let home = Home::new();
    let Some(disk) = SmallDisk::mount(&home, "disk", 16) else { return };
    let place = format!("file://{}/place", disk.0.display());
    home.file("small", bytes(1, 1_000_000));
    home.file("large", bytes(2, 32 << 20));
    home.ok(&["put", "s", "small", "small"]);
    home.ok(&["backup", "s", "disk/whole"]);
    home.ok(&["backup", "s", &place]);
    home.ok(&["put", "s", "large", "large"]);
    let there = files(&disk.0);
    home.fails(&["backup", "s", "disk/next"], 6, "no space");
    home.fails(&["backup", "s", "disk/more", "--base", "disk/whole"], 6, "no space");
    home.ok(&["backup", "s", "elsewhere"]);
    home.fails(&["restore", "disk/again", "elsewhere"], 6, "no space");
    assert!(files(&disk.0) == there);
    home.fails(&["backup", "s", &place, "--base", &place], 6, "no space");
    home.ok(&["restore", "r0", "disk/whole"]);
    home.ok(&["restore", "r1", &place]);
    assert!(home.ok(&["get", "r0", "small"]) == home.ok(&["get", "r1", "small"]));
}

#[test]
fn objects_of_a_closed_store_can_be_deleted_on_a_disk_without_a_free_byte() {
    let home = Home::new();
    let Some(_disk) = SmallDisk::mount(&home, "disk", 16) else { return };
    home.file("small", bytes(1, 1_000_000));
    for name in ["a", "b", "c"] {
        home.ok(&["put", "disk/s", name, "small"]);
    }
    let fill = |n: u32| {
        let file = home.path(&format!("disk/other{n}"));
        fs::write(&file, bytes(3, 20_000_000)).unwrap_err();
        let rest = File::options().append(true).open(file).unwrap();
        while std::io::Write::write_all(&mut &rest, &[7]).is_ok() {}
    };
    fill(1);
    home.ok(&["rm", "disk/s", "a"]);
    // Again and again, whatever others do with the room.
    fill(2);
    home.ok(&["rm", "disk/s", "b"]);
    assert_eq!(home.ok(&["ls", "disk/s"]), b"c\n");
    sound(&home, "disk/s");
}

#[test]
fn an_import_that_fills_the_disk() {
    let home = Home::new();
    let Some(_disk) = SmallDisk::mount(&home, "disk", 48) else { return };
    for at in 0..60u64 {
        home.file(&format!("tree/f{at:02}"), bytes(at, 1_000_000));
    }
    let run = home.run(&["import", "disk/s", "tree"]);
    run.failed(6, "no space");
    assert!(run.text().starts_with("imported "), "{}", run.text());
    sound(&home, "disk/s");
    let listed = String::from_utf8(home.ok(&["ls", "disk/s"])).unwrap();
    assert!(run.text().contains(&format!("imported {} files", listed.lines().count())));
}

#[test]
fn a_large_file_that_does_not_fit_does_not_keep_the_others_out() {
    for input in ["fresh", "there"] {
        let home = Home::new();
        let Some(_disk) = SmallDisk::mount(&home, "disk", 16) else { return };
        home.file("tree/a-large", bytes(1, 40_000_000));
        for at in 0..5u64 {
            home.file(&format!("tree/b{at}"), bytes(at, 300_000));
        }
        home.file("tree/c-large", bytes(7, 20_000_000));
        home.file("tree/d", bytes(8, 300_000));
        if input == "there" {
            home.ok(&["put", "disk/s", "kept", "tree/d"]);
        }
        let run = home.run(&["import", "disk/s", "tree", "--json"]);
        assert_eq!(run.code, 6, "{}", run.err);
        let told: serde_json::Value = serde_json::from_str(run.text()).unwrap();
        assert_eq!((&told["files"], &told["failed"]), (&6.into(), &2.into()), "{}", run.err);
        for name in ["a-large", "c-large"] {
            assert!(run.err.contains(&format!("not imported: {name}: no space")), "{}", run.err);
        }
        for at in 0..5u64 {
            assert!(home.ok(&["get", "disk/s", &format!("b{at}")]) == bytes(at, 300_000));
        }
        assert!(home.ok(&["get", "disk/s", "d"]) == bytes(8, 300_000));
        sound(&home, "disk/s");
        // One object alone: the same, and the store goes on.
        home.fails(&["put", "disk/s", "x", "tree/a-large"], 6, "no space: the disk has no room");
        home.ok(&["put", "disk/s", "e", "tree/d"]);
    }
}

#[test]
fn files_written_to_a_full_disk() {
    let home = Home::new();
    let Some(_disk) = SmallDisk::mount(&home, "disk", 2) else { return };
    home.file("in", bytes(2, 8 << 20));
    home.ok(&["put", "s", "large", "in"]);
    home.fails(&["get", "s", "large", "-o", "disk/out"], 6, "disk/out");
    let run = home.run(&["export", "s", "disk/dir"]);
    run.failed(6, "No space");
    assert_eq!(fs::read_dir(home.path("disk/dir")).unwrap().count(), 0, "no part is left");
    assert!(!home.path("disk/out").exists());
}
