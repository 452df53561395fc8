//! Figures 9 to 12: the hash table beside files and a database, on web objects (Iyengar §3.1);
//! the first three timed, the last one space alone. Owns no state.

use super::timed::{Board, Device, write_out};
use crate::allocation::peers::{Kind, Look, Peer, disk_used};
use crate::allocation::workload::Pareto;
use crate::kit::claims;
use anyhow::{Result, ensure};
use holdall_instrument::draw::{axis, axis_of, bars, lines, number, percent, series, table};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_instrument::picture::{Panel, Scale};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::fmt::Display;

const PHASES: [&str; 6] = ["Wp", "Wn", "R", "Ik", "Iv", "Ie"];
const SPACE: &str = "MB after Wp";
/// Discards of the device while an item was written anew, and milliseconds of them.
const DISCARDS: [&str; 2] = ["discards in Wn, each", "ms of them"];

/// A store, after how many updates it commits (0 for once), and its name.
type Mode = (Kind, usize, &'static str);
const MODES: [Mode; 8] = [
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

/// One store through all tests; kept as a part, as it takes minutes.
fn one(
    settings: &Settings<'_>,
    items: &Items,
    (kind, every, name): Mode,
    turn: u32,
) -> Result<Board> {
    let n = items.keys.len();
    let part = format!("iyengar web {name} {n} turn={turn} seed={}", settings.seed);
    if let Some(kept) = settings.parts.load(&part).and_then(|t| serde_json::from_str(&t).ok()) {
        return Ok(kept);
    }
    let mut all = Board::default();
    let scratch = settings.scratch()?;
    let mut peer = kind.open(scratch.path(), false)?;
    all.time(name, "Wp", n, || items.write(&mut *peer, every, 0))?;
    all.add(name, SPACE, disk_used(scratch.path())? as f64 / 1e6);
    write_out(scratch.path());
    let before = Device::of(scratch.path());
    all.time(name, "Wn", n, || items.write(&mut *peer, every, 1))?;
    let after = Device::of(scratch.path());
    all.add(name, DISCARDS[0], (after.discards - before.discards) / n as f64);
    all.add(name, DISCARDS[1], (after.discard_ms - before.discard_ms) / n as f64);
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
    settings.parts.save(&part, &serde_json::to_string(&all)?)?;
    Ok(all)
}

/// The same writes if each commit must survive a power cut.
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

fn claims(board: &Board, synced: &Board) -> Vec<Claim> {
    let of = |store: &str, phase: &str| board.median(store, phase);
    let above = |id: &str, words: &[&dyn Display], [one, other]: [&str; 2], phase: &str| {
        let (one, other) = (of(one, phase), of(other, phase));
        let ours = format!("{:.2}", one / other);
        claims::says(id, words, ours, one > other).because(format!(
            "Medians: {} and {} items a second, {} and {} µs each. ",
            number(one),
            number(other),
            number(1e6 / one),
            number(1e6 / other)
        ))
    };
    let mut claims = Vec::new();
    for phase in PHASES {
        let claim = above("I11 {0}", &[&phase], ["HTOD", "files"], phase);
        claims.push(match phase {
            "Wn" => Claim { paper: "< 1".into(), tolerance: String::new(), ..claim.as_note() }
                .remark(format!(
                    "A file written anew takes {} µs, with {} discards that took the device {} \
                     ms; an item of HTOD {} µs, with {}.",
                    number(1e6 / of("files", phase)),
                    number(of("files", DISCARDS[0])),
                    number(of("files", DISCARDS[1])),
                    number(1e6 / of("HTOD", phase)),
                    number(of("HTOD", DISCARDS[0]))
                )),
            "Ik" => Claim { paper: "< 1".into(), tolerance: String::new(), ..claim.as_note() },
            _ => claim,
        });
    }
    for phase in ["Wp", "Wn"] {
        for other in ["HTOD", "files"] {
            let name = "I11 {0} {1}, database";
            let claim = above(name, &[&phase, &other], [other, "SQLite, 5"], phase);
            let why = format!(
                "{}SQLite runs in this process and does not wait for the device; five updates \
                 share a commit. Discards of the device for an item of files in Wn: {}.",
                claim.explanation,
                number(of("files", DISCARDS[0]))
            );
            claims.push(claim.because(why));
        }
    }
    let modes = ["a", "5", "m"].map(|mode| of(&format!("SQLite, {mode}"), "Wp"));
    let so = modes[0] < modes[1] && modes[1] < modes[2];
    let ours = modes.map(number).join(", ");
    let claim = claims::says("I11 commits", &[], ours, so);
    let [fifth, once] = ["5", "m"].map(|mode| number(of(&format!("SQLite, {mode}"), SPACE)));
    let durable =
        ["a", "5", "m"].map(|mode| number(synced.median(&format!("SQLite, {mode}"), "Wp")));
    claims.push(claim.because(format!(
        "no commit waits for the device here, and the log of a single one holds everything: {once} \
         MB are on disk behind it, {fifth} MB with a commit for each fifth. Where commits are \
         durable it is {}",
        durable.join(", ")
    )));
    claims
}

fn panels(board: &Board) -> Vec<Panel> {
    let bar = |store: &str, phases: &[&str]| {
        let value = |(i, phase): (usize, &&str)| (i as f64, board.median(store, phase));
        series(store, phases.iter().enumerate().map(value).collect())
    };
    let panel = |id: &str, title: &str, phases: &[&str], stores: &[&str]| {
        let mut x = axis_of("test", Scale::Ordinal);
        x.ticks = phases.iter().enumerate().map(|(i, n)| (i as f64, (*n).to_owned())).collect();
        let y = axis_of("items per second", Scale::Log10);
        bars(id, title, x, y, stores.iter().map(|s| bar(s, phases)).collect())
    };
    vec![
        panel("fig-9", "All tests", &PHASES, &["HTOD", "files", "SQLite, 5", "Holdall, 5"]),
        panel("fig-10", "The table beside files", &["Wp", "Wn", "R"], &["HTOD", "files"]),
        panel(
            "fig-11",
            "Commits: each update (a), each fifth, once (m)",
            &["Wp", "Wn"],
            &["SQLite, a", "SQLite, 5", "SQLite, m", "Holdall, a", "Holdall, 5", "Holdall, m"],
        ),
    ]
}

/// Figures 9 to 11.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let (n, durable_n) = if settings.quick { (400, 10) } else { (27_800, 1000) };
    let items = Items::new(n, settings.seed);
    let mut board = Board::default();
    for turn in 0..settings.repetitions {
        for mode in MODES {
            board.merge(one(settings, &items, mode, turn)?);
        }
        (settings.progress)(u64::from(turn) + 1, u64::from(settings.repetitions) + 1);
    }
    let mut synced = Board::default();
    durable(settings, &Items::new(durable_n, settings.seed), &mut synced)?;
    let columns = [&PHASES[..], &DISCARDS, &[SPACE]].concat();
    let head = [&["store"], &columns[..]].concat();
    let title = "Items per second, median (least–most); no store waits for the device";
    let durable_title =
        format!("Items per second where each commit is durable; {durable_n} items, once");
    let tables = vec![
        table("items", title, &head, board.rows(&columns)),
        table("durable", &durable_title, &["store", "Wp", "Wn"], synced.rows(&["Wp", "Wn"])),
    ];
    let notes = vec![
        format!(
            "{n} items of web objects: sizes from α = 1, C = 2^10 grains (mean 3.6 KB), names as \
             of fragments. Wp writes to an empty store, Wn writes every item once more, R reads \
             each by name; Ik, Iv and Ie look through keys, values and both. Table and files \
             commit after each write. {} repetitions, stores in turns.",
            settings.repetitions
        ),
        "In the first table nobody waits for the device: table and files sync nothing, SQLite 3 \
         has a write-ahead log and synchronous OFF, Holdall deferred commits. In the second each \
         commit does: the table syncs between the writes of a change and after it, a file is \
         synced and then its directory, SQLite runs with synchronous FULL, Holdall commits at \
         once. The paper's databases ran as servers; SQLite runs in the process."
            .to_owned(),
    ];
    let claims = claims(&board, &synced);
    Ok(Outcome { panels: panels(&board), tables, claims, notes })
}

/// Figure 12: the space after each of several writes of all items.
pub(super) fn space(settings: &Settings<'_>) -> Result<Outcome> {
    let (n, rounds) = if settings.quick { (200, 3) } else { (27_800, 7) };
    let items = Items::new(n, settings.seed);
    let mut rows = Vec::new();
    let mut curves = Vec::new();
    for (kind, every, name) in [MODES[0], MODES[1], MODES[3], MODES[6]] {
        let scratch = settings.scratch()?;
        let mut peer = kind.open(scratch.path(), false)?;
        let mut curve = Vec::new();
        for round in 0..rounds {
            items.write(&mut *peer, every, round)?;
            peer.settle()?;
            curve.push((round as f64 + 1.0, disk_used(scratch.path())? as f64 / 1e6));
        }
        (settings.progress)(rows.len() as u64 + 1, 4);
        let cells = curve.iter().map(|(_, mb)| number(*mb));
        rows.push(std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>());
        curves.push((name, curve));
    }
    let at = |store: usize, round: usize| curves[store].1[round].1;
    let (first, last) = (at(0, 0), at(0, rounds - 1));
    let (before, after) = (at(1, 0), at(1, rounds - 1));
    let mut claims = Vec::new();
    let ours = format!("{} against {}", number(first), number(before));
    claims.push(claims::says("I11 space", &[], ours, first < before));
    let ours = format!("{} to {}", number(before), number(after));
    let same = (after / before - 1.0).abs() <= 0.01;
    claims.push(claims::says("I11 space, files", &[], ours, same));
    let added = last / at(0, rounds - 2) - 1.0;
    let ours = format!("{} to {} MB, {} by the last", number(first), number(last), percent(added));
    claims.push(claims::says("I11 space, steady", &[], ours, added <= 0.01));
    let names = (1..=rounds).map(|round| format!("after {round}"));
    let head: Vec<String> = std::iter::once("store".to_owned()).chain(names).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let tables = vec![table("space", "MB on disk after each write of all items", &head, rows)];
    let lined = curves.into_iter().map(|(name, curve)| series(name, curve)).collect();
    let (x, y) = (axis("writes of all items"), axis("MB on disk"));
    let panels = vec![lines("fig-12", "Space", x, y, lined)];
    let notes = vec![format!("{n} items as in iyengar-9. Nobody waits for the device.")];
    Ok(Outcome { panels, tables, claims, notes })
}
