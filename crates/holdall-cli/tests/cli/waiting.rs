//! `--wait`: commands that come while others have the store open.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use holdall::Store;

use crate::support::{HOLDALL, Home};

/// Processes at a time.
const MANY: usize = 100;

fn start(home: &Home, args: &[&str]) -> Child {
    let mut command: Command = home.command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn puts_that_wait_all_succeed_also_where_the_first_makes_the_store() {
    let home = Home::new();
    home.file("content", b"some bytes");
    let put = |i| start(&home, &["put", "--wait", "s", &format!("object {i}"), "content"]);
    let children: Vec<Child> = (0..MANY).map(put).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
    }
    let store = Store::open_read_only(home.path("s")).unwrap();
    assert_eq!(store.read().unwrap().count_names().unwrap(), MANY as u64);
}

/// What a command that fails takes back is a store that it made, not one that it waited for.
#[test]
fn a_put_that_fails_after_a_wait_leaves_the_store() {
    let home = Home::new();
    home.file("content", b"some bytes");
    for _ in 0..10 {
        let good = start(&home, &["put", "--wait", "s", "object", "content"]);
        let bad = start(&home, &["put", "--wait", "s", "oid:0.1.1.1", "content"]);
        assert!(!bad.wait_with_output().unwrap().status.success());
        assert!(good.wait_with_output().unwrap().status.success());
        home.ok(&["get", "s", "object"]);
        home.ok(&["verify", "s"]);
        std::fs::remove_file(home.path("s")).unwrap();
    }
}

#[test]
fn a_wait_that_is_too_short_names_who_has_the_store() {
    let home = Home::new();
    home.file("content", b"some bytes");
    let store = Store::create(home.path("s")).unwrap();
    let own = std::process::id();
    for (wait, least) in [(None, 0), (Some("--wait=100ms"), 100), (Some("--wait=0.1"), 100)] {
        let begun = Instant::now();
        let mut args = vec!["put", "s", "object", "content"];
        args.extend(wait);
        let output = start(&home, &args).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(5));
        assert!(begun.elapsed() >= Duration::from_millis(least));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("s is in use by "), "{said}");
        if cfg!(target_os = "linux") {
            assert!(said.contains(&format!("process {own} (")), "{said}");
            assert!(said.contains("which started"), "{said}");
        }
    }
    let waits = ["rm", "mv", "cp", "insert", "append", "defrag", "compact", "import", "create"];
    for command in waits {
        let help = Command::new(HOLDALL).args([command, "--help"]).output().unwrap();
        assert!(String::from_utf8_lossy(&help.stdout).contains("--wait[=<DURATION>]"), "{command}");
    }
    let late = start(&home, &["put", "s", "object", "content", "--wait=60s"]);
    std::thread::sleep(Duration::from_millis(50));
    store.close().unwrap();
    assert!(late.wait_with_output().unwrap().status.success());
}

/// A process that is killed leaves its locks one by one.
#[test]
fn who_waits_for_a_process_that_is_killed_recovers_the_store() {
    let home = Home::new();
    home.file("content", b"some bytes");
    // A creation that is cut short leaves what nobody takes for a store.
    home.ok(&["create", "s"]);
    for round in 0..10 {
        // It has committed one of two batches when it waits for the input of the other.
        let mut killed = start(&home, &["import", "s", ".", "--wait"]);
        let late = start(&home, &["put", "s", "object", "content", "--wait=60s"]);
        std::thread::sleep(Duration::from_millis(2 * round));
        // It may have ended.
        let _ = killed.kill();
        let output = late.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // It may have asked the other one over its socket, and learns that it has ended.
        assert!(output.status.success() || said.contains("it has ended"), "{said}");
        killed.wait().unwrap();
        home.ok(&["put", "s", "object", "content", "--wait=60s"]);
        assert_eq!(home.ok(&["get", "s", "object"]), b"some bytes");
    }
    home.ok(&["verify", "s"]);
}
