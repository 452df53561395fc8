//! `age`: a bounded volume filled, churned for storage ages, emptied, compacted.
//!
//! Percent full is as `holdall stat` has it; a storage age is the bytes of the volume's content
//! written once more (Sears §3.2). With `--check` it is the soak test: a promise that is missed
//! ends it with an error.

mod check;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use holdall::{DefragOptions, Defragmenter, Durability, Error, Fullness, Options, Store};
use holdall_instrument::system;
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
    /// All as `--size` says
    Same,
}

impl Sizes {
    /// Large objects are durable one by one; small ones would measure the device's syncs.
    fn durability(self) -> Durability {
        match self {
            Self::Small | Self::Web | Self::Same => Durability::Deferred,
            Self::Mixed | Self::Mib => Durability::Immediate,
        }
    }

    fn of(self, rng: &mut SmallRng) -> usize {
        match self {
            Self::Small => rng.random_range(200..2048),
            Self::Web => ((1024.0 / rng.random_range(0.0625..1.0_f64)) as usize).min(16 << 10),
            Self::Mixed => ((2048.0 / rng.random_range(1e-4..1.0_f64)) as usize).min(16 << 20),
            Self::Mib => 1 << 20,
            Self::Same => 0,
        }
    }
}

/// Fill a bounded volume, churn it, empty it, compact it
#[derive(Debug, Clone, Args)]
pub struct Age {
    /// Sizes of the objects
    #[arg(long, value_enum, default_value = "mixed")]
    sizes: Sizes,
    /// Bytes of each object, with `--sizes same`
    #[arg(long, default_value_t = 4200, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    size: u32,
    /// MiB that the volume may have
    #[arg(long, default_value_t = 1024)]
    volume: u64,
    /// Percent full, by the formula of `holdall stat`
    #[arg(long, default_value_t = 95.0)]
    full: f64,
    /// Storage ages
    #[arg(long, default_value_t = 10)]
    ages: u32,
    /// Defragment after each age
    #[arg(long)]
    defrag: bool,
    /// Keep the volume in order beside the work
    #[arg(long)]
    keep_in_order: bool,
    /// Fail if after an age the contract does not hold, a put that fits was refused,
    /// verification finds a problem, or an object has other bytes
    #[arg(long)]
    check: bool,
    /// Leave the volume there
    #[arg(long)]
    keep: bool,
    /// Seed of sizes and choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

struct Volume {
    store: Store,
    keeper: Option<Defragmenter>,
    path: PathBuf,
    args: Age,
    rng: SmallRng,
    /// Sizes of the objects, by number; 0 of those removed.
    sizes: Vec<usize>,
    live: u64,
    fullness: Fullness,
    /// Bytes put since that was asked for.
    since: usize,
    /// Puts refused that did not fit.
    refused: u64,
    /// Puts refused that fitted by the formula.
    refused_fitting: u64,
    bytes: Vec<u8>,
}

/// Bytes put after which the volume is asked again how full it is.
const ASK_BYTES: usize = 256 << 10;

fn name(i: usize) -> String {
    format!("object {i:08}")
}

fn options(args: &Age) -> Options {
    Options::default().max_bytes(args.volume << 20)
}

impl Volume {
    fn bytes_of(&self, i: usize) -> &[u8] {
        let from = i % 4096;
        &self.bytes[from..from + self.sizes[i]]
    }

    /// Puts object `i`, with bytes of its new size. Returns whether it is there.
    fn put(&mut self, i: usize, size: usize) -> Result<bool> {
        let from = i % 4096;
        let bytes = &self.bytes[from..from + size];
        let durability = self.args.sizes.durability();
        let put = self.store.write(|tx| {
            tx.set_durability(durability);
            tx.put(name(i), bytes)
        });
        match put {
            Ok(_) => {}
            Err(Error::Full(why)) => {
                self.fullness = self.store.stat()?.fullness;
                if self.fullness.fits(name(i).len(), size as u64) {
                    self.refused_fitting += 1;
                    if self.refused_fitting <= 5 {
                        self.explain(size, &why)?;
                    }
                } else {
                    self.refused += 1;
                }
                return Ok(false);
            }
            Err(e) => return Err(e.into()),
        }
        if i == self.sizes.len() {
            self.sizes.push(0);
        }
        self.live = self.live - self.sizes[i] as u64 + size as u64;
        self.sizes[i] = size;
        self.note(size)?;
        Ok(true)
    }

    /// On standard error why a put that fits was refused.
    fn explain(&self, size: usize, why: &str) -> Result<()> {
        let (stat, f) = (self.store.stat()?, self.fullness);
        eprintln!(
            "{size} bytes refused ({why}) at {:.4}: {} of {} bytes stored, reserve {}, metadata {}, free {}, \
             waiting {}, pinned {}, reserved {}, heap {:.3}",
            f.share(),
            f.stored_bytes,
            f.capacity(),
            f.reserve_bytes,
            f.metadata_bytes,
            stat.free_bytes,
            stat.waiting_bytes,
            stat.pinned_bytes,
            stat.reserved_bytes,
            stat.heap_utilization
        );
        Ok(())
    }

    fn note(&mut self, size: usize) -> Result<()> {
        self.since += size;
        if self.since >= ASK_BYTES {
            self.since = 0;
            self.fullness = self.store.stat()?.fullness;
        }
        Ok(())
    }

    fn draw(&mut self) -> usize {
        match self.args.sizes {
            Sizes::Same => self.args.size as usize,
            sizes => sizes.of(&mut self.rng),
        }
    }

    fn full(&self) -> f64 {
        self.fullness.share() * 100.0
    }

    /// Adds objects until it is as full as asked for.
    fn fill(&mut self) -> Result<()> {
        let mut in_vain = 0;
        // Towards the end objects may be too large for what is left.
        while self.full() < self.args.full && in_vain < 100 {
            let size = self.draw();
            in_vain = if self.put(self.sizes.len(), size)? { 0 } else { in_vain + 1 };
        }
        Ok(())
    }

    fn remove(&mut self, i: usize) -> Result<()> {
        let durability = self.args.sizes.durability();
        self.store.write(|tx| {
            tx.set_durability(durability);
            tx.remove(name(i))
        })?;
        self.live -= self.sizes[i] as u64;
        let size = std::mem::take(&mut self.sizes[i]);
        self.note(size)
    }

    /// Writes as many bytes as are stored: objects drawn evenly get other bytes of another size;
    /// some are removed or added, so that the volume stays as full as asked for.
    fn churn(&mut self) -> Result<f64> {
        let (begun, mut written, mut refused) = (Instant::now(), 0, 0);
        while written < self.live {
            let size = self.draw();
            let any = self.rng.random_range(0..self.sizes.len());
            if self.full() > self.args.full && self.sizes[any] > 0 {
                self.remove(any)?;
                continue;
            }
            let i = if self.full() < self.args.full - 0.5 { self.sizes.len() } else { any };
            if self.put(i, size)? {
                written += size as u64;
                continue;
            }
            refused += 1;
            if refused > 1_000_000 {
                bail!("the volume refuses puts");
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
            if self.sizes[i] == 0 {
                continue;
            }
            let bytes = reader.get(name(i))?.context("an object is gone")?;
            if bytes != self.bytes_of(i) {
                bail!("object {i} has other bytes than were put");
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
        self.keeper = None;
        std::mem::replace(&mut self.store, dummy).close()?;
        self.store = options(&self.args).open(&self.path)?;
        self.keep()
    }

    /// Has the store kept in order, if that was asked for.
    fn keep(&mut self) -> Result<()> {
        if self.args.keep_in_order {
            self.keeper = Some(self.store.keep_in_order(&DefragOptions::default())?);
        }
        Ok(())
    }

    fn figures(&mut self, age: u32, written: f64) -> Result<Value> {
        let blocks = blocks(&self.path)?;
        let (read, pieces) = self.read()?;
        Ok(json!({
            "age": age, "full": round(self.store.stat()?.fullness.share() * 100.0),
            "live_of_volume": round(self.live as f64 * 100.0 / (self.args.volume << 20) as f64),
            "objects": self.sizes.iter().filter(|size| **size > 0).count(), "write_mb_s": round(written),
            "cold_read_mb_s": round(read), "pieces_of_large_objects": round(pieces),
            "refused": self.refused, "refused_fitting": self.refused_fitting,
            "blocks_of_live": round(blocks as f64 / self.live as f64),
        }))
    }

    /// Deletes nine tenths of the objects, waits for the store to give the space back, compacts.
    fn empty(&mut self) -> Result<Value> {
        for i in 0..self.sizes.len() {
            if i % 10 != 3 && self.sizes[i] > 0 {
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
    let mut volume = Volume {
        fullness: store.stat()?.fullness,
        store,
        keeper: None,
        rng: SmallRng::seed_from_u64(args.seed),
        sizes: Vec::new(),
        live: 0,
        since: 0,
        refused: 0,
        refused_fitting: 0,
        bytes: (0..(16 << 20) + 8192).map(|i: usize| (i / 7 + i % 253) as u8).collect(),
        path,
        args,
    };
    let result = volume.keep().and_then(|()| all(&mut volume));
    drop(volume.keeper.take());
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
        if volume.args.check {
            volume.check(age)?;
        }
        println!("{}", volume.figures(age, written)?);
    }
    if !volume.args.check {
        println!("{}", volume.empty()?);
    }
    Ok(())
}
