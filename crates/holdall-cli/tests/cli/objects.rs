//! One object at a time: put, get, ranges, rename, delete, list, figures, JSON.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use crate::support::{HOLDALL, Home, Run, bytes, sound};

#[test]
fn put_and_get_every_size_from_file_and_input() {
    let home = Home::new();
    // Around what lies in a record, what is read whole, and what is streamed.
    for len in [0, 1, 5000, 8192, 100_000, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, 11_000_003] {
        let content = bytes(len as u64, len);
        home.file("in", &content);
        let oid = home.ok(&["put", "s", "from file", "in"]);
        assert!(oid.starts_with(b"oid:") && oid.ends_with(b"\n"), "{oid:?}");
        let put = home.feed(&["put", "s", "from input"], &content);
        assert_eq!((put.code, put.err.as_str()), (0, ""));
        let oid = String::from_utf8(oid).unwrap();
        for key in ["from file", "from input", oid.trim()] {
            assert!(home.ok(&["get", "s", key]) == content, "{key} of {len} bytes");
        }
        home.ok(&["get", "s", "from file", "-o", "out"]);
        assert!(fs::read(home.path("out")).unwrap() == content);
        sound(&home, "s");
    }
    let names = fs::read_dir(home.path("")).unwrap().count();
    assert_eq!(names, 3, "only s, in and out are left, no temporaries, no log");
}

#[test]
fn put_replaces_and_keeps_the_oid() {
    let home = Home::new();
    let first = home.feed(&["put", "s", "a", "-"], b"one").out;
    let again = home.feed(&["put", "s", "a"], b"two").out;
    assert_eq!(first, again);
    let oid = String::from_utf8(first).unwrap();
    let by_oid = home.feed(&["put", "s", oid.trim(), "--json"], b"three");
    let result: serde_json::Value = serde_json::from_slice(&by_oid.out).unwrap();
    assert_eq!(result["name"], "a");
    assert_eq!(result["oid"], oid.trim());
    assert_eq!(result["size"], 5);
    assert_eq!(home.ok(&["get", "s", "a"]), b"three");
}

#[test]
fn ranges() {
    let home = Home::new();
    let content = bytes(7, 5_000_000);
    home.file("in", &content);
    home.ok(&["put", "s", "big", "in"]);
    for (range, expected) in [
        ("0:5000000", 0..5_000_000),
        (":", 0..5_000_000),
        ("4999999:", 4_999_999..5_000_000),
        (":1", 0..1),
        ("70000:70000", 70_000..70_000),
        ("5000000:", 5_000_000..5_000_000),
        ("1234567:3456789", 1_234_567..3_456_789),
    ] {
        let got = home.ok(&["get", "s", "big", "--range", range]);
        assert!(got == content[expected], "{range}");
    }
    home.fails(&["get", "s", "big", "--range", "0:5000001"], 1, "outside the object");
    home.fails(&["get", "s", "big", "--range", "5000001:"], 1, "outside the object");
    home.fails(&["get", "s", "big", "--range", "0:5000001", "-o", "out"], 1, "outside");
    assert!(!home.path("out").exists());
    for usage in ["5:1", "-1:5", "x:y", "5", "1:99999999999999999999"] {
        assert_eq!(home.run(&["get", "s", "big", "--range", usage]).code, 2, "{usage}");
    }
}

#[test]
fn rename_and_delete() {
    let home = Home::new();
    for name in ["a", "b", "c"] {
        home.feed(&["put", "s", name], name.as_bytes());
    }
    home.ok(&["mv", "s", "a", "d"]);
    assert_eq!(home.ok(&["ls", "s"]), b"b\nc\nd\n");
    home.fails(&["mv", "s", "b", "c"], 1, "already exists");
    home.fails(&["mv", "s", "a", "e"], 3, "not found");
    let long = home.json(&["ls", "s", "--json"]);
    let oid = long[0]["oid"].as_str().unwrap().to_owned();
    home.fails(&["mv", "s", "c", &oid], 1, "is an OID");
    home.ok(&["mv", "s", &oid, "a"]);
    assert_eq!(home.ok(&["ls", "s"]), b"a\nc\nd\n");
    home.fails(&["rm", "s", "a", "nowhere"], 3, "nowhere");
    assert_eq!(home.ok(&["ls", "s"]), b"a\nc\nd\n", "all or nothing");
    let gone = home.json(&["rm", "s", &oid, "c", "--json"]);
    assert_eq!(gone["deleted"], 2);
    assert_eq!(home.ok(&["ls", "s"]), b"d\n");
    home.fails(&["get", "s", &oid], 3, "not found");
    sound(&home, "s");
}

#[test]
fn listing() {
    let home = Home::new();
    for name in ["plain", "pläne/ü", "tab\tand\nline", "back\\slash", "\u{1b}[31m", "-x", "zz"] {
        let put = home.feed(&["put", "s", "--", name], b"x");
        assert_eq!(put.code, 0, "{}", put.err);
    }
    let text = String::from_utf8(home.ok(&["ls", "s"])).unwrap();
    let expected = "\\x1b[31m\n-x\nback\\\\slash\nplain\npläne/ü\ntab\\tand\\nline\nzz\n";
    assert_eq!(text, expected);
    assert_eq!(home.ok(&["ls", "s", "pl"]), "plain\npläne/ü\n".as_bytes());
    assert_eq!(home.ok(&["ls", "s", "none"]), b"");
    assert_eq!(home.json(&["ls", "s", "none", "--json"]), serde_json::json!([]));
    let list = home.json(&["ls", "s", "--json"]);
    let names: Vec<_> = list.as_array().unwrap().iter().map(|o| o["name"].clone()).collect();
    assert!(names.contains(&"tab\tand\nline".into()) && names.len() == 7);
    assert!(list[0].get("name_hex").is_none());
    let long = String::from_utf8(home.ok(&["ls", "s", "zz", "--long"])).unwrap();
    let words: Vec<_> = long.split_whitespace().collect();
    assert_eq!((words[0], words[3]), ("1", "zz"));
    assert!(words[1].starts_with("20") && words[1].ends_with('Z') && words[2].starts_with("oid:"));
}

#[cfg(unix)]
#[test]
fn names_of_any_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let home = Home::new();
    let name = std::ffi::OsStr::from_bytes(b"bad\xff\xc3 utf8");
    let args = [std::ffi::OsStr::new("put"), "s".as_ref(), name];
    assert_eq!(home.feed(&args, b"x").code, 0);
    assert_eq!(home.ok(&["get".as_ref(), std::ffi::OsStr::new("s"), name]), b"x");
    let list = home.json(&["ls", "s", "--json"]);
    assert_eq!(list[0]["name_hex"], "626164ffc32075746638");
    assert_eq!(home.ok(&["ls", "s"]), b"bad\\xff\\xc3 utf8\n");
}

#[test]
fn collections_keep_apart() {
    let home = Home::new();
    home.feed(&["put", "s", "a"], b"default");
    home.feed(&["put", "s", "a", "--collection", "other"], b"other");
    assert_eq!(home.ok(&["get", "s", "a"]), b"default");
    assert_eq!(home.ok(&["get", "s", "a", "--collection", "other"]), b"other");
    home.ok(&["mv", "s", "a", "b", "--collection", "other"]);
    assert_eq!(home.ok(&["ls", "s", "--collection", "other"]), b"b\n");
    home.ok(&["rm", "s", "a"]);
    assert_eq!(home.json(&["stat", "s", "b", "--json", "--collection", "other"])["size"], 5);
    for args in
        [["ls", "s"].as_slice(), &["get", "s", "a"], &["rm", "s", "a"], &["mv", "s", "a", "b"]]
    {
        let args = [args, &["--collection", "missing"]].concat();
        home.fails(&args, 3, "missing");
    }
    let stat = home.json(&["stat", "s", "--json"]);
    assert_eq!(stat["collections"].as_array().unwrap().len(), 2, "none was made by looking");
}

#[test]
fn figures() {
    let home = Home::new();
    home.ok(&["create", "s", "--page-size", "4096"]);
    home.file("in", bytes(1, 300_000));
    home.ok(&["put", "s", "big", "in"]);
    home.feed(&["put", "s", "small"], b"12345");
    let stat = home.json(&["stat", "s", "--json"]);
    assert_eq!(stat["objects"], 2);
    assert_eq!(stat["logical_bytes"], 300_005);
    assert_eq!(stat["page_size"], 4096);
    for field in ["file_bytes", "free_bytes", "utilization"] {
        assert!(stat[field].is_number(), "{field}");
    }
    assert!(stat["checkpoint"]["lsn"].is_number() && stat["log"]["durable_lsn"].is_number());
    let text = String::from_utf8(home.ok(&["stat", "s"])).unwrap();
    assert!(text.contains("objects           2\n"), "{text}");
    let big = home.json(&["stat", "s", "big", "--json"]);
    assert_eq!((&big["size"], &big["layout"]["kind"]), (&300_000.into(), &"large".into()));
    let mtime: i128 = big["attributes"]["mtime"].as_str().unwrap().parse().unwrap();
    assert!(mtime > 1_600_000_000_000_000_000);
    let small = home.json(&["stat", "s", "small", "--json"]);
    assert_eq!(small["layout"]["kind"], "small");
    assert!(String::from_utf8(home.ok(&["stat", "s", "small"])).unwrap().contains("size"));
}

#[test]
fn a_time_is_a_date_first() {
    let home = Home::new();
    let path = home.file("in", "x");
    let time = UNIX_EPOCH + Duration::new(1_795_384_311, 538_653_248);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    home.ok(&["put", "s", "a", "in"]);
    let text = String::from_utf8(home.ok(&["stat", "s", "a"])).unwrap();
    let line = "mtime             2026-11-22T21:51:51Z (1795384311538653248 ns)\n";
    assert!(text.ends_with(line), "{text}");
    let json = home.json(&["stat", "s", "a", "--json"]);
    assert_eq!(json["attributes"]["mtime"], "1795384311538653248");
}

#[test]
fn inspection_describes_each_part() {
    let home = Home::new();
    home.feed(&["put", "s", "one"], b"x");
    for args in [
        ["inspect", "s", "page", "1"].as_slice(),
        &["inspect", "s", "space", "0"],
        &["inspect", "s", "space"],
        &["inspect", "s", "log"],
        &["inspect", "s", "object", "one"],
        &["inspect", "s", "names"],
        &["inspect", "s", "names", "o"],
        &["inspect", "s", "sharing"],
        &["inspect", "s", "volume"],
    ] {
        let text = String::from_utf8(home.ok(args)).unwrap();
        assert!(text.ends_with('\n'), "{args:?}");
        let value = home.json(&[args, &["--json"]].concat());
        let rows = ["log", "names"].contains(&args[2]) || args == ["inspect", "s", "space"];
        let elements = value.as_array().map(Vec::len);
        assert_eq!(elements, rows.then(|| text.lines().count()), "{args:?}: {text}{value}");
    }
    let object = home.json(&["inspect", "s", "--json", "object", "one"]);
    assert_eq!((&object["name"], &object["body"]["bytes"]), (&"one".into(), &"78".into()));
    assert!(object["modified"].as_u64() > Some(0), "{object}");
    let names = home.json(&["inspect", "s", "names", "--json"]);
    assert_eq!((&names[2]["name"], &names[2]["oid"]), (&"one".into(), &object["oid"]));
    home.fails(&["inspect", "none", "log"], 3, "not found");
    assert_eq!(home.run(&["inspect", "s"]).code, 2);
}

#[test]
fn get_keeps_what_the_output_is() {
    let home = Home::new();
    home.feed(&["put", "s", "a"], b"new content");
    assert_eq!(home.ok(&["get", "s", "a", "-o", "-"]), b"new content");
    // A device is written to, not replaced.
    home.ok(&["get", "s", "a", "-o", "/dev/null"]);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let file = home.file("out", "old");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink("out", home.path("link")).unwrap();
        home.ok(&["get", "s", "a", "-o", "link"]);
        assert!(fs::symlink_metadata(home.path("link")).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new content");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_closed_pipe_is_quiet() {
    let home = Home::new();
    home.file("in", bytes(1, 8_000_000));
    home.ok(&["put", "s", "big", "in"]);
    let mut child = Command::new(HOLDALL)
        .args(["get", "s", "big"])
        .current_dir(home.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let run = Run::of(child.wait_with_output().unwrap());
    assert_eq!((run.code, run.err.as_str()), (0, ""));
}

#[test]
fn sums_beside_the_store_are_compared_where_there_are_some() {
    let home = Home::new();
    let path = home.path("s");
    let missing = "not found: sums of this store in ";
    home.ok(&["create", "s"]);
    home.fails(&["verify", "s", "--sums"], 3, missing);
    home.fails(&["verify", "none", "--sums"], 3, "not found: there is no store none");
    let store = holdall::Store::builder().debug_sums(true).open(&path).unwrap();
    store.write(|tx| tx.put("a", b"first")).unwrap();
    store.close().unwrap();
    home.feed(&["put", "s", "b"], b"second");
    let text = String::from_utf8(home.ok(&["verify", "s", "--sums"])).unwrap();
    assert!(text.contains("2 objects") && text.contains(", 1 objects held against sums"), "{text}");
    let json = home.json(&["verify", "s", "--sums", "--json"]);
    assert_eq!((&json["compared"], &json["sound"]), (&1.into(), &true.into()));
    assert!(home.json(&["verify", "s", "--json"]).get("compared").is_none());

    // As if the store had other bytes than were put.
    let sums = std::fs::read(home.path("s-sums")).unwrap();
    let mut other = sums.clone();
    other[48 + 32] ^= 1;
    let crc = holdall_core::checksum::crc(&other[48..92]).to_le_bytes();
    other[92..96].copy_from_slice(&crc);
    std::fs::write(home.path("s-sums"), other).unwrap();
    let run = home.run(&["verify", "s", "--sums"]);
    let text = String::from_utf8(run.out).unwrap();
    assert_eq!(run.code, 4);
    assert!(text.starts_with("problem: object \"a\"") && text.contains("were put"), "{text}");
}
