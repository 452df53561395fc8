//! Names that a file system takes for one, and modes and times that it cannot set.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Home, Run, files};

/// A mounted file system in a file, unmounted at the end; the device that stands for the file.
struct Mounted(PathBuf, Option<String>);

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

impl Mounted {
    /// `None`, with a line, where that is not possible.
    fn new(home: &Home, mkfs: &[&str]) -> Option<Self> {
        let (image, path) = (home.path("image"), home.path("disk"));
        File::create(&image).unwrap().set_len(64 << 20).unwrap();
        fs::create_dir(&path).unwrap();
        let made = mkfs
            .split_first()
            .is_some_and(|(program, args)| succeeds(Command::new(program).args(args).arg(&image)));
        if !made || !succeeds(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&path)) {
            println!("skipped: making and mounting {mkfs:?}");
            return None;
        }
        Some(Self(path, None))
    }

    /// exFAT in a program of its own, which gives each name a number of its own.
    fn exfat(home: &Home) -> Option<Self> {
        let (image, path) = (home.path("image"), home.path("disk"));
        File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let found = Command::new("losetup").args(["-f", "--show"]).arg(image).output().ok()?;
        let device = String::from_utf8(found.stdout).ok()?.trim().to_owned();
        let mounted = Self(path.clone(), Some(device.clone()));
        if succeeds(Command::new("mkfs.exfat").arg(&device))
            && succeeds(Command::new("mount.exfat-fuse").arg(&device).arg(&path))
        {
            return Some(mounted);
        }
        println!("skipped: making and mounting exFAT");
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
        if let Some(device) = &self.1 {
            let _ = Command::new("losetup").args(["-d", device]).output();
        }
    }
}

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
    for name in ["d/private", "d/"] {
        let says = format!("exported all the same: {name}: its mode cannot be set: ");
        assert!(run.err.contains(&says), "{}", run.err);
    }
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
