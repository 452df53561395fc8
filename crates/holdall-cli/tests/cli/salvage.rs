//! `holdall salvage`.

use crate::support::Home;
use std::os::unix::fs::FileExt;

/// A store of two objects, one of which has lost bytes.
fn hurt() -> Home {
    let home = Home::new();
    home.ok(&["create", "s"]);
    std::fs::write(home.path("in"), vec![9; 100_000]).unwrap();
    home.ok(&["put", "s", "large \u{1b}", "in"]);
    home.ok(&["put", "s", "small", "in", "--collection", "more"]);
    home.ok(&["truncate", "s", "small", "10", "--collection", "more"]);
    let bytes = std::fs::read(home.path("s")).unwrap();
    let at = bytes.windows(8192).position(|w| w.iter().all(|b| *b == 9)).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(home.path("s")).unwrap();
    file.write_all_at(b"no", at as u64 + 10_000).unwrap();
    home
}

#[test]
fn what_is_whole_comes_back_and_the_rest_is_named() {
    let home = hurt();
    let run = home.run(&["salvage", "s", "n"]);
    let (out, err) = (run.text(), &run.err);
    assert_eq!(run.code, 4, "{err}");
    assert!(out.contains("lost: default: large \\x1b, bytes 8192:12288 of 100000: page "), "{out}");
    assert!(out.contains("1 objects of 2 collections brought, 10 bytes; 1 lost"), "{out}");
    assert!(err.contains("s was damaged"), "{err}");
    assert_eq!(home.ok(&["get", "n", "small", "--collection", "more"]), [9; 10]);
    home.fails(&["salvage", "s", "n"], 1, "already exists: n");
    home.fails(&["salvage", "s", "s"], 1, "already exists: s");
    let run = home.run(&["salvage", "s", "p", "--partial", "--json"]);
    let report: serde_json::Value = serde_json::from_str(run.text()).unwrap();
    assert_eq!((run.code, &report["objects"]), (4, &serde_json::json!(2)));
    let lost = &report["lost"][0];
    assert_eq!(lost["lost_ranges"], serde_json::json!([[8192, 12288]]));
    assert_eq!((&lost["brought"], &lost["collection"]), (&true.into(), &"default".into()));
    home.ok(&["verify", "p"]);
}

#[test]
fn of_a_sound_store_all_comes_back() {
    let home = Home::new();
    home.ok(&["create", "s"]);
    std::fs::write(home.path("in"), b"bytes").unwrap();
    home.ok(&["put", "s", "a", "in"]);
    let out = String::from_utf8(home.ok(&["salvage", "s", "n"])).unwrap();
    assert_eq!(out, "1 objects of 1 collections brought, 5 bytes; 0 lost\n");
    assert_eq!(home.ok(&["ls", "--long", "s"]), home.ok(&["ls", "--long", "n"]));
}
