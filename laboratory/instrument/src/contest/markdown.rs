//! Results as Markdown, for people.

use super::{BARE, Line, Outcome, Row, Than, Verdict, What, rows, verdicts};
use crate::picture::number::plain as number;
use crate::spread::Spread;
use std::fmt::Write;

/// The workload's tables: one for each row, then its goals.
pub fn tables(outcome: &Outcome) -> String {
    let (id, title) = (outcome.id.to_uppercase(), &outcome.title);
    let mut out = format!("## {id}: {title}\n\n{}\n\n", outcome.remark);
    quiet(&mut out, outcome);
    for row in rows(outcome) {
        table(&mut out, &row);
    }
    goals(&mut out, &verdicts(outcome));
    // Writing to a string cannot fail.
    for (store, error) in outcome.errors() {
        let _ = writeln!(out, "**{store}** did not finish: {error}\n");
    }
    out
}

/// Which rounds ran on a quiet machine. Nothing if none was probed: the head says that.
fn quiet(out: &mut String, outcome: &Outcome) {
    let all = &outcome.attempts;
    if all.iter().all(|a| a.quiet().is_none()) {
        return;
    }
    for (i, attempts) in all.iter().enumerate() {
        let round = i + 1;
        // Writing to a string cannot fail.
        let _ = match (attempts.quiet(), attempts.0.last()) {
            (Some(false), Some(last)) => writeln!(
                out,
                "**Disturbed: round {round}** of {}. In all {} attempts the probes before and \
                 after differ by more than 10 %; around the last one: {last}.\n",
                all.len(),
                attempts.0.len(),
            ),
            (None, _) => writeln!(out, "Round {round} was not probed.\n"),
            _ => Ok(()),
        };
    }
    if all.iter().all(|a| a.quiet() == Some(true)) {
        out.push_str("The machine was quiet: the probes around each round agree within 10 %");
        let again: usize = all.iter().map(|a| a.0.len() - 1).sum();
        let _ = match again {
            0 => writeln!(out, ".\n"),
            1 => writeln!(out, ", after one attempt that does not count.\n"),
            _ => writeln!(out, ", after {again} attempts that do not count.\n"),
        };
    }
}

/// Which line is the best by a figure, the bare machine left out; none if it is alone.
fn best(row: &Row, less: bool, of: impl Fn(&Line) -> Option<f64>) -> Option<f64> {
    let all: Vec<f64> = row.lines.iter().filter(|l| l.store != BARE).filter_map(of).collect();
    let pick = |a: f64, b: f64| if less { a.min(b) } else { a.max(b) };
    (all.len() > 1).then(|| all.into_iter().reduce(pick)).flatten()
}

fn table(out: &mut String, row: &Row) {
    let memory = |l: &Line| l.memory.map(|m| m.median / f64::from(1 << 20));
    let disk = |l: &Line| l.disk.map(|d| d.median);
    let device = |l: &Line| l.device.map(|d| d.median);
    let less = row.unit.less_is_better();
    let bests = [
        best(row, less, |l| Some(l.value.median)),
        best(row, true, |l| l.latency.map(|l| l[0])),
        best(row, true, |l| l.latency.map(|l| l[1])),
        best(row, true, |l| l.latency.map(|l| l[2])),
        best(row, true, disk),
        best(row, true, device),
        best(row, true, memory),
    ];
    let _ = write!(
        out,
        "### {}\n\n| store | {} | p50 µs | p99 µs | max µs | disk ÷ logical | device ÷ logical \
         | memory MiB | ÷ best peer | ÷ bare |\n|---|---|---|---|---|---|---|---|---|---|\n",
        row.name,
        row.unit.text()
    );
    for line in &row.lines {
        let latency = |i: usize| line.latency.map(|l| l[i]);
        let figures = [
            Some(line.value.median),
            latency(0),
            latency(1),
            latency(2),
            disk(line),
            device(line),
            memory(line),
        ];
        let _ = write!(out, "| {} |", line.store);
        for (i, (figure, best)) in figures.into_iter().zip(bests).enumerate() {
            let text = match figure {
                Some(_) if i == 0 => line.value.to_string(),
                Some(figure) => number(figure),
                None => String::new(),
            };
            let bold = line.store != BARE && figure.is_some() && figure == best;
            let _ = if bold { write!(out, " **{text}** |") } else { write!(out, " {text} |") };
        }
        let ratio = |s: &Option<Spread>| s.as_ref().map_or_else(String::new, ToString::to_string);
        let _ = writeln!(out, " {} | {} |", ratio(&line.to_best), ratio(&line.to_bare));
    }
    out.push('\n');
    for line in row.lines.iter().filter(|line| !line.notes.is_empty()) {
        let _ = writeln!(out, "{}: {}.\n", line.store, line.notes.join("; "));
    }
}

fn goals(out: &mut String, verdicts: &[Verdict]) {
    if verdicts.is_empty() {
        return;
    }
    out.push_str("| goal of | row | figure | goal | got | |\n|---|---|---|---|---|---|\n");
    for verdict in verdicts {
        let goal = &verdict.goal;
        let got = verdict.got.as_ref().map_or_else(|| "–".into(), ToString::to_string);
        let met = match verdict.met() {
            Some(true) => "met",
            Some(false) => "**not met**",
            None => "not measured",
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {got} | {met} |",
            goal.who,
            goal.row,
            what(goal.what, &goal.than),
            goal.bound.text()
        );
    }
    out.push('\n');
}

/// What a goal is about, in words.
pub(super) fn what(what: What, than: &Than) -> String {
    let what = match what {
        What::Value => "figure",
        What::P50 => "p50",
        What::P99 => "p99",
        What::Disk => "disk ÷ logical",
    };
    match than {
        Than::Nothing => what.into(),
        Than::Best([]) => format!("{what} ÷ best peer's"),
        Than::Best(names) => format!("{what} ÷ that of {}", names.join(", ")),
        Than::BestBut(names) => format!("{what} ÷ best peer's but {}", names.join(", ")),
        Than::Bare => format!("{what} ÷ bare"),
        Than::Own(row) => format!("{what} ÷ own \"{row}\""),
    }
}
