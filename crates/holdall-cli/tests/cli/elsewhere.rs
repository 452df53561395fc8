//! Commands on a store that another process has open: here the test's own, which answers or not.

use std::fs;
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use holdall::Store;
use holdall_control::Control;

use crate::bad_input::on_each;
use crate::support::{Home, Run, bytes};

/// A store with an object `a`, open in this process.
fn open(home: &Home) -> Store {
    home.file("in", bytes(1, 200_000));
    home.file("tree/in", "x");
    home.ok(&["put", "s", "a", "in"]);
    Store::open(home.path("s")).unwrap()
}

#[test]
fn every_command_but_two_works_beside_a_process_that_answers() {
    let home = Home::new();
    let store = open(&home);
    let _control = Control::listen(&store, home.path("s")).unwrap();
    for args in on_each("s") {
        store.write(|tx| tx.put("a", &bytes(1, 200_000)).map(drop)).unwrap();
        match args[0] {
            "import" => home.fails(&args, 5, "in use"),
            _ => drop(home.ok(&args)),
        }
        assert!(store.verify().unwrap().is_sound());
    }
    // What was done is there at once, and the store was not closed.
    let put = home.feed(&["put", "s", "typed"], b"from a pipe");
    assert_eq!(put.code, 0, "{}", put.err);
    assert_eq!(store.get("typed").unwrap().unwrap(), b"from a pipe");
    home.fails(&["rm", "s", "typed", "none"], 3, "none");
    home.fails(&["replace", "s", "typed", "in", "--at", "0"], 1, "outside the object");
    home.fails(&["mv", "s", "typed", "b"], 1, "already exists");
    home.fails(&["cp", "s", "typed", "x", "--collection", "none"], 3, "none");
    assert_eq!(store.get("typed").unwrap().unwrap(), b"from a pipe");
    assert_eq!(store.read().unwrap().collections().unwrap(), ["default"]);
    home.ok(&["rm", "s", "--prefix", "ty"]);
    home.fails(&["rm", "s", "--prefix", "ty"], 3, "ty");
    assert_eq!(store.get("typed").unwrap(), None);
    let reader = store.read().unwrap();
    store.write(|tx| tx.remove("a").map(drop)).unwrap();
    let stat = home.json(&["stat", "s", "--json"]);
    assert_eq!(stat["readers"].as_array().unwrap().len(), 1, "the writer's: {stat}");
    drop(reader);
}

#[test]
fn an_export_has_one_state_while_the_writer_replaces_all() {
    let home = Home::new();
    let store = Store::create(home.path("s")).unwrap();
    let fill = |round: u8| {
        let put = |tx: &mut holdall::WriteTx| {
            (0..200).try_for_each(|i| tx.put(format!("n{i:03}"), &vec![round; 10_000]).map(drop))
        };
        store.write(put).unwrap();
        store.checkpoint().unwrap();
    };
    fill(0);
    let _control = Control::listen(&store, home.path("s")).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| (1..).take_while(|_| !stop.load(Ordering::SeqCst)).for_each(fill));
        for round in 0..5 {
            let out = format!("out{round}");
            home.ok(&["export", "s", &out]);
            let files: Vec<_> = fs::read_dir(home.path(&out)).unwrap().collect();
            assert_eq!(files.len(), 200);
            let first = fs::read(home.path(&out).join("n000")).unwrap();
            for file in files {
                assert!(fs::read(file.unwrap().path()).unwrap() == first, "two states");
            }
            home.ok(&["verify", "s"]);
            home.ok(&["frag", "s"]);
        }
        stop.store(true, Ordering::SeqCst);
    });
}

#[test]
fn a_store_in_use_by_a_process_that_does_not_answer() {
    let home = Home::new();
    let store = open(&home);
    for args in on_each("s") {
        let reads = ["get", "ls", "stat", "frag", "verify", "export", "inspect"];
        if reads.contains(&args[0]) {
            home.ok(&args);
        } else {
            home.fails(&args, 5, "in use");
        }
    }
    // A file in the socket's place, and a socket at which nobody listens.
    home.file("s-control", "mine");
    home.fails(&["rm", "s", "a"], 5, "is no socket");
    home.ok(&["ls", "s"]);
    home.ok(&["verify", "s"]);
    fs::remove_file(home.path("s-control")).unwrap();
    drop(UnixListener::bind(home.path("s-control")).unwrap());
    home.fails(&["rm", "s", "a"], 5, "in use");
    assert!(store.get("a").unwrap().is_some());
}

#[test]
fn a_transaction_of_the_other_process_is_waited_for() {
    let home = Home::new();
    let store = open(&home);
    let _control = Control::listen(&store, home.path("s")).unwrap();
    let mut tx = store.begin_write().unwrap();
    tx.put("held", b"1").unwrap();
    let begun = Instant::now();
    home.fails(&["put", "s", "b", "in", "--wait=300ms"], 5, "busy");
    assert!(begun.elapsed() < Duration::from_secs(9));
    let mut waiting = home.command(&["put", "s", "b", "in", "--wait"]);
    let child = waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_millis(300));
    tx.commit().unwrap();
    assert_eq!(Run::of(child.wait_with_output().unwrap()).code, 0);
    assert_eq!(store.get("b").unwrap().unwrap(), bytes(1, 200_000));
}

#[test]
fn the_screen_shows_a_store_that_another_process_has_open() {
    let home = Home::new();
    let store = open(&home);
    let _control = Control::listen(&store, home.path("s")).unwrap();
    store.write(|tx| tx.put("b", b"1").map(drop)).unwrap();
    let look = |more: &[&str]| {
        let args = [&["stat", "s", "--watch=100ms"], more].concat();
        let mut child = home.command(&args).stdout(Stdio::piped()).spawn().unwrap();
        thread::sleep(Duration::from_secs(1));
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut text).unwrap();
        assert!(child.wait().unwrap().success());
        text
    };
    let text = look(&[]);
    assert!(text.contains("commits         1 so far") && text.contains("0 a second"), "{text}");
    let first: serde_json::Value =
        serde_json::from_str(look(&["--json"]).lines().next().unwrap()).unwrap();
    assert_eq!(first["metrics"]["group_commits"]["count"], 1);
    assert_eq!((&first["stat"]["objects"], &first["open"]), (&2.into(), &true.into()));
    drop(_control);
    assert!(look(&[]).contains("no process that answers has it open"));
}
