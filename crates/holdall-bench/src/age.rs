//! `age`: a bounded volume filled, churned for storage ages, emptied, compacted.
//!
//! Percent full is stored bytes ÷ `max_bytes` less 64 KiB, as asked for; a storage age is the
//! bytes of the volume's content written once more (Sears §3.2).

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use holdall::{DefragOptions, Durability, Error, Options, Store};
use holdall_bench::system;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Sizes of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sizes {
    /// 200 bytes to 2 KiB
    Small,
    /// 1 to 16 KiB, as of web pages
    Web,
    /// 2 KiB to 16 MiB (Pareto)
    Mixed,
    /// 1 MiB
    Mib,
}

impl Sizes {
    /// Large objects are durable one by one; small ones would measure the device's syncs.
    fn durability(self) -> Durability {
        match self {
            Self::Small | Self::Web => Durability::Deferred,
            Self::Mixed | Self::Mib => Durability::Immediate,
        }
    }

    fn draw(self, rng: &mut SmallRng) -> usize {
        match self {
            Self::Small => rng.random_range(200..2048),
            Self::Web => ((1024.0 / rng.random_range(0.0625..1.0_f64)) as usize).min(16 << 10),
            Self::Mixed => ((2048.0 / rng.random_range(1e-4..1.0_f64)) as usize).min(16 << 20),
            Self::Mib => 1 << 20,
        }
    }
}

/// Fill a bounded volume, churn it, empty it, compact it
#[derive(Debug, Clone, Args)]
pub struct Age {
    /// Sizes of the objects
    #[arg(long, value_enum, default_value = "mixed")]
    sizes: Sizes,
    /// MiB that the volume may have
    #[arg(long, default_value_t = 1024)]
    volume: u64,
    /// Percent of it that is stored
    #[arg(long, default_value_t = 95.0)]
    full: f64,
    /// Storage ages
    #[arg(long, default_value_t = 10)]
    ages: u32,
    /// Defragment after each age
    #[arg(long)]
    defrag: bool,
    /// Leave the volume there
    #[arg(long)]
    keep: bool,
    /// Seed of sizes and choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

struct Volume {
    store: Store,
    path: PathBuf,
    args: Age,
    rng: SmallRng,
    /// Sizes of the objects, by number.
    sizes: Vec<usize>,
    live: u64,
    most: u64,
    refused: u64,
    bytes: Vec<u8>,
}

fn name(i: usize) -> String {
    format!("object {i:08}")
}

fn options(args: &Age) -> Options {
    Options::default().max_bytes(args.volume << 20)
}

impl Volume {
    fn put(&mut self, i: usize, size: usize) -> Result<bool> {
        let from = i % 4096;
        let bytes = &self.bytes[from..from + size];
        let durability = self.args.sizes.durability();
        let put = self.store.write(|tx| {
            tx.set_durability(durability);
            tx.put(name(i), bytes)
        });
        match put {
            Ok(_) => Ok(true),
            Err(Error::Full(_)) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Adds objects until so much is stored.
    fn fill(&mut self) -> Result<()> {
        while self.live < self.most {
            if self.add()?.is_none() {
                // Records and names take the rest: what is stored stays at this.
                self.most = self.live;
            }
        }
        Ok(())
    }

    /// Adds an object; its bytes, or none where it is refused.
    fn add(&mut self) -> Result<Option<u64>> {
        let most = (self.most.saturating_sub(self.live)).max(1) as usize;
        let size = self.args.sizes.draw(&mut self.rng).min(most);
        if !self.put(self.sizes.len(), size)? {
            return Ok(None);
        }
        self.sizes.push(size);
        self.live += size as u64;
        Ok(Some(size as u64))
    }

    /// Writes as many bytes as are stored: objects drawn evenly get other bytes of another size,
    /// such that what is stored stays within its bound.
    fn churn(&mut self) -> Result<f64> {
        let (begun, mut written) = (Instant::now(), 0);
        while written < self.live {
            let i = self.rng.random_range(0..self.sizes.len());
            let old = self.sizes[i] as u64;
            let room = (self.most - (self.live - old)) as usize;
            let size = self.args.sizes.draw(&mut self.rng).min(room).max(1);
            if !self.put(i, size)? {
                self.refused += 1;
                // It fits by its size: the volume goes on with another object.
                if self.refused > 100_000 {
                    bail!("the volume refuses puts");
                }
                continue;
            }
            self.live = self.live - old + size as u64;
            self.sizes[i] = size;
            written += size as u64;
            // Sizes with a long tail drift: more objects keep it as full as it was.
            if self.live < self.most / 100 * 99 {
                written += self.add()?.unwrap_or(0);
            }
        }
        Ok(written as f64 / 1e6 / begun.elapsed().as_secs_f64())
    }

    /// Million bytes a second that 300 MB of objects drawn evenly are read with, of a store
    /// opened anew, and pieces per object of at least 1 MiB.
    fn read(&mut self) -> Result<(f64, f64)> {
        self.reopen()?;
        let dir = self.path.parent().context("no folder")?;
        system::drop_caches(dir, &[&self.path])?;
        let (reader, begun, mut read) = (self.store.read()?, Instant::now(), 0);
        let mut rng = SmallRng::seed_from_u64(7);
        while read < 300_000_000.min(self.live) {
            let i = rng.random_range(0..self.sizes.len());
            let bytes = reader.get(name(i))?.context("an object is gone")?;
            if bytes.len() != self.sizes[i] {
                bail!("object {i} has {} bytes, not {}", bytes.len(), self.sizes[i]);
            }
            read += bytes.len() as u64;
        }
        let speed = read as f64 / 1e6 / begun.elapsed().as_secs_f64();
        let large = (0..self.sizes.len()).filter(|i| self.sizes[*i] >= 1 << 20);
        let (mut objects, mut pieces) = (0, 0);
        for i in large {
            let oid = reader.lookup(name(i))?.context("an object is gone")?;
            objects += 1;
            pieces += reader.segments(oid)?.segments;
        }
        Ok((speed, pieces as f64 / f64::from(objects.max(1))))
    }

    fn reopen(&mut self) -> Result<()> {
        let dummy = Store::in_memory()?;
        std::mem::replace(&mut self.store, dummy).close()?;
        self.store = options(&self.args).open(&self.path)?;
        Ok(())
    }

    fn figures(&mut self, age: u32, written: f64) -> Result<Value> {
        let blocks = blocks(&self.path)?;
        let (read, pieces) = self.read()?;
        Ok(json!({
            "age": age, "full": round(self.live as f64 * 100.0 / (self.args.volume << 20) as f64),
            "objects": self.sizes.len(), "write_mb_s": round(written),
            "cold_read_mb_s": round(read), "pieces_of_large_objects": round(pieces),
            "refused": self.refused, "blocks_of_live": round(blocks as f64 / self.live as f64),
        }))
    }

    /// Deletes nine tenths of the objects, waits for the store to give the space back, compacts.
    fn empty(&mut self) -> Result<Value> {
        for i in 0..self.sizes.len() {
            if i % 10 != 3 {
                self.store.write(|tx| {
                    tx.set_durability(Durability::Deferred);
                    tx.remove(name(i))
                })?;
                self.live -= self.sizes[i] as u64;
            }
        }
        let (begun, mut seconds) = (Instant::now(), Vec::new());
        for wait in [1, 5, 10, 30, 60] {
            let until = Duration::from_secs(wait);
            std::thread::sleep(until.saturating_sub(begun.elapsed()));
            let of_live = blocks(&self.path)? as f64 / self.live as f64;
            seconds.push(json!({ "seconds": wait, "blocks_of_live": round(of_live) }));
        }
        let before = blocks(&self.path)?;
        let options = DefragOptions { join: false, ..DefragOptions::default() };
        let report = self.store.defrag(&options, &mut |_| ControlFlow::Continue(()))?;
        self.reopen()?;
        let after = blocks(&self.path)?;
        let moved = report.moved.bytes();
        Ok(json!({
            "live_bytes": self.live, "after_deletes": seconds,
            "compacted_blocks_of_live": round(after as f64 / self.live as f64),
            "moved_of_gained": round(moved as f64 / before.saturating_sub(after).max(1) as f64),
            "file_length_of_live": round(std::fs::metadata(&self.path)?.len() as f64 / self.live as f64),
        }))
    }
}

fn round(figure: f64) -> f64 {
    (figure * 1000.0).round() / 1000.0
}

fn blocks(path: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(std::fs::metadata(path)?.blocks() * 512)
}

/// Prints a line of JSON for each age and one for the end.
///
/// # Errors
/// Those of the store; a volume that refuses what fits for ever.
pub fn run(dir: &Path, args: &Age) -> Result<()> {
    let args = args.clone();
    let path = dir.join(format!("holdall-age-{}.holdall", std::process::id()));
    let store = options(&args).create(&path)?;
    let most = ((args.volume << 20) - (64 << 10)) as f64 * args.full / 100.0;
    let mut volume = Volume {
        store,
        rng: SmallRng::seed_from_u64(args.seed),
        sizes: Vec::new(),
        live: 0,
        most: most as u64,
        refused: 0,
        bytes: (0..(16 << 20) + 8192).map(|i: usize| (i / 7 + i % 253) as u8).collect(),
        path,
        args,
    };
    let result = all(&mut volume);
    drop(volume.store);
    if !volume.args.keep {
        std::fs::remove_file(&volume.path)?;
    }
    result
}

fn all(volume: &mut Volume) -> Result<()> {
    let begun = Instant::now();
    volume.fill()?;
    let written = volume.live as f64 / 1e6 / begun.elapsed().as_secs_f64();
    println!("{}", volume.figures(0, written)?);
    for age in 1..=volume.args.ages {
        let written = volume.churn()?;
        if volume.args.defrag {
            let moved = volume
                .store
                .defrag(&DefragOptions::default(), &mut |_| ControlFlow::Continue(()))?;
            println!("{}", json!({ "defrag": format!("{moved:?}") }));
        }
        println!("{}", volume.figures(age, written)?);
    }
    println!("{}", volume.empty()?);
    Ok(())
}
