//! Figures 4 to 9: filling a volume (McAuliffe §5.1, §5.2). Owns no state.

use super::cost::{Cpu, PAPER_DISK, time};
use super::parts::{self, Column, created, each, head, named, series, tabled, tail};
use super::runs::{PAPER_KINDS, Workload, outcome, runs};
use crate::free_space::algorithm::Kind;
use crate::free_space::workload::{Run, Sample};
use crate::kit::{claims, notes, plot::from_zero};
use anyhow::Result;
use holdall_instrument::draw::{axis, axis_in, percent};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_instrument::picture::{Panel, Table};
use std::sync::Arc;

const ALL_BUT_FF: [Kind; 5] = [Kind::Ao(1), Kind::Ao(8), Kind::NfWh, Kind::Bf, Kind::Hy(8, 0.875)];

fn entries(s: &Sample) -> f64 {
    s.counters.looks.entries as f64
}

fn throughput(runs: &[Arc<Run>]) -> Vec<Panel> {
    parts::throughput(runs, created, "objects in the file", "objects created per second")
}

fn utilization(runs: &[Arc<Run>]) -> Vec<Panel> {
    let y = axis_in("utilization, %", 75.0, 100.0);
    vec![parts::utilization(runs, created, "objects in the file", y)]
}

const TOTALS: [Column; 9] = [
    ("objects", |r| r.last().counters.created.to_string()),
    ("pages", |r| r.last().pages.to_string()),
    ("utilization", |r| percent(r.last().utilization())),
    ("disk s", |r| format!("{:.1}", r.last().disk_time(&PAPER_DISK))),
    ("processor s, measured", |r| format!("{:.2}", r.last().cpu)),
    ("disk + paper's processor s", |r| format!("{:.0}", time(&r.last(), &PAPER_DISK, Cpu::Paper))),
    ("FSIP entries", |r| r.last().counters.looks.entries.to_string()),
    ("searches", |r| r.last().counters.looks.searches.to_string()),
    ("memory bytes", |r| r.last().memory.to_string()),
];

fn totals(runs: &[Arc<Run>]) -> Table {
    tabled("totals", "The whole run", runs, &TOTALS)
}

/// Figure 4.
pub(super) fn throughput_uniform(settings: &Settings<'_>) -> Result<Outcome> {
    let kinds: Vec<Kind> = ALL_BUT_FF.into_iter().chain([Kind::NfWhSearches]).collect();
    let runs = runs(Workload::Uniform, &kinds, settings)?;
    let panels = throughput(&runs);
    let nfwh = named(&runs, "NF(WH)")?.last();
    let hy = named(&runs, "HY(8,87)")?.last();
    let bf = named(&runs, "BF")?.last();
    let looked = nfwh.counters.looks.entries;
    let by_search = named(&runs, &Kind::NfWhSearches.name())?.last().counters.looks.entries;
    let of_hy = hy.counters.looks.entries;
    let claims = vec![
        entries_of("M2 NF(WH) entries", looked).because(format!(
            "the paper's words exclude its figure. By them an allocation of any kind moves the \
             cursor, on a witness too: a search begins at the file's end, where most objects go, \
             and goes round nearly all of the file to a page just behind it. The file grows to {} \
             pages; 800,000 entries are {:.1} times round it. There are {} searches of {:.0} \
             entries on average; the paper's figure would allow {:.1} each",
            nfwh.pages,
            800_000.0 / f64::from(nfwh.pages),
            nfwh.counters.looks.searches,
            looked as f64 / nfwh.counters.looks.searches.max(1) as f64,
            800_000.0 / nfwh.counters.looks.searches.max(1) as f64
        )),
        entries_of("M2 NF(WH) entries, cursor", by_search),
        claims::says("M2 HY entries", &[], of_hy.to_string(), of_hy == 0),
        memory("M8 HY", &hy, hy.memory <= 200).remark(format!(
            "Pid cache of 8 bytes per page, histogram, cursor and search; the thresholds, one \
             table for all, apart. The engine's pid cache has {} bytes per page.",
            size_of::<holdall_core::techniques::heap_placement::Cached>()
        )),
        memory("M8 BF", &bf, bf.memory > 1_000_000),
    ];
    let mut outcome = outcome(panels, totals(&runs), claims, Workload::Uniform, settings);
    outcome.notes.extend(notes::of("mcauliffe-4", &[]));
    Ok(outcome)
}

fn entries_of(id: &str, looked: u64) -> Claim {
    claims::says(id, &[], looked.to_string(), looked < 8_000_000).ratio(looked as f64 / 800_000.0)
}

fn memory(id: &str, s: &Sample, so: bool) -> Claim {
    claims::says(id, &[], format!("{} bytes at {} pages", s.memory, s.pages), so)
}

/// Figure 5.
pub(super) fn throughput_ff(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(Workload::Uniform, &[Kind::Ff], settings)?;
    let panels = throughput(&runs);
    let last = named(&runs, "FF")?.last();
    let looked = entries(&last);
    let reached = f64::from(last.pages) * (4e9 / looked.max(1.0)).sqrt() / 256_347.0;
    let ours = format!("{looked:.2e} in {}", percent(f64::from(last.pages) / 256_347.0));
    let why = format!(
        "Each creation looks at about all pages so far: entries grow with the square of the file, \
         and 4·10⁹ are reached at {} of the volume.",
        percent(reached)
    );
    let check = claims::says("M2 FF entries", &[], ours, looked > 4e8).ratio(looked / 4e9);
    Ok(outcome(panels, totals(&runs), vec![check.remark(why)], Workload::Uniform, settings))
}

/// Figure 6.
pub(super) fn utilization_uniform(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(Workload::Uniform, &PAPER_KINDS, settings)?;
    let end = |run: &Run| run.last().utilization();
    let others: Vec<_> = runs.iter().filter(|r| r.kind != Kind::Ao(1)).cloned().collect();
    let lowest = others.iter().map(|r| end(r)).fold(1.0, f64::min);
    let one = end(named(&runs, "AO(1)")?);
    let ours = each(&runs, |r| percent(end(r)));
    let check = claims::says("M2 utilization", &[], ours, lowest >= 0.95 && one < lowest);
    Ok(outcome(utilization(&runs), totals(&runs), vec![check], Workload::Uniform, settings))
}

/// Figure 7.
pub(super) fn throughput_mixed(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(Workload::Mixed, &ALL_BUT_FF, settings)?;
    let panels = throughput(&runs);
    let fall = |name: &str| -> Result<f64> {
        let run = named(&runs, name)?;
        let rates = run.rates(created, created, |s| time(s, &PAPER_DISK, Cpu::Paper));
        Ok(tail(&rates) / head(&rates))
    };
    let (nfwh, others) = (fall("NF(WH)")?, fall("HY(8,87)")?);
    let count = |name: &str| named(&runs, name).map(|r| r.last().counters.created);
    let (one, eight) = (count("AO(1)")?, count("AO(8)")?);
    let ours = format!("last quarter ÷ first, paper's processor: NF(WH) {nfwh:.2}, HY {others:.2}");
    let ends = format!("AO(1) {one}, AO(8) {eight}");
    let claims = vec![
        claims::says("M3 throughput", &[], ours, nfwh < 0.9 * others),
        claims::says("M3 AO(1) ends early", &[], ends, one < eight)
            .ratio(one as f64 / eight as f64),
    ];
    Ok(outcome(panels, totals(&runs), claims, Workload::Mixed, settings))
}

/// Figure 8.
pub(super) fn entries_mixed(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(Workload::Mixed, &[Kind::NfWh, Kind::Hy(8, 0.875)], settings)?;
    let curve = |run: &Run| run.rates(created, entries, created);
    let about = ["entries", "Searches"];
    let y = "FSIP entries examined per object created";
    let panels = vec![from_zero(about, axis("objects in the file"), y, series(&runs, curve))];
    let rates = curve(named(&runs, "NF(WH)")?);
    let (first, last) = (head(&rates), tail(&rates));
    let ours = format!("{first:.1} entries per object in the first quarter, {last:.1} in the last");
    let check = claims::says("M3 search length", &[], ours, last > 1.5 * first);
    Ok(outcome(panels, totals(&runs), vec![check], Workload::Mixed, settings))
}

/// Figure 9.
pub(super) fn utilization_mixed(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(Workload::Mixed, &PAPER_KINDS, settings)?;
    let end = |name: &str| named(&runs, name).map(|run| run.last().utilization());
    let (one, eight, hy) = (end("AO(1)")?, end("AO(8)")?, end("HY(8,87)")?);
    let dense = [end("FF")?, end("NF(WH)")?, end("BF")?];
    let ours = each(&runs, |r| percent(r.last().utilization()));
    let worst = one + 0.05 < dense.into_iter().fold(eight.min(hy), f64::min);
    let claims = vec![claims::says("M3 AO(1)", &[], ours, worst), within_a_point(dense, eight, hy)];
    Ok(outcome(utilization(&runs), totals(&runs), claims, Workload::Mixed, settings))
}

fn within_a_point(dense: [f64; 3], ao: f64, hy: f64) -> Claim {
    let least = dense.iter().fold(1.0, |m: f64, &u| m.min(u - ao.max(hy))) * 100.0;
    let most = dense.iter().fold(0.0, |m: f64, &u| m.max(u - ao.min(hy))) * 100.0;
    let ours = format!("{least:.2} to {most:.2} points");
    let each =
        format!("AO(8) {}, HY {}, the densest {most:.2} points above", percent(ao), percent(hy));
    claims::says("M3 within a point", &[], ours, least > 0.0 && most < 1.0).because(each)
}
