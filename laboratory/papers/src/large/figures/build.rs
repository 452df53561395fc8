//! Figures 5 and 6: building a 10 MiB object by appends, and scanning it (Biliris §4.2, §4.3).

use std::fmt::Display;

use anyhow::Result;
use holdall_instrument::picture::{Panel, Scale};
use holdall_testkit::{CostModel, DiskStats};

use super::mix_claims::span;
use crate::kit::{claims, notes};
use crate::large::runs::{BuildAndScan, MIB, OBJECT, SIZES, build_and_scan, esm};
use crate::large::store::Config;
use crate::large::technique::Technique;
use holdall_instrument::draw::{axis_of, lines, number, paper_points, series};
use holdall_instrument::experiment::{Claim, Outcome, Settings};

/// Append and scan sizes in KiB (the paper's footnote 2).
pub(super) const KIB: [u64; 21] =
    [3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 50, 64, 100, 128, 200, 256, 512];
/// Those of a quick run.
const KIB_QUICK: [u64; 8] = [3, 4, 5, 16, 50, 64, 256, 512];

/// Every technique at every size.
struct Sweep {
    sizes: Vec<u64>,
    /// ESM's four, Starburst, EOS: in the order of [`Sweep::techniques`].
    results: Vec<Vec<BuildAndScan>>,
}

impl Sweep {
    fn techniques() -> [Technique; 6] {
        let [a, b, c, d] = esm();
        [a, b, c, d, Technique::Starburst, Technique::Eos(4)]
    }

    fn run(settings: &Settings<'_>) -> Result<Self> {
        let sizes = if settings.quick { KIB_QUICK.to_vec() } else { KIB.to_vec() };
        let total = (sizes.len() * Self::techniques().len()) as u64;
        let mut results = Vec::new();
        for (turn, technique) in Self::techniques().into_iter().enumerate() {
            let mut row = Vec::new();
            for (at, kib) in sizes.iter().enumerate() {
                row.push(build_and_scan(technique, Config::default(), OBJECT, kib * 1024)?);
                (settings.progress)((turn * sizes.len() + at + 1) as u64, total);
            }
            results.push(row);
        }
        Ok(Self { sizes, results })
    }

    fn seconds(&self, technique: usize, kib: u64, of: fn(&BuildAndScan) -> DiskStats) -> f64 {
        let at = self.sizes.iter().position(|s| *s == kib).unwrap_or(0);
        CostModel::default().time_ms(&of(&self.results[technique][at])) / 1000.0
    }

    fn panel(
        &self,
        id: &str,
        title: &str,
        model: &CostModel,
        of: fn(&BuildAndScan) -> DiskStats,
    ) -> Panel {
        let names = ["ESM 1", "ESM 4", "ESM 16", "ESM 64", "Starburst", "EOS"];
        let all = self.results.iter().zip(names).map(|(row, name)| {
            let points = self.sizes.iter().zip(row);
            series(name, points.map(|(k, r)| (*k as f64, model.time_ms(&of(r)) / 1000.0)).collect())
        });
        let x = axis_of("append or scan size (KiB, powers of two)", Scale::Log2);
        let y = axis_of("seconds (powers of ten)", Scale::Log10);
        lines(id, title, x, y, all.collect())
    }
}

/// A panel of figure 5 and one of figure 6 by another cost model.
pub(super) fn panels_by(settings: &Settings<'_>, model: &CostModel) -> Result<Vec<Panel>> {
    let sweep = Sweep::run(settings)?;
    Ok(vec![
        sweep.panel("build", "Building 10 MiB", model, |r| r.build),
        sweep.panel("scan", "Scanning 10 MiB", model, |r| r.scan),
    ])
}

/// Figure 5.
pub(super) fn building(settings: &Settings<'_>) -> Result<Outcome> {
    let sweep = Sweep::run(settings)?;
    let model = CostModel::default();
    let mut panel =
        sweep.panel("biliris-5", "Building a 10 MiB object by appends", &model, |r| r.build);
    let said = vec![(3.0, 575.0), (4.0, 170.0), (5.0, 380.0)];
    panel.series.push(paper_points("paper: ESM 1", said));
    let panels = vec![panel];
    let mut claims = by_size(&sweep);
    claims.push(never_worse(&sweep, "B6", |r| r.build));
    claims.extend(linear(&sweep, settings.quick)?);
    let notes = notes::of("biliris-5", &[]);
    Ok(Outcome { panels, claims, notes, ..Outcome::default() })
}

fn by_size(sweep: &Sweep) -> Vec<Claim> {
    let mut claims = Vec::new();
    for kib in [3, 4, 5] {
        let ours = sweep.seconds(0, kib, |r| r.build);
        let mut claim = claims::measures("B4 {0} KiB", &[&kib], ours);
        // The list of claims has it as one of closed form, which means 3 %.
        if kib == 4 {
            claim.tolerance = format!("= {}", claim.tolerance);
        }
        claims.push(claim);
    }
    for (kib, best) in [4, 16, 64, 256].into_iter().zip(SIZES) {
        let times: Vec<f64> = (0..4).map(|t| sweep.seconds(t, kib, |r| r.build)).collect();
        let ours = (0..4).min_by(|a, b| times[*a].total_cmp(&times[*b])).unwrap_or(0);
        let found = format!("{} pages", SIZES[ours]);
        let so = SIZES[ours] == best;
        claims.push(claims::says("B5 {0} KiB", &[&kib, &best], found, so));
    }
    claims
}

fn never_worse(sweep: &Sweep, id: &str, of: fn(&BuildAndScan) -> DiskStats) -> Claim {
    let mut worst = (0.0, 0);
    let mut equal = true;
    for kib in &sweep.sizes {
        let best = (0..4).map(|t| sweep.seconds(t, *kib, of)).fold(f64::MAX, f64::min);
        let (starburst, eos) = (sweep.seconds(4, *kib, of), sweep.seconds(5, *kib, of));
        equal &= (starburst - eos).abs() < 1e-9;
        if starburst / best > worst.0 {
            worst = (starburst / best, *kib);
        }
    }
    let ours = format!(
        "Starburst {} EOS; at most {:.3} of the best ESM (at {} KiB)",
        if equal { "=" } else { "≠" },
        worst.0,
        worst.1
    );
    claims::says(id, &[], ours, equal && worst.0 <= 1.0 + 1e-9)
}

/// B7: 100 MiB over 10 MiB.
fn linear(sweep: &Sweep, quick: bool) -> Result<Vec<Claim>> {
    let chosen = if quick { &[2, 5][..] } else { &[0, 1, 2, 3, 4, 5] };
    let mut claims = Vec::new();
    for &turn in chosen {
        let technique = Sweep::techniques()[turn];
        let mut found = Vec::new();
        let sizes = sweep.sizes.iter().zip(&sweep.results[turn]);
        for (kib, small) in sizes.filter(|(kib, _)| !quick || **kib >= 256) {
            let large = build_and_scan(technique, Config::default(), 100 * MIB, kib * 1024)?;
            found.push((*kib, *small, large));
        }
        claims.push(linear_claim(technique, &found));
    }
    Ok(claims)
}

/// From the sizes of appends, and what they came to for 10 and for 100 MiB.
fn linear_claim(technique: Technique, found: &[(u64, BuildAndScan, BuildAndScan)]) -> Claim {
    let time = |stats: DiskStats| CostModel::default().time_ms(&stats);
    let times = |row: &(u64, BuildAndScan, BuildAndScan)| time(row.2.build) / time(row.1.build);
    let off = |row: &_| (times(row) / 10.0 - 1.0).abs();
    let within = found.iter().filter(|row| off(row) <= 0.03).count();
    let worst = found.iter().max_by(|a, b| off(a).total_cmp(&off(b)));
    let Some(worst @ (kib, small, large)) = worst else {
        return claims::says("B7", &[], "no size was run", true);
    };
    let (of, most) = (found.len(), number(times(worst)));
    let ours = format!("within 3 % at {within} of {of} append sizes; {most} times at {kib} KiB");
    let leaves = time(large.build - large.index) / time(small.build - small.index);
    let (name, leaves) = (technique.name(), number(leaves));
    let index = [small.index.writes, large.index.writes];
    let words: [&dyn Display; 5] = [&name, kib, &leaves, &index[0], &index[1]];
    claims::says("B7 {0}", &words, ours, within == of).ratio(times(worst) / 10.0)
}

/// Figure 6.
pub(super) fn scanning(settings: &Settings<'_>) -> Result<Outcome> {
    let sweep = Sweep::run(settings)?;
    let mut panel =
        sweep.panel("biliris-6", "Scanning a 10 MiB object", &CostModel::default(), |r| r.scan);
    panel.series.push(paper_points("paper: the best possible", vec![(512.0, 10.0)]));
    let panels = vec![panel];
    let scan = |t, kib| sweep.seconds(t, kib, |r: &BuildAndScan| r.scan);
    let least = (0..6).map(|t| scan(t, 512)).fold(f64::MAX, f64::min);
    let mut claims = vec![claims::measures("B8 best", &[], least)];
    let within = |all: &[f64]| {
        let (low, high) = span(all);
        (format!("{}–{} s", number(low), number(high)), high / low <= 1.1)
    };
    let (range, so) = within(&(0..6).map(|t| scan(t, 3)).collect::<Vec<_>>());
    claims.push(claims::says("B8 short", &[], range, so));
    let one: Vec<f64> = sweep.sizes.iter().filter(|k| **k > 4).map(|k| scan(0, *k)).collect();
    let (range, so) = within(&one);
    claims.push(claims::says("B8 1-page", &[], range, so));
    for (technique, pages) in SIZES.into_iter().enumerate().skip(1) {
        let (at, end) = (scan(technique, u64::from(pages) * 4), scan(technique, 512));
        let ours = format!("{} s at one leaf, {} s at 512 KiB", number(at), number(end));
        claims.push(claims::says("B8 {0}-page", &[&pages], ours, (end / at - 1.0).abs() <= 0.1));
    }
    claims.push(never_worse(&sweep, "B8 order", |r| r.scan));
    let notes = notes::of("biliris-6", &[]);
    Ok(Outcome { panels, claims, notes, ..Outcome::default() })
}
