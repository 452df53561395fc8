//! Backups in a bucket of an S3 server, which is `holdall serve` here; that a process is killed there.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use holdall::Store;
use holdall_control::Control;

use crate::server::Server;
use crate::support::{Home, Run, bytes};

const PLACE: &str = "s3://backups/photos";

#[test]
fn a_store_is_backed_up_to_a_bucket_and_restored() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let store = Store::create(home.path("s")).unwrap();
    let put = |n: u64| {
        store.write(|tx| tx.put(format!("o{n}"), &bytes(n, 1 << 20)).map(drop)).unwrap();
    };
    (0..20).for_each(put);
    let control = Control::listen(&store, home.path("s")).unwrap();
    let said = server.ok(&home, &["backup", "s", PLACE]);
    assert!(said.starts_with("backup ") && said.ends_with(" in use, verified\n"), "{said}");
    put(20);
    let more = server.ok(&home, &["backup", "s", PLACE, "--base", PLACE, "--json"]);
    let more: serde_json::Value = serde_json::from_str(&more).unwrap();
    assert!(more["written_bytes"].as_u64().unwrap() < 5 << 20, "{more}");
    drop(control);
    store.close().unwrap();
    let listed = server.ok(&home, &["backups", PLACE]);
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines.len() == 2 && lines[0].ends_with("  whole") && lines[1].contains("  since "));
    let first = lines[0].split("  ").nth(1).unwrap();
    server.ok(&home, &["restore", "r0", PLACE, "--at", first]);
    server.ok(&home, &["restore", "r1", PLACE]);
    for (path, count) in [("r0", 20), ("r1", 21)] {
        let store = Store::open(home.path(path)).unwrap();
        assert_eq!(store.read().unwrap().count_names().unwrap(), count);
        for n in 0..count {
            assert!(store.get(format!("o{n}")).unwrap().unwrap() == bytes(n, 1 << 20));
        }
    }
    // The same keys from the files of aws-cli and rclone.
    let keys = "aws_access_key_id = K\naws_secret_access_key = secret-of-K-0123\n";
    home.file(".aws/credentials", format!("[mine]\n{keys}"));
    home.file(".aws/config", format!("[profile mine]\nendpoint_url = {}\n", server.endpoint));
    let own = format!(
        "[box]\ntype = s3\nprovider = Other\naccess_key_id = K\nsecret_access_key = \
         secret-of-K-0123\nendpoint = {}\n",
        server.endpoint
    );
    home.file(".config/rclone/rclone.conf", own);
    for way in [["--profile", "mine"], ["--remote", "box"]] {
        let mut command = home.command(&[&["backups", PLACE][..], &way].concat());
        let run = Run::of(command.env("HOME", home.path("")).output().unwrap());
        assert_eq!((run.code, run.text()), (0, listed.as_str()), "{}", run.err);
    }
}

#[test]
fn what_a_bucket_refuses_changes_nothing() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    home.file("in", "x");
    home.ok(&["put", "s", "a", "in"]);
    home.ok(&["put", "t", "b", "in"]);
    server.ok(&home, &["backup", "s", PLACE]);
    let listed = server.ok(&home, &["backups", PLACE]);
    let fails = |args: &[&str], code: i32, message: &str| {
        server.run(&home, args).failed(code, message);
        assert_eq!(server.ok(&home, &["backups", PLACE]), listed, "{args:?}");
    };
    fails(&["backup", "t", PLACE], 1, "has the backups of store");
    fails(&["backup", "t", PLACE, "--base", PLACE], 1, "has the backups of store");
    fails(&["backup", "s", PLACE, "--base", "s3://backups/other"], 1, "lies where its base lies");
    fails(&["backup", "s", "s3://none/x"], 3, "bucket");
    fails(&["backups", "s3://none/x"], 3, "bucket");
    fails(&["backup", "s", "s3:///x"], 1, "names no bucket");
    fails(&["backup", "s", "x", "--keep", "last=1"], 1, "with a bucket only");
    fails(&["backup", "s", "x", "--profile", "p"], 1, "with a bucket only");
    fails(&["backup", "s", "x", "--follow", "1s"], 1, "with a bucket only");
    fails(&["backup", "s", PLACE, "--profile", "none"], 1, "no profile none");
    fails(&["restore", "r", PLACE, "--at", "2001-01-01T00:00:00Z"], 3, "of that time");
    fails(&["restore", "r", "s3://backups/empty"], 3, "backups in s3://backups/empty");
    fails(&["restore", "s", PLACE], 1, "already exists");
    server.run(&home, &["restore", "r", PLACE, "--at", "monday"]).usage();
    server.run(&home, &["backup", "s", PLACE, "--keep", "often"]).usage();
    let mut wrong = server.command(&home, &["backup", "s", PLACE]);
    Run::of(wrong.env("AWS_SECRET_ACCESS_KEY", "wrong").output().unwrap())
        .failed(1, "refuses these credentials");
    assert_eq!(server.ok(&home, &["backups", PLACE]), listed);
    assert!(!home.path("r").exists());
    // What some later use of a bucket may begin with.
    home.file("first", r#"{"holds": "store", "version": 1, "store": "00"}"#);
    drop(server);
    home.ok(&["put", "server", "--collection", "backups", "other/holdall.json", "first"]);
    let server = Server::start(&home, &[]);
    let other = server.run(&home, &["backup", "s", "s3://backups/other"]);
    other.failed(1, "holds a store, no backups");
}

/// Every commit that is older than two intervals when the store's machine is lost is in the bucket.
#[test]
fn a_follower_that_is_killed_loses_seconds() {
    const EVERY: Duration = Duration::from_millis(300);
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let store = Store::create(home.path("s")).unwrap();
    let control = Control::listen(&store, home.path("s")).unwrap();
    let mut written: Vec<Instant> = Vec::new();
    for round in 0..4_u64 {
        let args = ["backup", "s", PLACE, "--follow", "300ms", "--keep", "last=5"];
        let mut child = server.command(&home, &args);
        let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(2500 + round * 170) {
            let n = written.len() as u64;
            store.write(|tx| tx.put(format!("o{n}"), &bytes(n, 3000)).map(drop)).unwrap();
            written.push(Instant::now());
        }
        let killed = Instant::now();
        child.kill().unwrap();
        child.wait().unwrap();
        let to = format!("r{round}");
        server.ok(&home, &["restore", &to, PLACE]);
        let restored = Store::open(home.path(&to)).unwrap();
        let count = restored.read().unwrap().count_names().unwrap();
        // On a busy machine a turn takes longer than an interval.
        let late = killed - EVERY * 2 - Duration::from_secs(1);
        let needed = written.iter().filter(|at| **at < late).count() as u64;
        assert!(count >= needed, "{count} of {needed}, round {round}");
        for n in 0..count {
            assert!(restored.get(format!("o{n}")).unwrap().unwrap() == bytes(n, 3000));
        }
    }
    drop(control);
    store.close().unwrap();
    let _ = fs::remove_file(home.path("s-control"));
    follow_what_nobody_has_open(&home, &server);
}

fn follow_what_nobody_has_open(home: &Home, server: &Server) {
    let args = ["backup", "s", PLACE, "--follow", "100ms", "--json"];
    let mut command = server.command(home, &args);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    home.file("in", "by another command");
    home.ok(&["put", "s", "later", "in", "--wait"]);
    let added = lines.next().unwrap().unwrap();
    assert!(added.contains("\"base\":\""), "{added}");
    // What did not change is not backed up again.
    std::thread::sleep(Duration::from_millis(800));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(lines.count(), 0);
    server.ok(home, &["restore", "last", PLACE]);
    assert_eq!(home.ok(&["get", "last", "later"]), b"by another command");
}
