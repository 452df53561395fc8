//! Real processes: one writes and answers, others hold snapshots and have it make changes, while any
//! of them is stopped, killed and started again. Each held state is whole and stays what it is, what
//! was acknowledged is there, and nobody waits for ever.
//!
//! The children are this test binary again, which an environment variable directs. With
//! `HOLDALL_CONTROL_SECONDS` it runs so long.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Error, Options, Store, Wait};
use holdall_control::{Change, Client, Control, Name, Transaction};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Cursor};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const STORE: &str = "HOLDALL_CONTROL_STORE";
const NUMBER: &str = "HOLDALL_CONTROL_NUMBER";
const SECONDS: &str = "HOLDALL_CONTROL_SECONDS";
/// Processes that hold snapshots.
const HOLDERS: u32 = 3;
/// Objects that the writer replaces together.
const OBJECTS: u32 = 40;

fn options() -> Options {
    // Small limits, so that held snapshots meet checkpoints and space that is used again.
    Options::default().tuning(|t| t.dirty_pages(256).log_bytes(1 << 20)).cache_bytes(2 << 20)
}

/// What transaction `n` puts at `i`.
fn content(i: u32, n: u32) -> Vec<u8> {
    [n.to_le_bytes().to_vec(), vec![(i * 7 + n) as u8; 200 + (i * i * 97) as usize]].concat()
}

fn number_in(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().unwrap())
}

/// Runs only in a child: writes until it is killed.
#[test]
fn writer() {
    let Ok(path) = std::env::var(STORE) else { return };
    let store = options().open(&path).unwrap();
    let _control = Control::listen(&store, &path).unwrap();
    let first = store.get("o0").unwrap().map_or(0, |bytes| number_in(&bytes));
    for n in first + 1.. {
        let all = |tx: &mut holdall::WriteTx| {
            (0..OBJECTS).try_for_each(|i| tx.put(format!("o{i}"), &content(i, n)).map(drop))
        };
        store.write(all).unwrap();
    }
}

/// Runs only in a child: holds snapshots, reads them, and puts an object of its own. Says what it saw
/// and what was wrong.
#[test]
fn holder() {
    let Ok(path) = std::env::var(STORE) else { return };
    let own: String = std::env::var(NUMBER).unwrap();
    let mut known = None;
    loop {
        match round(Path::new(&path), &own, &mut known) {
            Ok(Ok(())) => println!("\nsaw"),
            Ok(Err(what)) => println!("\nbad {what}"),
            // It was killed, or is being started.
            Err(Error::SnapshotTooOld { .. } | Error::Io { .. } | Error::Cancelled) => {
                println!("\nagain");
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(e) => println!("\nbad {e}"),
        }
    }
}

/// One snapshot, read again and again. `known`: what the own object holds, if that is known.
fn round(path: &Path, own: &str, known: &mut Option<u32>) -> Result<Result<(), String>, Error> {
    let Some(client) = Client::connect(path)? else {
        return Err(Error::SnapshotTooOld { age: Duration::ZERO });
    };
    let held = client.hold(&options())?;
    let found = held.get(own)?.map_or(0, |bytes| number_in(&bytes));
    if known.is_some_and(|known| known != found) {
        return Ok(Err(format!("{own} is {found}, {known:?} was acknowledged")));
    }
    let mut first = None;
    for _ in 0..4 {
        let reader = held.read()?;
        for i in 0..OBJECTS {
            let bytes = reader.get(format!("o{i}"))?.unwrap_or_default();
            if bytes.len() < 4 {
                return Ok(Err(format!("o{i} has {} bytes", bytes.len())));
            }
            let n = number_in(&bytes);
            if bytes != content(i, n) || *first.get_or_insert(n) != n {
                return Ok(Err(format!("o{i} is of {n}, or wrong; the first of {first:?}")));
            }
        }
    }
    let report = held.verify()?;
    if !report.is_sound() {
        return Ok(Err(format!("{:?}", report.problems)));
    }
    let Some(mut client) = Client::connect(path)? else { return Ok(Ok(())) };
    // Until it is acknowledged nobody knows.
    *known = None;
    let change = Change::Put { name: Name(own.into()), attributes: Default::default(), size: None };
    let put = Transaction { collection: None, change };
    client.write(put, Wait::Forever, Cursor::new((found + 1).to_le_bytes().to_vec()))?;
    *known = Some(found + 1);
    Ok(Ok(()))
}

fn start(role: &str, path: &Path, number: u32) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", role, "--nocapture"])
        .env(STORE, path)
        .env(NUMBER, format!("own{number}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What the holders have said.
#[derive(Debug, Default)]
struct Said {
    saw: Mutex<u64>,
    bad: Mutex<Vec<String>>,
}

fn hold(path: &Path, number: u32, said: &Arc<Said>) -> Child {
    let mut child = start("holder", path, number);
    let (lines, said) = (BufReader::new(child.stdout.take().unwrap()), said.clone());
    std::thread::spawn(move || {
        for line in lines.lines().map_while(Result::ok) {
            if line == "saw" {
                *said.saw.lock().unwrap() += 1;
            } else if let Some(what) = line.strip_prefix("bad ") {
                said.bad.lock().unwrap().push(what.to_owned());
            }
        }
    });
    child
}

fn signal(child: &Child, signal: Signal) {
    // It may have ended.
    let _ = kill_process(Pid::from_child(child), signal);
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

#[test]
fn processes_that_are_stopped_and_killed() {
    if std::env::var(STORE).is_ok() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let store = options().create(&path).unwrap();
    let all = |tx: &mut holdall::WriteTx| {
        (0..OBJECTS).try_for_each(|i| tx.put(format!("o{i}"), &content(i, 0)).map(drop))
    };
    store.write(all).unwrap();
    store.close().unwrap();
    let said = Arc::new(Said::default());
    let mut writer = start("writer", &path, 0);
    let mut holders: Vec<_> = (0..HOLDERS).map(|n| hold(&path, n, &said)).collect();
    let seconds = std::env::var(SECONDS).map_or(4, |seconds| seconds.parse().unwrap());
    let (begun, mut drawn) = (Instant::now(), 0x2545_f491_4f6c_dd1d_u64);
    let mut draw = |most: u64| {
        drawn = drawn.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (drawn >> 33) % most
    };
    while begun.elapsed() < Duration::from_secs(seconds) {
        let which = draw(u64::from(HOLDERS)) as usize;
        match draw(8) {
            0 => {
                end(&mut writer);
                writer = start("writer", &path, 0);
            }
            1 => {
                end(&mut holders[which]);
                holders[which] = hold(&path, which as u32, &said);
            }
            2 => signal(&writer, Signal::STOP),
            3 => signal(&holders[which], Signal::STOP),
            _ => {}
        }
        std::thread::sleep(Duration::from_millis(20 + draw(150)));
        signal(&writer, Signal::CONT);
        holders.iter().for_each(|child| signal(child, Signal::CONT));
    }
    end(&mut writer);
    holders.iter_mut().for_each(end);
    let store = Store::open(&path).unwrap();
    assert!(store.verify().unwrap().is_sound());
    let bad = said.bad.lock().unwrap();
    assert!(bad.is_empty(), "{bad:?}");
    let saw = *said.saw.lock().unwrap();
    println!(
        "{saw} snapshots held, {:?} transactions",
        store.get("o0").unwrap().map(|b| number_in(&b))
    );
    assert!(saw > 5, "only {saw} snapshots were held");
}
