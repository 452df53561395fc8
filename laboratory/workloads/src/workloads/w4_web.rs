//! W4: objects of the web, loaded, replaced, read.

use super::BY_NAME;
use super::{LONGEST, Objects, Session, Sizes, Workload, hashed, key};
use crate::measure::{Driven, Meter, repeat};
use crate::peer::{Load, Maker};
use anyhow::{Result, ensure};
use holdall_instrument::contest::{
    Bound, Ctx, Figure, Goal, Plot, Recorder, Source, Than, Unit, What,
};
use holdall_instrument::system;
use std::os::unix::fs::FileExt;
use std::time::Duration;

const LOAD: &str = "load";
const REPLACE: &str = "replace";
const READ: &str = "read";
const SPACE: &str = "w4-space";
/// Objects of a commit.
const BATCH: u64 = 100;
/// How often the space is looked at while objects are replaced.
const LOOKS: u64 = 10;

pub(super) struct Web;

fn count(ctx: &Ctx) -> u64 {
    ctx.pick(50_000, 200)
}

fn replaced(ctx: &Ctx) -> u64 {
    4 * count(ctx)
}

/// Which of `count` objects replacement number `n` is of.
fn victim(ctx: &Ctx, count: u64, n: u64) -> u64 {
    hashed(ctx.seed ^ 4 ^ n) % count
}

/// Versions and lengths of all objects as replacements go on.
struct State {
    version: Vec<u64>,
    live: u64,
}

impl State {
    fn new(objects: &Objects, count: u64) -> Self {
        Self { version: vec![0; count as usize], live: objects.total(count) }
    }

    fn count(&self) -> u64 {
        self.version.len() as u64
    }

    /// Commit `c` of replacements: the objects and their new versions. An object drawn twice
    /// is put twice, the second version staying.
    fn next(&mut self, ctx: &Ctx, objects: &Objects, c: u64) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        for n in c * BATCH..(c + 1) * BATCH {
            let i = victim(ctx, self.count(), n);
            let version = &mut self.version[i as usize];
            self.live -= objects.len(i, *version) as u64;
            *version += 1;
            self.live += objects.len(i, *version) as u64;
            all.push((i, *version));
        }
        all
    }
}

fn mb(row: &str, bytes: u64, time: f64, latency: &Recorder) -> Figure {
    Figure::new(row, Unit::MbPerSecond, bytes as f64 / 1e6 / time).latency(latency)
}

fn seconds(done: &Driven) -> f64 {
    done.count as f64 / done.rate
}

impl Web {
    fn replace(
        ctx: &Ctx,
        session: &Session<'_>,
        objects: &Objects,
        state: &mut State,
    ) -> Result<Figure> {
        let (peer, meter) = (session.peer()?, session.meter()?);
        let (mut latency, mut time, mut bytes) = (Recorder::new()?, Duration::ZERO, 0);
        let mut points = Vec::new();
        let commits = replaced(ctx) / BATCH;
        for c in 0..commits {
            let all = state.next(ctx, objects, c);
            let keys: Vec<_> = all.iter().map(|(i, _)| key(*i)).collect();
            let value = |n: usize| objects.bytes(all[n].0, all[n].1);
            let items: Vec<(&[u8], &[u8])> =
                (0..all.len()).map(|n| (&keys[n][..], value(n))).collect();
            bytes += items.iter().map(|(_, v)| v.len() as u64).sum::<u64>();
            time += latency.time(|| peer.put(&items))?;
            let last = time >= LONGEST;
            if last || (c + 1) % (commits / LOOKS).max(1) == 0 {
                let turns = ((c + 1) * BATCH) as f64 / state.count() as f64;
                points.push((turns, meter.disk_share(state.live)?));
            }
            if last {
                break;
            }
        }
        let mut figure = mb(REPLACE, bytes, time.as_secs_f64(), &latency);
        // As it is while the store works, before it is settled.
        figure.disk = points.last().map(|(_, y)| *y);
        points.into_iter().for_each(|(x, y)| figure.point(SPACE, x, y));
        session.settle(&meter, &mut figure, bytes)?;
        Ok(figure)
    }

    fn read(ctx: &Ctx, session: &Session<'_>, objects: &Objects, state: &State) -> Result<Figure> {
        let peer = session.peer()?;
        let mut out = Vec::new();
        for i in 0..state.count() {
            ensure!(peer.get(&key(i), &mut out)?, "object {i} is missing");
        }
        let meter = session.meter()?;
        let done = repeat(ctx.seconds(3), u64::MAX, |n| {
            let i = victim(ctx, state.count(), n ^ 1 << 40);
            let len = objects.len(i, state.version[i as usize]);
            ensure!(peer.get(&key(i), &mut out)? && out.len() == len, "object {i} is not whole");
            Ok(())
        })?;
        let mut figure = Figure::new(READ, Unit::PerSecond, done.rate).latency(&done.latency);
        figure.disk = Some(meter.disk_share(state.live)?);
        meter.stop(&mut figure, 0)?;
        Ok(figure)
    }
}

/// Loads; how many objects that were, and the figure.
fn load_figure(
    ctx: &Ctx,
    objects: &Objects,
    put: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<(u64, Figure)> {
    let done = repeat(LONGEST, count(ctx) / BATCH, put)?;
    let count = done.count * BATCH;
    Ok((count, mb(LOAD, objects.total(count), seconds(&done), &done.latency)))
}

fn start(meter: &Meter, live: u64, figure: &mut Figure) -> Result<()> {
    let share = meter.disk_share(live)?;
    figure.disk = Some(share);
    figure.point(SPACE, 0.0, share);
    Ok(())
}

impl Workload for Web {
    fn id(&self) -> &'static str {
        "w4"
    }

    fn title(&self, ctx: &Ctx) -> String {
        let (count, replaced) = (count(ctx), replaced(ctx));
        format!("web objects: {count} loaded, {replaced} replaced, {BATCH} per commit, then read")
    }

    fn remark(&self) -> &'static str {
        "Sizes are of a truncated Pareto distribution (exponent 1.2, from 860 B to 256 KiB, \
         mean near 3.8 KB), drawn anew at each replacement; victims are drawn evenly. \
         Latencies of load and replace are of commits, of read of single gets, hot. Disk ÷ \
         logical of \"replace\" is taken right after the last commit, that of \"read\" after \
         the store's own checkpoint or compaction. Load and replacement end after 60 s each; \
         what comes after is of the objects there are. Bare: the same bytes appended, one pwrite \
         and fdatasync for each commit; pread of the same lengths from the page cache."
    }

    fn load(&self) -> Load {
        Load::Web
    }

    fn measure(&self, ctx: &Ctx, maker: &dyn Maker, out: &mut Vec<Figure>) -> Result<()> {
        let objects = Objects::new(ctx.seed, Sizes::Web);
        system::touch_memory(ctx.pick(1 << 30, 16 << 20));
        let session = Session::new(ctx, maker, super::setup(Load::Web), "web")?;
        let (peer, meter) = (session.peer()?, session.meter()?);
        let (count, mut figure) = load_figure(ctx, &objects, &mut |c| {
            objects.put(peer, c * BATCH..(c + 1) * BATCH, |_| 0)
        })?;
        let mut state = State::new(&objects, count);
        start(&meter, state.live, &mut figure)?;
        session.settle(&meter, &mut figure, state.live)?;
        out.push(figure);
        out.push(Self::replace(ctx, &session, &objects, &mut state)?);
        objects.check_some(peer, count, |i| state.version[i as usize])?;
        out.push(Self::read(ctx, &session, &objects, &state)?);
        Ok(())
    }

    fn bare(&self, ctx: &Ctx, out: &mut Vec<Figure>) -> Result<()> {
        let objects = Objects::new(ctx.seed, Sizes::Web);
        let file = holdall_instrument::small_sync::create(&ctx.dir.join("bare"))?;
        let (mut at, mut joined, mut starts) = (0, Vec::new(), Vec::new());
        let (count, figure) = load_figure(ctx, &objects, &mut |c| {
            joined.clear();
            for i in c * BATCH..(c + 1) * BATCH {
                starts.push(at + joined.len() as u64);
                joined.extend_from_slice(objects.bytes(i, 0));
            }
            file.write_all_at(&joined, at)?;
            at += joined.len() as u64;
            Ok(file.sync_data()?)
        })?;
        out.push(Figure { row: REPLACE.into(), ..figure.clone() });
        out.push(figure);
        let mut buf = Vec::new();
        let done = repeat(ctx.seconds(1), u64::MAX, |n| {
            let i = victim(ctx, count, n);
            buf.resize(objects.len(i, 0), 0);
            Ok(file.read_exact_at(&mut buf, starts[i as usize])?)
        })?;
        out.push(Figure::new(READ, Unit::PerSecond, done.rate).latency(&done.latency));
        Ok(())
    }

    fn goals(&self, _ctx: &Ctx) -> Vec<Goal> {
        let best = Than::Best(&[]);
        let mut goals = Vec::new();
        for (row, bound) in [(LOAD, 0.9), (REPLACE, 1.2), (READ, 1.0)] {
            goals.push(Goal::new(BY_NAME, row, best.clone(), Bound::AtLeast(bound)));
        }
        goals.push(Goal::new(BY_NAME, REPLACE, Than::Nothing, Bound::AtMost(1.1)).of(What::Disk));
        goals
    }

    fn plots(&self, _ctx: &Ctx) -> Vec<Plot> {
        vec![Plot {
            id: SPACE.into(),
            title: "W4: space while web objects are replaced".into(),
            source: Source::Points {
                x: "objects replaced ÷ objects",
                y: "bytes on disk ÷ logical bytes",
                ticks: Vec::new(),
            },
        }]
    }
}
