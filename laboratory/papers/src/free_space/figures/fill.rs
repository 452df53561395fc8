//! Figures 4 to 9: filling a volume (McAuliffe §5.1, §5.2). Owns no state.

use super::assumptions::{AO_FULLEST, NF_WH_SEARCHES};
use super::cost::{Cpu, PAPER_DISK, time};
use super::parts::{self, created, each, head, named, series, tail};
use super::runs::{PAPER_KINDS, Workload, outcome, runs};
use crate::free_space::algorithm::Kind;
use crate::free_space::workload::{Run, Sample};
use crate::kit::claims;
use anyhow::Result;
use holdall_instrument::draw::{axis, axis_in, lines, percent, table};
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
    vec![parts::utilization("utilization", runs, created, "objects in the file", y)]
}

fn totals(runs: &[Arc<Run>]) -> Table {
    let row = |run: &Arc<Run>| {
        let s = run.last();
        vec![
            run.kind.name(),
            s.counters.created.to_string(),
            s.pages.to_string(),
            percent(s.utilization()),
            format!("{:.1}", s.disk_time(&PAPER_DISK)),
            format!("{:.2}", s.cpu),
            format!("{:.0}", time(&s, &PAPER_DISK, Cpu::Paper)),
            s.counters.looks.entries.to_string(),
            s.counters.looks.searches.to_string(),
            s.memory.to_string(),
        ]
    };
    let columns = [
        "algorithm",
        "objects",
        "pages",
        "utilization",
        "disk s",
        "processor s, measured",
        "disk + paper's processor s",
        "FSIP entries",
        "searches",
        "memory bytes",
    ];
    table("totals", "The whole run", &columns, runs.iter().map(row).collect())
}

/// Figure 4.
pub(super) fn throughput_uniform(settings: &Settings<'_>) -> Result<Outcome> {
    let kinds: Vec<Kind> = ALL_BUT_FF.into_iter().chain([NF_WH_SEARCHES]).collect();
    let runs = runs(Workload::Uniform, &kinds, settings)?;
    let panels = throughput(&runs);
    let nfwh = named(&runs, "NF(WH)")?.last();
    let hy = named(&runs, "HY(8,87)")?.last();
    let bf = named(&runs, "BF")?.last();
    let looked = nfwh.counters.looks.entries;
    let by_search = named(&runs, &NF_WH_SEARCHES.name())?.last().counters.looks.entries;
    let claims = vec![
        entries_of("M2 NF(WH) entries", looked).because(format!(
            "by the paper's words an allocation of any kind moves the cursor, on a witness too: a \
             search begins at the file's end, where most objects go, and goes round nearly all of \
             the file to a page just behind it. There are {} searches, of {:.0} entries each on \
             average, in a file that grows to {} pages",
            nfwh.counters.looks.searches,
            looked as f64 / nfwh.counters.looks.searches.max(1) as f64,
            nfwh.pages
        )),
        entries_of("M2 NF(WH) entries, cursor", by_search),
        claims::says(
            "M2 HY entries",
            &[],
            hy.counters.looks.entries.to_string(),
            hy.counters.looks.entries == 0,
        ),
        memory("M8 HY", &hy, hy.memory <= 200).remark(format!(
            "Pid cache of 8 bytes per page, histogram, cursor and search; the thresholds, one \
             table for all, apart. The engine's pid cache has {} bytes per page.",
            size_of::<holdall_core::techniques::heap_placement::Cached>()
        )),
        memory("M8 BF", &bf, bf.memory > 1_000_000),
    ];
    let mut outcome = outcome(panels, totals(&runs), claims, Workload::Uniform, settings);
    outcome.notes.push(
        "With today's processor the disk decides and FSIP searches hardly show; the second panel \
         charges the paper's: 0.65 ms per object, 10.7 µs per FSIP entry, both derived from its \
         own figures (two hours for a fill; 12 hours and 4·10⁹ entries for FF). Pages \
         left open behind the end of the file are written out of order, which costs seeks: \
         BF's most, then NF(WH)'s."
            .to_owned(),
    );
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
    let check = claims::says(
        "M2 FF entries",
        &[],
        format!("{looked:.2e} in {}", percent(f64::from(last.pages) / 256_347.0)),
        looked > 4e8,
    )
    .ratio(looked / 4e9)
    .remark(format!(
        "Each creation looks at about all pages so far: entries grow with the square of the \
             file, and 4·10⁹ are reached at {} of the volume. A search here took {:.2} ns of \
             processor time per entry, 16 entries at a time.",
        percent(reached),
        last.cpu / looked.max(1.0) * 1e9
    ));
    let claims = vec![check];
    Ok(outcome(panels, totals(&runs), claims, Workload::Uniform, settings))
}

/// Figure 6.
pub(super) fn utilization_uniform(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(Workload::Uniform, &PAPER_KINDS, settings)?;
    let end = |run: &Run| run.last().utilization();
    let others: Vec<_> = runs.iter().filter(|r| r.kind != Kind::Ao(1)).cloned().collect();
    let lowest = others.iter().map(|r| end(r)).fold(1.0, f64::min);
    let one = end(named(&runs, "AO(1)")?);
    let check = claims::says(
        "M2 utilization",
        &[],
        each(&runs, |r| percent(end(r))),
        lowest >= 0.95 && one < lowest,
    );
    let claims = vec![check];
    Ok(outcome(utilization(&runs), totals(&runs), claims, Workload::Uniform, settings))
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
    let claims = vec![
        claims::says(
            "M3 throughput",
            &[],
            format!("last quarter ÷ first, paper's processor: NF(WH) {nfwh:.2}, HY {others:.2}"),
            nfwh < 0.9 * others,
        ),
        claims::says(
            "M3 AO(1) ends early",
            &[],
            format!("AO(1) {one}, AO(8) {eight}"),
            one < eight,
        )
        .ratio(one as f64 / eight as f64),
    ];
    Ok(outcome(panels, totals(&runs), claims, Workload::Mixed, settings))
}

/// Figure 8.
pub(super) fn entries_mixed(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(Workload::Mixed, &[Kind::NfWh, Kind::Hy(8, 0.875)], settings)?;
    let curve = |run: &Run| run.rates(created, entries, created);
    let (x, y) = (axis("objects in the file"), axis("FSIP entries examined per object created"));
    let panels = vec![lines("entries", "Searches", x, y, series(&runs, curve))];
    let rates = curve(named(&runs, "NF(WH)")?);
    let (first, last) = (head(&rates), tail(&rates));
    let check = claims::says(
        "M3 search length",
        &[],
        format!("{first:.1} entries per object in the first quarter, {last:.1} in the last"),
        last > 1.5 * first,
    );
    let claims = vec![check];
    Ok(outcome(panels, totals(&runs), claims, Workload::Mixed, settings))
}

/// Figure 9.
pub(super) fn utilization_mixed(settings: &Settings<'_>) -> Result<Outcome> {
    let kinds: Vec<Kind> = PAPER_KINDS.into_iter().chain([AO_FULLEST]).collect();
    let runs = runs(Workload::Mixed, &kinds, settings)?;
    let end = |name: &str| named(&runs, name).map(|run| run.last().utilization());
    let (one, eight, hy) = (end("AO(1)")?, end("AO(8)")?, end("HY(8,87)")?);
    let dense = [end("FF")?, end("NF(WH)")?, end("BF")?];
    let claims = vec![
        claims::says(
            "M3 AO(1)",
            &[],
            each(&runs, |r| percent(r.last().utilization())),
            one + 0.05 < eight.min(hy).min(dense[0]).min(dense[1]).min(dense[2]),
        ),
        within_a_point("M3 within a point", dense, eight, hy).because(format!(
            "by the paper's words AO(8) has the 8 pages most recently added, so that a page with \
             room leaves for a full one: {} for AO(8), {} for BF",
            percent(eight),
            percent(dense[2])
        )),
        within_a_point("M3 within a point, cache", dense, end(&AO_FULLEST.name())?, hy),
    ];
    let panels = utilization(&runs);
    Ok(outcome(panels, totals(&runs), claims, Workload::Mixed, settings))
}

fn within_a_point(id: &str, dense: [f64; 3], ao: f64, hy: f64) -> Claim {
    let least = dense.iter().fold(1.0, |m: f64, &u| m.min(u - ao.max(hy))) * 100.0;
    let most = dense.iter().fold(0.0, |m: f64, &u| m.max(u - ao.min(hy))) * 100.0;
    let ours = format!("{least:.2} to {most:.2} points");
    claims::says(id, &[], ours, least > 0.0 && most < 1.0)
}
