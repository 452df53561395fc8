//! W1: bulk load of small objects.

use super::{BY_NAME, BY_OID};
use super::{LONGEST, Objects, Session, Sizes, Workload, hashed, key};
use crate::measure::{Driven, repeat};
use crate::peer::{Load, Maker};
use anyhow::Result;
use holdall_instrument::contest::{Bound, Ctx, Figure, Goal, Than, Unit};
use holdall_instrument::system;
use std::os::unix::fs::FileExt;
use std::time::Duration;

const ORDERED: &str = "ordered keys";
const RANDOM: &str = "random keys";

pub(super) struct Bulk;

fn count(ctx: &Ctx) -> u64 {
    ctx.pick(1_000_000, 600)
}

fn batch(ctx: &Ctx) -> usize {
    ctx.pick(10_000, 150)
}

impl Bulk {
    fn load(ctx: &Ctx, maker: &dyn Maker, row: &str, base: &mut Option<u64>) -> Result<Figure> {
        let (count, ordered) = (count(ctx), row == ORDERED);
        let objects = Objects::new(ctx.seed, Sizes::SMALL);
        let name = |i| key(if ordered { i } else { hashed(i) });
        let keys: Vec<_> = (0..count).map(name).collect();
        let item = |i: usize| (&keys[i][..], objects.bytes(i as u64, 0));
        let items: Vec<(&[u8], &[u8])> = (0..keys.len()).map(item).collect();
        system::touch_memory(ctx.pick(1 << 30, 16 << 20));
        let mut session = Session::new(ctx, maker, super::setup(Load::Small), "load")?;
        session.count_from(base);
        let (meter, peer) = (session.meter()?, session.peer()?);
        let mut batches = items.chunks(batch(ctx));
        let all = batches.len() as u64;
        let done = repeat(LONGEST, all, |_| batches.next().map_or(Ok(()), |b| peer.put(b)))?;
        let count = count.min(done.count * batch(ctx) as u64);
        let mut figure = figure(row, count, &done);
        let logical = objects.total(count);
        session.settle(&meter, &mut figure, logical)?;
        for n in 0..100 {
            let i = hashed(n) % count;
            objects.check(peer, &name(i), i, 0)?;
        }
        figure.disk = Some(meter.disk_share(logical)?);
        Ok(figure)
    }
}

/// Objects per second; latencies are of commits.
fn figure(row: &str, count: u64, done: &Driven) -> Figure {
    let per_commit = count as f64 / done.count as f64;
    Figure::new(row, Unit::PerSecond, done.rate * per_commit).latency(&done.latency)
}

impl Workload for Bulk {
    fn id(&self) -> &'static str {
        "w1"
    }

    fn title(&self, ctx: &Ctx) -> String {
        format!("bulk load of {} objects of 100–300 B, {} per commit", count(ctx), batch(ctx))
    }

    fn remark(&self) -> &'static str {
        "Into an empty store. Ordered keys: ordinals, 8 bytes big-endian, ascending; random \
         keys: the same through a bijective hash. Latencies are of commits. The store's own \
         checkpoint or compaction afterwards is outside the clock, its writes are counted. A \
         load ends after 60 s: a store that stores fewer than 16,667 objects a second did not \
         store all, and its rate is of those it did. Bare: the objects' bytes appended, one \
         pwrite and fdatasync for each commit."
    }

    fn load(&self) -> Load {
        Load::Small
    }

    fn measure(&self, ctx: &Ctx, maker: &dyn Maker, out: &mut Vec<Figure>) -> Result<()> {
        let mut base = None;
        out.push(Self::load(ctx, maker, ORDERED, &mut base)?);
        if !maker.by_ordinal() {
            out.push(Self::load(ctx, maker, RANDOM, &mut base)?);
        }
        Ok(())
    }

    fn bare(&self, ctx: &Ctx, out: &mut Vec<Figure>) -> Result<()> {
        let objects = Objects::new(ctx.seed, Sizes::SMALL);
        let file = holdall_instrument::small_sync::create(&ctx.dir.join("bare"))?;
        let batch = batch(ctx) as u64;
        let join = |c| (c * batch..(c + 1) * batch).flat_map(|i| objects.bytes(i, 0)).copied();
        let commits: Vec<Vec<u8>> = (0..count(ctx) / batch).map(|c| join(c).collect()).collect();
        let mut at = 0;
        let done = repeat(Duration::MAX, commits.len() as u64, |c| {
            let bytes = &commits[c as usize];
            file.write_all_at(bytes, at)?;
            at += bytes.len() as u64;
            Ok(file.sync_data()?)
        })?;
        out.extend([ORDERED, RANDOM].map(|row| figure(row, count(ctx), &done)));
        Ok(())
    }

    fn goals(&self, _ctx: &Ctx) -> Vec<Goal> {
        const B_TREES: &[&str] = &["SQLite", "LMDB", "redb"];
        vec![
            Goal::new(BY_OID, ORDERED, Than::Best(&[]), Bound::AtLeast(1.0)),
            Goal::new(BY_NAME, ORDERED, Than::Best(&[]), Bound::AtLeast(0.8)),
            Goal::new(BY_NAME, RANDOM, Than::Best(B_TREES), Bound::AtLeast(2.0)),
        ]
    }
}
