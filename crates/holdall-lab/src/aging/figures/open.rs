//! Request size and size hint (Sears §4.4, §6), and interleaved appends, which the paper leaves
//! open (§7).

use anyhow::Result;
use holdall_plot::Scale;

use super::plan::{
    FILES, KB, MB, base, base_runs, by_age, each, labelled, numbers, of, outcome, ran, run_all,
};
use crate::aging::system::{Ask, Kind};
use crate::aging::workload::{Case, Run, Sizes};
use crate::experiment::{Claim, Outcome, Settings};
use crate::kit::claim::{holds, note};
use crate::kit::draw::{axis, axis_of, lines, number, series};

/// Objects that are appended to at once.
const TOGETHER: usize = 16;
/// What interleaved appends may cost Holdall over safe writes, in fragments.
const NEAR: f64 = 1.5;
/// Request sizes in bytes.
const REQUESTS: [usize; 4] = [4 * KB, 16 * KB, 64 * KB, MB];

fn mean_last(run: &Run) -> Option<f64> {
    run.last().map(|p| p.fragments)
}

/// Request sizes that reach a system, without a hint and with one. SQLite, redb and bytea take
/// an object whole, so requests reach them only behind a hint, or never.
fn asks(kind: Kind, quick: bool) -> Vec<Ask> {
    let few = [64 * KB];
    let all: &[usize] = match kind {
        Kind::Sqlite | Kind::Redb | Kind::Bytea => &few,
        _ if quick => &[REQUESTS[0], REQUESTS[2]],
        _ => &REQUESTS,
    };
    let hints: &[bool] = match kind {
        // No hint can be given.
        Kind::Bytea | Kind::LargeObjects => &[false],
        _ => &[false, true],
    };
    hints.iter().flat_map(|&hint| all.iter().map(move |&request| Ask { request, hint })).collect()
}

/// S5.
pub(super) fn requests(settings: &Settings<'_>) -> Result<Outcome> {
    let kinds = [Kind::Holdall, FILES, Kind::Sqlite, Kind::Bytea, Kind::LargeObjects, Kind::Redb];
    let sets: Vec<(Kind, Ask)> = kinds
        .iter()
        .flat_map(|&k| asks(k, settings.quick).into_iter().map(move |a| (k, a)))
        .collect();
    let (volume, ages) =
        if settings.quick { (40 << 20, vec![1]) } else { (200 << 20, vec![1, 2, 3, 4]) };
    let case = |&(kind, ask): &(Kind, Ask)| Case {
        volume,
        occupancy: 0.85,
        ask,
        ages: ages.clone(),
        ..base(kind, Sizes::Constant(MB), settings)
    };
    let runs = run_all(settings, &sets.iter().map(case).collect::<Vec<_>>())?;
    let value = |kind: Kind, ask: Ask| -> Option<f64> {
        let found = sets.iter().zip(&runs).find(|(set, _)| **set == (kind, ask))?;
        mean_last(found.1)
    };
    let mut curves = Vec::new();
    for kind in kinds {
        for hint in [false, true] {
            let own = sets.iter().zip(&runs).filter(|((k, a), _)| *k == kind && a.hint == hint);
            let points: Vec<(f64, f64)> = own
                .filter_map(|((_, a), run)| Some(((a.request / KB) as f64, mean_last(run)?)))
                .collect();
            if !points.is_empty() {
                let hinted = if hint { ", size known" } else { "" };
                curves.push(series(format!("{}{hinted}", kind.name()), points));
            }
        }
    }
    let x = axis_of("bytes of a write request, KB", Scale::Log2);
    let title = "Objects of 1 MB, 85 % full, at the last age";
    let panels = vec![lines("requests", title, x, axis("fragments per object"), curves)];
    let label = |ask: &Ask| {
        format!("{} KB{}", ask.request / KB, if ask.hint { ", size known" } else { "" })
    };
    let all: Vec<(String, &Run)> =
        sets.iter().zip(&runs).map(|((_, ask), run)| (label(ask), run)).collect();
    let tables = vec![numbers("numbers", "By age", &all)];
    Ok(outcome(panels, tables, request_claims(&value, settings), &all, settings))
}

fn request_claims(value: &dyn Fn(Kind, Ask) -> Option<f64>, settings: &Settings<'_>) -> Vec<Claim> {
    let ask = |request, hint| Ask { request, hint };
    let most = if settings.quick { 64 * KB } else { MB };
    let mut out = Vec::new();
    for kind in [FILES, Kind::LargeObjects, Kind::Holdall] {
        let pair = (value(kind, ask(4 * KB, false)), value(kind, ask(most, false)));
        let (Some(small), Some(large)) = pair else { continue };
        let name = kind.name();
        let ours = format!("4 KB {}, {} KB {}", number(small), most / KB, number(large));
        let (text, tolerance, so) = if kind == Kind::Holdall {
            let text = "Holdall's fragments do not depend on the request size";
            (text, "4 KB ≤ 1.2 × the largest", small <= 1.2 * large)
        } else {
            ("smaller requests make more fragments", "4 KB > the largest", small > large)
        };
        let claim = holds(&format!("S5 requests, {name}"), text, "", ours, tolerance, so);
        out.push(claim.because(if kind == FILES {
            "ext4 places a file's blocks when they are flushed, at the sync that ends a safe write, \
             and by then has all requests of it"
        } else {
            "a request ends up in the same rows or segments as a larger one"
        }));
    }
    for kind in [Kind::Holdall, FILES, Kind::Sqlite, Kind::Redb] {
        let pair = (value(kind, ask(64 * KB, false)), value(kind, ask(64 * KB, true)));
        let (Some(without), Some(with)) = pair else { continue };
        let name = kind.name();
        let text = "told the size before the first request, a store makes no more fragments";
        let ours = format!("without {}, with {}", number(without), number(with));
        let so = with <= without * 1.02;
        out.push(
            holds(&format!("S5 hint, {name}"), text, "", ours, "with ≤ 1.02 × without", so)
                .because(format!(
                    "without a hint {} fragments, with it {}",
                    number(without),
                    number(with)
                )),
        );
    }
    out
}

/// S6.
pub(super) fn interleaved(settings: &Settings<'_>) -> Result<Outcome> {
    let (volume, ages) =
        if settings.quick { (34 << 20, vec![1]) } else { (80 << 20, vec![1, 2, 3, 4]) };
    let case = |kind: Kind, hint: bool| Case {
        volume,
        ages: ages.clone(),
        together: TOGETHER,
        ask: Ask { request: 64 * KB, hint },
        ..base(kind, Sizes::Constant(MB), settings)
    };
    let plain: Vec<Case> = Kind::ALL.iter().map(|&kind| case(kind, false)).collect();
    let plain = run_all(settings, &plain)?;
    let hinted = run_all(settings, &[case(Kind::Holdall, true), case(FILES, true)])?;
    let safe = base_runs(settings, Sizes::Constant(MB))?;
    let mut claims = near(&plain, &safe, "");
    claims.extend(near(&hinted, &safe, ", size known"));
    claims.extend(lowest(&plain));
    let unit = "fragments per object";
    let panel = |id, title, runs| by_age(id, title, unit, runs, |p| p.fragments, None);
    let panels = vec![
        panel("interleaved", "Sixteen objects at once, 64 KB each", &plain),
        panel("hinted", "Sixteen objects at once, size known", &hinted),
        panel("safe", "Safe writes, one at a time", &safe),
    ];
    let mut all = labelled("interleaved", &plain);
    all.extend(labelled("interleaved, size known", &hinted));
    all.extend(labelled("safe writes", &safe));
    let tables = vec![numbers("numbers", "By age", &all)];
    Ok(outcome(panels, tables, claims, &all, settings))
}

/// Each system's interleaved appends against its safe writes.
fn near(runs: &[Run], safe: &[Run], how: &str) -> Vec<Claim> {
    let mut out = Vec::new();
    for run in ran(runs) {
        let alone = ran(safe).find(|other| other.system == run.system).and_then(mean_last);
        let (Some(together), Some(alone)) = (mean_last(run), alone) else { continue };
        let id = format!("S6 {}{how}", run.system);
        let ratio = together / alone;
        let ours = format!("{} against {}: {} ×", number(together), number(alone), number(ratio));
        let text =
            "fragments of objects appended to in turns, sixteen at once, against safe writes";
        if run.system == Kind::Holdall.name() {
            let claim = holds(&id, text, "", ours, "≤ 1.5 ×", ratio <= NEAR);
            out.push(claim.because(format!(
                "each append is a commit of its own that takes the next free pages, and beside it \
                 lie those of fifteen others: {} fragments of sixteen appends",
                number(together)
            )));
        } else {
            out.push(note(&id, text, "", ours));
        }
    }
    out
}

/// Holdall against the other stores that can append without writing the object anew.
fn lowest(runs: &[Run]) -> Option<Claim> {
    let own = of(runs, Kind::Holdall).and_then(mean_last)?;
    let others = [FILES, Kind::LargeObjects].into_iter().filter_map(|kind| of(runs, kind));
    let least = others.filter_map(mean_last).min_by(f64::total_cmp)?;
    let text = "of the stores that append without writing anew, Holdall makes the fewest fragments";
    // A twentieth is rounding: one fragment in one of twenty objects.
    let so = own <= least * 1.05;
    let claim = holds("S6 lowest", text, "", each(runs, mean_last), "≤ 1.05 × the others", so);
    Some(claim.because(format!("{} against {}", number(own), number(least))))
}
