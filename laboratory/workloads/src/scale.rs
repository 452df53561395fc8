//! Scale: a store of very many small objects, and a terabyte of holes with a piece in each MiB.

use crate::data;
use anyhow::{Result, ensure};
use clap::Args;
use holdall::{Options, Store};
use holdall_instrument::contest::{Bound, Contest, Ctx, Figure, Goal, Than, Unit};
use holdall_instrument::system;
use rand::Rng;
use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

/// Objects of a load's transaction.
const BATCH: u64 = 100_000;
// Bytes of each.
const SMALL: usize = 100;
const PIECE: usize = 4096;
/// From piece to piece.
const STEP: u64 = 1 << 20;
/// Pieces of a transaction.
const PIECES: u64 = 1000;
/// Random reads that are timed.
const READS: u64 = 20_000;

const OPEN: &str = "opening it";
const COUNT: &str = "counting its objects";
const CLOSE: &str = "closing it";

/// How large both cases are.
#[derive(Debug, Clone, Default, Args)]
pub struct Scale {
    /// Small objects of the first store; 173 bytes of disk each
    #[arg(long, default_value_t = 100_000_000)]
    objects: u64,
    /// Pieces, of 4 KiB, of the second store's object; 8 KiB of disk each
    #[arg(long, default_value_t = 1_000_000)]
    pieces: u64,
}

impl Contest for Scale {
    fn id(&self) -> &'static str {
        "scale"
    }

    fn title(&self, _ctx: &Ctx) -> String {
        format!(
            "{} objects of {SMALL} B; {} GiB of holes",
            self.objects,
            (self.pieces * STEP) >> 30
        )
    }

    fn remark(&self) -> &'static str {
        "Rows stand in the order in which one process does them. The file is removed at the end."
    }

    fn contestants(&self) -> Vec<&'static str> {
        vec![super::HOLDALL]
    }

    fn arguments(&self) -> Vec<OsString> {
        let (objects, pieces) = (self.objects.to_string(), self.pieces.to_string());
        vec!["--objects".into(), objects.into(), "--pieces".into(), pieces.into()]
    }

    fn measure(&self, ctx: &Ctx, _contestant: &str, out: &mut Vec<Figure>) -> Result<()> {
        let path = ctx.dir.join("scale");
        many(&path, self.objects, out)?;
        out.push(memory("memory with them")?);
        std::fs::remove_file(&path)?;
        sparse(&path, self.pieces, out)?;
        out.push(memory("memory with it, too")?);
        Ok(std::fs::remove_file(&path)?)
    }

    fn goals(&self, _ctx: &Ctx) -> Vec<Goal> {
        let goal = |row, most| Goal::new(super::HOLDALL, row, Than::Nothing, Bound::AtMost(most));
        vec![goal(OPEN, 10.0), goal(COUNT, 1.0), goal(CLOSE, 100.0)]
    }
}

fn memory(row: &str) -> Result<Figure> {
    let bytes = system::peak_memory(std::process::id())?;
    Ok(Figure::new(row, Unit::Mib, bytes as f64 / f64::from(1 << 20)))
}

/// Times `op`, a row in milliseconds.
fn timed<T>(row: &str, out: &mut Vec<Figure>, op: impl FnOnce() -> Result<T>) -> Result<T> {
    let begun = Instant::now();
    let result = op()?;
    out.push(Figure::new(row, Unit::Ms, begun.elapsed().as_secs_f64() * 1000.0));
    Ok(result)
}

fn many(path: &Path, count: u64, out: &mut Vec<Figure>) -> Result<()> {
    let (store, begun) = (Options::default().create(path)?, Instant::now());
    let content = data::bytes(SMALL, 30);
    let mut at = 0;
    while at < count {
        let next = (at + BATCH).min(count);
        let names: Vec<String> = (at..next).map(data::name).collect();
        store.write(|tx| tx.put_many(names.iter().map(|name| (name.as_bytes(), &content[..]))))?;
        at = next;
        eprint!("\r{at} of {count} objects");
    }
    eprintln!();
    store.close()?;
    let mut load =
        Figure::new("load", Unit::PerSecond, count as f64 / begun.elapsed().as_secs_f64());
    let bytes = std::fs::metadata(path)?.len();
    load.disk = Some(bytes as f64 / (count * SMALL as u64) as f64);
    out.push(load);
    let store = timed(OPEN, out, || Ok(Store::open(path)?))?;
    let mut rng = data::rng(31);
    let begun = Instant::now();
    for _ in 0..READS {
        let got = store.get(data::name(rng.random_range(0..count)))?;
        ensure!(got.as_deref() == Some(&content[..]), "an object is not what was put");
    }
    out.push(Figure::new(
        "random gets",
        Unit::PerSecond,
        READS as f64 / begun.elapsed().as_secs_f64(),
    ));
    timed("one durable put", out, || Ok(store.write(|tx| tx.put("one more", &content))?))?;
    let len = timed(COUNT, out, || Ok(store.read()?.len()?))?;
    ensure!(len == count + 1, "{len} objects of {}", count + 1);
    timed(CLOSE, out, || Ok(store.close()?))
}

fn sparse(path: &Path, pieces: u64, out: &mut Vec<Figure>) -> Result<()> {
    let (store, size) = (Options::default().create(path)?, pieces * STEP);
    let piece = data::bytes(PIECE, 32);
    timed("a piece in each MiB of holes", out, || {
        store.write(|tx| {
            tx.put("large", b"")?;
            tx.set_len("large", size)
        })?;
        for first in (0..pieces).step_by(PIECES as usize) {
            let some = first..(first + PIECES).min(pieces);
            store.write(|tx| {
                some.clone().try_for_each(|i| tx.replace("large", i * STEP, &piece).map(drop))
            })?;
        }
        Ok(())
    })?;
    let mut rng = data::rng(33);
    let mut buf = vec![0; PIECE];
    timed("1,000 pieces read at random", out, || {
        let reader = store.read()?;
        for _ in 0..1000 {
            reader.read_at("large", rng.random_range(0..pieces) * STEP, &mut buf)?;
            ensure!(buf == piece, "a piece is not what was written");
        }
        Ok(())
    })?;
    timed("a durable insert in its middle", out, || {
        Ok(store.write(|tx| tx.insert("large", size / 2, b"two"))?)
    })?;
    let sound = timed("verifying it", out, || Ok(store.verify()?.is_sound()))?;
    ensure!(sound, "the store is damaged");
    timed("removing it", out, || Ok(store.write(|tx| tx.remove("large"))?))?;
    Ok(store.close()?)
}
