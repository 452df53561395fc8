//! Modes of directories: exact after import and export, and the newest ones.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::support::{HOLDALL, Home, Run, files, sound};

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Exports `s` into a new directory under a mask of new files.
fn export(home: &Home, mask: &str, out: &str, more: &[&str]) {
    let script = format!("umask {mask}; exec '{HOLDALL}' export s {out} \"$@\"");
    let mut command = Command::new("bash");
    command.args(["-c", &script, "bash"]).args(more).current_dir(home.path(""));
    let run = Run::of(command.output().unwrap());
    assert_eq!(run.code, 0, "{}", run.err);
}

/// The modes of directories of an export.
fn modes<const N: usize>(home: &Home, out: &str, names: [&str; N]) -> [u32; N] {
    names.map(|name| mode(home.path(out).join(name)))
}

#[test]
fn plain_directories_come_back_exactly_whatever_the_mask() {
    let home = Home::new();
    home.file("tree/a/b/f", "f");
    home.file("tree/g", "g");
    for name in ["tree", "tree/a", "tree/a/b"] {
        set_mode(home.path(name), 0o755);
    }
    home.ok(&["import", "s", "tree"]);
    for mask in ["002", "000", "022", "077"] {
        export(&home, mask, mask, &[]);
        assert_eq!(modes(&home, mask, ["", "a", "a/b"]), [0o755; 3], "{mask}");
        assert_eq!(fs::read(home.path(mask).join("a/b/f")).unwrap(), b"f");
    }
    // What no import stored follows the mask, also the directory itself.
    home.feed(&["put", "t", "x/y"], b"y");
    fs::rename(home.path("t"), home.path("s")).unwrap();
    export(&home, "027", "put", &[]);
    assert_eq!(modes(&home, "put", ["", "x"]), [0o750; 2]);
}

#[test]
fn directories_of_a_prefix_are_not_those_imported() {
    let home = Home::new();
    home.file("tree/d/f", "f");
    set_mode(home.path("tree"), 0o755);
    set_mode(home.path("tree/d"), 0o755);
    home.ok(&["import", "s", "tree", "--prefix", "up/here/"]);
    export(&home, "077", "out", &[]);
    assert_eq!(
        modes(&home, "out", ["", "up", "up/here", "up/here/d"]),
        [0o700, 0o700, 0o755, 0o755]
    );
    export(&home, "077", "part", &["--prefix", "up/here/"]);
    assert_eq!(modes(&home, "part", ["", "d"]), [0o755; 2]);
}

/// `tree/d` had one mode, then another; its objects are `left` of what was imported first.
fn changed(first: u32, then: u32, change: impl Fn(&Home), args: &[&str]) -> Home {
    let home = Home::new();
    for name in ["0", "1", "e/2", "x.log"] {
        home.file(&format!("tree/d/{name}"), name);
    }
    home.file("tree/z", "z");
    set_mode(home.path("tree/d"), first);
    home.ok(&["import", "s", "tree"]);
    change(&home);
    set_mode(home.path("tree/d"), then);
    home.ok(&[&["import", "s", "tree"], args].concat());
    export(&home, "022", "out", &[]);
    home
}

#[test]
fn the_newest_mode_counts_whatever_became_of_the_files() {
    let remove = |names: &'static [&'static str]| {
        move |home: &Home| {
            for name in names {
                let path = home.path("tree/d").join(name);
                if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
                    .unwrap();
            }
        }
    };
    for (first, then) in [(0o777, 0o700), (0o700, 0o755), (0o711, 0o750)] {
        // The first object is old, all are, or one that is left out now.
        let gone: [&'static [&'static str]; 4] =
            [&["0"], &["0", "1", "e", "x.log"], &["1", "e"], &[]];
        for gone in gone {
            for args in [&[][..], &["--exclude", "*.log"], &["--exclude", "0", "--exclude", "e/"]] {
                let home = changed(first, then, remove(gone), args);
                assert_eq!(mode(home.path("out/d")), then, "{first:o} {gone:?} {args:?}");
                let names: Vec<_> = files(&home.path("out")).into_iter().map(|f| f.0).collect();
                assert_eq!(names, ["d/0", "d/1", "d/e/2", "d/x.log", "z"].map(Path::new));
                sound(&home, "s");
                // And nothing is stored anew once all know it.
                let again = home.json(&[&["import", "s", "tree", "--json"], args].concat());
                assert_eq!(again["updated"], 0);
            }
        }
    }
}

#[test]
fn a_new_file_beside_old_objects_brings_the_new_mode() {
    let home = changed(
        0o777,
        0o700,
        |home| {
            fs::remove_dir_all(home.path("tree/d")).unwrap();
            home.file("tree/d/new", "new");
        },
        &[],
    );
    assert_eq!((mode(home.path("out/d")), mode(home.path("out/d/e"))), (0o700, 0o755));
}

#[test]
fn of_modes_that_disagree_what_all_allow_is_left() {
    let home = Home::new();
    let store = holdall::Store::create(home.path("s")).unwrap();
    for (name, dirs) in [("d/a", "755/777"), ("d/b", "755/750"), ("d/c", "755/707")] {
        let text = |key: &str, value: &str| (key.to_owned(), value.as_bytes().to_vec());
        let attributes = holdall::Attributes::from([text("mode", "644"), text("dirs", dirs)]);
        let options = holdall::PutOptions::with_attributes(attributes);
        store.write(|tx| tx.put_with(name, b"x", &options).map(drop)).unwrap();
    }
    store.close().unwrap();
    export(&home, "022", "out", &[]);
    assert_eq!(modes(&home, "out", ["", "d"]), [0o755, 0o700]);
}

#[test]
fn deep_directories_of_many_modes_are_stored_and_told_short() {
    let home = Home::new();
    let deep = |levels: usize| vec!["d"; levels].join("/");
    // In a row, one after the other, and more changes than attributes have room for.
    let mixed = |at: usize| if at.is_multiple_of(2) { 0o700 } else { 0o755 };
    type Bits<'b> = &'b dyn Fn(usize) -> u32;
    let cases: [(&str, usize, Bits<'_>); 3] = [
        ("row", 500, &|at| if at == 250 { 0o700 } else { 0o755 }),
        ("few", 100, &mixed),
        ("many", 500, &mixed),
    ];
    for (name, levels, bits) in cases {
        home.file(&format!("{name}/{}/file", deep(levels)), name);
        set_mode(home.path(name), bits(0));
        for level in 1..=levels {
            set_mode(home.path(name).join(deep(level)), bits(level));
        }
        let run = home.run(&["import", "s", name, "--collection", name]);
        assert_eq!(run.code, 0, "{name}: {}", run.err);
        let warns = run.err.contains("stored without the modes of the first directories above it");
        assert_eq!(warns, name == "many", "{}", run.err);
        home.ok(&["export", "s", &format!("{name}-out"), "--collection", name]);
        let out = home.path(&format!("{name}-out"));
        assert_eq!(fs::read(out.join(deep(levels)).join("file")).unwrap(), name.as_bytes());
        for level in 1..=levels {
            let found = mode(out.join(deep(level)));
            // Nothing is opened that was private.
            let is_lost = name == "many" && found == 0o700;
            assert!(found == bits(level) || is_lost, "{name} {level}: {found:o}");
        }
        assert_eq!(mode(out.join(deep(levels))), bits(levels), "{name}");
        assert_eq!(home.json(&["import", "s", name, "--collection", name, "--json"])["updated"], 0);
    }
}

/// Runs the command as a user who may not do everything.
fn as_user(home: &Home, args: &[&str]) -> Option<Run> {
    let program = home.path("holdall");
    let mut command = Command::new(&program);
    if rustix::process::geteuid().is_root() {
        // By another process: a child that another test starts meanwhile would keep a file open for
        // writing that this one had, and nobody may run such a file.
        assert!(Command::new("cp").arg(HOLDALL).arg(&program).status().unwrap().success());
        set_mode(&program, 0o755);
        command.uid(2345).gid(2345);
    } else {
        command = Command::new(HOLDALL);
    }
    Some(Run::of(command.args(args).current_dir(home.path("user")).output().ok()?))
}

#[test]
fn directories_that_their_owner_must_not_write_into_are_exported_again() {
    let home = Home::new();
    let shut = [("r", 0o500), ("w", 0o300), ("none", 0o000), ("none/in", 0o100), ("last", 0o555)];
    for (name, _) in shut {
        home.file(&format!("user/tree/{name}/f"), name);
    }
    home.ok(&["import", "user/s", "user/tree"]);
    for (name, bits) in shut.iter().rev() {
        set_mode(home.path("user/tree").join(name), *bits);
    }
    if fs::read_dir(home.path("user/tree/none")).is_err() {
        println!("skipped: the right to read a directory of mode 0");
        for (name, _) in shut {
            set_mode(home.path("user/tree").join(name), 0o755);
        }
        return;
    }
    set_mode(home.path("user/tree"), 0o500);
    home.ok(&["import", "user/s", "user/tree"]);
    set_mode(home.path(""), 0o755);
    set_mode(home.path("user"), 0o777);
    set_mode(home.path("user/s"), 0o644);
    for round in 0..3 {
        let run = as_user(&home, &["export", "s", "out"]).unwrap();
        assert_eq!(run.code, 0, "{round}: {}", run.err);
        let found = modes(&home, "user/out", shut.map(|(name, _)| name));
        assert_eq!(found, shut.map(|(_, bits)| bits), "{round}");
        assert_eq!(mode(home.path("user/out")), 0o500);
        assert_eq!(files(&home.path("user/out")).len(), 5);
    }
    // An export that fails in between leaves them as they were too.
    home.feed(&["put", "user/s", "none/in/f/x"], b"x");
    home.feed(&["put", "user/s", "w/put"], b"x");
    let run = as_user(&home, &["export", "s", "out"]).unwrap();
    assert_eq!(run.code, 1, "{}", run.err);
    assert_eq!(modes(&home, "user/out", shut.map(|(name, _)| name)), shut.map(|(_, bits)| bits));
    assert_eq!(fs::read(home.path("user/out/w/put")).unwrap(), b"x");
    // Objects without a mode change none either.
    for name in ["r/put", "none/put"] {
        home.feed(&["put", "user/t", name], b"y");
    }
    set_mode(home.path("user/t"), 0o644);
    let run = as_user(&home, &["export", "t", "out"]).unwrap();
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(modes(&home, "user/out", shut.map(|(name, _)| name)), shut.map(|(_, bits)| bits));
    assert_eq!(fs::read(home.path("user/out/none/put")).unwrap(), b"y");
}
