//! Figures 9 to 12: the hash table beside files and a database, on web objects (Iyengar §3.1).
//! Owns no state.

use super::timed::{Board, write_out};
use crate::allocation::peers::{Kind, Look, Peer, disk_used};
use crate::allocation::workload::Pareto;
use crate::experiment::{Claim, Outcome, Settings};
use crate::kit::claim::{finish, holds, note};
use crate::kit::draw::{axis, axis_of, bars, lines, number, series, table};
use anyhow::{Result, ensure};
use holdall_plot::{Panel, Scale};
use rand::SeedableRng;
use rand::rngs::SmallRng;

const PHASES: [&str; 6] = ["Wp", "Wn", "R", "Ik", "Iv", "Ie"];
/// Rounds of rewriting everything after which the space is taken.
const ROUNDS: usize = 7;

/// Stores and after how many updates each commits; 0 for once.
const MODES: [(Kind, usize, &str); 8] = [
    (Kind::Table, 1, "HTOD"),
    (Kind::Files, 1, "files"),
    (Kind::Sqlite, 1, "SQLite, a"),
    (Kind::Sqlite, 5, "SQLite, 5"),
    (Kind::Sqlite, 0, "SQLite, m"),
    (Kind::Holdall, 1, "Holdall, a"),
    (Kind::Holdall, 5, "Holdall, 5"),
    (Kind::Holdall, 0, "Holdall, m"),
];

struct Items {
    keys: Vec<String>,
    lens: Vec<usize>,
    bytes: Vec<u8>,
}

impl Items {
    /// Names as of web fragments: shallow and wide. A file system takes no slash in them.
    fn new(n: usize, seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let sizes = Pareto::olympic();
        let key = |i: usize| format!("fragments_sport{:02}_event{:05}_{i}.html", i % 37, i / 37);
        let bytes = (0..sizes.cutoff as usize + 8).map(|i| (i * i) as u8).collect();
        let lens = (0..n).map(|_| sizes.draw(&mut rng)).collect();
        Self { keys: (0..n).map(key).collect(), lens, bytes }
    }

    /// The content of an item in a round.
    fn value(&self, i: usize, round: usize) -> &[u8] {
        let from = (i + round) % 7;
        &self.bytes[from..from + self.lens[i]]
    }

    fn write(&self, peer: &mut dyn Peer, every: usize, round: usize) -> Result<()> {
        for i in 0..self.keys.len() {
            peer.put(&self.keys[i], self.value(i, round))?;
            if every > 0 && (i + 1) % every == 0 {
                peer.commit()?;
            }
        }
        peer.commit()
    }
}

/// One store through all tests.
fn one(
    settings: &Settings<'_>,
    items: &Items,
    (kind, every, name): (Kind, usize, &str),
    all: &mut Board,
    space: Option<&mut Vec<(f64, f64)>>,
) -> Result<()> {
    let n = items.keys.len();
    let scratch = settings.scratch()?;
    let mut peer = kind.open(scratch.path(), false)?;
    all.time(name, "Wp", n, || items.write(&mut *peer, every, 0))?;
    all.add(name, "MB on disk", disk_used(scratch.path())? as f64 / 1e6);
    write_out(scratch.path());
    all.time(name, "Wn", n, || items.write(&mut *peer, every, 1))?;
    peer.settle()?;
    write_out(scratch.path());
    let mut out = Vec::new();
    all.time(name, "R", n, || {
        for i in 0..n {
            peer.get(&items.keys[i], &mut out)?;
            ensure!(out == items.value(i, 1), "{name}: item {i} is not what was stored");
        }
        Ok(())
    })?;
    let keys: usize = items.keys.iter().map(String::len).sum();
    let values: usize = items.lens.iter().sum();
    for (phase, look, wanted) in
        [("Ik", Look::Keys, keys), ("Iv", Look::Values, values), ("Ie", Look::Both, keys + values)]
    {
        all.time(name, phase, n, || {
            let found = peer.look(look)?;
            ensure!(found == wanted as u64, "{name}: {found} bytes instead of {wanted}");
            Ok(())
        })?;
    }
    let Some(space) = space else { return Ok(()) };
    for round in 1..=ROUNDS {
        if round > 1 {
            items.write(&mut *peer, every, round)?;
            peer.settle()?;
        }
        space.push((round as f64, disk_used(scratch.path())? as f64 / 1e6));
    }
    Ok(())
}

/// The same writes where each commit must survive a power cut.
fn durable(settings: &Settings<'_>, items: &Items, all: &mut Board) -> Result<()> {
    for (kind, every, name) in MODES {
        let scratch = settings.scratch()?;
        let mut peer = kind.open(scratch.path(), true)?;
        for (round, phase) in [(0, "Wp"), (1, "Wn")] {
            all.time(name, phase, items.keys.len(), || items.write(&mut *peer, every, round))?;
        }
    }
    Ok(())
}

fn claims(board: &Board, space: &[(String, Vec<(f64, f64)>)]) -> Vec<Claim> {
    let of = |store: &str, phase: &str| board.median(store, phase);
    let mut claims = Vec::new();
    for phase in PHASES {
        let ratio = of("HTOD", phase) / of("files", phase);
        let (text, ours) =
            (format!("{phase}: HTOD ÷ files, items a second"), format!("{ratio:.2}"));
        let why = format!(
            "Medians: HTOD {}, files {} items a second.",
            number(of("HTOD", phase)),
            number(of("files", phase))
        );
        let id = format!("I11 {phase}");
        claims.push(match phase {
            "Wn" | "Ik" => note(&id, &text, "< 1", ours).remark(why),
            _ => holds(&id, &text, "> 1", ours, "> 1", ratio > 1.0).because(why),
        });
    }
    for phase in ["Wp", "Wn"] {
        for other in ["HTOD", "files"] {
            let ratio = of(other, phase) / of("SQLite, 5", phase);
            let text = format!("{phase}: {other} ÷ a database that commits each fifth update");
            let why = format!(
                "Medians: {} and {} items a second. SQLite runs in this process and does not wait \
                 for the device; five updates share a commit.",
                number(of(other, phase)),
                number(of("SQLite, 5", phase))
            );
            let id = format!("I11 {phase} {other}, database");
            let ours = format!("{ratio:.2}");
            claims.push(holds(&id, &text, "> 1", ours, "> 1", ratio > 1.0).because(why));
        }
    }
    let modes = ["a", "5", "m"].map(|mode| of(&format!("SQLite, {mode}"), "Wp"));
    let so = modes[0] < modes[1] && modes[1] < modes[2];
    let ours = modes.map(number).join(", ");
    let text = "Wp: a database is the faster the fewer commits: each, each fifth, once";
    claims.push(holds("I11 commits", text, "", ours, "each above the one before", so));
    let first = |name: &str| {
        let found = space.iter().find(|(store, _)| store == name);
        found.and_then(|(_, curve)| curve.first()).map_or(f64::NAN, |p| p.1)
    };
    let (table, files) = (first("HTOD"), first("files"));
    let text = "space after the first run: HTOD takes less than files (MB)";
    let ours = format!("{} against {}", number(table), number(files));
    claims.push(holds("I11 space", text, "less", ours, "less", table < files));
    claims
}

fn panels(board: &Board, space: &[(String, Vec<(f64, f64)>)]) -> Vec<Panel> {
    let ticks = |names: &[&str]| {
        names.iter().enumerate().map(|(i, n)| (i as f64, (*n).to_owned())).collect::<Vec<_>>()
    };
    let bar = |store: &str, phases: &[&str]| {
        let value = |(i, phase): (usize, &&str)| (i as f64, board.median(store, phase));
        series(store, phases.iter().enumerate().map(value).collect())
    };
    let panel = |id: &str, title: &str, phases: &[&str], stores: &[&str]| {
        let mut x = axis_of("test", Scale::Ordinal);
        x.ticks = ticks(phases);
        let y = axis_of("items per second", Scale::Log10);
        bars(id, title, x, y, stores.iter().map(|s| bar(s, phases)).collect())
    };
    let curves = space.iter().map(|(store, curve)| series(store, curve.clone())).collect();
    let runs = axis("writes of all items");
    vec![
        panel("fig-9", "All tests", &PHASES, &["HTOD", "files", "SQLite, 5", "Holdall, 5"]),
        panel("fig-10", "The table beside files", &["Wp", "Wn", "R"], &["HTOD", "files"]),
        panel(
            "fig-11",
            "Commits: each update (a), each fifth, once (m)",
            &["Wp", "Wn"],
            &["SQLite, a", "SQLite, 5", "SQLite, m", "Holdall, a", "Holdall, 5", "Holdall, m"],
        ),
        lines("fig-12", "Space", runs, axis("MB on disk"), curves),
    ]
}

/// The experiment.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let (n, durable_n) = if settings.quick { (400, 10) } else { (27_800, 1000) };
    let items = Items::new(n, settings.seed);
    let mut board = Board::default();
    let mut space: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for turn in 0..settings.repetitions {
        for mode in MODES {
            let mut curve = Vec::new();
            let first = turn == 0 && ["HTOD", "files", "SQLite, 5", "Holdall, 5"].contains(&mode.2);
            one(settings, &items, mode, &mut board, first.then_some(&mut curve))?;
            if first {
                space.push((mode.2.to_owned(), curve));
            }
        }
        (settings.progress)(u64::from(turn) + 1, u64::from(settings.repetitions) + 1);
    }
    let mut synced = Board::default();
    durable(settings, &Items::new(durable_n, settings.seed), &mut synced)?;
    let head = ["store", "Wp", "Wn", "R", "Ik", "Iv", "Ie", "MB after Wp"];
    let mut phases = PHASES.to_vec();
    phases.push("MB on disk");
    let title = "Items per second, median (least–most); no store waits for the device";
    let tables = vec![
        table("items", title, &head, board.rows(&phases)),
        table(
            "durable",
            &format!("Items per second where each commit is durable; {durable_n} items, once"),
            &["store", "Wp", "Wn"],
            synced.rows(&["Wp", "Wn"]),
        ),
    ];
    let notes = vec![
        format!(
            "{n} items of web objects: sizes from α = 1, C = 2^10 grains (mean 3.6 KB), names as \
             of fragments. Wp writes to an empty store, Wn writes every item once more, R reads \
             each by name; Ik, Iv and Ie look through keys, values and both. Table and files \
             commit after each write. {} repetitions, stores in turns.",
            settings.repetitions
        ),
        "No store waits for the device in the first table: SQLite 3 with a write-ahead log and \
         synchronous OFF, Holdall with deferred commits. The paper's databases ran as servers; \
         SQLite runs in the process."
            .to_owned(),
    ];
    let claims = claims(&board, &space);
    let outcome = Outcome { panels: panels(&board, &space), tables, claims, notes };
    Ok(finish(outcome, settings.quick))
}
