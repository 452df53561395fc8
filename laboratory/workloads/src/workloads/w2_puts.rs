//! W2: durable puts of 200 bytes, one commit each.

use super::{Objects, Session, Sizes, Workload, hashed, key};
use crate::measure::{Driven, threads};
use crate::peer::{Load, Maker};
use anyhow::{Result, anyhow};
use holdall_instrument::contest::{Bound, Ctx, Figure, Goal, Plot, Source, Than, Unit};
use holdall_instrument::small_sync::SmallSync;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const LEN: usize = 200;
const THREADS: [(usize, &str); 2] = [(1, "1 thread"), (8, "8 threads")];

pub(super) struct Puts;

/// Objects that are there before.
fn before(ctx: &Ctx) -> u64 {
    ctx.pick(10_000, 500)
}

fn figure(row: &str, done: &Driven) -> Figure {
    Figure::new(row, Unit::PerSecond, done.rate).latency(&done.latency)
}

impl Workload for Puts {
    fn id(&self) -> &'static str {
        "w2"
    }

    fn title(&self, _ctx: &Ctx) -> String {
        "durable single puts of 200 B".into()
    }

    fn remark(&self) -> &'static str {
        "Each put is a commit of its own, of a new object, into a store that holds 10,000 such \
         already (500 with --quick). Keys come in random order; by OID in order of ordinals. Bare: a pwrite of \
         4 KiB and an fdatasync, round and round in a preallocated and written file of 8 MiB; \
         each thread has a file of its own."
    }

    fn load(&self) -> Load {
        Load::Small
    }

    fn measure(&self, ctx: &Ctx, maker: &dyn Maker, out: &mut Vec<Figure>) -> Result<()> {
        let objects = Objects::new(ctx.seed, Sizes::Exactly(LEN));
        let session = Session::new(ctx, maker, super::setup(Load::Small), "puts")?;
        let peer = session.peer()?;
        let name = |i| key(if maker.by_ordinal() { i } else { hashed(i) });
        objects.preload(peer, before(ctx), name)?;
        let next = AtomicU64::new(before(ctx));
        for (count, row) in THREADS {
            let first = next.load(Ordering::Relaxed);
            let meter = session.meter()?;
            let done = threads(count, ctx.seconds(8), &|_, _| {
                let i = next.fetch_add(1, Ordering::Relaxed);
                peer.put(&[(&name(i), objects.bytes(i, 0))])
            })?;
            let mut figure = figure(row, &done);
            session.settle(&meter, &mut figure, done.count * LEN as u64)?;
            let end = next.load(Ordering::Relaxed);
            for n in 0..100 {
                let i = first + hashed(n) % (end - first);
                objects.check(peer, &name(i), i, 0)?;
            }
            figure.disk = Some(meter.disk_share(end * LEN as u64)?);
            out.push(figure);
        }
        Ok(())
    }

    fn bare(&self, ctx: &Ctx, out: &mut Vec<Figure>) -> Result<()> {
        for (count, row) in THREADS {
            let files = (0..count).map(|i| SmallSync::new(&ctx.dir.join(format!("bare-{i}"))));
            let files: Vec<_> = files.map(|f| f.map(Mutex::new)).collect::<Result<_>>()?;
            let done = threads(count, ctx.seconds(4), &|t, _| {
                files[t].lock().map_err(|_| anyhow!("a thread panicked"))?.put()
            })?;
            out.push(figure(row, &done));
        }
        Ok(())
    }

    fn goals(&self, _ctx: &Ctx) -> Vec<Goal> {
        let [(_, one), (_, eight)] = THREADS;
        let mut goals = Vec::new();
        goals.extend(super::both(one, &Than::Best(&[]), Bound::AtLeast(1.0)));
        goals.extend(super::both(one, &Than::Bare, Bound::AtLeast(0.8)));
        goals.extend(super::both(eight, &Than::Best(&[]), Bound::AtLeast(1.3)));
        goals
    }

    fn plots(&self, _ctx: &Ctx) -> Vec<Plot> {
        let plot = |(n, row): (usize, &str)| Plot {
            id: format!("w2-latency-{n}"),
            title: format!("W2: durable put of 200 B, {row}: latency"),
            source: Source::Latency(row.into()),
        };
        THREADS.map(plot).into()
    }
}
