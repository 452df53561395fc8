//! Lists of names: printed, read, removed; and messages about names, paths and streams that
//! are not as they should be.

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use crate::support::{Home, Run, sound};

const ODD: [&[u8]; 9] = [
    b" lead",
    b"a\nb",
    b"back\\slash",
    b"plain",
    b"raw\xff",
    b"tab\ttrail ",
    "p\u{430}y".as_bytes(),
    "x\u{a0}\u{ad}y".as_bytes(),
    "x\u{202e}y".as_bytes(),
];

fn with_names(names: &[&[u8]]) -> Home {
    let home = Home::new();
    let store = holdall::Store::create(home.path("s")).unwrap();
    for name in names {
        store.write(|tx| tx.put(name, b"x").map(drop)).unwrap();
    }
    store.close().unwrap();
    home
}

#[test]
fn listed_names_are_told_apart_and_can_be_read_back() {
    let home = with_names(&ODD);
    let lines = [
        r"\x20lead",
        r"a\nb",
        r"back\\slash",
        "plain",
        "p\u{430}y",
        r"raw\xff",
        r"tab\ttrail\x20",
        r"x\xc2\xa0\xc2\xady",
        r"x\xe2\x80\xaey",
    ];
    assert_eq!(String::from_utf8(home.ok(&["ls", "s"])).unwrap(), lines.join("\n") + "\n");
    let ascii = String::from_utf8(home.ok(&["ls", "s", "--ascii"])).unwrap();
    assert!(ascii.is_ascii() && ascii.contains("\np\\xd0\\xb0y\n"), "{ascii}");
    let raw = home.ok(&["ls", "s", "-0"]);
    let mut sorted = ODD.to_vec();
    sorted.sort_unstable();
    assert_eq!(raw.split(|byte| *byte == 0).collect::<Vec<_>>(), [&sorted[..], &[b""]].concat());
    for (args, list) in [
        (&["rm", "s", "--from", "-", "-0"][..], raw.as_slice()),
        (&["rm", "s", "--from", "-"], lines.join("\n").as_bytes()),
        (&["rm", "s", "--from", "-"], ascii.as_bytes()),
    ] {
        let home = with_names(&ODD);
        let run = home.feed(args, list);
        assert_eq!((run.code, run.text()), (0, "deleted 9 objects\n"), "{}", run.err);
        assert_eq!(home.ok(&["ls", "s"]), b"");
        sound(&home, "s");
    }
}

#[test]
fn a_name_that_a_list_cannot_hold_is_left_out_and_named() {
    let home = with_names(&[b"a", b"a\0b", b"b"]);
    let run = home.run(&["ls", "s", "-0"]);
    assert_eq!((run.code, run.out.as_slice()), (1, &b"a\0b\0"[..]));
    assert!(run.err.contains(r"not listed: a\x00b: its name holds a NUL byte"), "{}", run.err);
}

#[test]
fn a_list_is_removed_whole_or_not_at_all() {
    let home = with_names(&[b"a", b"b", b"c"]);
    home.feed(&["rm", "s", "--from", "-"], b"a\nnone\nb\n").failed(3, "\"none\"");
    home.feed(&["rm", "s", "--from", "-"], b"a\n\nb\n").failed(1, "line 2: it is empty");
    home.feed(&["rm", "s", "--from", "-"], b"a\nb\\q\n").failed(1, "line 2: a backslash");
    home.file("list", "a\0c");
    home.fails(&["rm", "s", "--from", "s", "-0"], 1, "belongs to the store");
    assert_eq!(home.ok(&["ls", "s"]), b"a\nb\nc\n");
    let result = home.json(&["rm", "s", "--from", "list", "-0", "--json"]);
    assert_eq!(result["deleted"], 2);
    assert_eq!(result["objects"][1]["name"], "c");
    assert_eq!(home.ok(&["ls", "s"]), b"b\n");
    assert_eq!(home.feed(&["rm", "s", "--from", "-"], b"").text(), "deleted 0 objects\n");
}

#[test]
fn a_prefix_is_removed_and_nothing_else() {
    let home = Home::new();
    let store = holdall::Store::create(home.path("s")).unwrap();
    store
        .write(|tx| {
            for at in 0..5000 {
                tx.put(format!("in/{at}"), b"x")?;
            }
            tx.put("in", b"x")?;
            tx.put("io", b"x").map(drop)
        })
        .unwrap();
    store.close().unwrap();
    home.fails(&["rm", "s", "--prefix", ""], 1, "empty prefix");
    home.fails(&["rm", "s", "--prefix", "none"], 3, "names that begin with none");
    assert_eq!(home.json(&["rm", "s", "--prefix", "in/", "--json"])["deleted"], 5000);
    assert_eq!(home.ok(&["ls", "s"]), b"in\nio\n");
    for args in [&["rm", "s"][..], &["rm", "s", "io", "--prefix", "i"], &["rm", "s", "io", "-0"]] {
        home.run(args).usage();
    }
    sound(&home, "s");
}

#[test]
fn what_fails_leaves_no_store_behind() {
    let home = Home::new();
    home.file("in", "x");
    home.file(&format!("tree/{0}/{0}/{0}/{0}/{0}/f", "d".repeat(220)), "too long a name");
    let long = "n".repeat(1025);
    for args in [
        &["put", "new", "", "in"][..],
        &["put", "new", &long, "in"],
        &["put", "new", "a", "none"],
        &["put", "new", "a", "in", "--collection", ""],
        &["put", "new", "a", "in", "--collection", &long],
        &["put", "new", "oid:0.0.0.1", "in"],
        &["import", "new", "none"],
        &["import", "new", "tree"],
        &["import", "new", "tree", "--collection", ""],
    ] {
        let run = home.run(args);
        assert!(run.code != 0, "{args:?}");
        for name in ["new", "new-log"] {
            assert!(!home.path(name).exists(), "{name} after {args:?}: {}", run.err);
        }
    }
    home.ok(&["create", "new"]);
    home.fails(&["put", "new", "oid:0.0.0.1", "in"], 3, "not found");
    assert!(home.path("new").exists(), "it was there before");
}

#[test]
fn what_was_done_is_said_if_the_result_cannot_be() {
    let home = Home::new();
    home.file("in", "x");
    home.file("tree/f", "x");
    home.ok(&["put", "s", "a", "in"]);
    for (args, says) in [
        (&["put", "s", "b", "in"][..], "the object is stored as oid:"),
        (&["put", "s", "b", "in", "--json"], "the object is stored as oid:"),
        (&["cp", "s", "a", "c"], "the copy is stored as oid:"),
        (&["append", "s", "a", "in"], "the object is changed, but"),
        (&["import", "s", "tree"], "the files are stored, but"),
        (&["export", "s", "out"], "the files are written, but"),
        (&["defrag", "s"], "the store is in order, but"),
        (&["rm", "s", "c", "--json"], "the objects are deleted, but"),
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let run = Run::of(home.command(args).stdout(full).output().unwrap());
        run.failed(6, says);
        run.failed(6, "but write standard output: No space left on device");
    }
    assert_eq!(home.ok(&["ls", "s"]), b"a\nb\nf\n");
    assert_eq!(home.ok(&["get", "s", "a"]), b"xx");
    assert_eq!(fs::read(home.path("out/f")).unwrap(), b"x");
}

#[test]
fn what_is_missing_on_the_way_is_named_once() {
    let home = Home::new();
    home.file("in", "x");
    home.ok(&["put", "s", "a", "in"]);
    symlink("gone/away", home.path("link")).unwrap();
    let says = "not found: no/dir/s: there is no directory no: check the path, or make the";
    home.fails(&["put", "no/dir/s", "a", "in"], 3, says);
    home.fails(&["ls", "no/dir/s"], 3, says);
    home.fails(&["get", "s", "a", "-o", "no/out"], 1, "write no/out: there is no directory no: ");
    for (args, code) in [
        (&["put", "link", "a", "in"][..], 3),
        (&["ls", "link"], 3),
        (&["import", "s", "link"], 1),
        (&["export", "s", "link"], 1),
        (&["put", "s", "b", "link"], 1),
    ] {
        home.fails(args, code, "link is a link to gone/away, which is missing: check where it");
    }
    home.file("tree/f", "x");
    symlink("gone", home.path("tree/link")).unwrap();
    assert_eq!(home.json(&["import", "s", "tree", "--json"])["skipped_links"], 1);
    // The path that an error of the system is about.
    symlink("loop", home.path("loop")).unwrap();
    fs::create_dir(home.path("s-log")).unwrap();
    for args in [&["ls", "loop"][..], &["put", "s", "b", "loop"], &["put", "s", "b", "in"]] {
        let run = home.run(args);
        assert!(run.code == 1 && run.err.matches("loop").count() <= 1, "{}", run.err);
        assert!(run.err.matches("s-log").count() <= 1, "{}", run.err);
    }
}
