//! Import and export of directory trees.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant, UNIX_EPOCH};

use crate::support::{Home, bytes, files, sound};

/// Nested directories, empty files, a streamed file, odd names, times and modes.
fn make_tree(home: &Home) {
    for at in 0..300u64 {
        let name = format!("tree/d{}/e{}/f {at}.bin", at % 7, at % 3);
        home.file(&name, bytes(at, (at * at % 9001) as usize));
    }
    home.file("tree/empty", "");
    home.file("tree/d0/also empty", "");
    home.file("tree/big", bytes(1, 5 << 20));
    home.file("tree/deep/a/b/c/d/e/f", "deep");
    home.file("tree/größe/naïve – 漢字 🦀", "unicode");
    home.file("tree/-option", "dash");
    home.file("tree/with\nline", "newline");
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::fs::PermissionsExt;
        let raw = std::ffi::OsStr::from_bytes(b"not \xff utf8");
        fs::write(home.path("tree").join(raw), "raw").unwrap();
        let mode = |name: &str, mode| {
            fs::set_permissions(home.path(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        mode("tree/empty", 0o640);
        mode("tree/big", 0o755);
    }
    let set = |name: &str, time| {
        File::options().write(true).open(home.path(name)).unwrap().set_modified(time).unwrap();
    };
    set("tree/big", UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789));
    set("tree/empty", UNIX_EPOCH - Duration::from_secs(86_400));
}

fn assert_same_tree(one: &Path, two: &Path) {
    let (left, right) = (files(one), files(two));
    assert_eq!(left.len(), right.len());
    for ((name, content), (name2, content2)) in left.iter().zip(&right) {
        assert_eq!(name, name2);
        assert!(content == content2, "content of {}", name.display());
        let (a, b) = (one.join(name).metadata().unwrap(), two.join(name).metadata().unwrap());
        assert_eq!(a.modified().unwrap(), b.modified().unwrap(), "time of {}", name.display());
        assert_eq!(a.permissions(), b.permissions(), "mode of {}", name.display());
    }
}

#[test]
fn round_trip() {
    let home = Home::new();
    make_tree(&home);
    let count = files(&home.path("tree")).len();
    let result = home.json(&["import", "s", "tree", "--json"]);
    assert_eq!(result["files"], count);
    assert_eq!(result["failed"], 0);
    sound(&home, "s");
    let out = home.json(&["export", "s", "out", "--json"]);
    assert_eq!(out["files"], count);
    assert_same_tree(&home.path("tree"), &home.path("out"));
    // Over what is there already.
    home.ok(&["export", "s", "out"]);
    assert_same_tree(&home.path("tree"), &home.path("out"));
}

#[test]
fn prefix_and_collection_round_trip() {
    let home = Home::new();
    make_tree(&home);
    home.feed(&["put", "s", "unrelated", "--collection", "c"], b"x");
    home.ok(&["import", "s", "tree", "--prefix", "in/here/", "--collection", "c"]);
    assert_eq!(home.ok(&["get", "s", "in/here/-option", "--collection", "c"]), b"dash");
    home.ok(&["export", "s", "out", "--prefix", "in/here/", "--collection", "c"]);
    assert_same_tree(&home.path("tree"), &home.path("out"));
    home.ok(&["export", "s", "part", "--prefix", "in/here/d1/", "--collection", "c"]);
    assert_same_tree(&home.path("tree/d1"), &home.path("part"));
}

#[test]
fn a_second_import_takes_only_what_changed() {
    let home = Home::new();
    make_tree(&home);
    let count = files(&home.path("tree")).len() as u64;
    home.ok(&["import", "s", "tree"]);
    let again = home.json(&["import", "s", "tree", "--json"]);
    assert_eq!((again["files"].as_u64(), again["already_there"].as_u64()), (Some(0), Some(count)));
    assert_eq!(again["batches"], 0);
    // Another size, the same size at another time, and a new file.
    home.file("tree/empty", "not any more");
    let dash = home.file("tree/-option", "DASH");
    let file = File::options().write(true).open(dash).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(5)).unwrap();
    home.file("tree/new", "new");
    let third = home.json(&["import", "s", "tree", "--json"]);
    assert_eq!((&third["files"], &third["replaced"]), (&3.into(), &2.into()));
    home.ok(&["export", "s", "out"]);
    assert_same_tree(&home.path("tree"), &home.path("out"));
    sound(&home, "s");
}

#[cfg(unix)]
#[test]
fn links_and_special_files_are_counted_and_named_if_asked() {
    let home = Home::new();
    home.file("tree/file", "x");
    std::os::unix::fs::symlink("file", home.path("tree/link")).unwrap();
    std::os::unix::fs::symlink("/etc", home.path("tree/dirlink")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(home.path("tree/socket")).unwrap();
    // `json` demands that nothing is printed on standard error.
    let result = home.json(&["import", "s", "tree", "--json"]);
    assert_eq!((&result["files"], &result["skipped_links"]), (&1.into(), &2.into()));
    assert_eq!(result["skipped_special"], 1);
    let text = String::from_utf8(home.ok(&["import", "s", "tree"])).unwrap();
    assert!(text.contains("; skipped 2 links, 1 special files; 0 failed"), "{text}");
    let run = home.run(&["import", "s", "tree", "--json", "--verbose"]);
    assert_eq!(run.code, 0);
    let again: serde_json::Value = serde_json::from_slice(&run.out).unwrap();
    assert_eq!((&again["skipped_links"], &again["skipped_special"]), (&2.into(), &1.into()));
    for line in ["skipped: link: link", "skipped: dirlink: link", "skipped: socket: special file"] {
        assert!(run.err.contains(&format!("holdall: {line}\n")), "{}", run.err);
    }
    assert_eq!(home.ok(&["ls", "s"]), b"file\n");
}

#[test]
fn the_store_may_lie_in_the_tree() {
    let home = Home::new();
    home.file("tree/file", "x");
    for _ in 0..2 {
        home.ok(&["import", "tree/store", "tree"]);
        assert_eq!(home.ok(&["ls", "tree/store"]), b"file\n");
    }
}

#[test]
fn what_cannot_be_imported_is_named_and_the_rest_is_stored() {
    let home = Home::new();
    home.file("tree/ok", "x");
    let deep = "d".repeat(200);
    let long = format!("{deep}/{deep}/{deep}/{deep}/{deep}/file");
    home.file(&format!("tree/{long}"), "name of over 1024 bytes with a prefix");
    let prefix = "p".repeat(100);
    let run = home.run(&["import", "s", "tree", "--prefix", &prefix]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("not imported: ppp") && run.err.contains("longer than 1024"));
    assert!(run.text().contains("imported 1 files") && run.text().contains("1 failed"));
    assert_eq!(home.ok(&["ls", "s"]), format!("{prefix}ok\n").as_bytes());
}

#[test]
fn export_never_leaves_its_directory() {
    let home = Home::new();
    fs::create_dir(home.path("out")).unwrap();
    let bad = ["../escaped", "/escaped", "a/../../escaped", "a//b", "a/", "./a", "..", "a/./b"];
    for name in bad.iter().chain(&["good", "sub/good"]) {
        assert_eq!(home.feed(&["put", "s", name], b"x").code, 0);
    }
    let run = home.run(&["export", "s", "out"]);
    assert_eq!(run.code, 1);
    for name in bad {
        assert!(run.err.contains(&format!("not exported: {name}: its name")), "{}", run.err);
    }
    assert!(run.text().contains("exported 2 files") && run.text().contains("8 failed"));
    let names: Vec<_> = files(&home.path("")).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["out/good", "out/sub/good", "s"].map(|n| Path::new(n).to_owned()));
}

#[test]
fn an_object_named_with_nul_is_refused() {
    let home = Home::new();
    let store = holdall::Store::create(home.path("s")).unwrap();
    store.write(|tx| tx.put(b"a\0b", b"x")).unwrap();
    store.close().unwrap();
    // A child that another test just forked may hold our lock until it runs its program.
    let mut run = home.run(&["export", "s", "out"]);
    let since = Instant::now();
    while run.code == 5 && since.elapsed() < Duration::from_secs(60) {
        run = home.run(&["export", "s", "out"]);
    }
    assert_eq!(run.code, 1);
    assert!(run.err.contains("not exported: a\\x00b: its name holds a NUL byte"), "{}", run.err);
}

#[test]
fn names_that_collide_are_reported() {
    let home = Home::new();
    for name in ["a", "a/b", "c/d", "e"] {
        home.feed(&["put", "s", name], name.as_bytes());
    }
    home.file("out/c", "a file is here");
    fs::create_dir_all(home.path("out/e")).unwrap();
    let result = home.run(&["export", "s", "out", "--json"]);
    assert_eq!(result.code, 1);
    let counts: serde_json::Value = serde_json::from_slice(&result.out).unwrap();
    assert_eq!((&counts["files"], &counts["failed"]), (&1.into(), &3.into()));
    assert!(result.err.contains("not exported: a/b: "), "{}", result.err);
    assert!(result.err.contains("is a file where a directory is needed"), "{}", result.err);
    assert!(result.err.contains("not exported: e: there is a directory of that name"));
    assert_eq!(fs::read(home.path("out/a")).unwrap(), b"a");
    assert_eq!(fs::read(home.path("out/c")).unwrap(), b"a file is here");
}

#[cfg(unix)]
#[test]
fn export_follows_no_link_below_its_directory() {
    let home = Home::new();
    home.feed(&["put", "s", "dir/file"], b"x");
    home.feed(&["put", "s", "file"], b"x");
    fs::create_dir_all(home.path("elsewhere")).unwrap();
    let kept = home.file("elsewhere/kept", "untouched");
    fs::create_dir(home.path("out")).unwrap();
    std::os::unix::fs::symlink(home.path("elsewhere"), home.path("out/dir")).unwrap();
    std::os::unix::fs::symlink(&kept, home.path("out/file")).unwrap();
    let run = home.run(&["export", "s", "out"]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("is a link where a directory is needed"), "{}", run.err);
    assert_eq!(files(&home.path("elsewhere")).len(), 1);
    assert_eq!(fs::read(kept).unwrap(), b"untouched");
    assert!(fs::symlink_metadata(home.path("out/file")).unwrap().is_file());
}

#[cfg(unix)]
#[test]
fn export_makes_no_program_that_runs_as_another() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let file = home.file("tree/tool", "x");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o4755)).unwrap();
    home.ok(&["import", "s", "tree"]);
    assert_eq!(home.json(&["stat", "s", "tool", "--json"])["attributes"]["mode"], "4755");
    home.ok(&["export", "s", "out"]);
    let mode = fs::metadata(home.path("out/tool")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
}
