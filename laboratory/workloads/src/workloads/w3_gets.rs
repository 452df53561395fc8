//! W3: random gets of small objects, hot and cold.

use super::{BY_NAME, BY_OID};
use super::{Objects, Session, Sizes, Workload, hashed, key};
use crate::bare;
use crate::measure::{Driven, threads};
use crate::peer::{Load, Maker, Peer, Setup};
use anyhow::{Result, ensure};
use holdall_instrument::contest::{Bound, Ctx, Figure, Goal, Recorder, Than, Unit};
use holdall_instrument::system;
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Gets of a batch.
const BATCH: usize = 100;
/// Cache of the cold part: a small part of the data.
const COLD_CACHE: u64 = 32 << 20;
/// Bytes of a bare get: the mean of objects.
const MEAN: usize = 200;

pub(super) struct Gets;

fn count(ctx: &Ctx) -> u64 {
    ctx.pick(1_000_000, 1_000)
}

fn batched(threads: usize) -> String {
    format!("hot, {BATCH} gets to a snapshot, {}", by(threads))
}

fn single(threads: usize) -> String {
    format!("hot, a snapshot each, {}", by(threads))
}

fn cold(threads: usize) -> String {
    format!("W3c: cold, a snapshot each, {}", by(threads))
}

fn by(threads: usize) -> &'static str {
    if threads == 1 { "1 thread" } else { "2 threads" }
}

/// The draw of one thread's get.
fn draw(ctx: &Ctx, thread: usize, i: u64) -> u64 {
    hashed(ctx.seed ^ (thread as u64) << 48 ^ i) % count(ctx)
}

/// Throughput of `op`, which does a batch; then, apart, each get's latency by `one`.
fn hot(
    ctx: &Ctx,
    row: String,
    by: usize,
    op: &(dyn Fn(usize, u64) -> Result<()> + Sync),
    one: &(dyn Fn(usize, u64) -> Result<()> + Sync),
) -> Result<Figure> {
    let done = threads(by, ctx.seconds(3), op)?;
    let apart: Driven = threads(by, ctx.seconds(1), one)?;
    let rate = done.rate * BATCH as f64;
    Ok(Figure::new(row, Unit::PerSecond, rate).latency(&apart.latency))
}

impl Gets {
    fn hot_rows(
        ctx: &Ctx,
        session: &Session<'_>,
        objects: &Objects,
        out: &mut Vec<Figure>,
    ) -> Result<()> {
        let peer = session.peer()?;
        // Everything that fits is in memory before the clock runs.
        for first in (0..count(ctx)).step_by(BATCH) {
            let keys: Vec<_> = (first..first + BATCH as u64).map(key).collect();
            peer.get_many(&keys.iter().map(|k| &k[..]).collect::<Vec<_>>(), &mut |_| ())?;
        }
        let check = |i: u64, got: usize| {
            ensure!(got == objects.len(i, 0), "object {i} is {got} bytes long");
            Ok(())
        };
        let many = |t: usize, n: u64, len: usize| {
            let draw = |j: usize| draw(ctx, t, n * BATCH as u64 + j as u64);
            let keys: [[u8; 8]; BATCH] = std::array::from_fn(|j| key(draw(j)));
            let keys: [&[u8]; BATCH] = std::array::from_fn(|j| &keys[j][..]);
            let (mut bytes, mut due, mut own) = (0, 0, Vec::new());
            peer.get_many(&keys[..len], &mut |b| {
                // Some lend the object where it lies: a copy is part of every get here.
                own.clear();
                own.extend_from_slice(b);
                bytes += black_box(&own).len();
            })?;
            (0..len).for_each(|j| due += objects.len(draw(j), 0));
            ensure!(bytes == due, "{bytes} bytes instead of {due}");
            Ok(())
        };
        let one = |t: usize, n: u64, out: &mut Vec<u8>| {
            let i = draw(ctx, t, n);
            ensure!(peer.get(&key(i), out)?, "object {i} is missing");
            check(i, black_box(&*out).len())
        };
        for by in [1, 2] {
            let meter = session.meter()?;
            let op = |t, n| many(t, n, BATCH);
            let mut figure = hot(ctx, batched(by), by, &op, &|t, n| many(t, n, 1))?;
            meter.stop(&mut figure, 0)?;
            out.push(figure);
            let op = |t, n: u64| {
                let mut out = Vec::new();
                (0..BATCH as u64).try_for_each(|j| one(t, n * BATCH as u64 + j, &mut out))
            };
            let meter = session.meter()?;
            let mut figure = hot(ctx, single(by), by, &op, &|t, n| one(t, n, &mut Vec::new()))?;
            meter.stop(&mut figure, 0)?;
            out.push(figure);
        }
        Ok(())
    }

    fn cold_rows(ctx: &Ctx, session: &mut Session<'_>, out: &mut Vec<Figure>) -> Result<()> {
        for by in [1, 2] {
            session.chill(Setup { cache_bytes: COLD_CACHE, load: Load::Small })?;
            system::touch_memory(ctx.pick(1 << 29, 64 << 20));
            let meter = session.meter()?;
            let peer = session.peer()?;
            let mut figure = cold_row(ctx, by, &|i| {
                ensure!(peer.get(&key(i), &mut Vec::new())?, "object {i} is missing");
                Ok(())
            })?;
            meter.stop(&mut figure, 0)?;
            out.push(figure);
        }
        Ok(())
    }
}

/// A fixed number of gets: the more there were, the warmer the cache would be.
fn cold_row(ctx: &Ctx, by: usize, get: &(dyn Fn(u64) -> Result<()> + Sync)) -> Result<Figure> {
    let each = ctx.pick(4000, 400) / by as u64;
    let all = AtomicU64::new(0);
    let start = std::time::Instant::now();
    let latency = std::thread::scope(|scope| {
        let run = |t: usize| {
            let all = &all;
            move || -> Result<Recorder> {
                let mut latency = Recorder::new()?;
                for n in 0..each {
                    latency.time(|| get(draw(ctx, t + 8, n)))?;
                    all.fetch_add(1, Ordering::Relaxed);
                }
                Ok(latency)
            }
        };
        let threads: Vec<_> = (0..by).map(|t| scope.spawn(run(t))).collect();
        let mut sum = Recorder::new()?;
        for thread in threads {
            sum.merge(&thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??)?;
        }
        Ok::<_, anyhow::Error>(sum)
    })?;
    let rate = all.into_inner() as f64 / start.elapsed().as_secs_f64();
    Ok(Figure::new(cold(by), Unit::PerSecond, rate).latency(&latency))
}

fn pread(file: &File, i: u64, out: &mut [u8]) -> Result<()> {
    file.read_exact_at(out, i * MEAN as u64)?;
    black_box(out);
    Ok(())
}

impl Workload for Gets {
    fn id(&self) -> &'static str {
        "w3"
    }

    fn title(&self, ctx: &Ctx) -> String {
        format!("random gets of {} objects of 100–300 B", count(ctx))
    }

    fn remark(&self) -> &'static str {
        "Loaded with ordered keys. Hot: all read once before, cache 256 MiB. \"100 gets to a \
         snapshot\": the store's call for many gets in one read transaction, or where the \
         adapter has none, single gets; \"a snapshot each\": one read transaction for each get. \
         All copy the object to memory of the caller's. Throughput is measured without a clock \
         at each get; latencies, in a pass of its own, with one. W3c: the store reopened with a \
         cache of 32 MiB, the page cache dropped, 512 MiB of memory touched, a fixed number of gets. Bare: pread of 200 \
         bytes from one file, hot or cold; cold, readahead is switched off (fadvise)."
    }

    fn load(&self) -> Load {
        Load::Small
    }

    fn measure(&self, ctx: &Ctx, maker: &dyn Maker, out: &mut Vec<Figure>) -> Result<()> {
        let objects = Objects::new(ctx.seed, Sizes::SMALL);
        let mut session = Session::new(ctx, maker, super::setup(Load::Small), "gets")?;
        let peer: &dyn Peer = session.peer()?;
        objects.preload(peer, count(ctx), key)?;
        objects.check_some(peer, count(ctx), |_| 0)?;
        Self::hot_rows(ctx, &session, &objects, out)?;
        Self::cold_rows(ctx, &mut session, out)
    }

    fn bare(&self, ctx: &Ctx, out: &mut Vec<Figure>) -> Result<()> {
        let path = ctx.dir.join("bare");
        let bytes = Objects::new(ctx.seed, Sizes::Exactly(count(ctx) as usize * MEAN));
        bare::write_once(&path, bytes.bytes(0, 0))?;
        drop(bytes);
        let file = File::open(&path)?;
        let mut buf = vec![0; 1 << 20];
        bare::read_through(&path, &mut buf)?;
        for by in [1, 2] {
            let op = |t: usize, n: u64| {
                let mut buf = [0; MEAN];
                let at = |j| draw(ctx, t, n * BATCH as u64 + j);
                (0..BATCH as u64).try_for_each(|j| pread(&file, at(j), &mut buf))
            };
            let one = |t: usize, n: u64| pread(&file, draw(ctx, t, n), &mut [0; MEAN]);
            let figure = hot(ctx, batched(by), by, &op, &one)?;
            out.push(Figure { row: single(by), ..figure.clone() });
            out.push(figure);
        }
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random)?;
        for by in [1, 2] {
            system::drop_caches(&ctx.dir, &[&path])?;
            system::touch_memory(ctx.pick(1 << 29, 64 << 20));
            out.push(cold_row(ctx, by, &|i| pread(&file, i, &mut [0; MEAN]))?);
        }
        Ok(())
    }

    fn goals(&self, _ctx: &Ctx) -> Vec<Goal> {
        const LMDB: &[&str] = &["LMDB"];
        let at_least = |who, row, than, bound| Goal::new(who, row, than, Bound::AtLeast(bound));
        let mut goals = vec![
            at_least(BY_OID, batched(1), Than::Best(LMDB), 1.3),
            at_least(BY_NAME, batched(1), Than::Best(LMDB), 0.9),
            at_least(BY_NAME, batched(1), Than::BestBut(LMDB), 1.0),
            at_least(BY_OID, single(1), Than::Best(LMDB), 1.3),
            at_least(BY_NAME, single(1), Than::Best(LMDB), 0.9),
            at_least(BY_NAME, single(1), Than::BestBut(LMDB), 1.0),
        ];
        for (two, one) in [(batched(2), batched(1)), (single(2), single(1))] {
            goals.extend(super::both(&two, &Than::Own(one), Bound::AtLeast(1.9)));
        }
        for by in [1, 2] {
            goals.extend(super::both(&cold(by), &Than::Best(&[]), Bound::AtLeast(1.0)));
        }
        goals
    }
}
