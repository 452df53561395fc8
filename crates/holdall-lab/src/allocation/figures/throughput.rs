//! Tables 1 to 3: PMFLF beside one file per object (Iyengar §3.2), on a real file. Owns no state.

use super::timed::{Board, write_out};
use crate::allocation::peers::{Kind, disk_used};
use crate::allocation::workload::Pareto;
use crate::experiment::{Claim, Outcome, Settings};
use crate::kit::claim::{between, finish, holds, note};
use crate::kit::draw::{axis_of, bars, number, series, table};
use anyhow::{Result, ensure};
use holdall_plot::Scale;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const KINDS: [Kind; 4] = [Kind::Blocks, Kind::Files, Kind::Sqlite, Kind::Holdall];
const PHASES: [&str; 3] = ["replacements/s", "reads/s", "MB on disk"];

/// A workload of the paper, and its figures of tables 1 to 3 for files and PMFLF.
struct Load {
    name: &'static str,
    sizes: Pareto,
    replaced: [f64; 2],
    read: [f64; 2],
    megabytes: [f64; 2],
}

fn loads() -> [Load; 2] {
    [
        Load {
            name: "Olympic Games",
            sizes: Pareto::olympic(),
            replaced: [21.6, 55.6],
            read: [20.2, 96.9],
            megabytes: [643.0, 370.0],
        },
        Load {
            name: "DEC proxy",
            sizes: Pareto::dec_proxy(),
            replaced: [18.5, 42.3],
            read: [15.6, 69.2],
            megabytes: [1731.0, 1521.0],
        },
    ]
}

/// Numbers of objects, replacements and reads.
fn scale(settings: &Settings<'_>) -> [usize; 3] {
    if settings.quick { [1000, 150, 1000] } else { [100_000, 20_000, 100_000] }
}

fn one(settings: &Settings<'_>, load: &Load, kind: Kind, turn: u64, all: &mut Board) -> Result<()> {
    let [objects, replacements, reads] = scale(settings);
    let scratch = settings.scratch()?;
    let mut peer = kind.open(scratch.path(), false)?;
    let mut rng = SmallRng::seed_from_u64(settings.seed + turn);
    let bytes: Vec<u8> = {
        let mut bytes = vec![0; load.sizes.cutoff as usize + 1];
        rng.fill(&mut bytes[..]);
        bytes
    };
    let mut lens = Vec::with_capacity(objects);
    let key = |i: usize| format!("{i:08}");
    for i in 0..objects {
        let len = load.sizes.draw(&mut rng);
        peer.put(&key(i), &bytes[..len])?;
        peer.commit()?;
        lens.push(len);
    }
    write_out(scratch.path());
    let name = kind.name();
    all.time(name, PHASES[0], replacements, || {
        for _ in 0..replacements {
            let which = rng.random_range(0..objects);
            peer.remove(&key(which))?;
            lens[which] = load.sizes.draw(&mut rng);
            peer.put(&key(which), &bytes[..lens[which]])?;
            peer.commit()?;
        }
        Ok(())
    })?;
    peer.settle()?;
    write_out(scratch.path());
    let mut out = Vec::new();
    all.time(name, PHASES[1], reads, || {
        for _ in 0..reads {
            let which = rng.random_range(0..objects);
            peer.get(&key(which), &mut out)?;
            ensure!(out == bytes[..lens[which]], "{name}: object {which} is not what was stored");
        }
        Ok(())
    })?;
    all.add(name, PHASES[2], disk_used(scratch.path())? as f64 / 1e6);
    Ok(())
}

/// At least half of the paper's gain: machine and file system are others.
fn gain(id: &str, text: &str, load: &Load, paper: [f64; 2], board: &Board, phase: &str) -> Claim {
    let of = |kind: Kind| board.median(kind.name(), phase);
    let (theirs, ours) = (paper[1] / paper[0], of(Kind::Blocks) / of(Kind::Files));
    let text = format!("{}: {text}", load.name);
    let tolerance = format!("≥ {:.2}, half of it", theirs / 2.0);
    let (paper, ours_text) = (format!("{theirs:.2}"), format!("{ours:.2}"));
    holds(
        &format!("{id} {}", load.name),
        &text,
        &paper,
        ours_text,
        &tolerance,
        ours >= theirs / 2.0,
    )
    .ratio(ours / theirs)
    .because(format!(
        "Medians: PMFLF {}, files {}. The objects fit in the page cache, where opening a file \
             costs a search in memory; on the paper's disk it cost an access.",
        number(of(Kind::Blocks)),
        number(of(Kind::Files))
    ))
}

fn claims_of(load: &Load, board: &Board) -> Vec<Claim> {
    let used = |kind: Kind| board.median(kind.name(), PHASES[2]);
    let theirs = load.megabytes[1] / load.megabytes[0];
    let space = used(Kind::Blocks) / used(Kind::Files);
    let text = format!("{}: space of PMFLF ÷ space of files", load.name);
    let paper = format!("{theirs:.2}");
    let id = format!("I10 {}", load.name);
    let replaced = "replacements a second, PMFLF ÷ files";
    let mut claims = vec![
        gain("I8", replaced, load, load.replaced, board, PHASES[0]),
        gain("I9", "reads a second, PMFLF ÷ files", load, load.read, board, PHASES[1]),
        between(&id, &text, &paper, space, "", theirs - 0.1, theirs + 0.1).ratio(space / theirs),
    ];
    for kind in [Kind::Sqlite, Kind::Holdall] {
        let name = kind.name();
        let ratio = |phase: &str| board.median(name, phase) / board.median("PMFLF", phase);
        let ours = format!(
            "replacements {:.2}, reads {:.2}, space {:.2} of PMFLF's",
            ratio(PHASES[0]),
            ratio(PHASES[1]),
            ratio(PHASES[2])
        );
        let text = format!("{}: {name} beside PMFLF", load.name);
        claims.push(note(&format!("I8 {}, {name}", load.name), &text, "", ours));
    }
    claims
}

/// The experiment.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let rounds = u64::from(settings.repetitions);
    for (at, load) in loads().iter().enumerate() {
        let mut board = Board::default();
        for turn in 0..rounds {
            for kind in KINDS {
                one(settings, load, kind, turn, &mut board)?;
            }
            (settings.progress)(at as u64 * rounds + turn + 1, 2 * rounds);
        }
        outcome.claims.extend(claims_of(load, &board));
        let id = if at == 0 { "olympic" } else { "dec" };
        let mut rows = board.rows(&PHASES);
        for (i, name) in ["the paper's files", "the paper's PMFLF"].into_iter().enumerate() {
            let numbers = [load.replaced[i], load.read[i], load.megabytes[i]];
            let cells = numbers.iter().map(|n| number(*n));
            rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
        }
        let head = ["store", PHASES[0], PHASES[1], PHASES[2]];
        let title = format!("{}: tables 1 to 3, median (least–most)", load.name);
        outcome.tables.push(table(id, &title, &head, rows));
        let stores = board.stores();
        let bar = |phase: &str| {
            let value = |(i, store): (usize, &String)| (i as f64, board.median(store, phase));
            series(phase, stores.iter().enumerate().map(value).collect())
        };
        let mut x = axis_of("store", Scale::Ordinal);
        x.ticks = stores.iter().enumerate().map(|(i, s)| (i as f64, s.clone())).collect();
        let y = axis_of("operations per second", Scale::Log10);
        let both = vec![bar(PHASES[0]), bar(PHASES[1])];
        outcome.panels.push(bars(id, load.name, x, y, both));
    }
    let [objects, replacements, reads] = scale(settings);
    outcome.notes.push(format!(
        "{objects} objects, then {replacements} replacements of one drawn evenly (removed, then \
         another made), then {reads} reads of whole objects, each compared with what was stored. \
         No store waits for the device, as the paper's did not by its words: SQLite with \
         synchronous OFF, Holdall with deferred commits, a commit for each replacement. Stores \
         take turns; before each phase what is dirty is written out. {} repetitions. The space of \
         files counts their blocks and the directory, not their inodes.",
        settings.repetitions
    ));
    outcome.notes.push(
        "Olympic Games: α = 1, C = 2^10 grains, mean 3.6 KB. DEC proxy: α = 0.91 and a mean of \
         15.2 KB as printed; C = 32 MB and k = 891 bytes are assumed, as the paper names neither."
            .to_owned(),
    );
    Ok(finish(outcome, settings.quick))
}
