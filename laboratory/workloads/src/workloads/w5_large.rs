//! W5: large objects: durable puts, whole gets, ranges, hot and cold.

use super::{Objects, Session, Sizes, Workload, hashed, key};
use crate::bare;
use crate::measure::{Driven, repeat};
use crate::peer::{Load, Maker};
use anyhow::{Result, ensure};
use holdall_instrument::contest::{Bound, Ctx, Figure, Goal, Than, Unit};
use holdall_instrument::system;
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of a ranged read.
const RANGE: usize = 4096;

pub(super) struct Large;

/// One size of objects.
#[derive(Clone, Copy)]
struct Class {
    bytes: usize,
    count: u64,
}

fn classes(ctx: &Ctx) -> [Class; 3] {
    let class = |bytes, count| Class { bytes, count };
    ctx.pick(
        [class(1 << 20, 512), class(10 << 20, 64), class(1 << 30, 2)],
        [class(1 << 20, 16), class(10 << 20, 3), class(32 << 20, 1)],
    )
}

impl Class {
    fn row(self, what: &str) -> String {
        let mib = self.bytes >> 20;
        let size = if mib >= 1024 { format!("{} GiB", mib >> 10) } else { format!("{mib} MiB") };
        format!("{size}: {what}")
    }

    /// Offset of ranged read `n`, a multiple of its size, in object `n` draws.
    fn range(self, ctx: &Ctx, n: u64) -> (u64, u64) {
        let draw = hashed(ctx.seed ^ 5 ^ n);
        (draw % self.count, hashed(draw) % (self.bytes / RANGE) as u64 * RANGE as u64)
    }

    /// As much memory as all its objects take, and some.
    fn touch_memory(self) {
        system::touch_memory(self.bytes * self.count as usize + (64 << 20));
    }

    fn whole(self, what: &str, done: &Driven) -> Figure {
        let rate = done.rate * self.bytes as f64 / 1e6;
        Figure::new(self.row(what), Unit::MbPerSecond, rate).latency(&done.latency)
    }

    fn ranged(self, what: &str, done: &Driven) -> Figure {
        Figure::new(self.row(what), Unit::PerSecond, done.rate).latency(&done.latency)
    }
}

const PUT: &str = "durable put";
const HOT: &str = "whole get, hot";
const VIEW: &str = "whole view, hot";
const COLD: &str = "whole get, cold";
const HOT_RANGE: &str = "4 KiB range, hot";
const COLD_RANGE: &str = "4 KiB range, cold";
/// Only of the bare machine.
const COPY: &str = "memcpy";

/// Reads every byte, as a program that looks at an object does.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().fold(0_u64, |s, w| s.wrapping_add(u64::from_le_bytes(*w)));
    rest.iter().fold(words, |s, b| s.wrapping_add((*b).into()))
}

/// What the reads of both sides share: `whole` of an object, `range` of one.
type Whole<'a> = &'a mut dyn FnMut(u64) -> Result<()>;
type Range<'a> = &'a mut dyn FnMut(u64, u64) -> Result<()>;

fn hot(
    ctx: &Ctx,
    class: Class,
    whole: Whole<'_>,
    range: Range<'_>,
    out: &mut Vec<Figure>,
) -> Result<()> {
    let most = if class.count < 4 { 8 } else { u64::MAX };
    out.push(class.whole(HOT, &repeat(ctx.seconds(2), most, |n| whole(n % class.count))?));
    let done = repeat(ctx.seconds(2), u64::MAX, |n| {
        let (i, at) = class.range(ctx, n);
        range(i, at)
    })?;
    out.push(class.ranged(HOT_RANGE, &done));
    Ok(())
}

fn cold_ranges(ctx: &Ctx, class: Class, range: Range<'_>) -> Result<Figure> {
    let done = repeat(ctx.seconds(3), ctx.pick(2000, 50), |n| {
        let (i, at) = class.range(ctx, n);
        range(i, at)
    })?;
    Ok(class.ranged(COLD_RANGE, &done))
}

impl Large {
    fn class(ctx: &Ctx, maker: &dyn Maker, class: Class, out: &mut Vec<Figure>) -> Result<()> {
        let objects = Objects::new(ctx.seed, Sizes::Exactly(class.bytes));
        let logical = class.bytes as u64 * class.count;
        // The caller's memory, which gets write to: there before, and used again.
        let mut buf = vec![1; class.bytes];
        class.touch_memory();
        let setup = super::setup(Load::Large);
        let mut session = Session::new(ctx, maker, setup, "large")?;
        let (peer, meter) = (session.peer()?, session.meter()?);
        let done =
            repeat(Duration::MAX, class.count, |i| peer.put(&[(&key(i), objects.bytes(i, 0))]))?;
        let mut figure = class.whole(PUT, &done);
        session.settle(&meter, &mut figure, logical)?;
        figure.disk = Some(meter.disk_share(logical)?);
        out.push(figure);
        let last = class.count - 1;
        ensure!(peer.get(&key(last), &mut buf)?, "object {last} is missing");
        ensure!(buf == objects.bytes(last, 0), "object {last} is not what was put");
        for i in (0..class.count).chain(0..class.count) {
            peer.get(&key(i), &mut buf)?;
        }
        let mut whole = |i: u64| {
            ensure!(peer.get(&key(i), black_box(&mut buf))?, "object {i} is missing");
            Ok(())
        };
        let mut part = [0; RANGE];
        let mut range = |i: u64, at: u64| peer.get_range(&key(i), at, black_box(&mut part));
        hot(ctx, class, &mut whole, &mut range, out)?;
        let most = if class.count < 4 { 8 } else { u64::MAX };
        let done = repeat(ctx.seconds(2), most, |n| {
            let mut seen = 0_u64;
            peer.view(&key(n % class.count), &mut |b| seen = seen.wrapping_add(sum(b)))?;
            black_box(seen);
            Ok(())
        })?;
        out.push(class.whole(VIEW, &done));
        Self::cold(ctx, class, &mut session, &mut buf, out)
    }

    fn cold(
        ctx: &Ctx,
        class: Class,
        session: &mut Session<'_>,
        buf: &mut Vec<u8>,
        out: &mut Vec<Figure>,
    ) -> Result<()> {
        let setup = super::setup(Load::Large);
        session.chill(setup)?;
        // What the cache gave up goes back to the host of a virtual machine in part.
        class.touch_memory();
        let (peer, meter) = (session.peer()?, session.meter()?);
        let done = repeat(Duration::MAX, class.count, |i| {
            ensure!(peer.get(&key(i), buf)?, "object {i} is missing");
            Ok(())
        })?;
        let mut figure = class.whole(COLD, &done);
        meter.stop(&mut figure, 0)?;
        out.push(figure);
        session.chill(setup)?;
        class.touch_memory();
        let (peer, meter) = (session.peer()?, session.meter()?);
        let mut part = [0; RANGE];
        let mut figure =
            cold_ranges(ctx, class, &mut |i, at| peer.get_range(&key(i), at, &mut part))?;
        meter.stop(&mut figure, 0)?;
        out.push(figure);
        Ok(())
    }

    fn bare_class(ctx: &Ctx, class: Class, out: &mut Vec<Figure>) -> Result<()> {
        let objects = Objects::new(ctx.seed, Sizes::Exactly(class.bytes));
        let dir = ctx.dir.join("bare");
        std::fs::create_dir(&dir)?;
        let path = |i: u64| -> PathBuf { dir.join(i.to_string()) };
        let mut buf = vec![1; class.bytes];
        class.touch_memory();
        let done = repeat(Duration::MAX, class.count, |i| {
            bare::write_once(&path(i), objects.bytes(i, 0))
        })?;
        out.push(class.whole(PUT, &done));
        let files: Vec<File> =
            (0..class.count).map(|i| File::open(path(i))).collect::<Result<_, _>>()?;
        let mut part = [0; RANGE];
        let mut range = |i: u64, at: u64| Ok(files[i as usize].read_exact_at(&mut part, at)?);
        let mut whole = |i: u64| Ok(files[i as usize].read_exact_at(&mut buf, 0)?);
        hot(ctx, class, &mut whole, &mut range, out)?;
        let view = out.last().map(|_| out[out.len() - 2].clone());
        out.extend(view.map(|f| Figure { row: class.row(VIEW), ..f }));
        system::drop_caches_below(&dir)?;
        class.touch_memory();
        out.push(class.whole(COLD, &repeat(Duration::MAX, class.count, &mut whole)?));
        for file in &files {
            rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Random)?;
        }
        system::drop_caches_below(&dir)?;
        class.touch_memory();
        out.push(cold_ranges(ctx, class, &mut range)?);
        let maps: Vec<_> = files.iter().map(bare::map).collect::<Result<_, _>>()?;
        for map in &maps {
            buf.copy_from_slice(map);
        }
        let copied = repeat(ctx.seconds(1), u64::MAX, |n| {
            black_box(&mut buf).copy_from_slice(&maps[(n % class.count) as usize]);
            Ok(())
        })?;
        out.push(class.whole(COPY, &copied));
        Ok(std::fs::remove_dir_all(&dir)?)
    }
}

impl Workload for Large {
    fn id(&self) -> &'static str {
        "w5"
    }

    fn title(&self, ctx: &Ctx) -> String {
        let all: Vec<_> = classes(ctx).map(|c| c.row(&format!("{} of them", c.count))).into();
        format!("large objects ({})", all.join(", "))
    }

    fn remark(&self) -> &'static str {
        "One commit each, from memory that was touched before. A whole get copies the object \
         to memory of the caller's, used again; a whole view reads every byte where it lies, \
         or of a copy where the store has no such call. Hot: all was read twice before (a cache \
         may be kept for what is read again). Ranges begin at multiples of 4 KiB, \
         drawn evenly. Cold: the store reopened, the page cache dropped, as much memory \
         touched as is read. Bare: pwrite to a new \
         file in calls of 1 MiB and one fdatasync; pread into memory used again, with open \
         files; cold ranges with readahead switched off (fadvise); view as get; memcpy from mappings \
         of the files to the same memory."
    }

    fn load(&self) -> Load {
        Load::Large
    }

    fn measure(&self, ctx: &Ctx, maker: &dyn Maker, out: &mut Vec<Figure>) -> Result<()> {
        let mut failed = None;
        for class in classes(ctx) {
            // A store that cannot hold one size may well hold the others.
            if let Err(e) = Self::class(ctx, maker, class, out) {
                failed = Some(e.context(class.row("failed")));
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn bare(&self, ctx: &Ctx, out: &mut Vec<Figure>) -> Result<()> {
        classes(ctx).into_iter().try_for_each(|class| Self::bare_class(ctx, class, out))
    }

    fn goals(&self, ctx: &Ctx) -> Vec<Goal> {
        const FILES: &[&str] = &["files"];
        const LMDB: &[&str] = &["LMDB"];
        let mut goals = Vec::new();
        for class in classes(ctx) {
            let mut add = |what: &str, than: &Than, bound| {
                goals.extend(super::both(&class.row(what), than, Bound::AtLeast(bound)));
            };
            add(PUT, &Than::Best(&[]), 0.95);
            add(PUT, &Than::Bare, 0.9);
            add(HOT, &Than::Best(FILES), 1.0);
            add(COLD, &Than::Best(FILES), 1.0);
            add(HOT_RANGE, &Than::Best(FILES), 2.0);
            add(HOT_RANGE, &Than::Best(LMDB), 0.7);
            add(COLD_RANGE, &Than::Best(FILES), 0.9);
        }
        goals
    }
}
