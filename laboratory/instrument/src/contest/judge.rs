//! Medians, ratios and whether goals are met.
//!
//! Invariant: a ratio is taken within each round and only then the median of it, so that
//! what slows the whole machine for a while cancels out.

use super::{BARE, Outcome};
use super::{Figure, Unit};
use super::{Goal, Than, What, is_ours};
use crate::spread::Spread;

/// One store in one row.
#[derive(Debug, Clone)]
pub struct Line {
    /// The store.
    pub store: &'static str,
    /// The main figure.
    pub value: Spread,
    /// Microseconds: median, 99th percentile and greatest, each the median of the rounds.
    pub latency: Option<[f64; 3]>,
    /// Bytes on disk ÷ logical bytes.
    pub disk: Option<Spread>,
    /// Bytes at the device ÷ logical bytes written.
    pub device: Option<Spread>,
    /// Most bytes of memory.
    pub memory: Option<Spread>,
    /// The main figure ÷ that of the round's best peer.
    pub to_best: Option<Spread>,
    /// The main figure ÷ the bare machine's.
    pub to_bare: Option<Spread>,
    /// What a reader must know of it, each once.
    pub notes: Vec<String>,
}

/// One row with all its stores.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What the main figure counts.
    pub unit: Unit,
    /// The stores that have it, in order.
    pub lines: Vec<Line>,
}

/// What became of a goal.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The goal.
    pub goal: Goal,
    /// The figure or ratio it is about; none if who it is set against was not there.
    pub got: Option<Spread>,
}

impl Verdict {
    /// Whether it is met, if that is known.
    pub fn met(&self) -> Option<bool> {
        self.got.as_ref().map(|s| self.goal.bound.met(s.median))
    }
}

fn stats(values: impl Iterator<Item = f64>) -> Option<Spread> {
    let all: Vec<f64> = values.collect();
    (!all.is_empty()).then(|| Spread::of(&all))
}

fn part(figure: &Figure, what: What) -> Option<f64> {
    match what {
        What::Value => Some(figure.value),
        What::P50 => figure.latency.as_ref().map(|l| l.p50),
        What::P99 => figure.latency.as_ref().map(|l| l.p99),
        What::Disk => figure.disk,
    }
}

fn begins(store: &str, names: &[&str]) -> bool {
    names.iter().any(|name| store.starts_with(name))
}

impl Outcome {
    fn rounds(&self) -> usize {
        self.cells.iter().map(Vec::len).max().unwrap_or(0)
    }

    fn figure(&self, store: &str, round: usize, row: &str) -> Option<&Figure> {
        let i = self.stores.iter().position(|s| *s == store)?;
        self.cells[i].get(round)?.figures.iter().find(|f| f.row == row)
    }

    /// The figures of a store's row, round by round.
    pub(super) fn of<'a>(
        &'a self,
        store: &'a str,
        row: &'a str,
    ) -> impl Iterator<Item = &'a Figure> + 'a {
        (0..self.rounds()).filter_map(move |round| self.figure(store, round, row))
    }

    /// The best figure of a round among the peers that `takes` names.
    fn best(
        &self,
        round: usize,
        row: &str,
        what: What,
        takes: impl Fn(&str) -> bool,
    ) -> Option<f64> {
        let peer = |s: &&&str| **s != BARE && !is_ours(s) && takes(s);
        let figures = self.stores.iter().filter(peer);
        let figures = figures.filter_map(|s| self.figure(s, round, row));
        let all = figures.filter_map(|f| Some((part(f, what)?, f.unit.less_is_better())));
        all.reduce(|(a, less), (b, _)| {
            let less_is_better = less || what != What::Value;
            (if less_is_better { a.min(b) } else { a.max(b) }, less)
        })
        .map(|(best, _)| best)
    }

    fn other(&self, goal: &Goal, round: usize) -> Option<f64> {
        let Goal { row, what, .. } = goal;
        match &goal.than {
            Than::Nothing => Some(1.0),
            Than::Best([]) => self.best(round, row, *what, |_| true),
            Than::Best(names) => self.best(round, row, *what, |s| begins(s, names)),
            Than::BestBut(names) => self.best(round, row, *what, |s| !begins(s, names)),
            Than::Bare => part(self.figure(BARE, round, row)?, *what),
            Than::Own(row) => part(self.figure(goal.who, round, row)?, *what),
        }
    }
}

/// All rows, in the order of the store that has most of them.
pub fn rows(outcome: &Outcome) -> Vec<Row> {
    let mut names: Vec<(&str, Unit)> = Vec::new();
    let mut cells: Vec<_> = outcome.cells.iter().flatten().collect();
    cells.sort_by_key(|c| std::cmp::Reverse(c.figures.len()));
    for figure in cells.iter().flat_map(|c| &c.figures) {
        if !names.iter().any(|(name, _)| *name == figure.row) {
            names.push((&figure.row, figure.unit));
        }
    }
    let row = |(name, unit): (&str, Unit)| {
        let lines = outcome.stores.iter().filter_map(|s| line(outcome, s, name)).collect();
        Row { name: name.into(), unit, lines }
    };
    names.into_iter().map(row).collect()
}

fn line(outcome: &Outcome, store: &'static str, row: &str) -> Option<Line> {
    let of = || outcome.of(store, row);
    let ratio = |other: &dyn Fn(usize) -> Option<f64>| {
        stats(
            (0..outcome.rounds())
                .filter_map(|round| Some(outcome.figure(store, round, row)?.value / other(round)?)),
        )
    };
    let latency = |pick: fn(&super::Latency) -> f64| {
        stats(of().filter_map(|f| f.latency.as_ref().map(pick))).map(|s| s.median)
    };
    let mut notes: Vec<String> = of().filter_map(|f| f.note.clone()).collect();
    notes.sort_unstable();
    notes.dedup();
    let latency = latency(|l| l.p50).zip(latency(|l| l.p99)).zip(latency(|l| l.max));
    Some(Line {
        store,
        value: stats(of().map(|f| f.value))?,
        latency: latency.map(|((p50, p99), max)| [p50, p99, max]),
        disk: stats(of().filter_map(|f| f.disk)),
        device: stats(of().filter_map(|f| f.device)),
        memory: stats(of().filter_map(|f| f.memory.map(|m| m as f64))),
        to_best: ratio(&|round| outcome.best(round, row, What::Value, |_| true)),
        to_bare: ratio(&|round| outcome.figure(BARE, round, row).map(|f| f.value)),
        notes,
    })
}

/// What became of the workload's goals that are set to stores of the run.
pub fn verdicts(outcome: &Outcome) -> Vec<Verdict> {
    let goals = outcome.goals.iter().cloned();
    let ours = goals.filter(|g| outcome.of(g.who, &g.row).next().is_some());
    let judge = |goal: Goal| {
        let ratio = |round| {
            let own = part(outcome.figure(goal.who, round, &goal.row)?, goal.what)?;
            Some(own / outcome.other(&goal, round)?)
        };
        let got = stats((0..outcome.rounds()).filter_map(ratio));
        Verdict { goal, got }
    };
    ours.map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::{Bound, Cell};

    fn outcome() -> Outcome {
        let cell = |row: &str, unit, value| Cell {
            figures: vec![Figure::new(row, unit, value)],
            error: None,
        };
        let unit = Unit::PerSecond;
        let of = |values: [f64; 2]| values.map(|v| cell("ordered keys", unit, v)).into();
        Outcome {
            id: "w1",
            title: "a load".into(),
            remark: "",
            plots: Vec::new(),
            goals: vec![
                Goal::new(
                    "Holdall by name",
                    "ordered keys",
                    Than::Best(&["LMDB"]),
                    Bound::AtLeast(0.8),
                ),
                Goal::new("Holdall by OID", "ordered keys", Than::Best(&[]), Bound::AtLeast(1.0)),
                Goal::new("Holdall by name", "random keys", Than::Best(&[]), Bound::AtLeast(2.0)),
            ],
            stores: vec!["Holdall by name", "LMDB", "files", BARE],
            cells: vec![of([8.0, 40.0]), of([10.0, 5.0]), of([4.0, 20.0]), of([16.0, 80.0])],
            attempts: Vec::new(),
            whole: true,
        }
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        let rows = rows(&outcome());
        let [row] = &rows[..] else { panic!("one row") };
        assert_eq!(row.lines.len(), 4);
        let best = row.lines[0].to_best.as_ref().unwrap();
        assert_eq!((best.least, best.most), (0.8, 2.0), "of round 1 by LMDB, of round 2 by files");
        let bare = row.lines[0].to_bare.as_ref().unwrap();
        assert_eq!((bare.least, bare.most), (0.5, 0.5));
    }

    #[test]
    fn goals_know_whom_they_are_set_against() {
        let outcome = outcome();
        let got = |than| {
            let goal = Goal::new("Holdall by name", "ordered keys", than, Bound::AtLeast(1.0));
            outcome.other(&goal, 1)
        };
        assert_eq!(got(Than::Best(&[])), Some(20.0));
        assert_eq!(got(Than::Best(&["LMDB"])), Some(5.0));
        assert_eq!(got(Than::BestBut(&["files"])), Some(5.0));
        assert_eq!(got(Than::Best(&["redb"])), None);
        assert_eq!(got(Than::Bare), Some(80.0));
        assert_eq!(got(Than::Own("ordered keys".into())), Some(40.0));
        // Of the goals one is set to a store and a row of the run: 0.8 and 8 to one.
        let verdicts = verdicts(&outcome);
        assert_eq!(verdicts.len(), 1);
        assert_eq!(verdicts[0].met(), Some(true));
    }

    #[test]
    fn where_less_is_better_the_least_is_best() {
        let mut outcome = outcome();
        for figure in outcome.cells.iter_mut().flatten().flat_map(|c| &mut c.figures) {
            figure.unit = Unit::Ms;
        }
        assert_eq!(outcome.best(0, "ordered keys", What::Value, |_| true), Some(4.0));
    }
}
