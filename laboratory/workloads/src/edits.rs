//! Many edits of a large object: their rate, what they leave behind, copies.
//!
//! The mix of edits is that of Biliris 1992 §4.3: inserts and deletes in turn, each delete as
//! long as the insert before it, places drawn evenly, lengths within half of their mean. Each
//! segment threshold T is a contestant of its own, beside the one that the store chooses.

use crate::data;
use anyhow::{Context as _, Result, ensure};
use holdall::{Hints, Options, Store, Target};
use holdall_instrument::contest::{BARE, Bound, Contest, Ctx, Figure, Goal, Recorder, Than, Unit};
use holdall_instrument::small_sync::SmallSync;
use holdall_instrument::system;
use rand::Rng;
use rand::rngs::SmallRng;
use std::time::Instant;

const MIB: usize = 1 << 20;
/// Contestants with a threshold of their own.
const THRESHOLDS: [(&str, u16); 6] = [
    ("Holdall, T = 1", 1),
    ("Holdall, T = 2", 2),
    ("Holdall, T = 4", 4),
    ("Holdall, T = 8", 8),
    ("Holdall, T = 16", 16),
    ("Holdall, T = 64", 64),
];
/// Bytes of an edit on average, with what the rows say of them.
const MEANS: [(usize, &str); 2] = [(100, "100 B"), (10 << 10, "10 KiB")];
const COPY: &str = "copy of the object, durable";

/// The contest.
pub struct Edits;

impl Contest for Edits {
    fn id(&self) -> &'static str {
        "edits"
    }

    fn title(&self, ctx: &Ctx) -> String {
        format!("{} durable edits of an object of {} MiB", edits(ctx), mib(ctx))
    }

    fn remark(&self) -> &'static str {
        "Inserts and deletes in turn at random places, a commit each; the object is read whole in \
         pieces of 1 MiB before and after, in the page cache and not. Bare: a pwrite of 4 KiB and \
         an fdatasync."
    }

    fn contestants(&self) -> Vec<&'static str> {
        let thresholds = THRESHOLDS.iter().map(|(name, _)| *name);
        [super::HOLDALL].into_iter().chain(thresholds).chain([BARE]).collect()
    }

    fn measure(&self, ctx: &Ctx, contestant: &str, out: &mut Vec<Figure>) -> Result<()> {
        if contestant == BARE {
            return bare(ctx, out);
        }
        let own = THRESHOLDS.iter().find(|(name, _)| *name == contestant);
        for (mean, said) in MEANS {
            let store = object(ctx, own.map(|(_, threshold)| *threshold))?;
            reads(ctx, &store, said, "before", out)?;
            let (mut rng, mut latency) = (data::rng(27), Recorder::new()?);
            let begin = Instant::now();
            for _ in 0..edits(ctx) / 2 {
                latency.time(|| insert(&store, &mut rng, mean))?;
                latency.time(|| delete(&store, &mut rng, mean))?;
            }
            let rate = edits(ctx) as f64 / begin.elapsed().as_secs_f64();
            store.checkpoint()?;
            out.push(Figure::new(edit_row(said), Unit::PerSecond, rate).latency(&latency));
            reads(ctx, &store, said, "after", out)?;
            store.close()?;
        }
        if own.is_none() { copies(ctx, out) } else { Ok(()) }
    }

    fn goals(&self, _ctx: &Ctx) -> Vec<Goal> {
        let mut goals = vec![Goal::new(super::HOLDALL, COPY, Than::Nothing, Bound::AtMost(10.0))];
        for (_, said) in MEANS {
            for how in ["hot", "cold"] {
                let before = Than::Own(read_row(how, said, "before"));
                let row = read_row(how, said, "after");
                goals.push(Goal::new(super::HOLDALL, row, before, Bound::AtLeast(0.8)));
            }
        }
        goals
    }
}

fn mib(ctx: &Ctx) -> usize {
    ctx.pick(100, 8)
}

fn edits(ctx: &Ctx) -> u64 {
    ctx.pick(10_000, 200)
}

fn edit_row(said: &str) -> String {
    format!("edits of {said} on average")
}

fn read_row(how: &str, said: &str, when: &str) -> String {
    format!("{how} read {when} edits of {said}")
}

/// Puts an object named `x` into a new store.
fn object(ctx: &Ctx, threshold: Option<u16>) -> Result<Store> {
    let path = ctx.dir.join("edits");
    for file in [path.clone(), path.with_file_name("edits-log")] {
        holdall_instrument::files::remove(&file)?;
    }
    let store = Options::default().cache_bytes(256 * MIB).create(&path)?;
    let bytes = data::bytes(mib(ctx) * MIB, 20);
    store.write(|tx| {
        tx.set_collection_hints(Hints { threshold, ..Hints::default() })?;
        tx.put("x", &bytes)
    })?;
    store.checkpoint()?;
    Ok(store)
}

fn insert(store: &Store, rng: &mut SmallRng, mean: usize) -> Result<()> {
    let bytes = data::bytes(length(rng, mean), rng.random());
    let at = rng.random_range(0..=store.read()?.metadata("x")?.size);
    store.write(|tx| tx.insert("x", at, &bytes))?;
    Ok(())
}

fn delete(store: &Store, rng: &mut SmallRng, mean: usize) -> Result<()> {
    let (len, size) = (length(rng, mean) as u64, store.read()?.metadata("x")?.size);
    let at = rng.random_range(0..=size.checked_sub(len).context("the object is too short")?);
    store.write(|tx| tx.delete_range("x", at..at + len))?;
    Ok(())
}

fn length(rng: &mut SmallRng, mean: usize) -> usize {
    rng.random_range(mean / 2..mean + mean / 2)
}

/// Rates of reading the object in pieces of 1 MiB, in the cache and not.
fn reads(ctx: &Ctx, store: &Store, said: &str, when: &str, out: &mut Vec<Figure>) -> Result<()> {
    let mut buf = vec![0; MIB];
    // Hot first, as the writes left it: what a cold read brings in lies in other pieces.
    read(store, &mut buf)?;
    let hot = read(store, &mut buf)?;
    system::drop_caches_below(&ctx.dir)?;
    let cold = read(store, &mut buf)?;
    for (how, rate) in [("hot", hot), ("cold", cold)] {
        out.push(Figure::new(read_row(how, said, when), Unit::MbPerSecond, rate));
    }
    Ok(())
}

fn read(store: &Store, buf: &mut [u8]) -> Result<f64> {
    let mut object = store.read()?.open("x")?;
    let (begin, mut all) = (Instant::now(), 0);
    loop {
        match std::io::Read::read(&mut object, buf)? {
            0 => break,
            n => all += n as u64,
        }
    }
    ensure!(all == object.size(), "all of it was read");
    Ok(all as f64 / 1e6 / begin.elapsed().as_secs_f64())
}

/// Copies of the object.
fn copies(ctx: &Ctx, out: &mut Vec<Figure>) -> Result<()> {
    let store = object(ctx, None)?;
    let mut latency = Recorder::new()?;
    let count = ctx.pick(20, 5);
    let begin = Instant::now();
    for i in 0..count {
        let name = format!("copy {i}").into_bytes();
        latency.time(|| Ok(store.write(|tx| tx.copy("x", Target::Name(name)).map(drop))?))?;
    }
    let each = begin.elapsed().as_secs_f64() * 1e3 / f64::from(count);
    out.push(Figure::new(COPY, Unit::Ms, each).latency(&latency));
    Ok(store.close()?)
}

fn bare(ctx: &Ctx, out: &mut Vec<Figure>) -> Result<()> {
    let mut sync = SmallSync::new(&ctx.dir.join("bare"))?;
    let done = crate::measure::repeat(ctx.seconds(4), u64::MAX, |_| sync.put())?;
    for (_, said) in MEANS {
        let figure = Figure::new(edit_row(said), Unit::PerSecond, done.rate);
        out.push(figure.latency(&done.latency));
    }
    out.push(Figure::new(COPY, Unit::Ms, 1e3 / done.rate).latency(&done.latency));
    Ok(())
}
