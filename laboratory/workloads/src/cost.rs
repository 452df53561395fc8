//! Instructions of single operations, and plain workloads to look at with a profiler.
//!
//! Instructions are counted by valgrind's callgrind, which does not depend on the machine's
//! load: the same workload runs with n and with 2n operations, and the difference counts.

use crate::data;
use crate::workloads::{Objects, Sizes, hashed, key};
use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use holdall::{Options, Store};
use holdall_instrument::contest::{Contest, Ctx, Figure, Goal, Unit};
use rand::Rng;
use std::path::Path;
use std::process::Command;

/// A plain workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Work {
    /// Durable creates of 200 bytes, unnamed.
    Create,
    /// Durable puts of 200 bytes under new names.
    Put,
    /// 200-byte puts under new names, 1,000 per commit.
    Batch,
    /// Gets of 200 bytes by OID.
    GetOid,
    /// Gets of 200 bytes by name.
    GetName,
    /// Durable puts of 1 MiB, a commit each.
    Mib,
    /// Durable puts of 1 GiB, a commit each.
    Gib,
    /// Web objects replaced at random by OID, 100 per commit, of 10,000.
    Replace,
    /// The same by name.
    ReplaceName,
    /// Reads of one object of 1 GiB through 1 MiB.
    Read,
}

/// Does workload `work` with `count` operations on a new store in `dir`.
///
/// # Errors
/// The store's.
pub fn work(dir: &Path, work: Work, count: u64) -> Result<()> {
    let path = dir.join(format!("holdall-work-{}", std::process::id()));
    let options = Options::default().cache_bytes(256 << 20);
    let store = options.create(&path)?;
    let result = operations(&store, work, count);
    store.close()?;
    std::fs::remove_file(path)?;
    result
}

fn operations(store: &Store, work: Work, count: u64) -> Result<()> {
    let small = data::bytes(200, 23);
    match work {
        Work::Create => {
            for _ in 0..count {
                store.write(|tx| tx.create(&small))?;
            }
        }
        Work::Put => put_each(store, &small, count)?,
        Work::Batch => load(store, &small, count).map(|_| ())?,
        Work::GetOid => {
            let oids = load(store, &small, 50_000)?;
            let reader = store.read()?;
            let mut rng = data::rng(24);
            for _ in 0..count {
                reader.get(oids[rng.random_range(0..oids.len())])?;
            }
        }
        Work::GetName => {
            load(store, &small, 50_000)?;
            let reader = store.read()?;
            let mut rng = data::rng(24);
            for _ in 0..count {
                reader.get(data::name(rng.random_range(0..50_000)))?;
            }
        }
        Work::Replace | Work::ReplaceName => replace(store, work == Work::ReplaceName, count)?,
        Work::Mib => put_each(store, &data::bytes(1 << 20, 25), count)?,
        Work::Gib => {
            let bytes = data::bytes(1 << 30, 26);
            for _ in 0..count {
                store.write(|tx| tx.put("large", &bytes))?;
            }
        }
        Work::Read => {
            store.write(|tx| tx.put("large", &data::bytes(1 << 30, 26)))?;
            let mut buf = vec![0; 1 << 20];
            for _ in 0..count {
                read_through(store, &mut buf)?;
            }
        }
    }
    Ok(())
}

fn load(store: &Store, bytes: &[u8], count: u64) -> Result<Vec<holdall::Oid>> {
    let mut oids = Vec::new();
    for first in (0..count).step_by(1000) {
        store.write(|tx| {
            for i in first..count.min(first + 1000) {
                oids.push(tx.put(data::name(i), bytes)?);
            }
            Ok(())
        })?;
    }
    Ok(oids)
}

/// Puts `bytes` under `count` names, one commit each.
fn put_each(store: &Store, bytes: &[u8], count: u64) -> Result<()> {
    for i in 0..count {
        store.write(|tx| tx.put(data::name(i), bytes))?;
    }
    Ok(())
}

fn read_through(store: &Store, buf: &mut [u8]) -> Result<()> {
    let mut object = store.read()?.open("large")?;
    while std::io::Read::read(&mut object, buf)? > 0 {}
    Ok(())
}

fn replace(store: &Store, named: bool, count: u64) -> Result<()> {
    const OBJECTS: u64 = 10_000;
    let objects = Objects::new(1, Sizes::Web);
    let mut oids = Vec::new();
    for first in (0..OBJECTS).step_by(100) {
        store.write(|tx| {
            for i in first..first + 100 {
                let bytes = objects.bytes(i, 0);
                oids.push(if named { tx.put(key(i), bytes)? } else { tx.create(bytes)? });
            }
            Ok(())
        })?;
    }
    for first in (0..count).step_by(100) {
        store.write(|tx| {
            for n in first..count.min(first + 100) {
                let (i, bytes) = (hashed(n) % OBJECTS, objects.bytes(n, 1));
                if named {
                    tx.put(key(i), bytes)?;
                } else {
                    tx.set_bytes(oids[i as usize], bytes)?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Operations, as [`Work`] is called on the command line, and how many are counted.
const COUNTED: [(&str, &str, u64); 7] = [
    ("durable create of 200 bytes", "create", 3000),
    ("durable put of 200 bytes", "put", 3000),
    ("put of 200 bytes, 1,000 per commit", "batch", 20_000),
    ("replacement of a web object by OID", "replace", 10_000),
    ("replacement of a web object by name", "replace-name", 10_000),
    ("get of 200 bytes by OID", "get-oid", 20_000),
    ("get of 200 bytes by name", "get-name", 20_000),
];

/// Instructions of single operations.
pub struct Instructions;

impl Contest for Instructions {
    fn id(&self) -> &'static str {
        "instructions"
    }

    fn title(&self, _ctx: &Ctx) -> String {
        "instructions of one operation, all threads, user mode".into()
    }

    fn remark(&self) -> &'static str {
        "Counted by callgrind, which must be there; checkpoints that fall among the operations \
         included."
    }

    fn contestants(&self) -> Vec<&'static str> {
        vec![super::HOLDALL]
    }

    fn measure(&self, ctx: &Ctx, _contestant: &str, out: &mut Vec<Figure>) -> Result<()> {
        for (row, name, count) in COUNTED {
            let count = ctx.pick(count, count / 10);
            let (one, two) = (count_of(ctx, name, count)?, count_of(ctx, name, 2 * count)?);
            out.push(Figure::new(row, Unit::Instructions, (two - one) / count as f64));
        }
        Ok(())
    }

    fn goals(&self, _ctx: &Ctx) -> Vec<Goal> {
        Vec::new()
    }
}

fn count_of(ctx: &Ctx, name: &str, count: u64) -> Result<f64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(std::env::current_exe()?).arg("work").arg(name);
    command.arg("--count").arg(count.to_string()).arg("--dir").arg(&ctx.dir);
    let out = command.output().context("starting valgrind")?;
    let text = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "valgrind failed: {text}");
    let counted = text.lines().find_map(|l| l.split("Collected :").nth(1));
    Ok(counted.context("valgrind said no number")?.trim().parse()?)
}
