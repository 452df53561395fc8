//! One table of figures as Markdown.
//!
//! Owns: its form. Above it stand commit, date, rounds and machine of the runs it is from.

use super::block::Item;
use super::run::{Line, Row, Run, Workload};
use anyhow::{Result, ensure};
use std::fmt::Write as _;

/// A row with what a document calls it.
struct Shown<'a> {
    label: String,
    row: &'a Row,
}

/// The table of `items`, each from the newest run that has it, with an empty line around it.
///
/// # Errors
/// An item that no run has.
pub fn of(items: &[Item<'_>], runs: &[Run]) -> Result<String> {
    let (mut shown, mut from, mut disturbed) = (Vec::new(), Vec::new(), false);
    for item in items {
        let found =
            runs.iter().find_map(|run| Some((run, rows(item, run.workload(item.workload)?)?)));
        let Item { workload, row, .. } = item;
        let sep = if row.is_empty() { "" } else { "/" };
        ensure!(found.is_some(), "no kept run has {workload}{sep}{row}");
        let Some((run, (of, rows))) = found else { continue };
        let mark = if of.is_disturbed() { " †" } else { "" };
        disturbed |= of.is_disturbed();
        for row in rows {
            let label = item.label.map_or_else(|| named(item.workload, &row.row), str::to_owned);
            shown.push(Shown { label: format!("{label}, {}{mark}", row.unit), row });
        }
        let origin = run.origin();
        if !from.contains(&origin) {
            from.push(origin);
        }
    }
    let mut out = format!("\n{}", from.join(" "));
    if disturbed {
        out.push_str(" † Other work disturbed the machine.");
    }
    out.push_str("\n\n");
    out.push_str(&markdown(&shown));
    out.push('\n');
    Ok(out)
}

/// A row's name with that of its workload, if that is one of W1 to W10 and is not in it already.
fn named(workload: &str, row: &str) -> String {
    let number = workload.strip_prefix('w').is_some_and(|n| n.parse::<u8>().is_ok());
    if number && !row.starts_with('W') {
        format!("{} {row}", workload.to_uppercase())
    } else {
        row.to_owned()
    }
}

/// The rows that an item asks for: all, or the last whose name begins so.
fn rows<'a>(item: &Item<'_>, of: &'a Workload) -> Option<(&'a Workload, Vec<&'a Row>)> {
    let ours = |row: &&Row| row.stores.iter().any(|l| l.ours().is_some());
    let mut all = of.rows.iter().filter(ours);
    let rows: Vec<&Row> = if item.row.is_empty() {
        all.collect()
    } else {
        all.rfind(|row| row.row.starts_with(item.row)).into_iter().collect()
    };
    (!rows.is_empty()).then_some((of, rows))
}

fn markdown(shown: &[Shown<'_>]) -> String {
    let mut adapters: Vec<&str> = Vec::new();
    for line in shown.iter().flat_map(|s| &s.row.stores) {
        if let Some(adapter) = line.ours().filter(|a| !adapters.contains(a)) {
            adapters.push(adapter);
        }
    }
    let disk = |line: &Line| line.disk_per_logical.map(|d| d.median);
    let space = shown.iter().any(|s| s.row.stores.iter().any(|l| disk(l).is_some()));
    let mut out = format!("| | Holdall {} | best other | ratio |", adapters.join(" / "));
    out.push_str(if space { " disk ÷ logical; other |\n" } else { "\n" });
    out.push_str(if space { "|---|---|---|---|---|\n" } else { "|---|---|---|---|\n" });
    for Shown { label, row } in shown {
        let ours = |of: &dyn Fn(&Line) -> Option<f64>| {
            let one = |adapter: &&str| {
                let line = row.stores.iter().find(|l| l.ours() == Some(adapter));
                line.and_then(of).map_or_else(|| "–".to_owned(), number)
            };
            let all: Vec<String> = adapters.iter().map(one).collect();
            if all.iter().all(|one| one == "–") { String::new() } else { all.join(" / ") }
        };
        let peer = row.best_peer();
        let best = peer.map(|p| format!("{} {}", p.store, number(p.value.median)));
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "| {label} | {} | {} | {} |",
            ours(&|l| Some(l.value.median)),
            best.unwrap_or_default(),
            ours(&|l| l.ratio(row.less_is_better))
        );
        if space {
            let other = peer.and_then(disk).map(|d| format!("; {}", number(d)));
            let _ = write!(out, " {}{} |", ours(&disk), other.unwrap_or_default());
        }
        out.push('\n');
    }
    out.replace("Holdall  |", "Holdall |")
}

/// Three significant digits, whole numbers with commas between thousands.
fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() || size == 0.0 {
        return format!("{value}");
    }
    // The value is finite and not zero, so the magnitude is small.
    let magnitude = size.log10().floor() as i32;
    let decimals = usize::try_from(2 - magnitude).unwrap_or(0);
    let step = 10_f64.powi((magnitude - 2).max(0));
    let text = format!("{:.decimals$}", (value / step).round() * step);
    let text = if decimals > 0 { format!("{value:.decimals$}") } else { text };
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let rest = rest.trim_end_matches('0').trim_end_matches('.');
    grouped + rest
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_three_digits() {
        let cases = [
            (0.821_6, "0.822"),
            (1.0, "1"),
            (12.34, "12.3"),
            (999.6, "1,000"),
            (3_180.0, "3,180"),
            (1_157_432.0, "1,160,000"),
            (0.004_567, "0.00457"),
            (0.0, "0"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }
}
