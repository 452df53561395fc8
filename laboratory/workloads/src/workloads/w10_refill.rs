//! W10: half of all objects deleted, then refilled.

use super::BY_NAME;
use super::{LONGEST, Objects, Session, Sizes, Workload, hashed, key};
use crate::measure::{Driven, Meter, repeat};
use crate::peer::{Load, Maker};
use anyhow::{Result, ensure};
use holdall_instrument::contest::{Bound, Ctx, Figure, Goal, Plot, Source, Than, Unit, What};
use holdall_instrument::system;
use std::fs::File;
use std::os::unix::fs::FileExt;

const FILL: &str = "first fill";
const DELETE: &str = "delete half";
const REFILL: &str = "refill";
const SPACE: &str = "w10-space";
/// Objects of a commit.
const BATCH: usize = 100;

pub(super) struct Refill;

fn count(ctx: &Ctx) -> u64 {
    ctx.pick(200_000, 300)
}

/// The first `count` ordinals in the order of a draw; the first half of them is deleted and
/// put again.
fn drawn(ctx: &Ctx, count: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (0..count).collect();
    all.sort_unstable_by_key(|i| hashed(ctx.seed ^ 10 ^ i));
    all
}

/// Deleted objects again with new lengths, until the logical bytes are what they were.
fn refill(objects: &Objects, deleted: &[u64]) -> Vec<u64> {
    let gone: u64 = deleted.iter().map(|i| objects.len(*i, 0) as u64).sum();
    let (mut again, mut bytes) = (Vec::new(), 0);
    for i in deleted {
        let len = objects.len(*i, 1) as u64;
        if bytes + len > gone {
            continue;
        }
        again.push(*i);
        bytes += len;
    }
    again
}

fn mb(row: &str, bytes: u64, done: &Driven) -> Figure {
    let rate = bytes as f64 / 1e6 * done.rate / done.count as f64;
    Figure::new(row, Unit::MbPerSecond, rate).latency(&done.latency)
}

/// Calls `op` with batches of `which` until they are used up or [`LONGEST`] has passed.
fn batches(which: &[u64], mut op: impl FnMut(&[u64]) -> Result<()>) -> Result<Driven> {
    let mut left = which.chunks(BATCH);
    let count = left.len() as u64;
    repeat(LONGEST, count, |_| left.next().map_or(Ok(()), &mut op))
}

/// Those of `which` that [`batches`] came to.
fn reached<'a>(which: &'a [u64], done: &Driven) -> &'a [u64] {
    &which[..which.len().min(done.count as usize * BATCH)]
}

impl Refill {
    /// Completes a row: bytes on disk by what the store held when it was fullest.
    fn row(
        session: &Session<'_>,
        meter: &Meter,
        mut figure: Figure,
        (x, written, peak): (f64, u64, u64),
    ) -> Result<Figure> {
        session.settle(meter, &mut figure, written)?;
        let share = meter.disk_share(peak)?;
        figure.disk = Some(share);
        figure.point(SPACE, x, share);
        Ok(figure)
    }
}

impl Workload for Refill {
    fn id(&self) -> &'static str {
        "w10"
    }

    fn title(&self, ctx: &Ctx) -> String {
        format!("{} web objects, half deleted, then refilled", count(ctx))
    }

    fn remark(&self) -> &'static str {
        "Sizes as in W4, 100 objects to a commit. Half of the objects, drawn evenly, are \
         deleted; then deleted ones are put again with new sizes until the logical bytes are \
         those of before. Disk ÷ logical divides by the logical bytes when fullest, after the \
         store's own checkpoint or compaction. Latencies are of commits. Each part ends after \
         60 s; the next is of what is there then. Bare: the bytes appended, for the refill \
         written over, one pwrite and fdatasync for each commit."
    }

    fn load(&self) -> Load {
        Load::Web
    }

    fn measure(&self, ctx: &Ctx, maker: &dyn Maker, out: &mut Vec<Figure>) -> Result<()> {
        let objects = Objects::new(ctx.seed, Sizes::Web);
        let all: Vec<u64> = (0..count(ctx)).collect();
        system::touch_memory(ctx.pick(1 << 30, 32 << 20));
        let session = Session::new(ctx, maker, super::setup(Load::Web), "refill")?;
        let (peer, meter) = (session.peer()?, session.meter()?);
        let done = batches(&all, |b| objects.put(peer, b.iter().copied(), |_| 0))?;
        let there = reached(&all, &done).len() as u64;
        let (drawn, peak) = (drawn(ctx, there), objects.total(there));
        let (half, kept) = drawn.split_at(drawn.len() / 2);
        out.push(Self::row(&session, &meter, mb(FILL, peak, &done), (0.0, peak, peak))?);
        let meter = session.meter()?;
        let done = batches(half, |b| {
            let keys: Vec<_> = b.iter().map(|i| key(*i)).collect();
            peer.delete(&keys.iter().map(|k| &k[..]).collect::<Vec<_>>())
        })?;
        let deleted = reached(half, &done);
        let rate = deleted.len() as f64 * done.rate / done.count as f64;
        let figure = Figure::new(DELETE, Unit::PerSecond, rate).latency(&done.latency);
        out.push(Self::row(&session, &meter, figure, (1.0, 0, peak))?);
        for i in deleted.iter().take(10) {
            ensure!(!peer.get(&key(*i), &mut Vec::new())?, "object {i} is there, though deleted");
        }
        let again = refill(&objects, deleted);
        let meter = session.meter()?;
        let done = batches(&again, |b| objects.put(peer, b.iter().copied(), |_| 1))?;
        let again = reached(&again, &done);
        let bytes = again.iter().map(|i| objects.len(*i, 1) as u64).sum();
        out.push(Self::row(&session, &meter, mb(REFILL, bytes, &done), (2.0, bytes, peak))?);
        for i in kept.iter().take(100) {
            objects.check(peer, &key(*i), *i, 0)?;
        }
        for i in again.iter().take(100) {
            objects.check(peer, &key(*i), *i, 1)?;
        }
        Ok(())
    }

    fn bare(&self, ctx: &Ctx, out: &mut Vec<Figure>) -> Result<()> {
        let objects = Objects::new(ctx.seed, Sizes::Web);
        let file: File = holdall_instrument::small_sync::create(&ctx.dir.join("bare"))?;
        for (row, version) in [(FILL, 0), (REFILL, 1)] {
            let all: Vec<u64> = (0..count(ctx) / (1 + version)).collect();
            let (mut joined, mut at) = (Vec::new(), 0);
            let done = batches(&all, |b| {
                joined.clear();
                b.iter().for_each(|i| joined.extend_from_slice(objects.bytes(*i, version)));
                file.write_all_at(&joined, at)?;
                at += joined.len() as u64;
                Ok(file.sync_data()?)
            })?;
            out.push(mb(row, at, &done));
        }
        Ok(())
    }

    fn goals(&self, _ctx: &Ctx) -> Vec<Goal> {
        let first = Than::Own(FILL.into());
        vec![
            Goal::new(BY_NAME, REFILL, first, Bound::AtLeast(0.9)),
            Goal::new(BY_NAME, REFILL, Than::Nothing, Bound::AtMost(1.1)).of(What::Disk),
        ]
    }

    fn plots(&self, _ctx: &Ctx) -> Vec<Plot> {
        vec![Plot {
            id: SPACE.into(),
            title: "W10: space, by logical bytes when fullest".into(),
            source: Source::Points {
                x: "after",
                y: "bytes on disk ÷ logical bytes when fullest",
                ticks: vec![FILL, DELETE, REFILL],
            },
        }]
    }
}
