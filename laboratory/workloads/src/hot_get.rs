//! Random reads of small objects that are in memory.

use crate::report::{Row, Section};
use crate::run::{Run, interleave, rate_of_threads};
use crate::{bare, data};
use anyhow::{Result, ensure};
use holdall::{Oid, Options, Reader};
use rand::Rng;
use rand::rngs::SmallRng;
use std::cell::RefCell;
use std::os::unix::fs::FileExt;

/// Bytes of an object.
const LEN: usize = 200;
/// Gets between two looks at the clock.
const BURST: usize = 100;

/// Runs it.
pub fn run(run: &mut Run) -> Result<()> {
    run.say("hot random gets");
    let count = run.pick(200_000, 50_000_u64);
    let mut section = Section::new(format!("Hot random gets of {count} objects of 200 bytes"));
    let store = run.store("hot", &Options::default().cache_bytes(256 << 20))?;
    let bytes = data::bytes(LEN, 10);
    let mut oids = Vec::new();
    for first in (0..count).step_by(10_000) {
        store.write(|tx| {
            for i in first..count.min(first + 10_000) {
                oids.push(tx.put(data::name(i), &bytes)?);
            }
            Ok(())
        })?;
    }
    bare::write_once(&run.path("bare"), &data::bytes(LEN * count as usize, 11))?;
    let file = std::fs::File::open(run.path("bare"))?;
    let reader = store.read()?;
    let time = run.slice();
    let pread = |rng: &mut SmallRng| -> Result<()> {
        // What a get returns is memory of the caller's own.
        let mut buf = vec![0; LEN];
        file.read_exact_at(&mut buf, rng.random_range(0..count) * LEN as u64)?;
        std::hint::black_box(&buf);
        Ok(())
    };
    let by_oid = |rng: &mut SmallRng| check(&reader, pick(&oids, rng));
    let by_name = |rng: &mut SmallRng| {
        let got = reader.get(data::name(rng.random_range(0..count)))?;
        ensure!(got.is_some_and(|got| got.len() == LEN), "an object is whole");
        Ok(())
    };
    let snapshot_each = |rng: &mut SmallRng| check(&store.read()?, pick(&oids, rng));
    let sides: [(&str, &Op<'_>); 4] = [
        ("pread of 200 bytes from the page cache", &pread),
        ("get by OID", &by_oid),
        ("get by name", &by_name),
        ("get by OID, a snapshot for each", &snapshot_each),
    ];
    for threads in [1, 2] {
        let mut closures: Vec<_> =
            sides.iter().map(|(_, op)| move || burst(threads, time, *op)).collect();
        let mut turns: Vec<crate::run::Side<'_>> = Vec::new();
        for closure in &mut closures {
            turns.push(closure);
        }
        let figures = interleave(run.rounds, &mut turns)?;
        for ((what, _), ours) in sides.iter().zip(&figures).skip(1) {
            let what = format!("{what}, threads: {threads}");
            section.push(Row::against(what, "per s", ours, &figures[0]));
        }
    }
    section.remark(format!("Against: {}, by as many threads.", sides[0].0));
    run.finish(section);
    drop(reader);
    store.close()?;
    run.remove("bare")?;
    run.remove("hot")
}

type Op<'a> = dyn Fn(&mut SmallRng) -> Result<()> + Sync + 'a;

fn pick(oids: &[Oid], rng: &mut SmallRng) -> Oid {
    oids[rng.random_range(0..oids.len())]
}

fn check(reader: &Reader, oid: Oid) -> Result<()> {
    let got = reader.get(oid)?;
    ensure!(got.is_some_and(|got| got.len() == LEN), "an object is whole");
    Ok(())
}

fn burst(threads: usize, time: std::time::Duration, op: &Op<'_>) -> Result<f64> {
    thread_local! {
        static RNG: RefCell<SmallRng> = RefCell::new(data::rng(12));
    }
    let bursts = rate_of_threads(threads, time, &|_| {
        RNG.with_borrow_mut(|rng| (0..BURST).try_for_each(|_| op(rng)))
    })?;
    Ok(bursts * BURST as f64)
}
