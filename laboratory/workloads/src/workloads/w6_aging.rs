//! W6: aging of large objects under safe writes.
//!
//! After Sears and van Ingen, "Fragmentation in Large Object Repositories" (CIDR 2007):
//! storage age is the bytes replaced divided by the bytes live; age 0 is the bulk load.

use super::{Objects, Session, Sizes, Workload, hashed, key};
use crate::measure::Meter;
use crate::peer::{Load, Maker, Peer};
use anyhow::{Result, ensure};
use holdall_instrument::contest::{
    Bound, Ctx, Figure, Goal, Plot, Recorder, Source, Than, Unit, What,
};
use holdall_instrument::system;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// A store that has written so long, of one kind of sizes, ends at the age it has: its last
/// rows are of that age.
const LONGEST_AGING: Duration = Duration::from_secs(300);

/// Share of the volume that is live, in percent.
const FULL: u64 = 85;

pub(super) struct Aging;

/// Kinds of sizes: part of row names and file names.
const KINDS: [(&str, &str); 2] = [("1 MiB", "constant"), ("0.2–2 MiB", "varied")];

fn sizes(kind: usize) -> Sizes {
    const KIB: usize = 1 << 10;
    if kind == 0 { Sizes::Exactly(KIB * KIB) } else { Sizes::Uniform(200 * KIB, 2048 * KIB) }
}

fn volume(ctx: &Ctx) -> u64 {
    ctx.pick(4 << 30, 32 << 20)
}

fn oldest(ctx: &Ctx) -> u64 {
    ctx.pick(10, 2)
}

/// Objects read at an age.
fn reads(ctx: &Ctx) -> u64 {
    ctx.pick(256, 8)
}

fn row(kind: usize, what: &str, age: u64) -> String {
    format!("{}: {what} at age {age}", KINDS[kind].0)
}

fn plot(kind: usize, what: &str) -> String {
    format!("w6-{what}-{}", KINDS[kind].1)
}

/// What a store holds.
struct State<'a> {
    ctx: &'a Ctx,
    kind: usize,
    objects: Objects,
    version: Vec<u64>,
    live: u64,
    draws: u64,
}

/// Bytes put and the time it took.
struct Done {
    bytes: u64,
    time: Duration,
    latency: Recorder,
}

impl<'a> State<'a> {
    /// As many objects as fill the volume's share.
    fn new(ctx: &'a Ctx, kind: usize) -> Self {
        let objects = Objects::new(ctx.seed, sizes(kind));
        let (mut count, mut live) = (0, 0);
        loop {
            let more = objects.len(count, 0) as u64;
            if live + more > volume(ctx) / 100 * FULL {
                break;
            }
            (count, live) = (count + 1, live + more);
        }
        Self { ctx, kind, objects, version: vec![0; count as usize], live, draws: 0 }
    }

    fn put(&self, peer: &dyn Peer, i: u64, done: &mut Done) -> Result<()> {
        let bytes = self.objects.bytes(i, self.version[i as usize]);
        done.time += done.latency.time(|| peer.put(&[(&key(i), bytes)]))?;
        done.bytes += bytes.len() as u64;
        Ok(())
    }

    /// The bulk load, or as many replacements as make one unit of age.
    fn grow_older(&mut self, peer: &dyn Peer, age: u64) -> Result<Done> {
        let mut done = Done { bytes: 0, time: Duration::ZERO, latency: Recorder::new()? };
        if age == 0 {
            (0..self.version.len() as u64).try_for_each(|i| self.put(peer, i, &mut done))?;
            return Ok(done);
        }
        while done.bytes < self.live {
            self.draws += 1;
            let i = hashed(self.ctx.seed ^ 6 ^ self.draws) % self.version.len() as u64;
            let old = self.objects.len(i, self.version[i as usize]) as u64;
            let new = self.objects.len(i, self.version[i as usize] + 1) as u64;
            // Sizes wander; the volume's share does not.
            if self.live - old + new > volume(self.ctx) / 100 * FULL {
                continue;
            }
            self.version[i as usize] += 1;
            self.live = self.live - old + new;
            self.put(peer, i, &mut done)?;
        }
        Ok(done)
    }

    /// Cold reads of whole objects.
    fn read(&self, session: &Session<'_>, age: u64) -> Result<Figure> {
        session.drop_caches()?;
        system::touch_memory(self.ctx.pick(1 << 29, 64 << 20));
        let peer = session.peer()?;
        let (mut latency, mut time, mut bytes) = (Recorder::new()?, Duration::ZERO, 0);
        let mut out = Vec::with_capacity(2 << 20);
        for n in 0..reads(self.ctx) {
            let i = hashed(self.ctx.seed ^ 66 ^ (age << 32) ^ n) % self.version.len() as u64;
            time += latency.time(|| {
                ensure!(peer.get(&key(i), &mut out)?, "object {i} is missing");
                Ok(())
            })?;
            let due = self.objects.bytes(i, self.version[i as usize]);
            ensure!(out == due, "object {i} has other bytes than were put");
            bytes += due.len();
        }
        Ok(mb(row(self.kind, "cold read", age), bytes as u64, time, &latency))
    }
}

fn mb(row: String, bytes: u64, time: Duration, latency: &Recorder) -> Figure {
    let rate = bytes as f64 / 1e6 / time.as_secs_f64();
    Figure::new(row, Unit::MbPerSecond, rate).latency(latency)
}

impl Aging {
    fn kind(
        ctx: &Ctx,
        maker: &dyn Maker,
        kind: usize,
        base: &mut Option<u64>,
        out: &mut Vec<Figure>,
    ) -> Result<()> {
        let mut state = State::new(ctx, kind);
        system::touch_memory(ctx.pick(4 << 30, 64 << 20));
        let setup = super::setup(Load::Large);
        let mut session = Session::within(ctx, maker, setup, "aging", Some(volume(ctx)))?;
        session.count_from(base);
        let peer = session.peer()?;
        let last = oldest(ctx);
        let mut meter: Meter = session.meter()?;
        let (mut all, mut time) = (0, Duration::ZERO);
        let (mut writes, mut readings, mut space) = (Vec::new(), Vec::new(), Vec::new());
        for age in 0..=last {
            let done = state.grow_older(peer, age)?;
            let mut figure = mb(row(kind, "write", age), done.bytes, done.time, &done.latency);
            let share = meter.disk_share(state.live)?;
            writes.push((age, figure.value));
            space.push((age, share));
            all += done.bytes;
            time += done.time;
            let ends = age == last || time >= LONGEST_AGING;
            if age == 0 || ends {
                figure.disk = Some(share);
                meter.stop(&mut figure, all)?;
                (meter, all) = (session.meter()?, 0);
                out.push(figure);
            }
            if age % 2 == 0 || ends {
                let figure = state.read(&session, age)?;
                readings.push((age, figure.value));
                if age == 0 || ends {
                    out.push(figure);
                }
            }
            if ends {
                break;
            }
        }
        // Points of all ages hang on the last row.
        if let Some(figure) = out.last_mut() {
            for (what, points) in [("write", writes), ("read", readings), ("space", space)] {
                points.into_iter().for_each(|(x, y)| figure.point(plot(kind, what), x as f64, y));
            }
        }
        Ok(())
    }

    fn bare_kind(ctx: &Ctx, kind: usize, out: &mut Vec<Figure>) -> Result<()> {
        let objects = Objects::new(ctx.seed, sizes(kind));
        system::touch_memory(ctx.pick(1 << 30, 64 << 20));
        let path = ctx.dir.join("bare");
        let file: File = holdall_instrument::small_sync::create(&path)?;
        let count = reads(ctx) * 2;
        for age in [0, oldest(ctx)] {
            let (mut latency, mut time, mut at) = (Recorder::new()?, Duration::ZERO, 0);
            for i in 0..count {
                let bytes = objects.bytes(i, 0);
                time += latency.time(|| {
                    file.write_all_at(bytes, at)?;
                    Ok(file.sync_data()?)
                })?;
                at += bytes.len() as u64;
            }
            out.push(mb(row(kind, "write", age), at, time, &latency));
            system::drop_caches(&ctx.dir, &[&path])?;
            system::touch_memory(ctx.pick(1 << 29, 64 << 20));
            let (mut latency, mut time, mut at) = (Recorder::new()?, Duration::ZERO, 0);
            let mut buf = vec![1; 2 << 20];
            for i in 0..count {
                let len = objects.len(i, 0);
                time += latency.time(|| Ok(file.read_exact_at(&mut buf[..len], at)?))?;
                at += len as u64;
            }
            out.push(mb(row(kind, "cold read", age), at, time, &latency));
        }
        Ok(std::fs::remove_file(&path)?)
    }
}

impl Workload for Aging {
    fn id(&self) -> &'static str {
        "w6"
    }

    fn title(&self, ctx: &Ctx) -> String {
        let (volume, age) = (volume(ctx) >> 20, oldest(ctx));
        format!("aging: a volume of {volume} MiB, {FULL} % full, to storage age {age}")
    }

    fn remark(&self) -> &'static str {
        "Objects of 1 MiB, then of 0.2–2 MiB drawn evenly; age 0 is the bulk load, each further \
         unit of age replaces as many bytes as are live; one put, one commit. Holdall may not \
         grow beyond the volume; peers are not limited. Latencies are of puts and of reads. At \
         each second age some objects drawn evenly are read whole after the page cache was \
         dropped, the stores' own caches staying. Device bytes of the oldest write row are of \
         all replacements, disk ÷ logical is taken right after the last. A store that has \
         written for 300 s ends at the age it has, and has rows of its own. Bare: the objects \
         appended (at the oldest age: written over), each with pwrite and fdatasync; cold \
         preads in order."
    }

    fn load(&self) -> Load {
        Load::Large
    }

    fn measure(&self, ctx: &Ctx, maker: &dyn Maker, out: &mut Vec<Figure>) -> Result<()> {
        let mut base = None;
        (0..KINDS.len()).try_for_each(|kind| Self::kind(ctx, maker, kind, &mut base, out))
    }

    fn bare(&self, ctx: &Ctx, out: &mut Vec<Figure>) -> Result<()> {
        (0..KINDS.len()).try_for_each(|kind| Self::bare_kind(ctx, kind, out))
    }

    fn goals(&self, ctx: &Ctx) -> Vec<Goal> {
        let old = oldest(ctx);
        let mut goals = Vec::new();
        for kind in 0..KINDS.len() {
            let (write, read) = (row(kind, "write", old), row(kind, "cold read", old));
            let young = Than::Own(row(kind, "write", 0));
            goals.extend(super::both(&write, &young, Bound::AtLeast(0.95)));
            goals.extend(super::both(&write, &Than::Best(&[]), Bound::AtLeast(0.9)));
            goals.extend(super::both(&read, &Than::Best(&[]), Bound::AtLeast(1.0)));
            let space = super::both(&write, &Than::Nothing, Bound::AtMost(1.1));
            goals.extend(space.map(|g| g.of(What::Disk)));
        }
        goals
    }

    fn plots(&self, _ctx: &Ctx) -> Vec<Plot> {
        let mut plots = Vec::new();
        for (kind, (size, _)) in KINDS.iter().enumerate() {
            for (what, y) in [
                ("write", "MB/s written"),
                ("read", "MB/s read cold"),
                ("space", "bytes on disk ÷ logical bytes"),
            ] {
                plots.push(Plot {
                    id: plot(kind, what),
                    title: format!("W6: objects of {size}: {what} against age"),
                    source: Source::Points { x: "storage age", y, ticks: Vec::new() },
                });
            }
        }
        plots
    }
}
