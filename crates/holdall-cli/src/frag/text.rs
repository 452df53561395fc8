//! The report as text for people: the figures that matter.
//!
//! Owns: no state.

use holdall::frag::FragReport;

use crate::failure::Outcome;
use crate::output::Out;
use holdall_report::words::{self, Bar, bytes, counted, percent};

/// Characters of the longest bar.
const BAR: f64 = 30.0;

/// Prints the report.
pub fn print(r: &FragReport) -> Outcome {
    let mut out = Out::new();
    for (label, value) in rows(r) {
        out.line(format_args!("{label:<17} {value}"))?;
    }
    bars(&mut out, "free runs", &words::free_bars(r))?;
    bars(&mut out, "pieces per object", &words::piece_bars(r))?;
    let cut = r.objects.most_cut.iter().take(3);
    for object in cut {
        let name = words::name_of(object);
        let (n, size) = (object.pieces, bytes(object.bytes));
        out.line(format_args!("{:<17} {name}: {n} pieces, {size}", "cut"))?;
    }
    for remedy in &r.remedies {
        let (what, brings) = words::remedy(remedy);
        out.line(format_args!("{:<17} {what}: {brings}", "remedy"))?;
    }
    out.finish()
}

/// Label and value of each figure.
fn rows(r: &FragReport) -> Vec<(&'static str, String)> {
    let (g, o, s, c) = (&r.geometry, &r.objects, &r.score, &r.contract);
    let volume = bytes(g.bytes(g.volume_pages));
    let pinned = bytes(g.bytes(g.pinned_pages));
    let assumed = if g.holes_assumed { " (from the file's blocks)" } else { "" };
    let promise = if c.holds { "holds" } else { "does not hold" };
    vec![
        ("score", format!("{:.3} of 1: pieces {:.3}, space {:.3}", s.value, s.pieces, s.space)),
        ("volume", format!("{volume}, {} of it with blocks", bytes(g.block_bytes))),
        (
            "in use",
            format!(
                "large objects {}, heap {}, metadata {}",
                bytes(g.bytes(g.segment_pages)),
                bytes(g.bytes(g.heap_pages)),
                bytes(g.bytes(g.metadata_pages))
            ),
        ),
        (
            "free",
            format!(
                "{} in {}, longest {}; {} without blocks{assumed}",
                bytes(g.bytes(g.free_pages)),
                counted(r.free_runs.runs, "run"),
                bytes(r.free_runs.longest_bytes),
                bytes(g.bytes(g.hole_pages))
            ),
        ),
        ("waiting", format!("{}, {pinned} of it for snapshots", bytes(g.bytes(g.waiting_pages)))),
        (
            "pieces",
            format!("{} for {}, {} at best", o.pieces, counted(o.large, "large object"), o.fewest),
        ),
        (
            "heap",
            format!(
                "{} used, {} to be freed",
                percent(r.heap.utilization),
                bytes(r.heap.slack_bytes)
            ),
        ),
        (
            "contract",
            format!("{promise}: {} of at most {}", bytes(c.left_bytes), bytes(c.right_bytes)),
        ),
    ]
}

fn bars(out: &mut Out, title: &str, bars: &[Bar]) -> Outcome {
    let most = bars.iter().map(|(_, value, _)| *value).fold(0.0, f64::max);
    for (at, (label, value, text)) in bars.iter().enumerate() {
        let title = if at == 0 { title } else { "" };
        // At most BAR characters.
        let bar = "#".repeat((BAR * value / most.max(1.0)).ceil() as usize);
        out.line(format_args!("{title:<17} {label:>9} {bar:<30} {text}"))?;
    }
    Ok(())
}
