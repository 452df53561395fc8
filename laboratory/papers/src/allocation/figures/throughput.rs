//! Tables 1 to 3: PMFLF beside one file per object (Iyengar §3.2), on a real file. Owns no state.

use super::ranks;
use super::timed::{Board, Device, forget_caches, write_out};
use crate::allocation::peers::{Kind, Peer, disk_used};
use crate::allocation::workload::Pareto;
use crate::kit::calls;
use crate::kit::{claims, notes};
use anyhow::{Result, ensure};
use holdall_instrument::draw::{axis_of, bars, number, paper_points, series, table};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_instrument::picture::Scale;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::fmt::Display;
use tempfile::TempDir;

const KINDS: [Kind; 4] = [Kind::Blocks, Kind::Files, Kind::Sqlite, Kind::Holdall];
const REPLACED: &str = "replacements/s";
const READ: &str = "reads/s";
const SPACE: &str = "MB on disk";
/// What the device did meanwhile, of a replacement.
const DISCARDS: &str = "discards each";
const DISCARD_MS: &str = "ms of them";
/// Reads a second; reads of the device, read calls and KiB fetched for each: as objects come, then
/// after the kernel has forgotten pages, inodes and names.
const READS: [&str; 4] = [READ, "device reads each", "read calls each", "KiB fetched each"];
const COLD: [&str; 4] =
    ["cold reads/s", "cold device reads each", "cold read calls each", "cold KiB fetched each"];
/// Reads after which the kernel is asked to forget again.
const FEW: usize = 100;
const COLUMNS: [&str; 9] =
    [REPLACED, DISCARDS, DISCARD_MS, READ, READS[1], COLD[0], COLD[1], COLD[3], SPACE];

/// A workload of the paper, and its figures of tables 1 to 3 for files and PMFLF.
pub(super) struct Load {
    pub id: &'static str,
    pub name: &'static str,
    pub sizes: Pareto,
    replaced: [f64; 2],
    read: [f64; 2],
    megabytes: [f64; 2],
}

pub(super) fn loads() -> [Load; 2] {
    // Replacements and reads a second, and MB, each of files and of PMFLF.
    let load = |id, name, sizes, [replaced, read, megabytes]: [[f64; 2]; 3]| Load {
        id,
        name,
        sizes,
        replaced,
        read,
        megabytes,
    };
    let olympic = [[21.6, 55.6], [20.2, 96.9], [643.0, 370.0]];
    let dec = [[18.5, 42.3], [15.6, 69.2], [1731.0, 1521.0]];
    [
        load("olympic", "Olympic Games", Pareto::olympic(), olympic),
        load("dec", "DEC proxy", Pareto::dec_proxy(), dec),
    ]
}

/// Numbers of objects, replacements and reads.
fn scale(settings: &Settings<'_>) -> [usize; 3] {
    if settings.quick { [1000, 150, 1000] } else { [100_000, 20_000, 100_000] }
}

fn key(i: usize) -> String {
    format!("{i:08}")
}

/// A store at work.
struct Running<'a> {
    name: &'static str,
    peer: Box<dyn Peer>,
    scratch: TempDir,
    sizes: Pareto,
    rng: SmallRng,
    bytes: &'a [u8],
    lens: Vec<usize>,
}

impl<'a> Running<'a> {
    fn fill(settings: &Settings<'_>, load: &Load, kind: Kind, bytes: &'a [u8]) -> Result<Self> {
        let scratch = settings.scratch()?;
        let mut peer = kind.open(scratch.path(), false)?;
        let mut rng = SmallRng::seed_from_u64(settings.seed);
        let mut lens = Vec::new();
        for i in 0..scale(settings)[0] {
            let len = load.sizes.draw(&mut rng);
            peer.put(&key(i), &bytes[..len])?;
            peer.commit()?;
            lens.push(len);
        }
        Ok(Self { name: kind.name(), peer, scratch, sizes: load.sizes, rng, bytes, lens })
    }

    fn replace(&mut self, n: usize, all: &mut Board) -> Result<()> {
        write_out(self.scratch.path());
        let before = Device::of(self.scratch.path());
        all.time(self.name, REPLACED, n, || {
            for _ in 0..n {
                let which = self.rng.random_range(0..self.lens.len());
                self.peer.remove(&key(which))?;
                self.lens[which] = self.sizes.draw(&mut self.rng);
                self.peer.put(&key(which), &self.bytes[..self.lens[which]])?;
                self.peer.commit()?;
            }
            Ok(())
        })?;
        let after = Device::of(self.scratch.path());
        let each = |of: fn(&Device) -> f64| (of(&after) - of(&before)) / n as f64;
        all.add(self.name, DISCARDS, each(|d| d.discards));
        all.add(self.name, DISCARD_MS, each(|d| d.discard_ms));
        self.peer.settle()
    }

    fn read(&mut self, n: usize, names: [&str; 4], all: &mut Board) -> Result<()> {
        let counts = || [calls::reads(), calls::fetched()];
        let (before, begun) = (Device::of(self.scratch.path()), counts());
        let mut out = Vec::new();
        all.time(self.name, names[0], n, || {
            for _ in 0..n {
                let which = self.rng.random_range(0..self.lens.len());
                self.peer.get(&key(which), &mut out)?;
                let same = out == self.bytes[..self.lens[which]];
                ensure!(same, "{}: object {which} is not what was stored", self.name);
            }
            Ok(())
        })?;
        let reads = Device::of(self.scratch.path()).reads - before.reads;
        all.add(self.name, names[1], reads / n as f64);
        for ((name, unit), (now, before)) in
            [(names[2], 1.0), (names[3], 1024.0)].into_iter().zip(counts().into_iter().zip(begun))
        {
            if let Some((now, before)) = now.zip(before) {
                all.add(self.name, name, (now - before) as f64 / unit / n as f64);
            }
        }
        Ok(())
    }
}

/// A workload on all stores.
fn run_of(settings: &Settings<'_>, load: &Load) -> Result<Board> {
    let [_, replacements, reads] = scale(settings);
    let (turns, seed) = (settings.repetitions as usize, settings.seed);
    let mut bytes = vec![0; load.sizes.cutoff as usize + 1];
    SmallRng::seed_from_u64(seed).fill(&mut bytes[..]);
    let fill = |kind| Running::fill(settings, load, kind, &bytes);
    let mut stores = KINDS.into_iter().map(fill).collect::<Result<Vec<_>>>()?;
    let mut board = Board::default();
    for _ in 0..turns {
        for store in &mut stores {
            store.replace(replacements / turns, &mut board)?;
        }
    }
    for _ in 0..turns {
        for store in &mut stores {
            write_out(store.scratch.path());
            store.read(reads / turns, READS, &mut board)?;
        }
    }
    for _ in 0..turns {
        for store in &mut stores {
            if forget_caches(store.scratch.path()) {
                store.read(FEW, COLD, &mut board)?;
            }
        }
    }
    for store in &stores {
        board.add(store.name, SPACE, disk_used(store.scratch.path())? as f64 / 1e6);
        if let Some(usage) = store.peer.usage() {
            board.add(store.name, "internal", usage.internal());
            board.add(store.name, "external", usage.external());
            board.add(store.name, "requested", usage.requested as f64 / 1e6);
        }
    }
    Ok(board)
}

fn claims_of(load: &Load, board: &Board) -> Vec<Claim> {
    let of = |kind: Kind, phase: &str| board.median(kind.name(), phase);
    let [blocks, files] = [Kind::Blocks, Kind::Files];
    let ratio = |phase: &str| of(blocks, phase) / of(files, phase);
    let each = |kind: Kind, phases: &[&str]| {
        let words = phases.iter().map(|phase| format!("{} {phase}", number(of(kind, phase))));
        format!("{}: {}", kind.name(), words.collect::<Vec<_>>().join(", "))
    };
    let both = |phases: &[&str]| format!("{}; {}.", each(blocks, phases), each(files, phases));
    let name: &dyn Display = &load.name;
    let replaced = claims::measures("I8 {0}", &[name], ratio(REPLACED)).because(format!(
        "{} Where the file system discards at once, a file removed waits for the device, {} µs \
         a replacement of {} µs; a block given back does not, and its tag goes to the page cache.",
        both(&[REPLACED, DISCARDS]),
        number(of(files, DISCARD_MS) * 1e3),
        number(1e6 / of(files, REPLACED))
    ));
    let (ours, why) = (format!("{:.2}", ratio(READ)), both(&READS));
    let read = claims::says("I9 warm, {0}", &[name], ours, true).remark(why);
    let mut claims = vec![replaced, read];
    if of(files, COLD[0]).is_finite() {
        let cold = claims::measures("I9 {0}", &[name], ratio(COLD[0]));
        claims.push(cold.because(both(&COLD)));
    }
    let asked = of(blocks, "requested");
    claims.push(claims::measures("I10 {0}", &[name], ratio(SPACE)).because(format!(
        "{} For {} MB asked for PMFLF takes {:.0} blocks of 4 KiB of the file system (internal \
         fragmentation {:.3}, external {:.3}), files {:.0}, for one more than half a block of \
         waste each.",
        both(&[SPACE]),
        number(asked),
        of(blocks, SPACE) * 1e6 / 4096.0,
        of(blocks, "internal"),
        of(blocks, "external"),
        of(files, SPACE) * 1e6 / 4096.0,
    )));
    for kind in [Kind::Sqlite, Kind::Holdall] {
        let other = kind.name();
        let ratio = |phase: &str| format!("{:.2}", of(kind, phase) / of(blocks, phase));
        let [replaced, read, space] = [REPLACED, READ, SPACE].map(ratio);
        let ours = format!("replacements {replaced}, reads {read}, space {space} of PMFLF's");
        claims.push(claims::says("I8 {0}, {1}", &[name, &other], ours, true));
    }
    claims
}

/// The experiment.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let [objects, replacements, reads] = scale(settings);
    let mut outcome = Outcome::default();
    for (at, load) in loads().iter().enumerate() {
        let (id, turns, seed) = (load.id, settings.repetitions, settings.seed);
        let part = format!("iyengar throughput {id} {objects} turns={turns} seed={seed}");
        let board = settings.part(&part, || run_of(settings, load))?;
        (settings.progress)(at as u64 + 1, 2);
        outcome.claims.extend(claims_of(load, &board));
        let mut rows = board.rows(&COLUMNS);
        for (i, name) in ["the paper's files", "the paper's PMFLF"].into_iter().enumerate() {
            let mut row = vec!["–".to_owned(); COLUMNS.len() + 1];
            row[0] = name.to_owned();
            for (of, figures) in
                [(REPLACED, load.replaced), (READ, load.read), (SPACE, load.megabytes)]
            {
                let column = COLUMNS.iter().position(|c| *c == of).unwrap_or_default();
                row[column + 1] = number(figures[i]);
            }
            rows.push(row);
        }
        let head: Vec<&str> = std::iter::once("store").chain(COLUMNS).collect();
        let title = format!("{}: tables 1 to 3, median (least–most)", load.name);
        outcome.tables.push(table(load.id, &title, &head, rows));
        let stores = board.stores();
        let bar = |phase: &str, paper: [f64; 2]| {
            let value = |(i, store): (usize, &&str)| (i as f64, board.median(store, phase));
            let paper = vec![(0.0, paper[1]), (1.0, paper[0])];
            [
                series(phase, stores.iter().enumerate().map(value).collect()),
                paper_points(format!("paper, {phase}"), paper),
            ]
        };
        let bars = bars(
            load.id,
            load.name,
            ranks("store", &stores),
            axis_of("operations per second (powers of ten, not from 0)", Scale::Log10),
            [bar(REPLACED, load.replaced), bar(READ, load.read)].concat(),
        );
        outcome.panels.push(bars);
    }
    let words: [&dyn Display; 5] = [&objects, &replacements, &reads, &settings.repetitions, &FEW];
    outcome.notes = notes::of("iyengar-throughput", &words);
    if !outcome.claims.iter().any(|c| c.id.starts_with("I9 Olympic")) {
        outcome.notes.extend(notes::of("iyengar-throughput warm", &[]));
    }
    Ok(outcome)
}
