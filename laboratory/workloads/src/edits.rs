//! Edits of large objects: their rate, what they leave behind, copies.
//!
//! The mix of edits is that of Biliris 1992 §4.3: inserts and deletes in turn, each delete as
//! long as the insert before it, places drawn evenly, lengths within half of their mean.

use crate::report::{Goal, Row, Section};
use crate::run::{Run, interleave, rate, seconds};
use crate::{bare, data, system};
use anyhow::{Result, ensure};
use holdall::{Hints, Layout, Options, Store, Target};
use rand::Rng;
use rand::rngs::SmallRng;
use std::fs::File;
use std::os::unix::fs::FileExt;

const MIB: usize = 1 << 20;

/// Runs it.
pub fn run(run: &mut Run) -> Result<()> {
    inserts(run)?;
    thresholds(run)?;
    copies(run)
}

/// Puts an object of `mib` MiB named `x` into a new store.
fn object(run: &Run, mib: usize, threshold: Option<u16>) -> Result<Store> {
    run.remove("edits")?;
    let store = run.store("edits", &Options::default().cache_bytes(256 * MIB))?;
    let bytes = data::bytes(mib * MIB, 20);
    store.write(|tx| {
        tx.set_collection_hints(Hints { threshold, ..Hints::default() })?;
        tx.put("x", &bytes)
    })?;
    store.checkpoint()?;
    Ok(store)
}

/// Durable edits, one commit each, beside the machine's bare rates.
fn inserts(run: &mut Run) -> Result<()> {
    for mib in [run.pick(100, 20), run.pick(1024, 100)] {
        run.say(&format!("edits of {mib} MiB"));
        let title = format!("Durable edits of an object of {mib} MiB, one commit each");
        let mut section = Section::new(title);
        let store = object(run, mib, None)?;
        let mut sync = bare::SmallSync::new(&run.path("bare"))?;
        let mut blocks = BlockInserts::new(run, mib)?;
        let (small, large) = (data::bytes(100, 21), data::bytes(10 << 10, 22));
        let time = run.slice();
        let mut rng = data::rng(23);
        let mut place = |len: usize| rng.random_range(0..(mib * MIB - len) as u64);
        let mut places = |len: usize| -> Vec<u64> { (0..4096).map(|_| place(len)).collect() };
        let (a, b, c, d) = (places(100), places(10 << 10), places(100), places(100));
        let edit = |op: &dyn Fn(&mut holdall::WriteTx, u64) -> holdall::Result<u64>, at: &[u64]| {
            let mut i = 0;
            rate(time, || {
                i += 1;
                store.write(|tx| op(tx, at[i % at.len()]))?;
                Ok(())
            })
        };
        let figures = interleave(
            run.rounds,
            &mut [
                &mut || rate(time, || sync.put()),
                &mut || rate(time, || blocks.insert()),
                &mut || edit(&|tx, at| tx.insert("x", at, &small), &a),
                &mut || edit(&|tx, at| tx.insert("x", at, &large), &b),
                &mut || edit(&|tx, at| tx.delete_range("x", at..at + 100), &c),
                &mut || edit(&|tx, at| tx.replace("x", at, &small), &d),
            ],
        )?;
        let against = |what: &str, i: usize, bare: usize| {
            Row::against(what, "/s", &figures[i], &figures[bare])
        };
        let goal = Goal::AtLeast(0.5);
        section.push(against("insert 100 B; against 4 KiB pwrite + fdatasync", 2, 0).goal(goal));
        section.push(
            against("insert 100 B; against ext4's insert of a 4 KiB block + fdatasync", 2, 1)
                .goal(Goal::AtLeast(0.8)),
        );
        section.push(against("insert 10 KiB; against 4 KiB pwrite + fdatasync", 3, 0));
        section.push(against("delete 100 B; the same", 4, 0));
        section.push(against("replace 100 B; the same", 5, 0));
        section.remark(format!("Afterwards: {}.", layout(&store)?));
        store.close()?;
        run.finish(section);
    }
    Ok(())
}

/// The file system's own insertion of a block, with a sync: neither atomic nor of bytes.
struct BlockInserts {
    file: File,
    rng: SmallRng,
    len: u64,
    block: Vec<u8>,
}

impl BlockInserts {
    fn new(run: &Run, mib: usize) -> Result<Self> {
        let path = run.path("blocks");
        bare::write_once(&path, &data::bytes(mib * MIB, 24))?;
        let file = File::options().read(true).write(true).open(path)?;
        let block = data::bytes(4096, 25);
        Ok(Self { file, rng: data::rng(26), len: (mib * MIB) as u64, block })
    }

    fn insert(&mut self) -> Result<()> {
        let at = self.rng.random_range(1..self.len / 4096 - 1) * 4096;
        let flags = rustix::fs::FallocateFlags::INSERT_RANGE;
        rustix::fs::fallocate(&self.file, flags, at, 4096)?;
        self.file.write_all_at(&self.block, at)?;
        self.file.sync_data()?;
        Ok(())
    }
}

fn layout(store: &Store) -> Result<String> {
    let reader = store.read()?;
    let (metadata, of) = (reader.metadata("x")?, reader.segments("x")?);
    let Layout::Large { levels, threshold, .. } = metadata.layout else {
        return Ok("a small object".into());
    };
    let utilization = 100.0 * metadata.size as f64 / of.space as f64;
    Ok(format!(
        "{} segments, a tree of {levels} levels, T = {threshold}, {utilization:.1} % of the \
         pages' bytes in use",
        of.segments
    ))
}

/// What different thresholds cost and bring.
fn thresholds(run: &mut Run) -> Result<()> {
    let (mib, edits) = (run.pick(100, 20), run.pick(10_000, 1000));
    for mean in [100, 10 << 10] {
        let title = format!(
            "Segment threshold T: {mib} MiB after {edits} edits of {mean} bytes on average"
        );
        let mut section = Section::new(title);
        for threshold in [1, 2, 4, 8, 16, 64] {
            run.say(&format!("T = {threshold}, edits of {mean} bytes"));
            let store = object(run, mib, Some(threshold))?;
            let before = reads(run, &store)?;
            let mut rng = data::rng(27);
            let rate = edits as f64
                / seconds(|| {
                    (0..edits / 2).try_for_each(|_| insert_and_delete(&store, &mut rng, mean))
                })?;
            store.checkpoint()?;
            let after = reads(run, &store)?;
            let what = |what: &str| format!("T = {threshold}: {what}");
            section.push(Row::alone(what("durable edits"), "/s", &[rate]));
            let hot = Row::against(what("hot read after ÷ before"), "MB/s", &after.0, &before.0);
            section.push(hot.goal(Goal::AtLeast(0.8)));
            let cold = Row::against(what("cold read after ÷ before"), "MB/s", &after.1, &before.1);
            section.push(cold.goal(Goal::AtLeast(0.8)));
            section.remark(format!("T = {threshold}: {}.", layout(&store)?));
            store.close()?;
        }
        run.finish(section);
    }
    Ok(())
}

fn insert_and_delete(store: &Store, rng: &mut SmallRng, mean: usize) -> Result<()> {
    let len = rng.random_range(mean / 2..mean + mean / 2);
    let bytes = data::bytes(len, rng.random());
    let size = store.read()?.metadata("x")?.size;
    let at = rng.random_range(0..=size);
    store.write(|tx| tx.insert("x", at, &bytes))?;
    let at = rng.random_range(0..=size);
    store.write(|tx| tx.delete_range("x", at..at + len as u64))?;
    Ok(())
}

/// Rates of reading the object in pieces of 1 MiB, in the cache and not.
fn reads(run: &Run, store: &Store) -> Result<(Vec<f64>, Vec<f64>)> {
    let rounds = run.rounds.min(5);
    let (mut hot, mut cold) = (Vec::new(), Vec::new());
    let mut buf = vec![0; MIB];
    // Hot first, as the writes left it: what a cold read brings in lies in other pieces.
    read(store, &mut buf)?;
    for _ in 0..rounds {
        hot.push(read(store, &mut buf)?);
    }
    for _ in 0..rounds {
        system::drop_caches_below(run.dir())?;
        cold.push(read(store, &mut buf)?);
    }
    Ok((hot, cold))
}

fn read(store: &Store, buf: &mut [u8]) -> Result<f64> {
    let mut object = store.read()?.open("x")?;
    let mut all = 0;
    let time = seconds(|| {
        loop {
            match std::io::Read::read(&mut object, buf)? {
                0 => return Ok(()),
                n => all += n as u64,
            }
        }
    })?;
    ensure!(all == object.size(), "all of it was read");
    Ok(all as f64 / 1e6 / time)
}

/// Copies of a large object.
fn copies(run: &mut Run) -> Result<()> {
    let mib = run.pick(1024, 100);
    run.say("copies");
    let mut section = Section::new(format!("Copies of an object of {mib} MiB"));
    let store = object(run, mib, None)?;
    let mut sync = bare::SmallSync::new(&run.path("bare"))?;
    let mut copied = 0_u32;
    let figures = interleave(
        run.rounds,
        &mut [&mut || Ok(1e3 * seconds(|| sync.put())?), &mut || {
            copied += 1;
            let name = format!("copy {copied}").into_bytes();
            let copy = || Ok(store.write(|tx| tx.copy("x", Target::Name(name)).map(drop))?);
            Ok(1e3 * seconds(copy)?)
        }],
    )?;
    let alone = |what: &str, i: usize| Row::alone(what, "ms", &figures[i]);
    section.push(alone("copy, durable", 1).goal(Goal::AtMost(10.0)));
    section.push(alone("4 KiB pwrite + fdatasync", 0));
    let stat = store.stat()?;
    section.remark(format!(
        "{copied} copies: {:.0} MB of pages in use for {:.0} MB of objects.",
        stat.used_bytes as f64 / 1e6,
        stat.logical_bytes as f64 / 1e6
    ));
    store.close()?;
    run.finish(section);
    Ok(())
}
