//! A real process, killed while eight threads put and edit objects and a ninth puts the store in
//! order: everything it acknowledged is there, the store is sound, and its objects have the bytes
//! of their versions by the sums beside it.
//!
//! The child is this test binary again, which an environment variable directs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{DefragOptions, Options, Result, Store, WriteTx};
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

const STORE: &str = "HOLDALL_KILL_STORE";
const ROUND: &str = "HOLDALL_KILL_ROUND";
const ROUNDS: u32 = 50;
const THREADS: u32 = 8;

fn options() -> Options {
    // Small limits, so that kills meet checkpoints and growth of the log.
    let small =
        Options::default().tuning(|t| t.dirty_pages(256).log_bytes(2 << 20)).cache_bytes(4 << 20);
    small.debug_sums(true)
}

/// An object's bytes, which follow from its name: small, a few pages, or large.
fn bytes_of(name: &str) -> Vec<u8> {
    let seed = name.bytes().fold(7u32, |h, b| h.wrapping_mul(31).wrapping_add(u32::from(b)));
    let len = match seed % 20 {
        0 => 300_000 + seed % 100_000,
        1..4 => 9_000 + seed % 30_000,
        _ => seed % 3_000,
    };
    (0..len).map(|i| (i.wrapping_mul(seed | 1) >> 8) as u8).collect()
}

/// Edits an object of which only the sums know what it holds.
fn edit(tx: &mut WriteTx, t: u32, i: u32) -> Result<()> {
    let name = format!("edited {t}");
    if tx.lookup(&name)?.is_none() {
        tx.put(&name, &bytes_of(&format!("{name} {i}")))?;
    }
    let size = tx.metadata(&name)?.size;
    let (from, more) = (u64::from(i * 7919) % (size + 1), bytes_of(&format!("more {t} {i}")));
    let to = size.min(from + u64::from(i % 3) * 8000);
    tx.splice(&name, from..to, &more[..more.len().min(20_000)])?;
    // What copies share stays where it is: only some take part.
    if t.is_multiple_of(2) && i.is_multiple_of(4) {
        tx.copy(&name, format!("copy {t}"))?;
    }
    if size > 1 << 20 {
        tx.set_len(&name, 9000)?;
    }
    Ok(())
}

/// Moves records and pieces again and again until it is killed.
fn put_in_order(store: &Store) -> Result<()> {
    let all = DefragOptions::default();
    loop {
        store.defrag(&all, &mut |_| ControlFlow::Continue(()))?;
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs only in the child: puts, edits and deletes until it is killed, telling what is durable.
#[test]
fn child() {
    let Ok(path) = std::env::var(STORE) else { return };
    let round = std::env::var(ROUND).unwrap();
    let store = options().open_or_create(path).unwrap();
    let out = Mutex::new(std::io::stdout());
    let no_error = |result: Result<()>| {
        if let Err(e) = result {
            writeln!(out.lock().unwrap(), "\nbad {e}").unwrap();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| no_error(put_in_order(&store)));
        for t in 0..THREADS {
            let (store, out, round, no_error) = (&store, &out, &round, &no_error);
            scope.spawn(move || {
                for i in 0.. {
                    let name = format!("r{round}-t{t}-{i:06}");
                    store.write(|tx| tx.put(&name, &bytes_of(&name))).unwrap();
                    writeln!(out.lock().unwrap(), "\nput {name}").unwrap();
                    if i % 3 == 2 {
                        no_error(store.write(|tx| edit(tx, t, i)));
                    }
                    if i % 5 == 4 {
                        let old = format!("r{round}-t{t}-{:06}", i - 3);
                        // Said before, since the kill may come between commit and word.
                        writeln!(out.lock().unwrap(), "\ndel {old}").unwrap();
                        store.write(|tx| tx.remove(&old)).unwrap();
                    }
                }
            });
        }
    });
}

/// Starts the child, kills it after `after`, and returns what it printed: names put, and names
/// it began to delete.
fn run_and_kill(path: &Path, round: u32, after: Duration) -> (Vec<String>, Vec<String>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(STORE, path)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        let (mut put, mut deleted) = (Vec::new(), Vec::new());
        for line in lines.lines().map_while(std::io::Result::ok) {
            assert!(!line.starts_with("bad "), "the child says: {line}");
            if let Some(name) = line.strip_prefix("put ") {
                put.push(name.to_owned());
            } else if let Some(name) = line.strip_prefix("del ") {
                deleted.push(name.to_owned());
            }
        }
        (put, deleted)
    });
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}

#[test]
fn fifty_kills_lose_nothing_acknowledged() {
    if std::env::var(STORE).is_ok() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store.holdall");
    let (mut acknowledged, mut edited) = (0, 0);
    for round in 0..ROUNDS {
        // Times spread over start, first checkpoints and steady state.
        let after = Duration::from_millis(30 + u64::from(round * 37 % 200));
        let (put, deleted) = run_and_kill(&path, round, after);
        if !path.exists() {
            continue;
        }
        let store = match options().open(&path) {
            Ok(store) => store,
            // Killed while the file was being made: nothing was acknowledged yet.
            Err(holdall::Error::Unfinished { .. }) if put.is_empty() => {
                std::fs::remove_file(&path).unwrap();
                continue;
            }
            Err(e) => panic!("round {round}: {e}"),
        };
        let reader = store.read().unwrap();
        for name in put.iter().filter(|n| !deleted.contains(n)) {
            assert!(reader.get(name).unwrap().unwrap() == bytes_of(name), "round {round}: {name}");
        }
        // What is there beyond the acknowledged is whole.
        for entry in reader.names(format!("r{round}-")) {
            let name = String::from_utf8(entry.unwrap().name).unwrap();
            assert!(
                reader.get(&name).unwrap().unwrap() == bytes_of(&name),
                "round {round}: {name}"
            );
        }
        acknowledged += put.len();
        let report = store.verify().unwrap();
        assert!(report.problems.is_empty(), "round {round}: {:?}", report.problems);
        // A kill comes between a commit and its sums once at most.
        let without = report.objects - report.compared.unwrap();
        assert!(without <= u64::from(round) + 1, "round {round}: {without} without a sum");
        edited += reader.names("edited ").count();
        drop(reader);
        if round % 3 == 0 {
            // Else the next child finds the store as a crash left it and this open mended it.
            store.close().unwrap();
        }
    }
    assert!(acknowledged > 200, "only {acknowledged} puts in all: the kills came too early");
    assert!(edited > 50, "only {edited} edited objects in all rounds");
}
