//! Placement today: a larger file, more operations, this machine's disk. Owns no state.

use super::cost::{Cpu, time};
use super::parts::series;
use super::runs::{PAPER_KINDS, Workload, runs};
use super::sweep::{Point, Setting, Size, params, recommended, sweep};
use crate::experiment::{Outcome, Settings};
use crate::free_space::algorithm::Kind;
use crate::free_space::workload::{Run, Sample, Victims, churn, churn_on};
use crate::kit::draw::{self, axis, axis_in, lines, log_axis, percent, table};
use anyhow::Result;
use holdall_io::{Disk, FileStorage, Storage};
use holdall_plot::Panel;
use holdall_testkit::CostModel;
use std::time::Instant;

const N: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
const U: [f64; 5] = [0.70, 0.80, 0.90, 0.94, 0.97];
const PAGES: [usize; 3] = [4096, 16384, 32768];
const HY: Kind = Kind::Hy(8, 0.875);

/// Settings: the algorithms on the large file; n, u and page size of HY around (8, 87, 8 KiB),
/// each varied alone, on the settled one.
pub(super) fn settings_of(n: &[usize], u: &[f64], pages: &[usize]) -> Vec<Setting> {
    let mut all: Vec<Setting> = PAPER_KINDS.map(Setting::large).into();
    all.push(Setting::large(Kind::HyEngine(8, 87)));
    all.push(Setting::settled(HY, 8192));
    let others = |n: &&usize| **n != 8;
    all.extend(n.iter().filter(others).map(|&n| Setting::settled(Kind::Hy(n, 0.875), 8192)));
    all.extend(u.iter().map(|&u| Setting::settled(Kind::Hy(8, u), 8192)));
    all.extend(pages.iter().map(|&size| Setting::settled(HY, size)));
    all
}

/// Panels of time against utilization and of each parameter.
pub(super) fn panels(points: &[Point]) -> Vec<Panel> {
    let single =
        |p: &Point| draw::series(p.label.clone(), vec![(p.utilization * 100.0, p.total())]);
    let x = axis_in("utilization, %", 50.0, 100.0);
    let y = || axis("µs per operation");
    let scatter = points.iter().take(7).map(single).collect();
    let curve = |name: &str, value: fn(&Point) -> Option<f64>, of: fn(&Point) -> f64| {
        let mut points: Vec<(f64, f64)> =
            points.iter().filter_map(|p| Some((value(p)?, of(p)))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        draw::series(name.to_owned(), points)
    };
    let full = |p: &Point| p.utilization * 100.0;
    let n_axis = || log_axis("n, pages in the pid cache");
    vec![
        lines("algorithms", "Time and space", x, y(), scatter),
        lines("n-time", "HY(n,87): time", n_axis(), y(), vec![curve("time", n_of, Point::total)]),
        lines(
            "n-space",
            "HY(n,87): utilization",
            n_axis(),
            axis("utilization, %"),
            vec![curve("utilization", n_of, full)],
        ),
        lines("u-time", "HY(8,u): time", axis("u"), y(), vec![curve("time", u_of, Point::total)]),
        lines(
            "u-space",
            "HY(8,u): utilization",
            axis("u"),
            axis("utilization, %"),
            vec![curve("utilization", u_of, full)],
        ),
    ]
}

fn settled(p: &Point) -> bool {
    p.page_size == 8192 && p.size == Size::Settled
}

fn n_of(p: &Point) -> Option<f64> {
    match p.kind {
        Kind::Hy(n, 0.875) if settled(p) => Some(n as f64),
        _ => None,
    }
}

fn u_of(p: &Point) -> Option<f64> {
    match p.kind {
        Kind::Hy(8, u) if settled(p) => Some(u),
        _ => None,
    }
}

fn page_of(p: &Point) -> Option<f64> {
    (p.kind == HY && p.size == Size::Settled).then_some(p.page_size as f64)
}

/// The value of a parameter at a point that varies it.
type Value = fn(&Point) -> Option<f64>;

/// What to take for n, u and page size, each varied alone.
pub(super) fn recommendation(points: &[Point]) -> Vec<String> {
    let mut notes = Vec::new();
    let parameters: [(&str, Value); 3] = [("n", n_of), ("u", u_of), ("page size", page_of)];
    for (what, value) in parameters {
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
pub(super) fn turned(points: &[Point]) -> Vec<String> {
    let find = |name: &str| points.iter().find(|p| p.label == name);
    let mut notes = Vec::new();
    if let (Some(hy), Some(nfwh), Some(bf), Some(ao), Some(ff)) =
        (find("HY(8,87)"), find("NF(WH)"), find("BF"), find("AO(8)"), find("FF"))
    {
        let ratio = |a: &Point| (a.total() / hy.total(), a.paper / hy.paper);
        let mut round = Vec::new();
        for p in [ff, nfwh, bf, ao] {
            let (now, then) = ratio(p);
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
    }
    notes
}

/// Whether the n recommended meets more reserved space under four streams than n = 8.
fn crowded(settings: &Settings<'_>, points: &[Point]) -> Result<Option<String>> {
    let Some(best) = recommended(points.iter().filter(|p| n_of(p).is_some())) else {
        return Ok(None);
    };
    let mut rates = Vec::new();
    for kind in [HY, best.kind] {
        let mut params = params(settings, Victims::Uniform, 8192, Size::Settled);
        params.streams = 4;
        let run = churn(kind, &params, &|_| ())?;
        rates.push(run.rate(|s| s.counters.collisions as f64, |s| s.counters.created as f64));
    }
    Ok(Some(format!(
        "Under four streams {} meets {:.4} reserved-space collisions per object created, {} {:.4}.",
        HY.name(),
        rates[0],
        best.kind.name(),
        rates[1]
    )))
}

/// A run over a file in the temporary directory, without syncs, and synced writes of a page.
fn on_a_file(settings: &Settings<'_>) -> Result<String> {
    let path = std::env::temp_dir().join(format!("holdall-lab-{}", std::process::id()));
    let storage = FileStorage::create(&path)?;
    let result = measure(storage.volume(), settings);
    drop(storage);
    std::fs::remove_file(&path)?;
    result
}

fn measure(disk: std::sync::Arc<dyn Disk>, settings: &Settings<'_>) -> Result<String> {
    let quick = Settings { quick: true, progress: &|_, _| (), ..*settings };
    let params = params(&quick, Victims::Uniform, 8192, Size::Large);
    let start = Instant::now();
    let run = churn_on(disk.clone(), HY, &params, &|_| ())?;
    let (first, last) = (run.first(), run.last());
    let ops = last.counters.created + last.counters.deleted;
    let all = start.elapsed().as_secs_f64() * 1e6 / ops as f64;
    let accesses = last.disk.reads + last.disk.writes - first.disk.reads - first.disk.writes;
    let page = vec![7; 8192];
    let start = Instant::now();
    for n in 0..32 {
        disk.write_at(n * 7919 % 1000 * 8192, &page)?;
        disk.sync()?;
    }
    let synced = start.elapsed().as_secs_f64() * 1e6 / 32.0;
    Ok(format!(
        "Measured now on a file in the temporary directory: HY(8,87) took {all:.1} µs per \
         operation of wall time through the system's cache ({accesses} accesses while creating \
         and deleting, {ops} operations with the filling); a page written and synced took \
         {synced:.0} µs."
    ))
}

/// The paper's throughputs by another disk.
fn again(settings: &Settings<'_>, disk: &CostModel) -> Result<Vec<Panel>> {
    let quiet = Settings { progress: &|_, _| (), ..*settings };
    let mut all = Vec::new();
    for (id, title, workload) in [
        ("again-4", "Uniform Create (figure 4)", Workload::Uniform),
        ("again-7", "Mixed Create (figure 7)", Workload::Mixed),
        ("again-10", "Create-Delete (figure 10)", Workload::Churn),
        ("again-14", "Concurrent Create-Delete (figure 14)", Workload::Concurrent),
    ] {
        let runs = runs(workload, &PAPER_KINDS, &quiet)?;
        let spent = |s: &Sample| time(s, disk, Cpu::Measured);
        let (count, x, y): (fn(&Sample) -> f64, _, _) = match workload {
            Workload::Uniform | Workload::Mixed => {
                (|s| s.counters.created as f64, "objects in the file", "objects created per second")
            }
            _ => (|s| s.transactions as f64, "transactions", "transactions per second"),
        };
        let rate = |run: &Run| run.rates(count, count, spent);
        all.push(lines(id, title, axis(x), axis(y), series(&runs, rate)));
    }
    Ok(all)
}

/// The experiment.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let all = if settings.quick {
        settings_of(&[1, 32], &[0.94], &[16384])
    } else {
        settings_of(&N, &U, &PAGES)
    };
    let points = sweep(settings, Victims::Uniform, &all)?;
    let disk = settings.today()?;
    let mut notes = vec![
        disk.note(),
        "1,000,000 objects of 100 to 300 bytes by AO(8) (25,400 pages of 8 KiB), then 10⁶ \
         creations and deletions, uniform; pool of 8 MB, 4 % of the file. n, u and page size are \
         varied on a quarter of the objects and of the pool (\"settled\"): each object is replaced \
         twice, so that the file comes down to u. All a twentieth when quick."
            .to_owned(),
        "n = 64 is a quarter of the settled file's pool: where the cache's pages no longer stay in \
         the pool, each creation may read one. Take n well below the file's share of the pool."
            .to_owned(),
    ];
    notes.extend(turned(&points));
    notes.extend(recommendation(&points));
    notes.extend(crowded(settings, &points)?);
    notes.push(on_a_file(settings)?);
    let rows = points.iter().map(Point::row).collect();
    let title = "Algorithms and settings on a disk of today";
    let mut all = panels(&points);
    all.extend(again(settings, &disk.price.model(8192))?);
    notes.push(
        "The paper's throughputs (figures 4, 7, 10 and 14) are drawn again with this disk and \
         measured processor time; its pool, file and objects are the same."
            .to_owned(),
    );
    Ok(Outcome {
        panels: all,
        tables: vec![table("settings", title, &Point::HEAD, rows), disk.table()],
        claims: Vec::new(),
        notes,
    })
}
