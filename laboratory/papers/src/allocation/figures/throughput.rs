//! Tables 1 to 3: PMFLF beside one file per object (Iyengar §3.2), on a real file. Owns no state.

use super::timed::{Board, Device, write_out};
use crate::allocation::peers::{Kind, Peer, disk_used};
use crate::allocation::workload::Pareto;
use crate::kit::calls;
use crate::kit::claims;
use anyhow::{Result, ensure};
use holdall_instrument::claim::{between, holds};
use holdall_instrument::draw::{axis_of, bars, number, series, table};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_instrument::picture::Scale;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;

const KINDS: [Kind; 4] = [Kind::Blocks, Kind::Files, Kind::Sqlite, Kind::Holdall];
const REPLACED: &str = "replacements/s";
const READ: &str = "reads/s";
const SPACE: &str = "MB on disk";
/// What the device did meanwhile: of a replacement, of a replacement, of a read.
const DISCARDS: &str = "discards each";
const DISCARD_MS: &str = "ms of them";
const DEVICE_READS: &str = "device reads each";
const CALLS: &str = "read calls each";
const COLUMNS: [&str; 7] = [REPLACED, DISCARDS, DISCARD_MS, READ, DEVICE_READS, CALLS, SPACE];

/// A workload of the paper, and its figures of tables 1 to 3 for files and PMFLF.
struct Load {
    id: &'static str,
    name: &'static str,
    sizes: Pareto,
    replaced: [f64; 2],
    read: [f64; 2],
    megabytes: [f64; 2],
}

fn loads() -> [Load; 2] {
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

    fn read(&mut self, n: usize, all: &mut Board) -> Result<()> {
        write_out(self.scratch.path());
        let (before, calls) = (Device::of(self.scratch.path()), calls::reads());
        let mut out = Vec::new();
        all.time(self.name, READ, n, || {
            for _ in 0..n {
                let which = self.rng.random_range(0..self.lens.len());
                self.peer.get(&key(which), &mut out)?;
                let same = out == self.bytes[..self.lens[which]];
                ensure!(same, "{}: object {which} is not what was stored", self.name);
            }
            Ok(())
        })?;
        let reads = Device::of(self.scratch.path()).reads - before.reads;
        all.add(self.name, DEVICE_READS, reads / n as f64);
        if let Some((now, before)) = calls::reads().zip(calls) {
            all.add(self.name, CALLS, (now - before) as f64 / n as f64);
        }
        Ok(())
    }
}

/// A workload on all stores, kept as a part: it takes minutes.
fn run_of(settings: &Settings<'_>, load: &Load) -> Result<Board> {
    let [objects, replacements, reads] = scale(settings);
    let (turns, seed) = (settings.repetitions as usize, settings.seed);
    let part = format!("iyengar throughput {} {objects} turns={turns} seed={seed}", load.id);
    if let Some(kept) = settings.parts.load(&part).and_then(|t| serde_json::from_str(&t).ok()) {
        return Ok(kept);
    }
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
            store.read(reads / turns, &mut board)?;
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
    settings.parts.save(&part, &serde_json::to_string(&board)?)?;
    Ok(board)
}

fn claims_of(load: &Load, board: &Board) -> Vec<Claim> {
    let of = |kind: Kind, phase: &str| board.median(kind.name(), phase);
    let [blocks, files] = [Kind::Blocks, Kind::Files];
    // At least half of the paper's gain: machine and file system are others.
    let gain = |id: &str, text: &str, paper: [f64; 2], phase: &str| {
        let (theirs, ours) = (paper[1] / paper[0], of(blocks, phase) / of(files, phase));
        let (id, text) = (format!("{id} {}", load.name), format!("{}: {text}", load.name));
        let asked = format!("≥ {:.2}, half of it", theirs / 2.0);
        let (paper, words) = (format!("{theirs:.2}"), format!("{ours:.2}"));
        holds(&id, &text, &paper, words, &asked, ours >= theirs / 2.0).ratio(ours / theirs)
    };
    let micros = |kind: Kind, phase: &str| number(1e6 / of(kind, phase));
    let discards = |kind: Kind| {
        let (each, ms) = (of(kind, DISCARDS), of(kind, DISCARD_MS));
        format!("{} discards that took the device {} ms", number(each), number(ms))
    };
    let replaced = gain("I8", "replacements a second, PMFLF ÷ files", load.replaced, REPLACED);
    let replaced = replaced.remark(format!(
        "A replacement takes {} µs by PMFLF, with {}; {} µs by files, with {}. Where the file \
         system discards at once, a file removed waits for the device; a block given back does \
         not.",
        micros(blocks, REPLACED),
        discards(blocks),
        micros(files, REPLACED),
        discards(files)
    ));
    let took = |kind: Kind| {
        let (reads, calls) = (of(kind, DEVICE_READS), of(kind, CALLS));
        let (micros, reads, calls) = (micros(kind, READ), number(reads), number(calls));
        format!("{micros} µs, {reads} device reads and {calls} read calls")
    };
    let read = gain("I9", "reads a second, PMFLF ÷ files", load.read, READ).remark(format!(
        "A read takes {} by PMFLF, {} by files. A file is opened, asked for its size and its \
         place, and closed besides: four system calls that a block does not need (strace). Objects \
         come from the page cache; what is read from the device both wait for.",
        took(blocks),
        took(files)
    ));
    let theirs = load.megabytes[1] / load.megabytes[0];
    let ours = of(blocks, SPACE) / of(files, SPACE);
    let (id, text) = (format!("I10 {}", load.name), "space of PMFLF ÷ space of files");
    let (text, paper) = (format!("{}: {text}", load.name), format!("{theirs:.2}"));
    let space = between(&id, &text, &paper, ours, "", theirs - 0.1, theirs + 0.1);
    let asked = of(blocks, "requested");
    let space = space.ratio(ours / theirs).remark(format!(
        "PMFLF takes {} MB for {} MB asked for (internal fragmentation {:.3}, external {:.3}), \
         files {:.2} times as much as was asked for. The paper's PMFLF takes {:.1} KB for an object \
         of the mean size it prints, so that hardly anything is left for fragmentation.",
        number(of(blocks, SPACE)),
        number(asked),
        of(blocks, "internal"),
        of(blocks, "external"),
        of(files, SPACE) / asked,
        load.megabytes[1] / 100.0
    ));
    let mut claims = vec![replaced, read, space];
    for kind in [Kind::Sqlite, Kind::Holdall] {
        let name = kind.name();
        let ratio = |phase: &str| format!("{:.2}", of(kind, phase) / of(blocks, phase));
        let [replaced, read, space] = [REPLACED, READ, SPACE].map(ratio);
        let ours = format!("replacements {replaced}, reads {read}, space {space} of PMFLF's");
        claims.push(claims::says("I8 {0}, {1}", &[&load.name, &name], ours, true));
    }
    claims
}

/// The experiment.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for (at, load) in loads().iter().enumerate() {
        let board = run_of(settings, load)?;
        (settings.progress)(at as u64 + 1, 2);
        outcome.claims.extend(claims_of(load, &board));
        let mut rows = board.rows(&COLUMNS);
        for (i, name) in ["the paper's files", "the paper's PMFLF"].into_iter().enumerate() {
            let none = "–".to_owned();
            let [replaced, read, space] =
                [load.replaced, load.read, load.megabytes].map(|both| number(both[i]));
            let mut row = vec![name.into(), replaced, none.clone(), none.clone(), read];
            row.extend([none.clone(), none, space]);
            rows.push(row);
        }
        let head: Vec<&str> = std::iter::once("store").chain(COLUMNS).collect();
        let title = format!("{}: tables 1 to 3, median (least–most)", load.name);
        outcome.tables.push(table(load.id, &title, &head, rows));
        let stores = board.stores();
        let bar = |phase: &str| {
            let value = |(i, store): (usize, &&str)| (i as f64, board.median(store, phase));
            series(phase, stores.iter().enumerate().map(value).collect())
        };
        let mut x = axis_of("store", Scale::Ordinal);
        x.ticks = stores.iter().enumerate().map(|(i, s)| (i as f64, (*s).to_owned())).collect();
        let y = axis_of("operations per second", Scale::Log10);
        outcome.panels.push(bars(load.id, load.name, x, y, vec![bar(REPLACED), bar(READ)]));
    }
    let [objects, replacements, reads] = scale(settings);
    outcome.notes.push(format!(
        "{objects} objects, then {replacements} replacements of one drawn evenly (removed, then \
         another made), then {reads} reads of whole objects, each compared with what was stored; \
         in {} turns of all stores, before each of which what is dirty is written out. Discards \
         and reads are the device's own count while a store has its turn.",
        settings.repetitions
    ));
    outcome.notes.push(
        "No store waits for the device: neither PMFLF nor files sync anything, SQLite runs with \
         synchronous OFF, Holdall with deferred commits, which it syncs in the background; a \
         commit for each replacement. The space of files counts their blocks and the directory, \
         not their inodes. Olympic Games: α = 1, C = 2^10 grains, mean 3.6 KB. DEC proxy: \
         α = 0.91 and a mean of 15.2 KB as printed; C = 32 MB and k = 891 bytes are assumed, as \
         the paper names neither."
            .to_owned(),
    );
    Ok(outcome)
}
