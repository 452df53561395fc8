//! Figures 19 to 21: optimized batch allocation (Iyengar §3.4). Owns the runs, which the three
//! figures share.

use super::{columns, curves, ranks};
use crate::allocation::block::{Block, Params};
use crate::allocation::oba::Batch;
use crate::allocation::pmflf::{Pmflf, Usage};
use crate::allocation::workload::Pareto;
use crate::kit::{claims, notes};
use anyhow::{Context, Result, ensure};
use holdall_instrument::cache::{Cache, Results, cached};
use holdall_instrument::draw::{axis_in, lines, number, paper_points, series};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_instrument::picture::Panel;
use holdall_testkit::{CostModel, CountedDisk, DiskStats, SeekRule, SparseDisk};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

/// T, in grains.
const THRESHOLDS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Objects that wait for their blocks together; the paper names no number.
const BATCH: usize = 100;
/// Samples for as many replacements as the paper makes, and how many times as long runs go on.
const SAMPLES: usize = 20;
const LONGER: usize = 4;
/// A disk of the paper's time: 10 ms for an access, 10 MB/s.
const DISK: CostModel = CostModel {
    seek_ms: 10.0,
    ms_per_kib: 0.1,
    page_size: 512,
    seeks: SeekRule::WhenNotSequential,
};

#[derive(Debug)]
struct Run {
    threshold: u32,
    /// Usage by the number of replacements before it.
    curve: Vec<(u64, Usage)>,
    /// Accesses of the replacements, and milliseconds of those that gave blocks back.
    stats: DiskStats,
    freeing: f64,
    replacements: u64,
    /// Bytes of the blocks that the replacements got, and of free blocks below T after them.
    placed: u64,
    small: u64,
}

impl Run {
    fn throughput(&self) -> f64 {
        self.replacements as f64 / (DISK.time_ms(&self.stats) / 1000.0)
    }

    /// Allocations a second: giving back takes an access whatever T is.
    fn allocations(&self) -> f64 {
        self.replacements as f64 / ((DISK.time_ms(&self.stats) - self.freeing) / 1000.0)
    }

    fn at(&self, sample: usize) -> Usage {
        self.curve.get(sample).map(|(_, usage)| *usage).unwrap_or_default()
    }

    /// After as many replacements as the paper makes.
    fn end(&self) -> Usage {
        self.at(SAMPLES)
    }

    /// After four times as many.
    fn long(&self) -> Usage {
        self.at(LONGER * SAMPLES)
    }

    /// Where the blocks of the replacements came from.
    fn why(&self) -> String {
        let mb = |bytes: u64| number(bytes as f64 / 1e6);
        let grown = self.end().most - self.at(0).most;
        format!(
            "T = {}: of {} MB that the replacements placed, {} MB went to the end of the file and \
             the rest into free blocks; free blocks have {} MB then, {} MB of it in blocks below \
             T, beside {} MB allocated.",
            self.threshold,
            mb(self.placed),
            mb(grown),
            mb(self.end().free),
            mb(self.small),
            mb(self.end().allocated)
        )
    }
}

type Runs = Arc<Vec<Run>>;

static RUNS: Cache<Runs> = Cache::new(Results::default);

fn runs(settings: &Settings<'_>) -> Result<Runs> {
    let n = if settings.quick { 4000 } else { 40_000 };
    let key = format!("iyengar batch quick={} seed={}", settings.quick, settings.seed);
    cached(&RUNS, &key, || {
        let mut runs = Vec::new();
        for threshold in THRESHOLDS {
            runs.push(run_of(threshold, n, settings.seed)?);
            (settings.progress)(runs.len() as u64, THRESHOLDS.len() as u64);
        }
        Ok(Arc::new(runs))
    })
}

struct Objects {
    store: Pmflf,
    batch: Batch,
    rng: SmallRng,
    live: Vec<(Block, usize, u64)>,
    /// Length and number of those that wait.
    waiting: Vec<(usize, u64)>,
    number: u64,
    /// Bytes of all blocks handed out.
    placed: u64,
}

impl Objects {
    fn add(&mut self) -> Result<()> {
        let len = Pareto::olympic().draw(&mut self.rng);
        self.number += 1;
        let mut object = vec![0; len];
        object[..8].copy_from_slice(&self.number.to_le_bytes());
        self.batch.add(object);
        self.waiting.push((len, self.number));
        if self.batch.len() == BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let blocks = self.batch.write(&mut self.store)?;
        self.placed += blocks.iter().map(|b| u64::from(b.grains) * 512).sum::<u64>();
        let waiting = std::mem::take(&mut self.waiting);
        self.live.extend(blocks.into_iter().zip(waiting).map(|(b, (len, n))| (b, len, n)));
        Ok(())
    }

    /// Gives back an object that has its block.
    fn remove(&mut self) -> Result<()> {
        let which = self.rng.random_range(0..self.live.len());
        let (block, len, _) = self.live.swap_remove(which);
        Ok(self.store.free(block, len)?)
    }

    fn verify(&self) -> Result<()> {
        for (block, _, number) in &self.live {
            let mut found = [0; 8];
            self.store.read(block.at, 0, &mut found)?;
            ensure!(found == number.to_le_bytes(), "object {number} is not what was stored");
        }
        Ok(())
    }
}

fn run_of(threshold: u32, n: usize, seed: u64) -> Result<Run> {
    let disk = Arc::new(SparseDisk::with_granules(512));
    let disk = Arc::new(CountedDisk::new(disk, DISK));
    let mut objects = Objects {
        store: Pmflf::create(disk.clone(), Params::default(), seed)?,
        batch: Batch::new(threshold),
        rng: SmallRng::seed_from_u64(seed),
        live: Vec::new(),
        waiting: Vec::new(),
        number: 0,
        placed: 0,
    };
    for _ in 0..n {
        objects.add()?;
    }
    objects.flush()?;
    disk.reset();
    let mut run = Run {
        threshold,
        curve: vec![(0, objects.store.usage())],
        stats: disk.stats(),
        freeing: 0.0,
        replacements: n as u64,
        placed: objects.placed,
        small: 0,
    };
    for done in 1..=LONGER * n {
        let before = disk.stats();
        objects.remove()?;
        if done <= n {
            run.freeing += DISK.time_ms(&(disk.stats() - before));
        }
        objects.add()?;
        if done % (n / SAMPLES) == 0 {
            objects.flush()?;
            run.curve.push((done as u64, objects.store.usage()));
        }
        if done == n {
            run.stats = disk.stats();
            run.placed = objects.placed - run.placed;
            let small = objects.store.lists().iter().filter(|b| b.grains < threshold);
            run.small = small.map(|b| u64::from(b.grains) * 512).sum();
        }
    }
    objects.verify()?;
    Ok(run)
}

fn of(runs: &Runs, threshold: u32) -> Result<&Run> {
    runs.iter().find(|r| r.threshold == threshold).context("no run of that threshold")
}

fn outcome(settings: &Settings<'_>, runs: &Runs, panel: Panel, claims: Vec<Claim>) -> Outcome {
    let table = columns(
        "batch",
        "By the threshold T",
        runs,
        &[
            ("T, grains", |r| r.threshold.to_string()),
            ("T, bytes", |r| format!("{}", r.threshold * 512)),
            ("replacements a second", |r| number(r.throughput())),
            ("allocations a second", |r| number(r.allocations())),
            ("writes each", |r| format!("{:.3}", r.stats.writes as f64 / r.replacements as f64)),
            ("seeks each", |r| format!("{:.3}", r.stats.seeks as f64 / r.replacements as f64)),
            ("internal", |r| format!("{:.4}", r.end().internal())),
            ("external", |r| format!("{:.4}", r.end().external())),
            ("total", |r| format!("{:.4}", r.end().total())),
            ("total, four times as long", |r| format!("{:.4}", r.long().total())),
        ],
    );
    let objects = if settings.quick { "4,000" } else { "40,000" };
    let notes = [notes::of("iyengar", &[]), notes::of("iyengar-19", &[&objects, &BATCH])].concat();
    Outcome { panels: vec![panel], tables: vec![table], claims, notes }
}

/// Figure 19.
pub(super) fn throughput(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(settings)?;
    let rates: Vec<f64> = runs.iter().map(Run::throughput).collect();
    let fall = rates.windows(2).map(|p| 1.0 - p[1] / p[0]).fold(f64::MIN, f64::max);
    let list: Vec<String> = rates.iter().map(|r| number(*r)).collect();
    let mut claims = vec![claims::says("I7 throughput", &[], list.join(", "), fall <= 0.02)];
    let most = of(&runs, 128)?;
    let each = |run: &Run| {
        let (seeks, n) = (run.stats.seeks as f64, run.replacements as f64);
        format!(
            "T = {}: {:.3} seeks for a replacement, {:.2} ms without the {:.1} ms of giving back.",
            run.threshold,
            seeks / n,
            1000.0 / run.allocations(),
            run.freeing / n
        )
    };
    for bytes in [4, 8, 16] {
        let run = of(&runs, bytes * 2)?;
        let share = run.allocations() / most.allocations();
        let near = claims::measures("I7 near, {0} KB", &[&bytes], share);
        claims.push(near.because(format!("{} {}", each(run), each(most))));
        let share = run.throughput() / most.throughput();
        claims.push(claims::measures("I7 near, {0} KB, whole", &[&bytes], share));
    }
    let panel = |id: &str, title: &str, value: fn(&Run) -> f64| {
        let curve = runs.iter().enumerate().map(|(i, r)| (i as f64, value(r))).collect();
        let most = runs.iter().map(value).fold(0.0, f64::max);
        let (x, y) = (ranks("T, grains", THRESHOLDS), axis_in("per second", 0.0, most * 1.05));
        lines(id, title, x, y, vec![series("batch allocation", curve)])
    };
    let whole = panel("throughput", "Replacements, by the accesses counted", Run::throughput);
    let mut outcome = outcome(settings, &runs, whole, claims);
    let alone = panel("allocations", "Allocations alone, by accesses counted", Run::allocations);
    outcome.panels.push(alone);
    Ok(outcome)
}

/// A panel of `value` by the number of replacements.
fn by_number(what: &str, runs: &Runs, value: fn(&Usage) -> f64) -> Panel {
    let line = |run: &Run| {
        let points = run.curve.iter().map(|(done, usage)| (*done as f64, value(usage))).collect();
        series(format!("T = {}", run.threshold), points)
    };
    curves("batch", what, what, runs.iter().map(line).collect())
}

/// Figure 20.
pub(super) fn external(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(settings)?;
    let mut claims = Vec::new();
    for grains in [1, 2, 4] {
        let run = of(&runs, grains)?;
        let small = claims::measures("I7 small, {0}", &[&grains], run.end().external());
        claims.push(small.because(run.why()));
    }
    let few = of(&runs, 4)?;
    let [half, end, long] = [few.at(SAMPLES / 2), few.end(), few.long()].map(|u| u.external());
    let added = end - half;
    let steady = claims::says("I7 steady", &[], format!("{added:+.4}"), added <= 0.02);
    claims.push(steady.because(format!(
        "{half:.3} after half of the replacements, {end:.3} after all, {long:.3} after four times \
         as many. {}",
        few.why()
    )));
    let (middle, large) = (of(&runs, 32)?, of(&runs, 128)?);
    let [from, to] = [middle, large].map(|run| run.end().external());
    let steep = claims::says("I7 steep", &[], format!("{from:.3} to {to:.3}"), to - from > 0.3);
    claims.push(steep.because(format!("{} {}", middle.why(), large.why())));
    let panel = by_number("external fragmentation", &runs, Usage::external);
    Ok(outcome(settings, &runs, panel, claims))
}

/// Figure 21.
pub(super) fn total(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(settings)?;
    let worst = runs.iter().map(|r| r.end().internal() - 1.0).fold(0.0, f64::max);
    let internal = claims::measures("I7 internal", &[], worst * 100.0);
    let large = of(&runs, 128)?;
    let (most, long) = (large.end().total(), large.long().total());
    let twice = claims::says("I7 twice", &[], format!("{most:.3}"), most > 2.0);
    let without = (large.at(0).most + large.placed) as f64 / large.end().requested as f64;
    let claims = vec![
        internal.ratio(worst / 0.078),
        twice.because(format!(
            "{} Without any reuse the file would take {without:.2} times the bytes asked for. \
             After four times as many replacements it takes {long:.2} times.",
            large.why()
        )),
    ];
    let mut panel = by_number("total fragmentation", &runs, Usage::total);
    panel.series.push(paper_points("paper, internal part", vec![(0.0, 1.078)]));
    Ok(outcome(settings, &runs, panel, claims))
}
