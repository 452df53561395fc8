//! A process that fills a store until the disk is full, and goes on there until it is killed.

use holdall::{DefragOptions, Error, Options, Result, Store};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};

pub const STORE: &str = "HOLDALL_FULL_DISK_STORE";
const SEED: &str = "HOLDALL_FULL_DISK_SEED";

/// Small limits, so that checkpoints and growth of the log are met.
pub fn options() -> Options {
    Options::default().tuning(|t| t.dirty_pages(256).log_bytes(2 << 20)).cache_bytes(4 << 20)
}

/// An object's bytes, which follow from its name.
pub fn bytes_of(name: &str) -> Vec<u8> {
    let seed = name.bytes().fold(7u32, |h, b| h.wrapping_mul(31).wrapping_add(u32::from(b)));
    let len = match seed % 20 {
        0 => 400_000 + seed % 900_000,
        1..8 => 9_000 + seed % 80_000,
        _ => seed % 3_000,
    };
    (0..len).map(|i| (i.wrapping_mul(seed | 1) >> 8) as u8).collect()
}

/// Prints a line whole, on a line of its own.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{text}").and_then(|()| out.flush()).unwrap();
}

/// Whether it happened; a full disk is no failure.
fn happened(result: Result<()>) -> bool {
    match result {
        Ok(()) => true,
        Err(Error::Full(_) | Error::NoRoom { .. }) => false,
        Err(e) => {
            say(&format!("ends {e}"));
            std::process::exit(0)
        }
    }
}

fn put(store: &Store, name: &str) -> bool {
    let done = happened(store.write(|tx| tx.put(name, &bytes_of(name)).map(drop)));
    if done {
        say(&format!("put {name}"));
    }
    done
}

/// Runs only in the child.
pub fn run(path: &Path) {
    let seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    let mut rng = SmallRng::seed_from_u64(seed);
    let store = options().open_or_create(path).unwrap();
    let (mut live, mut refused) = (Vec::new(), 0);
    for i in 0.. {
        let name = format!("s{seed}-{i:06}");
        if put(&store, &name) {
            live.push(name);
        } else {
            refused += 1;
        }
        if refused > 12 {
            break;
        }
    }
    for i in 0..200 {
        match rng.random_range(0..12) {
            0..6 if !live.is_empty() => {
                let name = live.swap_remove(rng.random_range(0..live.len()));
                say(&format!("del {name}"));
                if !happened(store.write(|tx| tx.remove(&name).map(drop))) {
                    say(&format!("kept {name}"));
                    live.push(name);
                }
            }
            6 => drop(happened(store.checkpoint())),
            7 if i % 3 == 0 => {
                let all = DefragOptions::default();
                let done = store.defrag(&all, &mut |_| ControlFlow::Continue(()));
                happened(done.map(drop));
            }
            _ => {
                let name = format!("s{seed}-again-{i:06}");
                if put(&store, &name) {
                    live.push(name);
                }
            }
        }
    }
    match store.close() {
        Ok(()) => say("closed"),
        Err(e) => say(&format!("ends {e}")),
    }
}

/// What a child printed before it was killed.
#[derive(Debug, Default)]
pub struct Said {
    /// Names of objects that are there.
    pub put: Vec<String>,
    /// Names whose removal had begun: they are there, or not.
    pub doubtful: Vec<String>,
    /// Why it ended by itself, if it did.
    pub ended: Option<String>,
}

/// Runs a child of this test binary and kills it once it has printed `lines` lines.
pub fn run_and_kill(path: &Path, seed: u64, lines: usize) -> Said {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_process", "--nocapture"])
        .env(STORE, path)
        .env(SEED, seed.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut said = Said::default();
    let from = BufReader::new(child.stdout.take().unwrap());
    for (n, line) in
        from.lines().map_while(std::io::Result::ok).filter(|l| !l.is_empty()).enumerate()
    {
        if n == lines {
            child.kill().unwrap();
        }
        match line.split_once(' ') {
            Some(("put", name)) => said.put.push(name.to_owned()),
            Some(("del", name)) => {
                said.put.retain(|put| put != name);
                said.doubtful.push(name.to_owned());
            }
            Some(("kept", name)) => {
                said.doubtful.retain(|put| put != name);
                said.put.push(name.to_owned());
            }
            Some(("ends", why)) => said.ended = Some(why.to_owned()),
            _ if line == "closed" => said.ended = Some(line),
            _ => {}
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    said
}
