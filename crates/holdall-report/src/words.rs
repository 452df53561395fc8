//! Wording and sizes that all forms of the report share.
//!
//! Owns: no state.

use holdall::frag::{Action, Cell, CutObject, FragReport, Remedy, SizeClass};

use crate::name;

/// A count of bytes for people, in powers of 1000.
pub fn bytes(n: u64) -> String {
    scaled(n, 1000, ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// The least size of a class of bytes, a power of two.
pub fn binary(n: u64) -> String {
    scaled(n, 1024, ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

fn scaled(n: u64, step: u64, units: [&str; 7]) -> String {
    let (mut value, mut unit) = (n as f64, units.into_iter());
    let mut name = unit.next().unwrap_or_default();
    // What would be shown as a thousand of one unit is one of the next.
    while value >= step as f64 - 0.05 && n >= step {
        let Some(next) = unit.next() else { break };
        (value, name) = (value / step as f64, next);
    }
    let exact = n < step || (step == 1024 && value.fract() == 0.0);
    if exact { format!("{value:.0} {name}") } else { format!("{value:.1} {name}") }
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A number with its noun: `1 run`, `2 runs`.
pub fn counted(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// What a bar of a histogram shows: label, value, text behind it.
pub type Bar = (String, f64, String);

/// Free runs by size; bars are their bytes.
pub fn free_bars(report: &FragReport) -> Vec<Bar> {
    let bar = |c: &SizeClass| {
        let text = format!("{}, {}", counted(c.count, "run"), bytes(c.bytes));
        (binary(c.least), c.bytes as f64, text)
    };
    report.free_runs.classes.iter().map(bar).collect()
}

/// Objects by pieces; bars are their number.
pub fn piece_bars(report: &FragReport) -> Vec<Bar> {
    let bar = |c: &SizeClass| {
        let last = c.least.saturating_mul(2) - 1;
        let label = if last > c.least { format!("{}–{last}", c.least) } else { "1".to_owned() };
        let text = format!("{}, {}", counted(c.count, "object"), bytes(c.bytes));
        (label, c.count as f64, text)
    };
    report.objects.classes.iter().map(bar).collect()
}

/// A kind of pages on the map: class in the drawing, name, pages of a cell.
pub type Kind = (&'static str, &'static str, fn(&Cell) -> u64);

/// All kinds, in the order in which a cell shows them.
pub const KINDS: [Kind; 6] = [
    ("segment", "large objects", |c| c.segment),
    ("heap", "heap", |c| c.heap),
    ("metadata", "metadata", |c| c.metadata),
    ("waiting", "waiting, reserved", |c| c.waiting),
    ("free", "free", |c| c.free),
    ("hole", "free, without blocks", |c| c.hole),
];

/// The name of a cut object, else its OID.
pub fn name_of(object: &CutObject) -> String {
    object.name.as_deref().map_or_else(|| object.oid.to_string(), name::escape)
}

/// A remedy: what to do, what it brings.
pub fn remedy(remedy: &Remedy) -> (&'static str, String) {
    let gain = bytes(remedy.gain_bytes);
    let cost = bytes(remedy.cost_bytes);
    match remedy.action {
        Action::JoinPieces => {
            let pieces = counted(remedy.gain_pieces, "piece");
            ("holdall defrag", format!("joins {pieces}, writes up to {cost}"))
        }
        Action::EmptyHeapPages => {
            ("holdall defrag", format!("empties heap pages of {gain}, moves {cost}"))
        }
        Action::Compact => ("holdall compact", format!("gives back {gain}, moves {cost}")),
        Action::CloseOldestReader => {
            ("close the oldest reader", format!("frees {gain} that only it sees"))
        }
        // A newer engine may know more.
        _ => ("other", format!("gives back {gain}, moves {cost}")),
    }
}

/// What would help most, in a line.
pub fn first_remedy(frag: &FragReport) -> String {
    let first = frag.remedies.first().map(remedy);
    first.map_or_else(|| "none".to_owned(), |(what, brings)| format!("{what}: {brings}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_for_people() {
        assert_eq!([bytes(0), bytes(999), bytes(1000)], ["0 bytes", "999 bytes", "1.0 kB"]);
        assert_eq!([bytes(999_960), bytes(1_500_000)], ["1.0 MB", "1.5 MB"]);
        assert_eq!([binary(4096), binary(1 << 20), binary(512)], ["4 KiB", "1 MiB", "512 bytes"]);
        assert_eq!(bytes(u64::MAX), "18.4 EB");
        assert_eq!((counted(1, "run"), counted(0, "run")), ("1 run".into(), "0 runs".into()));
    }
}
