//! Who may read the files that commands make: nobody beyond those who may read what they hold.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::support::{HOLDALL, Home};

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Runs a line of a shell under a mask of new files.
fn masked(home: &Home, mask: &str, line: &str) {
    let script = format!("holdall() {{ '{HOLDALL}' \"$@\"; }}\numask {mask}; {line}");
    let mut command = Command::new("bash");
    let output = command.args(["-c", &script]).current_dir(home.path("")).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_log_and_the_sums_have_the_rights_of_the_store() {
    let home = Home::new();
    let path = home.path("s");
    for bits in [0o600, 0o640, 0o666] {
        holdall::Store::open_or_create(&path).unwrap().close().unwrap();
        set_mode(&path, bits);
        let owner = if chown(&path, Some(1234), Some(4321)).is_ok() { 1234 } else { 0 };
        let options = holdall::Options::default().debug_sums(true);
        let store = options.open(&path).unwrap();
        store.write(|tx| tx.put("a", b"private")).unwrap();
        for file in ["s-log", "s-sums"] {
            assert_eq!(mode(home.path(file)), bits, "{file}");
            if owner > 0 {
                let found = fs::metadata(home.path(file)).unwrap();
                assert_eq!((found.uid(), found.gid()), (1234, 4321), "{file}");
            } else {
                println!("skipped: the right to give files away");
            }
        }
        store.close().unwrap();
        fs::remove_file(home.path("s-sums")).unwrap();
    }
}

#[test]
fn a_new_store_follows_the_mask() {
    let home = Home::new();
    masked(&home, "027", "holdall create a; echo x | holdall put b x");
    assert_eq!((mode(home.path("a")), mode(home.path("b"))), (0o640, 0o640));
}

#[test]
fn exported_files_have_their_modes_whatever_the_mask() {
    let home = Home::new();
    for (name, bits) in [("tree/private", 0o600), ("tree/all", 0o666), ("tree/none", 0o000)] {
        home.file(name, name);
        set_mode(home.path(name), bits);
    }
    if home.run(&["import", "s", "tree"]).code != 0 {
        println!("skipped: the right to read a file of mode 0");
        return;
    }
    home.feed(&["put", "s", "put"], b"x");
    masked(&home, "077", "holdall export s strict");
    masked(&home, "000", "holdall export s open");
    for out in ["strict", "open"] {
        let found = ["private", "all", "none"].map(|name| mode(home.path(out).join(name)));
        assert_eq!(found, [0o600, 0o666, 0], "{out}");
    }
    // It has no mode of its own.
    assert_eq!(mode(home.path("strict/put")), 0o600);
    assert_eq!(mode(home.path("open/put")), 0o666);
}

#[test]
fn got_files_have_the_rights_of_what_they_replace_or_fewer_than_the_original() {
    let home = Home::new();
    home.file("tree/private", "x");
    set_mode(home.path("tree/private"), 0o600);
    home.ok(&["import", "s", "tree"]);
    masked(&home, "022", "holdall get s private -o new; holdall frag s --svg pic");
    assert_eq!((mode(home.path("new")), mode(home.path("pic"))), (0o600, 0o644));
    home.file("old", "y");
    set_mode(home.path("old"), 0o604);
    let given = chown(home.path("old"), Some(1234), Some(4321)).is_ok();
    masked(&home, "022", "holdall get s private -o old");
    assert_eq!((fs::read(home.path("old")).unwrap(), mode(home.path("old"))), (b"x".into(), 0o604));
    if given {
        let found = fs::metadata(home.path("old")).unwrap();
        assert_eq!((found.uid(), found.gid()), (1234, 4321));
    } else {
        println!("skipped: the right to give files away");
    }
}

#[test]
fn a_group_that_cannot_be_given_gets_no_more_than_others() {
    let home = Home::new();
    home.file("in", "x");
    home.ok(&["put", "s", "a", "in"]);
    home.file("old", "y");
    set_mode(home.path("old"), 0o664);
    if chown(home.path("old"), Some(1234), Some(4321)).is_err() {
        println!("skipped: the right to give files away");
        return;
    }
    let program = home.path("holdall");
    fs::copy(HOLDALL, &program).unwrap();
    for (path, bits) in [("", 0o777), ("s", 0o644), ("holdall", 0o755)] {
        set_mode(home.path(path), bits);
    }
    let mut command = Command::new(program);
    command.args(["get", "s", "a", "-o", "old"]).current_dir(home.path(""));
    let output = command.uid(2345).gid(5432).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = fs::metadata(home.path("old")).unwrap();
    assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (2345, 5432, 0o644));
}

#[test]
fn directories_come_back_with_their_modes() {
    let home = Home::new();
    for name in ["tree/a/private/f", "tree/a/shut/f", "tree/a/z", "tree/open/f"] {
        home.file(name, name);
    }
    let modes =
        [("", 0o750), ("a", 0o711), ("a/private", 0o700), ("a/shut", 0o500), ("open", 0o777)];
    for (name, bits) in modes {
        set_mode(home.path("tree").join(name), bits);
    }
    home.ok(&["import", "s", "tree"]);
    masked(&home, "022", "holdall export s out");
    masked(&home, "077", "holdall export s strict --prefix a/");
    for (name, bits) in modes {
        assert_eq!(mode(home.path("out").join(name)), bits, "{name}");
    }
    let found = ["", "private", "shut"].map(|name| mode(home.path("strict").join(name)));
    assert_eq!(found, [0o711, 0o700, 0o500]);
    // A second import stores what changed, and an export sets it if the directory is there.
    set_mode(home.path("tree/a/private"), 0o750);
    let again = home.json(&["import", "s", "tree", "--json"]);
    assert_eq!((&again["files"], &again["updated"]), (&0.into(), &1.into()), "{again}");
    home.ok(&["export", "s", "out"]);
    assert_eq!(mode(home.path("out/a/private")), 0o750);
    // The directory that the user named is not the export's to change.
    fs::create_dir(home.path("mine")).unwrap();
    set_mode(home.path("mine"), 0o705);
    home.ok(&["export", "s", "mine"]);
    assert_eq!((mode(home.path("mine")), mode(home.path("mine/open"))), (0o705, 0o777));
}
