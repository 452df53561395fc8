//! Figures 9 to 11: the hash table beside files and databases, on web objects (Iyengar §3.1),
//! timed. Owns no state.

use super::ranks;
use super::timed::{Board, Device, write_out};
use crate::allocation::peers::{Kind, Look, Peer, disk_used};
use crate::allocation::workload::Pareto;
use crate::kit::{claims, notes};
use anyhow::{Result, ensure};
use holdall_instrument::draw::{axis_of, bars, number, series, table};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_instrument::picture::{Panel, Scale};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::fmt::Display;

const PHASES: [&str; 6] = ["Wp", "Wn", "R", "Ik", "Iv", "Ie"];
const SPACE: &str = "MB after Wp";
/// Discards of the device for an item, and milliseconds of them: while items were written, and
/// written anew.
const DISCARDS: [[&str; 2]; 2] =
    [["discards in Wp, each", "ms of them in Wp"], ["discards in Wn, each", "ms of them in Wn"]];
const DATABASES: [Kind; 2] = [Kind::Postgres, Kind::Sqlite];

/// A store, after how many updates it commits (0 for once), and its name.
pub(super) type Mode = (Kind, usize, &'static str);
const MODES: [Mode; 11] = [
    (Kind::Table, 1, "HTOD"),
    (Kind::Files, 1, "files"),
    (Kind::Sqlite, 1, "SQLite, a"),
    (Kind::Sqlite, 5, "SQLite, 5"),
    (Kind::Sqlite, 0, "SQLite, m"),
    (Kind::Postgres, 1, "PostgreSQL, a"),
    (Kind::Postgres, 5, "PostgreSQL, 5"),
    (Kind::Postgres, 0, "PostgreSQL, m"),
    (Kind::Holdall, 1, "Holdall, a"),
    (Kind::Holdall, 5, "Holdall, 5"),
    (Kind::Holdall, 0, "Holdall, m"),
];

pub(super) struct Items {
    keys: Vec<String>,
    lens: Vec<usize>,
    bytes: Vec<u8>,
}

impl Items {
    /// Names as of web fragments: shallow and wide. A file system takes no slash in them.
    pub fn new(n: usize, seed: u64) -> Self {
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

    pub fn write(&self, peer: &mut dyn Peer, every: usize, round: usize) -> Result<()> {
        if every == 1 {
            peer.commit_each();
        }
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
fn one(settings: &Settings<'_>, items: &Items, (kind, every, name): Mode) -> Result<Board> {
    let n = items.keys.len();
    let mut all = Board::default();
    let scratch = settings.scratch()?;
    let mut peer = kind.open(scratch.path(), false)?;
    for (round, phase) in [(0, "Wp"), (1, "Wn")] {
        write_out(scratch.path());
        let before = Device::of(scratch.path());
        all.time(name, phase, n, || items.write(&mut *peer, every, round))?;
        let after = Device::of(scratch.path());
        all.add(name, DISCARDS[round][0], (after.discards - before.discards) / n as f64);
        all.add(name, DISCARDS[round][1], (after.discard_ms - before.discard_ms) / n as f64);
        if round == 0 {
            all.add(name, SPACE, disk_used(scratch.path())? as f64 / 1e6);
        }
    }
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
    Ok(all)
}

/// The stores that are here, and why one is missing.
pub(super) fn modes(settings: &Settings<'_>) -> Result<(Vec<Mode>, Option<String>)> {
    let scratch = settings.scratch()?;
    let missing = Kind::Postgres.open(scratch.path(), false).err();
    let here = MODES.into_iter().filter(|m| m.0 != Kind::Postgres || missing.is_none());
    Ok((here.collect(), missing.map(|error| format!("PostgreSQL skipped: {error}."))))
}

/// The same writes if each commit must survive a power cut.
fn durable(settings: &Settings<'_>, items: &Items, modes: &[Mode]) -> Result<Board> {
    let mut all = Board::default();
    for &(kind, every, name) in modes {
        let scratch = settings.scratch()?;
        let mut peer = kind.open(scratch.path(), true)?;
        for (round, phase) in [(0, "Wp"), (1, "Wn")] {
            all.time(name, phase, items.keys.len(), || items.write(&mut *peer, every, round))?;
        }
    }
    Ok(all)
}

fn claims(board: &Board, synced: &Board) -> Vec<Claim> {
    let of = |store: &str, phase: &str| board.median(store, phase);
    let discards = |store: &str, phase: &str| {
        let [each, ms] = DISCARDS[usize::from(phase == "Wn")].map(|name| of(store, name));
        format!("{} discards of {} ms for an item of {store}", number(each), number(ms))
    };
    let beside = |id: &str, words: &[&dyn Display], [one, other]: [&str; 2], phase: &str| {
        let (a, b) = (of(one, phase), of(other, phase));
        // Where the paper's table loses, losing is what holds.
        let loses = other == "files" && matches!(phase, "Wn" | "Ik");
        let so = if loses { a < b } else { a > b };
        claims::says(id, words, format!("{:.2}", a / b), so).because(format!(
            "An item takes {} µs by {one}, {} µs by {other}. {}; {}; after Wp {} blocks of 4 KiB \
             and {}.",
            number(1e6 / a),
            number(1e6 / b),
            discards(one, phase),
            discards(other, phase),
            number(of(one, SPACE) * 1e6 / 4096.0),
            number(of(other, SPACE) * 1e6 / 4096.0)
        ))
    };
    let mut claims: Vec<Claim> =
        PHASES.iter().map(|phase| beside("I11 {0}", &[phase], ["HTOD", "files"], phase)).collect();
    let stores = board.stores();
    for database in DATABASES.map(Kind::name) {
        let [each, fifth, once] = ["a", "5", "m"].map(|mode| format!("{database}, {mode}"));
        if !stores.contains(&fifth.as_str()) {
            continue;
        }
        for phase in PHASES {
            for store in ["HTOD", "files"] {
                let words: [&dyn Display; 3] = [&phase, &store, &database];
                claims.push(beside("I11 {0} {1}, {2}", &words, [store, &fifth], phase));
            }
        }
        // Of commits that are durable, which the paper's are.
        let modes = [&each, &fifth, &once].map(|mode| synced.median(mode, "Wp"));
        let so = modes[0] < modes[1] && modes[1] < modes[2];
        let claim =
            claims::says("I11 commits, {0}", &[&database], modes.map(number).join(", "), so);
        let waiting_for_none = [&each, &fifth, &once].map(|mode| number(of(mode, "Wp")));
        claims.push(claim.remark(format!(
            "If no commit waits for the device: {}; the log of a single one then holds everything, \
             and {} MB are on disk behind it, {} MB with a commit for each fifth",
            waiting_for_none.join(", "),
            number(of(&once, SPACE)),
            number(of(&fifth, SPACE)),
        )));
    }
    claims
}

fn panels(board: &Board) -> Vec<Panel> {
    let here = board.stores();
    let panel = |id: &str, title: &str, phases: &[&str], stores: &[&str]| {
        let bar = |store: &&str| {
            let value = |(i, phase): (usize, &&str)| (i as f64, board.median(store, phase));
            series(*store, phases.iter().enumerate().map(value).collect())
        };
        let y = axis_of("items per second (powers of ten, not from 0)", Scale::Log10);
        let all = stores.iter().filter(|store| here.contains(store)).map(bar).collect();
        bars(id, title, ranks("test", phases), y, all)
    };
    let all = ["HTOD", "files", "PostgreSQL, 5", "SQLite, 5", "Holdall, 5"];
    let commits: Vec<&str> =
        MODES.iter().map(|mode| mode.2).filter(|name| name.contains(',')).collect();
    vec![
        panel("fig-9", "All tests", &PHASES, &all),
        panel("fig-10", "The table beside files", &["Wp", "Wn", "R"], &all[..2]),
        panel("fig-11", "Commits: each update (a), each fifth, once (m)", &["Wp", "Wn"], &commits),
    ]
}

/// Figures 9 to 11.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let (n, durable_n) = if settings.quick { (400, 10) } else { (27_800, 1000) };
    let items = Items::new(n, settings.seed);
    let (modes, missing) = modes(settings)?;
    let mut board = Board::default();
    for turn in 0..settings.repetitions {
        for &mode in &modes {
            // Each takes minutes.
            let part = format!("iyengar web {} {n} turn={turn} seed={}", mode.2, settings.seed);
            board.merge(settings.part(&part, || one(settings, &items, mode))?);
        }
        (settings.progress)(u64::from(turn) + 1, u64::from(settings.repetitions) + 1);
    }
    let synced = durable(settings, &Items::new(durable_n, settings.seed), &modes)?;
    let columns = [&PHASES[..], &DISCARDS.concat(), &[SPACE]].concat();
    let head = [&["store"], &columns[..]].concat();
    let title = "Items per second, median (least–most); no store waits for the device";
    let durable_title =
        format!("Items per second where each commit is durable; {durable_n} items, once");
    let tables = vec![
        table("items", title, &head, board.rows(&columns)),
        table("durable", &durable_title, &["store", "Wp", "Wn"], synced.rows(&["Wp", "Wn"])),
    ];
    let mut notes = notes::of("iyengar-9", &[&n, &settings.repetitions]);
    notes.extend(missing);
    let claims = claims(&board, &synced);
    Ok(Outcome { panels: panels(&board), tables, claims, notes })
}
