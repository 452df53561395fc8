//! What the turns of two builds say of each row, for people and for programs.
//!
//! Owns: [`Comparison`] and its tables.

use super::{Interval, LOSS, Pattern, Reading, Verdict};
use crate::picture::number::plain as number;
use crate::spread::Spread;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// One row of one store, as both builds did it.
#[derive(Debug, Clone)]
pub struct Row {
    /// `w2`.
    pub workload: String,
    /// `8 threads`.
    pub row: String,
    /// `Holdall by OID`.
    pub store: String,
    /// What values count, as the builds say.
    pub unit: String,
    /// Whether a smaller value is better.
    pub less_is_better: bool,
    /// The old build's values, pair by pair.
    pub old: Vec<f64>,
    /// The new build's.
    pub new: Vec<f64>,
}

impl Row {
    /// How many times as fast the new build is, pair by pair. Times are turned over.
    #[must_use]
    pub fn ratios(&self) -> Vec<f64> {
        let both = self.old.iter().zip(&self.new);
        both.map(|(old, new)| if self.less_is_better { old / new } else { new / old }).collect()
    }

    /// `w2/8 threads/Holdall by OID`: what asks for this row.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}/{}", self.workload, self.row, self.store)
    }
}

/// All rows of two builds.
#[derive(Debug, Default)]
pub struct Comparison {
    patterns: Vec<Pattern>,
    rows: Vec<Row>,
    /// Rows of one build alone, and all that were asked for in vain.
    alone: Vec<String>,
    /// Rows that the builds have and nobody asked for: what an error names.
    others: Vec<String>,
}

impl Comparison {
    pub(super) fn new(patterns: &[Pattern]) -> Self {
        Self { patterns: patterns.to_vec(), ..Self::default() }
    }

    /// Adds what both builds read in one pair of turns.
    pub(super) fn add(
        &mut self,
        workload: &str,
        store: &str,
        [old, new]: [&[Reading]; 2],
    ) -> Result<()> {
        for (reading, build) in old.iter().map(|r| (r, "old")).chain(new.iter().map(|r| (r, "new")))
        {
            let name = format!("{workload}/{}/{store}", reading.row);
            let other = if build == "old" { new } else { old };
            let asked = self.patterns.iter().any(|p| p.takes(workload, &reading.row, store));
            let list = match other.iter().any(|r| r.row == reading.row) {
                _ if !asked => &mut self.others,
                false => &mut self.alone,
                true => continue,
            };
            let name = if asked { format!("{name} (the {build} build alone)") } else { name };
            if !list.contains(&name) {
                list.push(name);
            }
        }
        for reading in old {
            let asked = self.patterns.iter().any(|p| p.takes(workload, &reading.row, store));
            let Some(other) = new.iter().find(|r| r.row == reading.row && asked) else { continue };
            ensure!(
                other.unit == reading.unit,
                "{workload}/{}: the old build counts {}, the new one {}",
                reading.row,
                reading.unit,
                other.unit
            );
            let row = self.row(workload, store, reading);
            row.old.push(reading.value);
            row.new.push(other.value);
        }
        Ok(())
    }

    fn row(&mut self, workload: &str, store: &str, reading: &Reading) -> &mut Row {
        let is = |r: &Row| r.workload == workload && r.store == store && r.row == reading.row;
        let at = self.rows.iter().position(is).unwrap_or_else(|| {
            self.rows.push(Row {
                workload: workload.to_owned(),
                row: reading.row.clone(),
                store: store.to_owned(),
                unit: reading.unit.clone(),
                less_is_better: reading.less_is_better,
                old: Vec::new(),
                new: Vec::new(),
            });
            self.rows.len() - 1
        });
        &mut self.rows[at]
    }

    /// Whether each pattern has a row to judge.
    pub(super) fn check(&self) -> Result<()> {
        for pattern in &self.patterns {
            let has = |r: &Row| pattern.takes(&r.workload, &r.row, &r.store);
            let there = || self.others.iter().chain(&self.alone).cloned().collect::<Vec<_>>();
            ensure!(
                self.rows.iter().any(has),
                "no row of both builds is {pattern}; there are {}",
                there().join("; ")
            );
        }
        Ok(())
    }

    /// All rows with what follows for each.
    ///
    /// # Errors
    /// A row that is missing in some pair.
    pub fn judged(&self) -> Result<Vec<(&Row, Interval, Verdict)>> {
        let most = self.rows.iter().map(|r| r.old.len()).max().unwrap_or(0);
        let judge = |row: &'_ Row| {
            ensure!(row.old.len() == most, "{} is missing in a pair", row.name());
            let interval = Interval::of(&row.ratios());
            let interval = interval.with_context(|| format!("{} has too few pairs", row.name()))?;
            Ok((interval, interval.verdict()))
        };
        self.rows.iter().map(|row| judge(row).map(|(i, v)| (row, i, v))).collect()
    }

    /// A table, and what was found in words.
    ///
    /// # Errors
    /// As [`Comparison::judged`].
    pub fn text(&self) -> Result<String> {
        let judged = self.judged()?;
        let mut out = String::from(
            "| row | old | new | new ÷ old, times turned over | 95 % interval | |\n\
             |---|---|---|---|---|---|\n",
        );
        for (row, interval, verdict) in &judged {
            let Interval { median, low, high } = interval;
            let middle = |all: &[f64]| number(Spread::of(all).median);
            let said = match verdict {
                Verdict::Worse => "**worse**",
                Verdict::NotWorse => "not worse",
                Verdict::Better => "better",
                Verdict::NotJudged => "cannot be judged on this machine",
            };
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "| {} | {} | {} | {median:.3} | {low:.3}–{high:.3} | {said} |",
                row.name(),
                middle(&row.old),
                middle(&row.new)
            );
        }
        out.push('\n');
        let named = |wanted: Verdict| {
            let rows = judged.iter().filter(|(_, _, verdict)| *verdict == wanted);
            rows.map(|(row, _, _)| row.name()).collect::<Vec<_>>()
        };
        let loss = (1.0 - LOSS) * 100.0;
        let mut say = |rows: &[String], what: &str| {
            if !rows.is_empty() {
                let _ = writeln!(out, "{what}: {}.", rows.join("; "));
            }
        };
        let worse = named(Verdict::Worse);
        say(&worse, &format!("Worse by more than {loss:.0} %"));
        say(&named(Verdict::NotJudged), "Cannot be judged on this machine");
        say(&self.alone, "Not compared");
        if worse.is_empty() {
            let _ = writeln!(out, "No row that could be judged is worse by {loss:.0} %.");
        }
        Ok(out)
    }

    /// The same for programs.
    ///
    /// # Errors
    /// As [`Comparison::judged`].
    pub fn json(&self) -> Result<Value> {
        let rows = self.judged()?;
        let row = |(row, interval, verdict): &(&Row, Interval, Verdict)| {
            json!({
                "workload": row.workload,
                "row": row.row,
                "store": row.store,
                "unit": row.unit,
                "less_is_better": row.less_is_better,
                "old": Spread::of(&row.old),
                "new": Spread::of(&row.new),
                "ratios": row.ratios(),
                "interval": interval,
                "verdict": verdict,
            })
        };
        let all: Vec<Value> = rows.iter().map(row).collect();
        let worse = rows.iter().any(|(_, _, verdict)| *verdict == Verdict::Worse);
        Ok(json!({ "worse": worse, "rows": all, "not_compared": self.alone }))
    }
}
