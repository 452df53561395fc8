//! Figures 5 and 6: building a 10 MiB object by appends, and scanning it (Biliris §4.2, §4.3).

use anyhow::Result;
use holdall_plot::Scale;
use holdall_testkit::{CostModel, DiskStats};

use crate::experiment::{Claim, Experiment, Outcome, Settings};
use crate::kit::claim::{holds, ratio};
use crate::kit::draw::{axis_of, lines, number, series};
use crate::large::runs::{BuildAndScan, MIB, OBJECT, SIZES, build_and_scan, esm};
use crate::large::store::Config;
use crate::large::technique::Technique;

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
    ) -> holdall_plot::Panel {
        let names = ["ESM 1", "ESM 4", "ESM 16", "ESM 64", "Starburst", "EOS"];
        let all = self.results.iter().zip(names).map(|(row, name)| {
            let points = self.sizes.iter().zip(row);
            series(name, points.map(|(k, r)| (*k as f64, model.time_ms(&of(r)) / 1000.0)).collect())
        });
        let x = axis_of("append or scan size (KiB)", Scale::Log2);
        lines(id, title, x, axis_of("seconds", Scale::Log10), all.collect())
    }
}

/// A panel of figure 5 and one of figure 6 by another cost model.
pub(super) fn panels_by(
    settings: &Settings<'_>,
    model: &CostModel,
) -> Result<Vec<holdall_plot::Panel>> {
    let sweep = Sweep::run(settings)?;
    Ok(vec![
        sweep.panel("build", "Building 10 MiB", model, |r| r.build),
        sweep.panel("scan", "Scanning 10 MiB", model, |r| r.scan),
    ])
}

/// Figure 5.
pub struct Build;

impl Experiment for Build {
    fn id(&self) -> &'static str {
        "biliris-5"
    }

    fn title(&self) -> &'static str {
        "Building a 10 MiB object by appends (Biliris figure 5)"
    }

    fn run(&self, settings: &Settings<'_>) -> Result<Outcome> {
        let sweep = Sweep::run(settings)?;
        let model = CostModel::default();
        let panels = vec![sweep.panel("biliris-5", self.title(), &model, |r| r.build)];
        let mut claims = by_size(&sweep);
        claims.push(never_worse(&sweep, "B6", |r| r.build));
        claims.extend(linear(settings.quick)?);
        let notes = vec![
            "An append that overflows the last leaf lays out anew what the paper says; a leaf that \
             only loses bytes at its end is not written again, one that only gains some is written \
             in place from its last page on; a leaf written is not kept in the pool."
                .into(),
            "Starburst and EOS double segments from the first append's size on and fill the last \
             page in place: their lines lie on each other."
                .into(),
        ];
        Ok(Outcome { panels, claims, notes, ..Outcome::default() })
    }
}

fn by_size(sweep: &Sweep) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (kib, paper, tolerance) in [(3, 575.0, 0.10), (4, 170.0, 0.03), (5, 380.0, 0.10)] {
        let ours = sweep.seconds(0, kib, |r| r.build);
        let text = format!("build time of ESM with 1-page leaves, appends of {kib} KiB");
        let mut claim = ratio(&format!("B4 {kib} KiB"), &text, paper, ours, "s", tolerance);
        // The list of claims has it as one of closed form, which means 3 %.
        if kib == 4 {
            claim.tolerance = format!("= {}", claim.tolerance);
        }
        claims.push(claim);
    }
    for (kib, best) in [4, 16, 64, 256].into_iter().zip(SIZES) {
        let times: Vec<f64> = (0..4).map(|t| sweep.seconds(t, kib, |r| r.build)).collect();
        let ours = (0..4).min_by(|a, b| times[*a].total_cmp(&times[*b])).unwrap_or(0);
        let id = format!("B5 {kib} KiB");
        let text = format!("best leaf of ESM for appends of {kib} KiB");
        let found = format!("{} pages", SIZES[ours]);
        claims.push(holds(&id, &text, &format!("{best} pages"), found, "=", SIZES[ours] == best));
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
    let text = "Starburst and EOS cost the same, and no more than the best ESM, at every size";
    holds(id, text, "holds", ours, "=", equal && worst.0 <= 1.0 + 1e-9)
        .because("see the size named: the difference is in accesses, not in pages")
}

fn linear(quick: bool) -> Result<Vec<Claim>> {
    let techniques = if quick { vec![Technique::Eos(4)] } else { Sweep::techniques().to_vec() };
    let model = CostModel::default();
    let mut claims = Vec::new();
    for technique in techniques {
        for kib in [64, 512] {
            let time = |size| -> Result<f64> {
                Ok(model.time_ms(
                    &build_and_scan(technique, Config::default(), size, kib * 1024)?.build,
                ))
            };
            let found = time(100 * MIB)? / time(OBJECT)?;
            let id = format!("B7 {} {kib} KiB", technique.name());
            let text = "building 100 MiB costs ten times as much as 10 MiB";
            claims.push(ratio(&id, text, 10.0, found, "times", 0.03).because(
                "not to be reached by the paper's own rules. Up to 507 leaves the root is all the \
                 index there is, and it is not flushed (§3.3); behind that every append writes an \
                 index page, 37 ms more. With 16-page leaves and appends of 64 KiB, 97 ms each, \
                 that begins at 32 of 100 MiB, so that 100 MiB cost 10 × (1 + 0.68 × 37 / 97) = \
                 12.6 times as much; with 4-page leaves it begins at 8 MiB. The paper gives the \
                 same levels (§4.2); its ten times is a rule of thumb",
            ));
        }
    }
    Ok(claims)
}

/// Figure 6.
pub struct Scan;

impl Experiment for Scan {
    fn id(&self) -> &'static str {
        "biliris-6"
    }

    fn title(&self) -> &'static str {
        "Scanning a 10 MiB object (Biliris figure 6)"
    }

    fn run(&self, settings: &Settings<'_>) -> Result<Outcome> {
        let sweep = Sweep::run(settings)?;
        let panels =
            vec![sweep.panel("biliris-6", self.title(), &CostModel::default(), |r| r.scan)];
        let scan = |t, kib| sweep.seconds(t, kib, |r: &BuildAndScan| r.scan);
        let least = (0..6).map(|t| scan(t, 512)).fold(f64::MAX, f64::min);
        let text = "the best possible scan is the transfer of 10 MiB";
        let mut claims = vec![ratio("B8 best", text, 10.24, least, "s", 0.10)];
        let one: Vec<f64> = sweep.sizes.iter().filter(|k| **k > 4).map(|k| scan(0, *k)).collect();
        let (low, high) = one.iter().fold((f64::MAX, 0.0f64), |(l, h), t| (l.min(*t), h.max(*t)));
        let text = "ESM with 1-page leaves costs the same at every scan size above a page";
        let range = format!("{}–{} s", number(low), number(high));
        claims.push(holds("B8 1-page", text, "independent", range, "10 %", high / low <= 1.1));
        for (technique, pages) in SIZES.into_iter().enumerate().skip(1) {
            let (at, end) = (scan(technique, u64::from(pages) * 4), scan(technique, 512));
            let text = format!("{pages}-page leaves: a plateau from a scan size of one leaf on");
            let ours = format!("{} s at one leaf, {} s at 512 KiB", number(at), number(end));
            let id = format!("B8 {pages}-page");
            claims.push(holds(&id, &text, "plateau", ours, "10 %", (end / at - 1.0).abs() <= 0.1));
        }
        claims.push(never_worse(&sweep, "B8 order", |r| r.scan));
        let notes = vec![
            "Each scan is of the object built by appends of the same size, with the pool as the \
             build left it."
                .into(),
        ];
        Ok(Outcome { panels, claims, notes, ..Outcome::default() })
    }
}
