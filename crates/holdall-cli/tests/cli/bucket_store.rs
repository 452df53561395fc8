//! Objects in a bucket of an S3 server, which is `holdall serve` here.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::bad_input::on_each;
use crate::server::Server;
use crate::support::{Home, bytes, files};

const STORE: &str = "s3://backups/objects";

fn with_store() -> (Home, Server) {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let said = server.ok(&home, &["bucket", "create", STORE]);
    assert!(
        said.contains("a key is created once (") && said.contains("\nmade the store "),
        "{said}"
    );
    (home, server)
}

fn json(server: &Server, home: &Home, args: &[&str]) -> Value {
    serde_json::from_str(&server.ok(home, &[args, &["--json"]].concat())).unwrap()
}

#[test]
fn objects_are_put_read_edited_copied_and_removed() {
    let (home, server) = with_store();
    let ok = |args: &[&str]| server.ok(&home, args);
    let mut film = bytes(1, 20_000_000);
    home.file("film", &film);
    home.file("small", "hello world");
    let put = json(&server, &home, &["put", STORE, "films/one", "film"]);
    assert_eq!((&put["name"], &put["size"]), (&"films/one".into(), &20_000_000.into()));
    ok(&["put", STORE, "small", "small"]);
    assert_eq!(ok(&["ls", STORE]), "films/one\nsmall\n");
    assert_eq!(ok(&["ls", STORE, "fil"]), "films/one\n");
    let listed = json(&server, &home, &["ls", STORE]);
    assert_eq!((&listed[1]["name"], &listed[1]["size"]), (&"small".into(), &11.into()));
    assert_eq!(listed[0]["version"], put["version"]);
    let mtime = listed[1]["attributes"]["mtime"].as_str().unwrap();
    assert!(ok(&["stat", STORE, "small"]).contains(mtime));
    assert!(ok(&["ls", STORE, "--long"]).lines().all(|line| line.contains(" -  ")));

    // In the middle, over it, out of it, at the end.
    home.file("more", "in the middle");
    assert_eq!(ok(&["insert", STORE, "films/one", "--at", "9000000", "more"]), "20000013 bytes\n");
    film.splice(9_000_000..9_000_000, *b"in the middle");
    assert_eq!(ok(&["replace", STORE, "films/one", "--at", "5", "more"]), "20000013 bytes\n");
    film.splice(5..18, *b"in the middle");
    ok(&["delete-range", STORE, "films/one", "--range", "100:8388700"]);
    film.drain(100..8_388_700);
    ok(&["append", STORE, "films/one", "more"]);
    film.extend(b"in the middle");
    ok(&["get", STORE, "films/one", "-o", "out"]);
    assert!(fs::read(home.path("out")).unwrap() == film);
    let part = server.run(&home, &["get", STORE, "films/one", "--range", "600:700"]);
    assert!(part.out == film[600..700]);
    assert_eq!(ok(&["truncate", STORE, "small", "5"]), "5 bytes\n");
    assert_eq!(ok(&["delete-range", STORE, "small", "--range", "4:"]), "4 bytes\n");

    ok(&["cp", STORE, "films/one", "films/copy"]);
    ok(&["truncate", STORE, "films/one", "0"]);
    ok(&["mv", STORE, "films/copy", "films/two"]);
    assert!(server.run(&home, &["get", STORE, "films/two"]).out == film);
    ok(&["put", STORE, "note", "small", "--collection", "notes"]);
    assert_eq!(ok(&["get", STORE, "note", "--collection", "notes"]), "hello world");
    assert_eq!(json(&server, &home, &["rm", STORE, "small"])["deleted"], 1);
    assert_eq!(ok(&["rm", STORE, "--prefix", "films/"]), "deleted 2 objects\n");
    assert_eq!(ok(&["ls", STORE]), "");
    let fails = |args: &[&str], code: i32, message: &str| {
        server.run(&home, args).failed(code, message);
    };
    fails(&["get", STORE, "small"], 3, "object \"small\"");
    fails(&["rm", STORE, "small"], 3, "object \"small\"");
    fails(&["rm", STORE, "--prefix", "films/"], 3, "names that begin with films/");
    fails(&["cp", STORE, "small", "b"], 3, "object \"small\"");
    fails(&["ls", STORE, "--collection", "none"], 3, "collection \"none\"");
}

#[test]
fn garbage_is_collected() {
    let (home, server) = with_store();
    home.file("film", bytes(1, 9_000_000));
    server.ok(&home, &["put", STORE, "film", "film"]);
    let cycle = json(&server, &home, &["bucket", "gc", STORE]);
    assert_eq!((&cycle["cycle"], &cycle["records"]), (&1.into(), &1.into()), "{cycle}");
    // What is young stays.
    server.ok(&home, &["rm", STORE, "film"]);
    let said = server.ok(&home, &["bucket", "gc", STORE, "--full", "--alone"]);
    assert!(said.starts_with("cycle 2: deleted 0 blobs, 0 bytes"), "{said}");
    server.run(&home, &["bucket", "gc", "s3://backups/none"]).failed(3, "a store in s3://");
}

#[test]
fn what_a_bucket_does_not_offer_is_refused() {
    let (home, server) = with_store();
    home.file("in", "x");
    home.file("tree/in", "x");
    for name in ["a", "b"] {
        server.ok(&home, &["put", STORE, name, "in"]);
    }
    let fails = |args: &[&str], code: i32, message: &str| {
        server.run(&home, args).failed(code, message);
        assert_eq!(server.ok(&home, &["ls", STORE]), "a\nb\n", "{args:?}");
    };
    let files_only = ["defrag", "compact", "checkpoint", "frag", "verify", "backup", "inspect"];
    for args in on_each(STORE).iter().filter(|args| files_only.contains(&args[0])) {
        fails(args, 1, "needs a store's file");
    }
    for option in ["--delete", "--checksum", "--report-acks"] {
        fails(&["import", STORE, "tree", option], 1, "with a store's file only");
    }
    fails(&["stat", STORE], 1, "no figures");
    fails(&["stat", STORE, "--watch"], 1, "needs a store's file");
    fails(&["create", STORE], 1, "holdall bucket create");
    fails(&["rm", STORE, "a", "b"], 1, "as one change");
    fails(&["get", STORE, "oid:0.1.2.3"], 1, "no OIDs");
    fails(&["put", STORE, "oid:0.1.2.3", "in"], 1, "no OIDs");
    fails(&["mv", STORE, "a", "b"], 1, "already exists");
    fails(&["insert", STORE, "a", "in", "--at", "2"], 1, "range 2:2");
    fails(&["put", STORE, &"n".repeat(901), "in"], 1, "at most 900");
    fails(&["bucket", "create", STORE], 1, "already exists");
    fails(&["ls", "s3://backups/none"], 3, "holdall bucket create");
    fails(&["put", "s3://backups/none", "a", "in"], 3, "holdall bucket create");
    for command in ["create", "probe", "gc"] {
        fails(&["bucket", command, "s3://none/x"], 3, "not found: bucket \"none\"");
    }
    fails(&["ls", "s3://none/x"], 3, "make the bucket by the server's own means");
    fails(&["ls", "s3:///x"], 1, "names no bucket");
    home.fails(&["ls", "s", "--profile", "p"], 1, "with a bucket only");

    // Backups and objects lie apart.
    home.ok(&["put", "s", "a", "in"]);
    fails(&["backup", "s", STORE], 1, "holds a store of objects, no backups");
    fails(&["backups", STORE], 1, "holds a store of objects, no backups");
    let place = "s3://backups/place";
    server.ok(&home, &["backup", "s", place]);
    fails(&["bucket", "create", place], 1, "holds backups, no objects");
    fails(&["ls", place], 1, "holds backups, no objects");
}

#[test]
fn a_server_is_probed() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let found = json(&server, &home, &["bucket", "probe", STORE]);
    assert!(found["checks"].as_array().unwrap().len() == 10, "{found}");
    let said = server.ok(&home, &["bucket", "probe", STORE]);
    assert!(said.contains("\nthe server passes: "), "{said}");
    server.run(&home, &["bucket", "probe", "s3://none/x"]).failed(3, "bucket");
    server.run(&home, &["ls", STORE]).failed(3, "a store in");
}

#[test]
fn a_directory_is_imported_and_exported_and_goes_on_where_it_was_killed() {
    let (home, server) = with_store();
    for n in 0..60_usize {
        home.file(&format!("tree/{}/{n}", n % 7), bytes(n as u64, n * 9000));
    }
    home.file("tree/large", bytes(99, 20_000_000));
    let args = ["import", STORE, "tree", "--prefix", "x/"];
    let mut child = server.command(&home, &args).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(150));
    child.kill().unwrap();
    child.wait().unwrap();
    let before = server.ok(&home, &["ls", STORE]).lines().count();
    let done = json(&server, &home, &args);
    // What was on its way when it was killed may come after the listing.
    let there = done["already_there"].as_u64().unwrap();
    assert!(there >= before as u64, "{before} before: {done}");
    assert_eq!((&done["files"], &done["failed"]), (&(61 - there).into(), &0.into()), "{done}");
    let again = json(&server, &home, &args);
    assert_eq!((&again["files"], &again["already_there"]), (&0.into(), &61.into()), "{again}");
    let get = |name: &str| server.run(&home, &["get", STORE, name]).out;
    assert!(get("x/large") == bytes(99, 20_000_000) && get("x/3/59") == bytes(59, 59 * 9000));
    export(&home, &server);
    home.file("tree/3/59", "new");
    let third = json(&server, &home, &[&args[..], &["--exclude", "large"]].concat());
    assert_eq!((&third["replaced"], &third["excluded"]), (&1.into(), &1.into()), "{third}");
    assert_eq!(get("x/3/59"), b"new");
}

fn export(home: &Home, server: &Server) {
    let args = ["export", STORE, "out", "--prefix", "x/"];
    let done = json(server, home, &args);
    assert_eq!((&done["files"], &done["failed"]), (&61.into(), &0.into()), "{done}");
    assert!(files(&home.path("out")) == files(&home.path("tree")));
    let time = |path: &str| fs::metadata(home.path(path)).unwrap().modified().unwrap();
    assert_eq!(time("out/large"), time("tree/large"));
    for lost in ["out/3/59", "out/large"] {
        fs::remove_file(home.path(lost)).unwrap();
    }
    let again = json(server, home, &args);
    assert_eq!((&again["files"], &again["already_there"]), (&2.into(), &59.into()), "{again}");
    assert!(files(&home.path("out")) == files(&home.path("tree")));
}

#[test]
fn collecting_probes_a_server_again_that_was_probed_a_day_ago() {
    let (home, server) = with_store();
    let kept = || {
        let args = ["get", "server", "objects/server", "--collection", "backups"];
        serde_json::from_slice::<Value>(&home.ok(&args)).unwrap()
    };
    let first = kept()["probed"].as_u64().unwrap();
    assert!(first > 1_700_000_000, "{first}");
    server.ok(&home, &["bucket", "gc", STORE]);
    assert_eq!(kept()["probed"], first);
    // As the release before wrote it.
    home.file("old", r#"{"quoted":true}"#);
    home.ok(&["put", "server", "objects/server", "old", "--collection", "backups"]);
    server.ok(&home, &["ls", STORE]);
    assert_eq!(kept()["probed"], Value::Null);
    server.ok(&home, &["bucket", "gc", STORE]);
    assert!(kept()["probed"].as_u64().unwrap() >= first);
}
