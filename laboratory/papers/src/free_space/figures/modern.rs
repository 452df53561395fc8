//! Placement today: a larger file, more operations, a disk of today, victims drawn evenly or by
//! Zipf's law; and what that makes of n, u and the page size. Owns no state.

use super::cost::{Cpu, time};
use super::parts::{created, series, transactions};
use super::runs::{PAPER_KINDS, Workload, runs};
use super::sweep::{Point, Setting, Size, recommended, sweep};
use crate::free_space::algorithm::Kind;
use crate::free_space::workload::{Run, Sample, Victims};
use crate::kit::model;
use anyhow::Result;
use holdall_instrument::draw::{self, axis, axis_in, lines, log_axis, percent, table};
use holdall_instrument::experiment::{Outcome, Settings};
use holdall_instrument::picture::Panel;
use holdall_testkit::CostModel;

const HY: Kind = Kind::Hy(8, 0.875);

/// The algorithms on the large file; n, u and page size of HY around (8, 87, 8 KiB), each varied
/// alone, on the settled one.
fn settings_of(n: &[usize], u: &[f64], pages: &[usize]) -> Vec<Setting> {
    let mut all: Vec<Setting> = PAPER_KINDS.map(Setting::large).into();
    all.push(Setting::large(Kind::HyEngine(8, 87)));
    all.push(Setting::settled(HY, 8192));
    let others = |n: &&usize| **n != 8;
    all.extend(n.iter().filter(others).map(|&n| Setting::settled(Kind::Hy(n, 0.875), 8192)));
    all.extend(u.iter().map(|&u| Setting::settled(Kind::Hy(8, u), 8192)));
    all.extend(pages.iter().map(|&size| Setting::settled(HY, size)));
    all
}

/// The value of a parameter at a point that varies it.
type Value = fn(&Point) -> Option<f64>;

/// n, u and the page size.
const PARAMETERS: [(&str, Value); 3] = [
    ("n", |p| match p.kind {
        Kind::Hy(n, 0.875) if settled(p) => Some(n as f64),
        _ => None,
    }),
    ("u", |p| match p.kind {
        Kind::Hy(8, u) if settled(p) => Some(u),
        _ => None,
    }),
    ("page size", |p| (p.kind == HY && p.size == Size::Settled).then_some(p.page_size as f64)),
];

fn settled(p: &Point) -> bool {
    p.page_size == 8192 && p.size == Size::Settled
}

/// What is shown of a parameter: identifier, name, axis and value.
type Shown = (&'static str, &'static str, &'static str, fn(&Point) -> f64);

/// Panels of time against utilization, and of n and u.
fn panels(points: &[Point]) -> Vec<Panel> {
    let single =
        |p: &Point| draw::series(p.label.clone(), vec![(p.utilization * 100.0, p.total())]);
    let scatter = points.iter().take(7).map(single).collect();
    let (x, y) = (axis_in("utilization, %", 50.0, 100.0), axis("µs per operation"));
    let mut all = vec![lines("algorithms", "Time and space", x, y, scatter)];
    let full = |p: &Point| p.utilization * 100.0;
    let shown: [Shown; 2] = [
        ("time", "time", "µs per operation", Point::total),
        ("space", "utilization", "utilization, %", full),
    ];
    for (what, value) in &PARAMETERS[..2] {
        for (id, name, label, of) in shown {
            let mut curve: Vec<(f64, f64)> =
                points.iter().filter_map(|p| Some((value(p)?, of(p)))).collect();
            curve.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (x, hy) = match *what {
                "n" => (log_axis("n, pages in the pid cache"), "HY(n,87)"),
                _ => (axis("u"), "HY(8,u)"),
            };
            let curve = vec![draw::series(name, curve)];
            all.push(lines(
                &format!("{what}-{id}"),
                &format!("{hy}: {name}"),
                x,
                axis(label),
                curve,
            ));
        }
    }
    all
}

/// What to take for n, u and page size, each varied alone.
fn recommendation(points: &[Point]) -> Vec<String> {
    let mut notes = Vec::new();
    for (what, value) in PARAMETERS {
        let of = points.iter().filter(|p| value(p).is_some());
        if of.clone().count() < 2 {
            continue;
        }
        let (mut few, mut most) = (f64::INFINITY, 0.0_f64);
        of.clone().for_each(|p| (few, most) = (few.min(p.total()), most.max(p.total())));
        if let Some(best) = recommended(of) {
            notes.push(format!(
                "Recommended {what}: {} ({:.1} µs per operation, utilization {}). Over all values \
                 tried the time is {few:.1} to {most:.1} µs. Rule: highest utilization among \
                 those within 5 % of the fastest, the other parameters at 8, 87, 8 KiB.",
                value(best).unwrap_or(0.0),
                best.total(),
                percent(best.utilization)
            ));
        }
    }
    let bounded = points.iter().take(7).filter(|p| !matches!(p.kind, Kind::Ao(_)));
    if let Some(best) = recommended(bounded) {
        notes.push(format!(
            "By the same rule among the algorithms that bound the file (all but AO): {} ({:.1} µs, \
             {}, {} bytes of memory).",
            best.label,
            best.total(),
            percent(best.utilization),
            best.memory
        ));
    }
    notes
}

/// What a disk of today turns round, from the first seven points.
fn turned(points: &[Point]) -> Vec<String> {
    let find = |name: &str| points.iter().find(|p| p.label == name);
    let Some(hy) = find("HY(8,87)") else { return Vec::new() };
    let (mut notes, mut round) = (Vec::new(), Vec::new());
    for p in ["FF", "NF(WH)", "BF", "AO(8)"].into_iter().filter_map(find) {
        let (now, then) = (p.total() / hy.total(), p.paper / hy.paper);
        if then > 1.5 && now < 1.2 {
            round.push(p.label.as_str());
        }
        notes.push(format!(
            "{} takes {now:.2} × HY's time today and {then:.2} × on the paper's machine, at a \
             utilization of {} against {}; its processor time is {} of its total today.",
            p.label,
            percent(p.utilization),
            percent(hy.utilization),
            percent(p.cpu / p.total())
        ));
    }
    if !round.is_empty() {
        notes.push(format!(
            "Turned round (from more than 1.5 × HY's time to less than 1.2 ×): {}. The others \
             differ by accesses to the disk, which cost less today but make up as much of the \
             time.",
            round.join(", ")
        ));
    }
    notes
}

/// The paper's throughputs by another disk.
fn again(settings: &Settings<'_>, disk: &CostModel) -> Result<Vec<Panel>> {
    type Count = fn(&Sample) -> f64;
    let quiet = Settings { progress: &|_, _| (), ..*settings };
    let objects = (created as Count, "objects in the file", "objects created per second");
    let ended = (transactions as Count, "transactions", "transactions per second");
    let mut all = Vec::new();
    for (id, title, workload, (count, x, y)) in [
        ("again-4", "Uniform Create (figure 4)", Workload::Uniform, objects),
        ("again-7", "Mixed Create (figure 7)", Workload::Mixed, objects),
        ("again-10", "Create-Delete (figure 10)", Workload::Churn, ended),
        ("again-14", "Concurrent Create-Delete (figure 14)", Workload::Concurrent, ended),
    ] {
        let runs = runs(workload, &PAPER_KINDS, &quiet)?;
        let rate = |run: &Run| run.rates(count, count, |s| time(s, disk, Cpu::Measured));
        all.push(lines(id, title, axis(x), axis(y), series(&runs, rate)));
    }
    Ok(all)
}

fn outcome(
    settings: &Settings<'_>,
    victims: Victims,
    all: &[Setting],
    title: &str,
    about: &[&str],
) -> Result<Outcome> {
    let points = sweep(settings, victims, all)?;
    let disk = settings.today()?;
    let mut notes = vec![disk.note()];
    notes.extend(about.iter().map(|&note| note.to_owned()));
    notes.extend(turned(&points));
    notes.extend(recommendation(&points));
    let rows = points.iter().map(Point::row).collect();
    let tables = vec![table("settings", title, &Point::HEAD, rows), disk.table()];
    Ok(Outcome { panels: panels(&points), tables, claims: Vec::new(), notes })
}

/// On a disk of today.
pub(super) fn modern(settings: &Settings<'_>) -> Result<Outcome> {
    let all = if settings.quick {
        settings_of(&[1, 32], &[0.94], &[16384])
    } else {
        let n = [1, 2, 4, 8, 16, 32, 64, 128, 256];
        settings_of(&n, &[0.70, 0.80, 0.90, 0.94, 0.97], &[4096, 16384, 32768])
    };
    let title = "Algorithms and settings on a disk of today";
    let about = [
        "1,000,000 objects of 100 to 300 bytes by AO(8) (25,400 pages of 8 KiB), then 10⁶ \
         creations and deletions, uniform; pool of 8 MB, 4 % of the file. n, u and page size are \
         varied on a quarter of the objects and of the pool (\"settled\"): each object is replaced \
         twice, so that the file comes down to u. All a twentieth when quick.",
        "n = 64 is a quarter of the settled file's pool: where the cache's pages no longer stay in \
         the pool, each creation may read one. Take n well below the file's share of the pool.",
        "The paper's throughputs (figures 4, 7, 10 and 14) are drawn again with this disk and \
         measured processor time; its pool, file and objects are the same.",
    ];
    let mut outcome = outcome(settings, Victims::Uniform, &all, title, &about)?;
    outcome.panels.extend(again(settings, &model::of(&settings.today()?.price, 8192))?);
    Ok(outcome)
}

/// Under deletions by Zipf's law.
pub(super) fn skew(settings: &Settings<'_>) -> Result<Outcome> {
    let all = if settings.quick {
        settings_of(&[32], &[], &[])
    } else {
        settings_of(&[1, 16, 64, 256], &[0.80, 0.94], &[4096, 16384])
    };
    let title = "Algorithms and settings under skewed deletions";
    let about = "As mcauliffe-modern, but the object deleted is the one at a position drawn by \
                 Zipf's law with an exponent of 0.99 over a million positions, scattered over the \
                 file. A new object takes the position freed last: objects at hot positions live \
                 short, as sessions and caches do, and most others stay.";
    outcome(settings, Victims::Zipf(0.99), &all, title, &[about])
}
