//! What is told of a run: one table for each row, for people and for programs.

use super::plan::{Plan, Row};
use super::server::Kind;
use super::syncs::Syncs;
use super::usage::Reading;
use holdall_instrument::picture::number::plain as number;
use holdall_instrument::spread::Spread;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Share of a processor beyond which the generator may be what is measured.
const BOUND: f64 = 0.9;

/// A reading with whose it is and when it was taken.
#[derive(Debug, Clone)]
pub struct Taken {
    /// Whose.
    pub kind: Kind,
    /// In which round.
    pub round: usize,
    /// The figures.
    pub reading: Reading,
}

/// A server as the report knows it.
#[derive(Debug, Clone)]
pub struct Told {
    /// Which.
    pub kind: Kind,
    /// What it says of its version.
    pub version: String,
    /// Its syncs, by what was put.
    pub syncs: Vec<(&'static str, Syncs)>,
}

impl Told {
    /// Whether it answers puts before it has synced.
    fn apart(&self) -> bool {
        self.syncs.iter().any(|(_, syncs)| syncs.missing())
    }
}

/// All of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// The servers, in their order.
    pub servers: Vec<Told>,
    /// What they reached.
    pub taken: Vec<Taken>,
    /// Which did not finish, where, and why.
    pub errors: Vec<(Kind, &'static str, String)>,
}

/// One line of a table.
struct Line<'r> {
    told: &'r Told,
    readings: Vec<(usize, &'r Reading)>,
    /// Kept out of the ratio.
    apart: bool,
}

impl Line<'_> {
    fn stats(&self, of: impl Fn(&Reading) -> f64) -> Spread {
        let values: Vec<f64> = self.readings.iter().map(|(_, reading)| of(reading)).collect();
        Spread::of(&values)
    }

    fn in_round(&self, round: usize) -> Option<f64> {
        self.readings.iter().find(|(r, _)| *r == round).map(|(_, reading)| reading.value)
    }
}

impl Report {
    fn lines(&self, row: &Row) -> Vec<Line<'_>> {
        let mut lines = Vec::new();
        for told in &self.servers {
            let own = |t: &&Taken| t.kind == told.kind && t.reading.row == row.id;
            let readings: Vec<_> =
                self.taken.iter().filter(own).map(|t| (t.round, &t.reading)).collect();
            if !readings.is_empty() {
                lines.push(Line { told, readings, apart: row.writes && told.apart() });
            }
        }
        lines
    }

    /// A line's figure by that of the best peer of the same round.
    fn ratio(line: &Line<'_>, lines: &[Line<'_>], less: bool) -> Option<Spread> {
        let ratios: Vec<f64> = line
            .readings
            .iter()
            .filter_map(|(round, reading)| {
                let peers = lines.iter().filter(|l| l.told.kind.is_peer() && !l.apart);
                let values = peers.filter_map(|l| l.in_round(*round));
                let best = if less {
                    values.min_by(f64::total_cmp)
                } else {
                    values.max_by(f64::total_cmp)
                };
                best.map(|best| reading.value / best)
            })
            .collect();
        (!ratios.is_empty()).then(|| Spread::of(&ratios))
    }

    /// As Markdown.
    pub fn markdown(&self, plan: &Plan) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        for told in &self.servers {
            let Told { kind, version, syncs } = told;
            let version = if version.is_empty() { String::new() } else { format!(" ({version})") };
            let _ = write!(out, "- **{}**{version}: {}", kind.name(), kind.settings());
            for (what, syncs) in syncs {
                let _ = write!(out, "; {what}: {}", syncs.text());
            }
            out.push_str(".\n");
        }
        let _ = writeln!(out, "\nSizes: {}.\n", plan.sizes());
        for row in &plan.rows {
            self.table(&mut out, row);
        }
        for (kind, row, error) in &self.errors {
            let _ = writeln!(out, "**{}** did not finish {row}: {error}\n", kind.name());
        }
        out
    }

    fn table(&self, out: &mut String, row: &Row) {
        let lines = self.lines(row);
        let Some(unit) = lines.first().and_then(|l| l.readings.first()).map(|(_, r)| r.unit) else {
            return;
        };
        let less = unit.less_is_better();
        let better = if less { ", less is better" } else { "" };
        let _ = writeln!(out, "### {}: {}\n", row.id, row.title);
        let _ = writeln!(
            out,
            "| | {}{better} | ÷ best peer | p50 ms | p99 ms | server µs | generator µs | peak MiB |\n\
             |---|---|---|---|---|---|---|---|",
            unit.text()
        );
        let mut bound = false;
        for line in &lines {
            let ratio = Self::ratio(line, &lines, less).map_or_else(String::new, |r| r.to_string());
            let median = |of: fn(&Reading) -> f64| number(line.stats(of).median);
            let limited = line.stats(|r| r.generator_share).median > BOUND;
            bound |= limited;
            let _ = writeln!(
                out,
                "| {}{}{} | {} | {} | {} | {} | {} | {} | {} |",
                line.told.kind.name(),
                if line.apart { " *" } else { "" },
                if limited { " †" } else { "" },
                line.stats(|r| r.value),
                if line.apart { "apart" } else { &ratio },
                median(|r| r.p50_ms),
                median(|r| r.p99_ms),
                median(|r| r.server_us),
                median(|r| r.generator_us),
                median(|r| r.peak_bytes as f64 / f64::from(1 << 20)),
            );
        }
        out.push('\n');
        if lines.iter().any(|line| line.apart) {
            out.push_str("\\* answers before it has synced: apart from the ratio.\n\n");
        }
        if bound {
            out.push_str("† the generator took more than 90 % of a processor.\n\n");
        }
    }

    /// As JSON.
    pub fn json(&self, plan: &Plan) -> Value {
        let servers: Vec<Value> = self.servers.iter().map(Told::json).collect();
        let rows: Vec<Value> = plan.rows.iter().filter_map(|row| self.row_json(row)).collect();
        let error = |(kind, row, error): &(Kind, &str, String)| json!({ "server": kind.name(), "row": row, "error": error });
        let errors: Vec<Value> = self.errors.iter().map(error).collect();
        json!({ "sizes": plan.sizes(), "servers": servers, "rows": rows, "errors": errors })
    }

    fn row_json(&self, row: &Row) -> Option<Value> {
        let lines = self.lines(row);
        let unit = lines.first()?.readings.first()?.1.unit;
        let of = |line: &Line<'_>| {
            let stats = |of: fn(&Reading) -> f64| line.stats(of);
            json!({
                "server": line.told.kind.name(),
                "value": stats(|r| r.value),
                "ratio_to_best_peer": Self::ratio(line, &lines, unit.less_is_better())
                    .filter(|_| !line.apart),
                "answers_before_sync": line.apart,
                "requests": stats(|r| r.count as f64),
                "p50_ms": stats(|r| r.p50_ms),
                "p99_ms": stats(|r| r.p99_ms),
                "server_us": stats(|r| r.server_us),
                "generator_us": stats(|r| r.generator_us),
                "generator_share": stats(|r| r.generator_share),
                "peak_bytes": stats(|r| r.peak_bytes as f64),
            })
        };
        let servers: Vec<Value> = lines.iter().map(of).collect();
        Some(json!({ "row": row.id, "title": row.title, "unit": unit.text(),
            "less_is_better": unit.less_is_better(), "servers": servers }))
    }
}

impl Told {
    fn json(&self) -> Value {
        let syncs: Vec<Value> = self
            .syncs
            .iter()
            .map(|(what, syncs)| json!({ "of": what, "syncs": syncs, "missing": syncs.missing() }))
            .collect();
        let (name, settings) = (self.kind.name(), self.kind.settings());
        json!({ "server": name, "version": self.version, "settings": settings, "syncs": syncs })
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::ROWS;
    use super::*;
    use holdall_instrument::contest::Unit;

    fn report(minio_synced: usize) -> Report {
        let told = |kind, synced| Told {
            kind,
            version: String::new(),
            syncs: vec![("4 KB", Syncs::Counted { puts: 5, synced, calls: 5 })],
        };
        let taken = |kind, round, row, value| Taken {
            kind,
            round,
            reading: Reading {
                row,
                unit: Unit::PerSecond,
                value,
                count: 1,
                p50_ms: 1.0,
                p99_ms: 2.0,
                generator_us: 3.0,
                server_us: 4.0,
                generator_share: 0.95,
                peak_bytes: 1 << 20,
            },
        };
        let servers =
            vec![told(Kind::Holdall, 5), told(Kind::Minio, minio_synced), told(Kind::Versitygw, 0)];
        let mut report = Report { servers, ..Report::default() };
        for (kind, first, second) in
            [(Kind::Holdall, 10.0, 60.0), (Kind::Minio, 5.0, 20.0), (Kind::Versitygw, 100.0, 100.0)]
        {
            for row in ["put-small", "get-small"] {
                report.taken.push(taken(kind, 0, row, first));
                report.taken.push(taken(kind, 1, row, second));
            }
        }
        report
    }

    fn ratio(report: &Report, row: &str, kind: Kind) -> Option<f64> {
        let row = ROWS.iter().find(|r| r.id == row).unwrap();
        let lines = report.lines(row);
        let line = lines.iter().find(|l| l.told.kind == kind).unwrap();
        Report::ratio(line, &lines, false).map(|r| r.median)
    }

    #[test]
    fn a_peer_that_does_not_sync_is_no_measure_of_puts_but_of_gets() {
        assert_eq!(ratio(&report(5), "put-small", Kind::Holdall), Some(2.5));
        assert_eq!(ratio(&report(5), "get-small", Kind::Holdall), Some(0.35));
        assert_eq!(ratio(&report(4), "put-small", Kind::Holdall), None);
        let text = report(5).markdown(&Plan::new(true));
        assert!(text.contains("| versitygw * † | 100 (100–100) | apart |"), "{text}");
        assert!(text.contains("| Holdall † | 35 (10–60) | 2.5 (2–3) |"), "{text}");
        let json = report(5).json(&Plan::new(true));
        assert_eq!(json["rows"][0]["servers"][2]["answers_before_sync"], true);
        assert_eq!(json["rows"][1]["servers"][0]["ratio_to_best_peer"]["median"], 0.35);
    }
}
