//! Figures 19 to 21: optimized batch allocation (Iyengar §3.4). Owns the runs, which the three
//! figures share.

use super::parameters;
use crate::allocation::block::{Block, Params};
use crate::allocation::oba::Batch;
use crate::allocation::pmflf::{Pmflf, Usage};
use crate::allocation::workload::Pareto;
use crate::experiment::{Claim, Outcome, Settings, Verdict};
use crate::kit::cache::{Cache, Results, cached};
use crate::kit::claim::{between, finish, holds};
use crate::kit::draw::{axis, axis_of, lines, number, series, table};
use anyhow::{Context, Result, ensure};
use holdall_plot::{Panel, Scale};
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
/// What the rows assume.
const COMBINES: &str = "a request that no free block of at least T fits leads to coalescing, \
                        once a batch, before the tail is used (§2.4); iyengar-19 has the numbers \
                        without that in its table.";

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
    /// Whether free blocks were combined before the tail was used.
    combines: bool,
    /// Usage after so many replacements.
    curve: Vec<(u64, Usage)>,
    /// Accesses of the replacements.
    stats: DiskStats,
    replacements: u64,
    coalesced: u64,
}

impl Run {
    fn throughput(&self) -> f64 {
        self.replacements as f64 / (DISK.time_ms(&self.stats) / 1000.0)
    }

    /// After as many replacements as the paper makes.
    fn end(&self) -> Usage {
        self.curve.get(SAMPLES).map(|(_, usage)| *usage).unwrap_or_default()
    }

    /// After four times as many.
    fn long(&self) -> Usage {
        self.curve.last().map(|(_, usage)| *usage).unwrap_or_default()
    }
}

type Runs = Arc<Vec<Run>>;

static RUNS: Cache<Runs> = Cache::new(Results::default);

fn runs(settings: &Settings<'_>) -> Result<Runs> {
    let n = if settings.quick { 4000 } else { 40_000 };
    let key = format!("iyengar batch quick={} seed={}", settings.quick, settings.seed);
    cached(&RUNS, &key, || {
        let mut runs = Vec::new();
        for combines in [false, true] {
            for threshold in THRESHOLDS {
                runs.push(run_of(threshold, combines, n, settings.seed)?);
                (settings.progress)(runs.len() as u64, 2 * THRESHOLDS.len() as u64);
            }
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

fn run_of(threshold: u32, combines: bool, n: usize, seed: u64) -> Result<Run> {
    let batch = Batch::new(threshold);
    let disk = Arc::new(SparseDisk::with_granules(512));
    let disk = Arc::new(CountedDisk::new(disk, DISK));
    let mut objects = Objects {
        store: Pmflf::create(disk.clone(), Params::default(), seed)?,
        batch: if combines { batch.coalescing() } else { batch },
        rng: SmallRng::seed_from_u64(seed),
        live: Vec::new(),
        waiting: Vec::new(),
        number: 0,
    };
    for _ in 0..n {
        objects.add()?;
    }
    objects.flush()?;
    disk.reset();
    let mut curve = vec![(0, objects.store.usage())];
    let mut stats = disk.stats();
    for done in 1..=LONGER * n {
        objects.remove()?;
        objects.add()?;
        if done % (n / SAMPLES) == 0 {
            objects.flush()?;
            curve.push((done as u64, objects.store.usage()));
        }
        if done == n {
            stats = disk.stats();
        }
    }
    objects.verify()?;
    let coalesced = objects.store.counts().coalesced;
    Ok(Run { threshold, combines, curve, stats, replacements: n as u64, coalesced })
}

/// The run of a threshold with coalescing.
fn of(runs: &Runs, threshold: u32) -> Result<&Run> {
    let mut all = combining(runs);
    all.find(|r| r.threshold == threshold).context("no run of that threshold")
}

fn combining(runs: &Runs) -> impl Iterator<Item = &Run> {
    runs.iter().filter(|r| r.combines)
}

fn outcome(settings: &Settings<'_>, runs: &Runs, panel: Panel, claims: Vec<Claim>) -> Outcome {
    let row = |run: &Run| {
        let (usage, each) = (run.end(), run.replacements as f64);
        vec![
            run.threshold.to_string(),
            format!("{}", run.threshold * 512),
            number(run.throughput()),
            format!("{:.3}", run.stats.writes as f64 / each),
            format!("{:.3}", run.stats.seeks as f64 / each),
            format!("{:.4}", usage.internal()),
            format!("{:.4}", usage.external()),
            format!("{:.4}", usage.total()),
            format!("{:.4}", run.long().total()),
            if run.combines { "first" } else { "never" }.to_owned(),
            run.coalesced.to_string(),
        ]
    };
    let head = [
        "T, grains",
        "T, bytes",
        "replacements a second",
        "writes each",
        "seeks each",
        "internal",
        "external",
        "total",
        "total, four times as long",
        "coalesces",
        "times coalesced",
    ];
    let rows = runs.iter().map(row).collect();
    let notes = vec![
        parameters(),
        format!(
            "{} objects and as many replacements, α = 1, C = 2^10 grains. {BATCH} objects wait \
             for their blocks together. A replacement gives an object back at once, with an \
             access. The curves go on for four times the paper's number of replacements. Time by the accesses counted: 10 ms for each that does not \
             begin where the last one ended, 10 MB/s.",
            if settings.quick { "4,000" } else { "40,000" }
        ),
    ];
    let assumed = |c: Claim| match c.verdict {
        Verdict::Holds => c.by_assumption(COMBINES),
        _ => c,
    };
    let claims = claims.into_iter().map(assumed).collect();
    let tables = vec![table("batch", "By the threshold T", &head, rows)];
    finish(Outcome { panels: vec![panel], tables, claims, notes }, settings.quick)
}

/// Figure 19.
pub(super) fn throughput(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(settings)?;
    let rates: Vec<f64> = combining(&runs).map(Run::throughput).collect();
    let fall = rates.windows(2).map(|p| 1.0 - p[1] / p[0]).fold(f64::MIN, f64::max);
    let best = rates.iter().copied().fold(0.0, f64::max);
    let list: Vec<String> = rates.iter().map(|r| number(*r)).collect();
    let text = "throughput rises with T";
    let so = fall <= 0.02;
    let mut claims =
        vec![holds("I7 throughput", text, "", list.join(", "), "no step falls by over 2 %", so)];
    for bytes in [4, 8, 16] {
        let share = of(&runs, bytes * 2)?.throughput() / best;
        let text = format!("at T = {bytes} KB throughput is close to its most: share of it");
        claims.push(between(&format!("I7 near, {bytes} KB"), &text, "", share, "", 0.8, 1.0));
    }
    let x = axis_of("T, grains of 512 bytes", Scale::Log2);
    let y = axis("replacements per second, by the accesses counted");
    let curve = |combines: bool| {
        let of = runs.iter().filter(|r| r.combines == combines);
        of.map(|r| (f64::from(r.threshold), r.throughput())).collect()
    };
    let both = vec![series("coalescing", curve(true)), series("tail at once", curve(false))];
    let panel = lines("throughput", "Throughput", x, y, both);
    Ok(outcome(settings, &runs, panel, claims))
}

fn curves(id: &str, what: &str, runs: &Runs, value: fn(&Usage) -> f64) -> Panel {
    let line = |run: &Run| {
        let points = run.curve.iter().map(|(done, usage)| (*done as f64, value(usage))).collect();
        series(format!("T = {}", run.threshold), points)
    };
    lines(id, what, axis("replacements"), axis(what), combining(runs).map(line).collect())
}

/// Figure 20.
pub(super) fn external(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(settings)?;
    let mut claims = Vec::new();
    for grains in [1, 2, 4] {
        let end = of(&runs, grains)?.end().external();
        let text = format!("T = {grains} grains: external fragmentation is a few percent");
        claims.push(between(&format!("I7 small, {grains}"), &text, "", end, "", 1.0, 1.1));
    }
    let few = of(&runs, 4)?;
    let half = few.curve.get(few.curve.len() / 2).map_or(1.0, |(_, u)| u.external());
    let text = "T = 4 grains: a steady state is reached in the long run; its second half adds";
    let added = few.long().external() - half;
    let so = added <= 0.02;
    claims.push(holds("I7 steady", text, "", format!("{added:+.4}"), "≤ 0.02", so));
    let (middle, large) = (of(&runs, 32)?.end().external(), of(&runs, 128)?.end().external());
    let text = "above 16 KB the space needed rises steeply: from T = 32 to T = 128 grains";
    let ours = format!("{middle:.3} to {large:.3}");
    let steep = holds("I7 steep", text, "", ours, "by more than 0.3", large - middle > 0.3);
    let long = (of(&runs, 32)?.long().external(), of(&runs, 128)?.long().external());
    claims.push(steep.because(format!("In the long run {:.3} to {:.3}.", long.0, long.1)));
    let panel = curves("external", "external fragmentation", &runs, Usage::external);
    Ok(outcome(settings, &runs, panel, claims))
}

/// Figure 21.
pub(super) fn total(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(settings)?;
    let text = "internal fragmentation, of any T: waste as a share of what is asked for";
    let worst = runs.iter().map(|r| r.end().internal() - 1.0).fold(0.0, f64::max);
    let large = of(&runs, 128)?;
    let (most, long) = (large.end().total(), large.long().total());
    let twice = "T = 128 grains: the file takes more than twice the bytes asked for";
    let why = format!(
        "After so many replacements without any reuse it would be {:.2}; blocks of at least T are \
         reused. In the long run it is {long:.2}.",
        2.0 * large.end().internal()
    );
    let claims = vec![
        between("I7 internal", text, "7.8 %", worst * 100.0, "%", 6.8, 8.8).ratio(worst / 0.078),
        holds("I7 twice", twice, "> 2", format!("{most:.3}"), "> 2", most > 2.0).because(why),
        holds("I7 twice, in the long run", twice, "> 2", format!("{long:.3}"), "> 2", long > 2.0),
    ];
    let panel = curves("total", "total fragmentation", &runs, Usage::total);
    Ok(outcome(settings, &runs, panel, claims))
}
