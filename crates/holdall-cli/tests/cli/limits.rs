//! Limits of the system that are no full disk: the greatest size of a file, inodes, what a user or
//! a directory allows. Each error names what it is, and nothing half done is left.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use crate::support::{HOLDALL, Home, Run, bytes, shell, sound};

#[test]
fn the_greatest_size_of_a_file_is_one_error_everywhere() {
    let home = Home::new();
    home.file("large", bytes(1, 9_000_000));
    home.file("tree/large", bytes(1, 9_000_000));
    home.file("small", bytes(2, 100_000));
    home.ok(&["put", "full", "large", "large"]);
    for line in [
        "holdall put new a large",
        "holdall put new a < large",
        "holdall put s a large",
        "holdall get full large -o out",
        "holdall get full large > out2",
        "holdall export full dir",
    ] {
        home.ok(&["put", "s", "kept", "small"]);
        let run = shell(&home, &format!("ulimit -f 5000; {line}"));
        run.failed(6, "ulimit -f");
        assert!(run.err.contains("5120000 bytes"), "{line}: {}", run.err);
        assert!(!home.path("new").exists() && !home.path("new-log").exists(), "{line}");
        assert!(!home.path("out").exists());
        assert_eq!(home.ok(&["get", "s", "kept"]), bytes(2, 100_000), "{line}");
        sound(&home, "s");
    }
    let run = shell(&home, "ulimit -f 5000; holdall import s tree");
    assert!(run.code == 6 && run.err.contains("not imported: large: "), "{}", run.err);
    assert_eq!(home.ok(&["ls", "s"]), b"kept\n");
}

#[test]
fn a_name_of_a_directory_is_no_file_to_write() {
    let home = Home::new();
    home.file("c.out", "mine");
    home.file("in", "x");
    home.ok(&["put", "s", "c", "in"]);
    for path in ["c.out/", "c.out/.", "new/", "new//", "./new/."] {
        home.fails(&["get", "s", "c", "-o", path], 1, "is a directory");
        home.fails(&["frag", "s", "--svg", path], 1, "is a directory");
    }
    assert_eq!(fs::read(home.path("c.out")).unwrap(), b"mine");
    assert!(!home.path("new").exists());
    for command in [["rm", "s", "--from", "."].as_slice(), &["append", "s", "c", "."]] {
        let run = home.run(command);
        run.failed(1, "is a directory");
        assert!(!run.err.contains("import"), "{}", run.err);
    }
    home.fails(&["put", "s", "d", "."], 1, "holdall import");
}

#[test]
fn zeros_of_a_user_are_not_taken_for_a_creation_cut_short() {
    let home = Home::new();
    for len in [1, 512, 4096, 100_000, 262_144, 300_000] {
        home.file("zeros", vec![0; len]);
        home.fails(&["create", "zeros"], 1, "already exists");
        assert_eq!(home.run(&["put", "zeros", "a", "zeros"]).code, 1, "{len}");
        assert_eq!(fs::read(home.path("zeros")).unwrap(), vec![0; len]);
        assert!(!home.path("zeros-log").exists());
    }
    home.file("empty", "");
    home.ok(&["create", "empty"]);
    sound(&home, "empty");
}

/// A small tmpfs, unmounted at the end; `None`, with a message, if this user may not mount.
struct Tmpfs(PathBuf);

impl Tmpfs {
    fn mount(home: &Home, below: &str, options: &str) -> Option<Self> {
        let path = home.path(below);
        fs::create_dir(&path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "holdall-test"]).arg(&path);
        if !mount.output().is_ok_and(|output| output.status.success()) {
            println!("skipped: the right to mount a tmpfs");
            return None;
        }
        Some(Self(path))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn files_without_an_inode_are_no_full_disk() {
    let home = Home::new();
    let Some(_disk) = Tmpfs::mount(&home, "disk", "size=8m,nr_inodes=6") else { return };
    for name in ["tree/a", "tree/b/c"] {
        home.file(name, name);
    }
    home.ok(&["import", "s", "tree"]);
    for i in 0..5 {
        fs::write(home.path(&format!("disk/{i}")), "x").unwrap();
    }
    for args in [
        ["get", "s", "a", "-o", "disk/out"].as_slice(),
        &["export", "s", "disk"],
        &["export", "s", "disk/new"],
        &["frag", "s", "--svg", "disk/pic"],
    ] {
        let run = home.run(args);
        run.failed(6, "no free inodes");
        assert!(!run.err.contains("free room"), "{}", run.err);
    }
    assert_eq!(fs::read_dir(home.path("disk")).unwrap().count(), 5);
}

#[test]
fn what_was_stored_is_said_where_the_store_cannot_be_closed() {
    let home = Home::new();
    home.file("in", "new");
    home.ok(&["put", "s", "a", "in"]);
    let Some(program) = shared(&home) else { return };
    let as_user = |uid: u32, args: &[&str]| {
        let mut command = Command::new(&program);
        command.args(args).current_dir(home.path("")).uid(uid).gid(uid);
        Run::of(command.output().unwrap())
    };
    // One user's process is killed, and its log stays: another one may not remove it.
    fs::set_permissions(home.path(""), Permissions::from_mode(0o1777)).unwrap();
    fs::set_permissions(home.path("s"), Permissions::from_mode(0o666)).unwrap();
    killed(&home, "s");
    chown(home.path("s-log"), Some(1234), Some(1234)).unwrap();
    fs::set_permissions(home.path("s-log"), Permissions::from_mode(0o666)).unwrap();
    let run = as_user(2345, &["put", "s", "b", "in"]);
    run.failed(1, "the object is stored as oid:");
    assert!(run.err.contains("the store could not be closed"), "{}", run.err);
    assert_eq!(home.ok(&["get", "s", "b"]), b"new");
    let _ = fs::remove_file(home.path("s-log"));
    home.ok(&["put", "s", "c", "in"]);
    sound(&home, "s");
}

/// A copy of the program that other users may run; `None`, with a message, if files cannot be
/// given to others.
fn shared(home: &Home) -> Option<PathBuf> {
    let program = home.path("holdall");
    fs::copy(HOLDALL, &program).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(home.path(""), Permissions::from_mode(0o777)).unwrap();
    let given = chown(home.path("in"), Some(1234), Some(1234)).is_ok();
    if !given {
        println!("skipped: the right to give files away");
    }
    given.then_some(program)
}

/// Leaves the store as a killed process does, with its log.
fn killed(home: &Home, store: &str) {
    let path = home.path(store);
    let log = home.path(&format!("{store}-log"));
    let (copy, kept) = (home.path("copy"), home.path("kept-log"));
    let open = holdall::Options::default().background(false).open(&path).unwrap();
    open.write(|tx| tx.put("last", b"committed")).unwrap();
    fs::copy(&path, &copy).unwrap();
    fs::copy(&log, &kept).unwrap();
    open.close().unwrap();
    // The same file, so that it keeps owner and mode.
    fs::write(&path, fs::read(&copy).unwrap()).unwrap();
    fs::rename(&kept, &log).unwrap();
    fs::remove_file(&copy).unwrap();
}

#[test]
fn a_directory_that_keeps_all_names_is_refused_before_anything_happens() {
    let home = Home::new();
    home.file("in", "new");
    home.ok(&["put", "dir-of-s", "a", "in"]);
    fs::create_dir(home.path("dir")).unwrap();
    fs::rename(home.path("dir-of-s"), home.path("dir/s")).unwrap();
    let chattr = |flag: &str| {
        let mut command = Command::new("chattr");
        let output = command.arg(flag).arg(home.path("dir")).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !chattr("+a") {
        println!("skipped: chattr +a");
        return;
    }
    let before = fs::read(home.path("dir/s")).unwrap();
    let run = home.run(&["put", "dir/s", "b", "in"]);
    let left = fs::read_dir(home.path("dir")).unwrap().count();
    let same = fs::read(home.path("dir/s")).unwrap() == before;
    assert!(chattr("-a"));
    run.failed(1, "chattr +a");
    assert!(left == 1 && same);
    home.ok(&["put", "dir/s", "b", "in"]);
}

#[test]
fn a_log_that_its_stores_owner_may_not_open_is_no_damage() {
    let home = Home::new();
    home.file("in", "new");
    home.ok(&["put", "s", "a", "in"]);
    let Some(program) = shared(&home) else { return };
    killed(&home, "s");
    chown(home.path("s"), Some(1234), Some(2000)).unwrap();
    chown(home.path("s-log"), Some(2345), Some(2000)).unwrap();
    for path in ["s", "s-log"] {
        fs::set_permissions(home.path(path), Permissions::from_mode(0o660)).unwrap();
    }
    for args in [["get", "s", "a"].as_slice(), &["put", "s", "b", "in"], &["ls", "s"]] {
        let mut command = Command::new(&program);
        command.args(args).current_dir(home.path("")).uid(1234).gid(1234);
        let run = Run::of(command.output().unwrap());
        run.failed(1, "cannot be opened: permission denied");
        assert!(run.err.contains("chown --reference"), "{}", run.err);
        assert_eq!(run.err.matches("s-log").count(), 1, "{}", run.err);
    }
    chown(home.path("s-log"), Some(1234), Some(2000)).unwrap();
    let mut command = Command::new(&program);
    command.args(["get", "s", "last"]).current_dir(home.path("")).uid(1234).gid(1234);
    assert_eq!(Run::of(command.output().unwrap()).out, b"committed");
}
