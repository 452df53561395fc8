//! What contestants do with a bucket, row by row.

use super::peers::Peer;
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use holdall_instrument::contest::{Ctx, Figure, Recorder, Unit};
use rand::rngs::SmallRng;
use rand::{Rng as _, RngCore as _, SeedableRng as _};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// The rows.
pub const PUT_MIDDLE: &str = "put 10 MB";
/// As above.
pub const GET_MIDDLE: &str = "get 10 MB";
/// As above.
pub const PUT_LARGE: &str = "put a large object";
/// As above.
pub const GET_LARGE: &str = "get a large object";
/// As above.
pub const PUT_SMALL: &str = "put 4 KB";
/// As above.
pub const GET_SMALL: &str = "get 4 KB";
/// As above.
pub const INSERT: &str = "insert 1 KB into a large object; bare: put 64 KiB";
/// As above.
pub const GET_AFTER: &str = "get a large object after the inserts";
/// As above.
pub const CLIENTS: &str = "put 16 KB, 8 clients ÷ 1";
/// As above.
pub const IMPORT: &str = "import of files of 20 KB; bare: rclone copy";

const MIDDLE: u64 = 10_000_000;
const SMALL: u64 = 4_000;

/// How much.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Bytes of the large object.
    pub large: u64,
    smalls: u64,
    middles: u64,
    inserts: u64,
    rewrites: u64,
    puts: u64,
    files: u64,
}

impl Sizes {
    /// Of a run.
    pub fn of(ctx: &Ctx) -> Self {
        Self {
            large: ctx.pick(1_000_000_000, 40_000_000),
            smalls: ctx.pick(1000, 50),
            middles: ctx.pick(20, 3),
            inserts: ctx.pick(1000, 20),
            rewrites: ctx.pick(3, 1),
            puts: ctx.pick(2000, 64),
            files: ctx.pick(100_000, 200),
        }
    }
}

/// The requests that a server logged.
struct Log<'l> {
    path: &'l Path,
    before: usize,
}

impl<'l> Log<'l> {
    fn start(path: &'l Path) -> Result<Self> {
        Ok(Self { path, before: lines(path)? })
    }

    /// Requests since then, for each of `count` operations, as a note.
    fn note(&self, count: u64) -> Result<Option<String>> {
        // The log is written behind the answer.
        thread::sleep(std::time::Duration::from_millis(50));
        let requests = lines(self.path)? - self.before;
        Ok(Some(format!("{:.2} requests", requests as f64 / count as f64)))
    }
}

fn lines(path: &Path) -> Result<usize> {
    let text = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    Ok(text.iter().filter(|byte| **byte == b'\n').count())
}

fn content(random: &mut SmallRng, len: u64) -> Bytes {
    let mut bytes = vec![0; len as usize];
    random.fill_bytes(&mut bytes);
    bytes.into()
}

/// All rows that a contestant has.
pub fn run(ctx: &Ctx, peer: &dyn Peer, log: &Path, out: &mut Vec<Figure>) -> Result<()> {
    let (sizes, mut random) = (Sizes::of(ctx), SmallRng::seed_from_u64(ctx.seed));
    let all = Rows { peer, log, sizes };
    all.both([PUT_SMALL, GET_SMALL], Unit::Us, sizes.smalls, &content(&mut random, SMALL), out)?;
    let bytes = content(&mut random, MIDDLE);
    all.both([PUT_MIDDLE, GET_MIDDLE], Unit::MbPerSecond, sizes.middles, &bytes, out)?;
    let bytes = content(&mut random, sizes.large);
    all.both([PUT_LARGE, GET_LARGE], Unit::MbPerSecond, 1, &bytes, out)?;
    out.push(all.inserts(bytes, &mut random)?);
    all.after(out)?;
    if !peer.rewrites() {
        out.push(all.clients(&content(&mut random, 16_000))?);
    }
    if let Some(figure) = all.import(&ctx.dir, &mut random)? {
        out.push(figure);
    }
    Ok(())
}

struct Rows<'r> {
    peer: &'r dyn Peer,
    log: &'r Path,
    sizes: Sizes,
}

fn name(len: u64, n: u64) -> String {
    format!("object-{len}-{n}")
}

impl Rows<'_> {
    /// Puts `count` objects of these bytes, then gets each.
    fn both(
        &self,
        [put, get]: [&str; 2],
        unit: Unit,
        count: u64,
        bytes: &Bytes,
        out: &mut Vec<Figure>,
    ) -> Result<()> {
        let len = bytes.len() as u64;
        let figure =
            self.each(put, unit, count, len, &mut |n| self.peer.put(&name(len, n), bytes))?;
        out.push(figure);
        self.peer.forget()?;
        let figure = self.each(get, unit, count, len, &mut |n| self.read(&name(len, n), bytes))?;
        out.push(figure);
        Ok(())
    }

    /// Reads an object; what comes is compared.
    fn read(&self, name: &str, bytes: &Bytes) -> Result<()> {
        let (mut at, mut same) = (0, true);
        self.peer.get(name, &mut |piece| {
            same &= bytes.get(at..at + piece.len()) == Some(piece);
            at += piece.len();
        })?;
        ensure!(same && at == bytes.len(), "{name} has other bytes");
        Ok(())
    }

    fn each(
        &self,
        row: &str,
        unit: Unit,
        count: u64,
        len: u64,
        work: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<Figure> {
        let (log, mut latency) = (Log::start(self.log)?, Recorder::new()?);
        let begun = Instant::now();
        for n in 0..count {
            latency.time(|| work(n))?;
        }
        let each = begun.elapsed().as_secs_f64() / count as f64;
        let value = match unit {
            Unit::MbPerSecond => len as f64 / 1e6 / each,
            Unit::Ms => each * 1e3,
            _ => each * 1e6,
        };
        let mut figure = Figure::new(row, unit, value).latency(&latency);
        figure.note = log.note(count)?;
        Ok(figure)
    }

    /// Inserts at random places of the large object; afterwards it is read and compared.
    fn inserts(&self, bytes: Bytes, random: &mut SmallRng) -> Result<Figure> {
        let name = name(self.sizes.large, 0);
        let count = if self.peer.rewrites() { self.sizes.rewrites } else { self.sizes.inserts };
        let more = content(random, 1000);
        drop(bytes);
        let mut len = self.sizes.large;
        self.each(INSERT, Unit::Ms, count, 0, &mut |_| {
            let at = random.random_range(0..=len);
            len += more.len() as u64;
            self.peer.insert(&name, at, &more)
        })
    }

    fn after(&self, out: &mut Vec<Figure>) -> Result<()> {
        self.peer.forget()?;
        let name = name(self.sizes.large, 0);
        let mut read = 0;
        let mut figure =
            self.each(GET_AFTER, Unit::MbPerSecond, 1, self.sizes.large, &mut |_| {
                self.peer.get(&name, &mut |piece| read += piece.len() as u64)
            })?;
        ensure!(read >= self.sizes.large, "{name} has {read} bytes");
        figure.value *= read as f64 / self.sizes.large as f64;
        out.push(figure);
        Ok(())
    }

    /// How much more eight do at a time than one.
    fn clients(&self, bytes: &Bytes) -> Result<Figure> {
        let (next, log) = (AtomicU64::new(0), Log::start(self.log)?);
        let rate = |clients: u64| -> Result<f64> {
            let begun = Instant::now();
            let each = self.sizes.puts / clients;
            thread::scope(|scope| {
                let work = || -> Result<()> {
                    for _ in 0..each {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        self.peer.put(&format!("client-{n}"), bytes)?;
                    }
                    Ok(())
                };
                let all: Vec<_> = (0..clients).map(|_| scope.spawn(work)).collect();
                all.into_iter()
                    .try_for_each(|one| one.join().map_err(|_| anyhow::anyhow!("panicked"))?)
            })?;
            Ok((each * clients) as f64 / begun.elapsed().as_secs_f64())
        };
        let (one, eight) = (rate(1)?, rate(8)?);
        let mut figure = Figure::new(CLIENTS, Unit::PerSecond, eight / one);
        let requests = log.note(next.load(Ordering::Relaxed))?.unwrap_or_default();
        figure.note = Some(format!("{one:.0} a second, then {eight:.0}; {requests}"));
        Ok(figure)
    }

    fn import(&self, dir: &Path, random: &mut SmallRng) -> Result<Option<Figure>> {
        let tree = dir.join("files");
        let Some(mut command) = self.peer.import(&tree) else { return Ok(None) };
        for n in 0..self.sizes.files {
            let below = tree.join(format!("{:03}", n / 1000));
            if n % 1000 == 0 {
                fs::create_dir_all(&below)?;
            }
            fs::write(below.join(n.to_string()), content(random, 20_000))?;
        }
        let (log, begun) = (Log::start(self.log)?, Instant::now());
        let done = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        ensure!(done.success(), "the import fails");
        let rate = self.sizes.files as f64 / begun.elapsed().as_secs_f64();
        let mut figure = Figure::new(IMPORT, Unit::PerSecond, rate);
        figure.note = log.note(self.sizes.files)?;
        Ok(Some(figure))
    }
}
