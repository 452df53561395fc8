//! Backups and restores by commands, also of a store that another process writes.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use holdall::Store;
use holdall_control::Control;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Home, Run, bytes, files};

#[test]
fn a_store_is_backed_up_while_another_process_writes_and_restored_at_any_increment() {
    let home = Home::new();
    let store = Store::create(home.path("s")).unwrap();
    let put = |n: u64| {
        store.write(|tx| tx.put("a", &bytes(n, 300_000)).map(drop)).unwrap();
        store.write(|tx| tx.put(format!("n{n}"), b"small").map(drop)).unwrap();
    };
    put(0);
    let control = Control::listen(&store, home.path("s")).unwrap();
    home.ok(&["backup", "s", "b0"]);
    for n in 1..4 {
        put(n);
        let (base, to) = (format!("b{}", n - 1), format!("b{n}"));
        let report = home.json(&["backup", "s", &to, "--base", &base, "--json"]);
        assert!(report["verified"].as_bool().unwrap(), "{report}");
        assert!(report["copied_bytes"].as_u64() <= report["in_use_bytes"].as_u64(), "{report}");
    }
    drop(control);
    home.fails(&["backup", "s", "b9"], 5, "in use");
    store.close().unwrap();
    put_by_command(&home);
    // What lies in the socket's place is nobody's who has the store open.
    home.file("s-control", "mine");
    home.ok(&["backup", "s", "b4", "--base", "b3"]);
    home.ok(&["ls", "b0"]);
    for n in 0..5_usize {
        let to = format!("r{n}");
        let parts: Vec<String> = (0..=n).rev().map(|n| format!("b{n}")).collect();
        let mut args = vec!["restore", to.as_str()];
        args.extend(parts.iter().map(String::as_str));
        home.ok(&args);
        home.ok(&["verify", &to]);
        let store = Store::open(home.path(&to)).unwrap();
        assert!(store.get("a").unwrap().unwrap() == bytes(n.min(3) as u64, 300_000));
        assert_eq!(store.get("later").unwrap().is_some(), n == 4);
    }
    home.fails(&["restore", "r0", "b0"], 1, "already exists");
    home.fails(&["restore", "x", "b0", "b2"], 1, "not among these");
    home.fails(&["restore", "x", "b0", "s"], 1, "no backup");
    home.fails(&["backup", "s", "x", "--base", "s"], 1, "no backup");
    home.fails(&["backup", "s", "b0"], 1, "already exists");
    home.fails(&["backup", "none", "x"], 3, "none");
    assert!(!home.path("x").exists());
}

fn put_by_command(home: &Home) {
    home.file("in", "later");
    home.ok(&["put", "s", "later", "in"]);
}

#[test]
fn a_backup_goes_through_a_pipe() {
    let home = Home::new();
    home.file("in", bytes(3, 500_000));
    home.ok(&["put", "s", "a", "in"]);
    let whole = home.run(&["backup", "s", "-"]);
    assert_eq!(whole.code, 0, "{}", whole.err);
    let restored = home.feed(&["restore", "r", "-"], &whole.out);
    assert_eq!(restored.code, 0, "{}", restored.err);
    let store = Store::open(home.path("r")).unwrap();
    assert!(store.get("a").unwrap().unwrap() == bytes(3, 500_000));
    fs::write(home.path("cut"), &whole.out[..whole.out.len() / 2]).unwrap();
    home.fails(&["restore", "x", "cut"], 4, "cut short");
    assert!(!home.path("x").exists());
}

#[test]
fn a_backup_or_restore_that_is_ended_leaves_nothing() {
    let home = Home::new();
    let store = Store::create(home.path("s")).unwrap();
    for n in 0..40 {
        store.write(|tx| tx.put(format!("o{n}"), &bytes(n, 1 << 20)).map(drop)).unwrap();
    }
    store.close().unwrap();
    home.ok(&["backup", "s", "whole"]);
    let there = files(&home.path(""));
    for args in [
        ["backup", "s", "slow", "--rate", "1"].as_slice(),
        &["backup", "s", "slow", "--base", "whole", "--rate", "1"],
    ] {
        // What an increment takes.
        home.file("in", bytes(9, 4 << 20));
        home.ok(&["put", "s", "more", "in"]);
        fs::remove_file(home.path("in")).unwrap();
        let child = home.command(args).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(700));
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        Run::of(child.wait_with_output().unwrap()).failed(143, "ended by signal 15");
        let names = |files: &[(PathBuf, Vec<u8>)]| -> Vec<PathBuf> {
            files.iter().map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(names(&files(&home.path(""))), names(&there));
    }
}
