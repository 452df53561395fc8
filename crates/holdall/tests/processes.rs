//! Real processes: readers beside a writer that is killed and started again. Each state is whole,
//! none is older than what was acknowledged before, and nobody waits for ever.
//!
//! The children are this test binary again, which environment variables direct. With
//! `HOLDALL_PROCESSES_SECONDS` it runs so long, with `HOLDALL_PROCESSES_READERS` that many read.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Error, Options, Store};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const STORE: &str = "HOLDALL_PROCESSES_STORE";
const SECONDS: &str = "HOLDALL_PROCESSES_SECONDS";
const READERS: &str = "HOLDALL_PROCESSES_READERS";
/// Objects that each transaction of the writer replaces together.
const OBJECTS: u64 = 12;

fn options() -> Options {
    // Small limits, so that readers meet checkpoints, growth of the log and space used again.
    Options::default().tuning(|t| t.dirty_pages(256).log_bytes(1 << 20)).cache_bytes(2 << 20)
}

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |value| value.parse().unwrap())
}

fn name(i: u64) -> String {
    format!("object {i}")
}

/// What transaction `n` puts at `i`: the number in front, then bytes that follow from both.
fn content(i: u64, n: u64) -> Vec<u8> {
    let len = match i {
        0..6 => 100 + i * 300,
        6..10 => 5_000 + i * 3_000,
        _ => 200_000 + n % 7 * 20_000,
    };
    let mut state = n.wrapping_mul(0x9e37_79b9) ^ i;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state.to_le_bytes()
    };
    let body = (0..len / 8).flat_map(|_| next());
    n.to_le_bytes().into_iter().chain(body).collect()
}

fn number_in(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

/// Runs only in a child: one transaction after the other until it is killed, each said before and
/// after.
#[test]
fn writer() {
    let Ok(path) = std::env::var(STORE) else { return };
    let store = options().open(path).unwrap();
    let first = store.get(name(0).as_str()).unwrap().map_or(0, |bytes| number_in(&bytes));
    for n in first + 1.. {
        let all = |tx: &mut holdall::WriteTx| {
            (0..OBJECTS).try_for_each(|i| tx.put(name(i), &content(i, n)).map(drop))
        };
        store.write(all).unwrap();
        println!("\ndone {n}");
    }
}

/// Runs only in a child: reads until it is killed. Says what it saw, and what was wrong.
#[test]
fn reader() {
    let Ok(path) = std::env::var(STORE) else { return };
    let store = options().open_read_only(path).unwrap();
    let (mut reads, mut again, mut last) = (0_u64, 0_u64, 0);
    loop {
        let seen = match state(&store) {
            Ok(seen) => seen,
            Err(Error::SnapshotTooOld { .. }) => {
                again += 1;
                continue;
            }
            Err(e) => {
                println!("\nbad {e}");
                return;
            }
        };
        reads += 1;
        match seen {
            Ok(n) if n >= last => last = n,
            Ok(n) => println!("\nbad state {n} after {last}"),
            Err(what) => println!("\nbad {what}"),
        }
        println!("\nsaw {last} {reads} {again}");
    }
}

/// The number of the state that a snapshot shows, or what is wrong with it.
fn state(store: &Store) -> Result<Result<u64, String>, Error> {
    let reader = store.read()?;
    let mut number = None;
    for i in 0..OBJECTS {
        let Some(found) = reader.get(name(i).as_str())? else { return Ok(Err("nothing".into())) };
        let n = number_in(&found);
        if found != content(i, n) {
            return Ok(Err(format!("other bytes in object {i} of {n}")));
        }
        if *number.get_or_insert(n) != n {
            return Ok(Err(format!("a mixture of {number:?} and {n}")));
        }
    }
    Ok(Ok(number.unwrap_or(0)))
}

fn start(role: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", role, "--nocapture"])
        .env(STORE, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What all children have said.
#[derive(Debug, Default)]
struct Said {
    /// The newest transaction that the writer said to be durable.
    done: AtomicU64,
    reads: AtomicU64,
    again: AtomicU64,
    bad: Mutex<Vec<String>>,
}

impl Said {
    /// Listens to a child.
    fn listen(self: Arc<Self>, child: &mut Child) -> std::thread::JoinHandle<()> {
        let lines = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let (mut least, mut counted) = (0, [0_u64; 2]);
            for line in lines.lines().map_while(Result::ok) {
                let words: Vec<&str> = line.split(' ').collect();
                match words[..] {
                    ["done", n] => drop(self.done.fetch_max(n.parse().unwrap(), SeqCst)),
                    ["saw", n, reads, again] => {
                        let n: u64 = n.parse().unwrap();
                        if n < least {
                            self.bad.lock().unwrap().push(format!("saw {n} after {least}"));
                        }
                        least = n;
                        let now: [u64; 2] = [reads.parse().unwrap(), again.parse().unwrap()];
                        self.reads.fetch_add(now[0] - counted[0], SeqCst);
                        self.again.fetch_add(now[1] - counted[1], SeqCst);
                        counted = now;
                    }
                    ["bad", ..] => self.bad.lock().unwrap().push(line),
                    _ => {}
                }
            }
        })
    }
}

fn signal(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn readers_see_whole_states_while_others_are_killed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let store = options().create(&path).unwrap();
    let first = |tx: &mut holdall::WriteTx| {
        (0..OBJECTS).try_for_each(|i| tx.put(name(i), &content(i, 0)).map(drop))
    };
    store.write(first).unwrap();
    store.close().unwrap();
    let said = Arc::new(Said::default());
    let own = options().open_read_only(&path).unwrap();
    let begin = |role: &str| {
        let mut child = start(role, &path);
        let ear = said.clone().listen(&mut child);
        (child, ear)
    };
    let mut writer = begin("writer");
    let mut readers: Vec<_> = (0..number(READERS, 4)).map(|_| begin("reader")).collect();
    let (begun, mut round) = (Instant::now(), 0_u64);
    while begun.elapsed() < Duration::from_secs(number(SECONDS, 6)) {
        round += 1;
        std::thread::sleep(Duration::from_millis(20 + round * 7919 % 150));
        // Durable before it looks.
        let done = said.done.load(SeqCst);
        match state(&own) {
            Ok(Ok(n)) => assert!(n >= done, "saw {n}, {done} was acknowledged before"),
            Ok(Err(what)) => panic!("{what}"),
            Err(Error::SnapshotTooOld { .. }) => {}
            Err(e) => panic!("{e}"),
        }
        let n = round as usize % readers.len();
        match round % 5 {
            0 | 1 => {
                writer.0.kill().unwrap();
                writer.0.wait().unwrap();
                writer.1.join().unwrap();
                writer = begin("writer");
            }
            2 => {
                let (mut child, ear) = std::mem::replace(&mut readers[n], begin("reader"));
                child.kill().unwrap();
                child.wait().unwrap();
                ear.join().unwrap();
            }
            3 => signal(&readers[n].0, "-STOP"),
            _ => readers.iter().for_each(|reader| signal(&reader.0, "-CONT")),
        }
    }
    for (mut child, ear) in readers.into_iter().chain([writer]) {
        child.kill().unwrap();
        child.wait().unwrap();
        ear.join().unwrap();
    }
    let (done, reads) = (said.done.load(SeqCst), said.reads.load(SeqCst));
    println!("{done} transactions, {reads} states read, {} begun again", said.again.load(SeqCst));
    let bad = said.bad.lock().unwrap();
    assert!(bad.is_empty(), "{bad:?}");
    assert!(done > 0 && reads > 0);
    let last = options().open(&path).unwrap();
    assert!(state(&last).unwrap().unwrap() >= done);
    assert!(last.verify().unwrap().is_sound());
}
