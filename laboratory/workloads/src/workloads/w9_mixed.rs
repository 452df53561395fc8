//! W9: readers, small writers and a streaming writer at once.

use super::{Objects, Session, Sizes, Workload, hashed, key};
use crate::bare;
use crate::measure::{Driven, join, until};
use crate::peer::{Load, Maker};
use anyhow::{Result, anyhow, ensure};
use holdall_instrument::contest::{Bound, Ctx, Figure, Goal, Plot, Source, Than, Unit, What};
use holdall_instrument::small_sync::SmallSync;
use holdall_instrument::system;
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Scope, ScopedJoinHandle};

const READERS: usize = 4;
const WRITERS: usize = 2;
const LEN: usize = 200;

const GETS_ALONE: &str = "gets, readers alone";
const GETS_WRITERS: &str = "gets, beside small writers";
const GETS_ALL: &str = "gets, beside small writers and the stream";
const PUTS_NO_STREAM: &str = "puts, without the stream";
const PUTS_ALL: &str = "puts, beside the stream";
const STREAM: &str = "stream";

pub(super) struct Mixed;

fn count(ctx: &Ctx) -> u64 {
    ctx.pick(200_000, 500)
}

fn streamed(ctx: &Ctx) -> usize {
    ctx.pick(100 << 20, 8 << 20)
}

/// Calls of one side, by any thread; each gets the thread's number and its own count.
type Op<'a> = &'a (dyn Fn(usize, u64) -> Result<()> + Sync);

/// Who is at work.
struct Crew<'a> {
    get: Op<'a>,
    put: Op<'a>,
    stream: Op<'a>,
}

/// What each side did, those at work.
struct Sides {
    gets: Driven,
    puts: Option<Driven>,
    streams: Option<Driven>,
}

fn spawn<'s, 'e>(
    scope: &'s Scope<'s, 'e>,
    stop: &'e AtomicBool,
    op: Op<'e>,
    threads: usize,
) -> Vec<ScopedJoinHandle<'s, Result<Driven>>> {
    (0..threads).map(|t| scope.spawn(move || until(stop, |i| op(t, i)))).collect()
}

/// Lets the readers work for a while, with small writers and the stream as told.
fn phase(ctx: &Ctx, crew: &Crew<'_>, puts: bool, streams: bool) -> Result<Sides> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let spawn = |op, n| spawn(scope, &stop, op, n);
        let readers = spawn(crew.get, READERS);
        let writers = puts.then(|| spawn(crew.put, WRITERS));
        let stream = streams.then(|| spawn(crew.stream, 1));
        std::thread::sleep(ctx.seconds(8));
        stop.store(true, Ordering::Relaxed);
        let gets = join(readers)?;
        let puts = writers.map(join).transpose()?;
        let streams = stream.map(join).transpose()?;
        Ok(Sides { gets, puts, streams })
    })
}

fn per_second(row: &str, done: &Driven) -> Figure {
    Figure::new(row, Unit::PerSecond, done.rate).latency(&done.latency)
}

/// Runs the three phases; `around` runs each, which returns its figures and bytes written.
fn phases(
    ctx: &Ctx,
    crew: &Crew<'_>,
    mut around: impl FnMut(&mut dyn FnMut() -> Result<(Vec<Figure>, u64)>) -> Result<()>,
) -> Result<()> {
    around(&mut || Ok((vec![per_second(GETS_ALONE, &phase(ctx, crew, false, false)?.gets)], 0)))?;
    around(&mut || {
        let sides = phase(ctx, crew, true, false)?;
        let mut figures = vec![per_second(GETS_WRITERS, &sides.gets)];
        figures.extend(sides.puts.as_ref().map(|d| per_second(PUTS_NO_STREAM, d)));
        Ok((figures, sides.puts.map_or(0, |d| d.count * LEN as u64)))
    })?;
    around(&mut || {
        let sides = phase(ctx, crew, true, true)?;
        let mut figures = vec![per_second(GETS_ALL, &sides.gets)];
        figures.extend(sides.puts.as_ref().map(|d| per_second(PUTS_ALL, d)));
        let len = streamed(ctx);
        figures.extend(sides.streams.as_ref().map(|d| {
            Figure::new(STREAM, Unit::MbPerSecond, d.rate * len as f64 / 1e6).latency(&d.latency)
        }));
        let small = sides.puts.map_or(0, |d| d.count * LEN as u64);
        Ok((figures, small + sides.streams.map_or(0, |d| d.count * len as u64)))
    })
}

/// The draw of one thread's get or put.
fn draw(ctx: &Ctx, side: u64, thread: usize, i: u64) -> u64 {
    hashed(ctx.seed ^ side << 56 ^ (thread as u64) << 48 ^ i) % count(ctx)
}

impl Workload for Mixed {
    fn id(&self) -> &'static str {
        "w9"
    }

    fn title(&self, ctx: &Ctx) -> String {
        format!(
            "{READERS} readers, {WRITERS} small writers, 1 streaming writer of {} MiB objects",
            streamed(ctx) >> 20
        )
    }

    fn remark(&self) -> &'static str {
        "200,000 objects of 200 B are there (500 with --quick). Readers get one drawn evenly, \
         each in a read transaction of its own; small writers replace one drawn evenly, each put \
         a durable commit; the streaming writer replaces three large objects in turn. All go \
         without a pause, so processors are fewer than threads that could use them. Three \
         phases: readers alone, with the small writers, with all. Device ÷ logical and memory, \
         of a phase, stand at each of its rows. Bare: pread of 200 B from the page cache; pwrite \
         of 4 KiB and fdatasync in a written file for each writer; a file written in calls of \
         1 MiB with one fdatasync."
    }

    fn load(&self) -> Load {
        Load::Web
    }

    fn measure(&self, ctx: &Ctx, maker: &dyn Maker, out: &mut Vec<Figure>) -> Result<()> {
        let (count, len) = (count(ctx), streamed(ctx));
        let objects = Objects::new(ctx.seed, Sizes::Exactly(LEN));
        let large = Objects::new(ctx.seed, Sizes::Exactly(len));
        system::touch_memory(ctx.pick(1 << 30, 64 << 20));
        let session = Session::new(ctx, maker, super::setup(Load::Web), "mixed")?;
        let peer = session.peer()?;
        objects.preload(peer, count, key)?;
        let get = |t: usize, i: u64| {
            let mut out = Vec::with_capacity(LEN);
            let found = peer.get(&key(draw(ctx, 1, t, i)), &mut out)?;
            ensure!(found && black_box(&out).len() == LEN, "an object is not whole");
            Ok(())
        };
        let version = AtomicU64::new(1);
        let put = |t: usize, i: u64| {
            let version = version.fetch_add(1, Ordering::Relaxed);
            let which = draw(ctx, 2, t, i);
            peer.put(&[(&key(which), objects.bytes(which, version))])
        };
        let stream = |_: usize, i: u64| {
            let mut left = large.bytes(i, 0);
            peer.put_stream(&key(count + i % 3), len as u64, &mut |piece| {
                let (now, later) = left.split_at(piece.len());
                piece.copy_from_slice(now);
                left = later;
            })
        };
        phases(ctx, &Crew { get: &get, put: &put, stream: &stream }, |run| {
            let meter = session.meter()?;
            let (mut figures, written) = run()?;
            let mut all = Figure::new("", Unit::PerSecond, 0.0);
            session.settle(&meter, &mut all, written)?;
            for figure in &mut figures {
                (figure.device, figure.memory) = (all.device, all.memory);
            }
            out.extend(figures);
            Ok(())
        })?;
        let mut got = Vec::new();
        ensure!(peer.get(&key(count), &mut got)?, "the streamed object is missing");
        ensure!(got.len() == len, "the streamed object is not whole");
        Ok(())
    }

    fn bare(&self, ctx: &Ctx, out: &mut Vec<Figure>) -> Result<()> {
        let path = |name: &str| ctx.dir.join(format!("bare-{name}"));
        let large = Objects::new(ctx.seed, Sizes::Exactly(streamed(ctx)));
        let small = Objects::new(ctx.seed, Sizes::Exactly(count(ctx) as usize * LEN));
        bare::write_once(&path("small"), small.bytes(0, 0))?;
        let file = File::open(path("small"))?;
        let logs = (0..WRITERS).map(|i| SmallSync::new(&path(&i.to_string())));
        let logs: Vec<_> = logs.map(|f| f.map(Mutex::new)).collect::<Result<_>>()?;
        let get = |t: usize, i: u64| {
            let mut buf = [0; LEN];
            file.read_exact_at(&mut buf, draw(ctx, 1, t, i) * LEN as u64)?;
            black_box(buf);
            Ok(())
        };
        let put =
            |t: usize, _: u64| logs[t].lock().map_err(|_| anyhow!("a thread panicked"))?.put();
        let stream = |_: usize, i: u64| bare::write_once(&path("large"), large.bytes(i, 0));
        phases(ctx, &Crew { get: &get, put: &put, stream: &stream }, |run| {
            out.extend(run()?.0);
            Ok(())
        })
    }

    fn goals(&self, _ctx: &Ctx) -> Vec<Goal> {
        let mut goals = Vec::new();
        for row in [GETS_WRITERS, GETS_ALL] {
            let alone = Than::Own(GETS_ALONE.into());
            goals.extend(super::both(row, &alone, Bound::AtMost(2.0)).map(|g| g.of(What::P99)));
        }
        let without = Than::Own(PUTS_NO_STREAM.into());
        goals.extend(super::both(PUTS_ALL, &without, Bound::AtMost(1.5)).map(|g| g.of(What::P50)));
        goals
    }

    fn plots(&self, _ctx: &Ctx) -> Vec<Plot> {
        let plot = |(id, row): (&str, &str)| Plot {
            id: format!("w9-latency-{id}"),
            title: format!("W9: {row}: latency"),
            source: Source::Latency(row.into()),
        };
        [("gets-alone", GETS_ALONE), ("gets", GETS_ALL), ("puts", PUTS_ALL)].map(plot).into()
    }
}
