//! Linear and matrix placement by size of the module (Eickler figure 10). Owns no state.

use anyhow::Result;

use super::super::workload::Technique;
use super::runs::{self, MODULES, What};
use crate::kit::claims;
use holdall_instrument::draw::{axis, lines, log_axis, number, paper_points, series};
use holdall_instrument::experiment::{Claim, Outcome, Settings};

pub fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let all = runs::all(settings, true)?;
    let of = |technique: Technique, what: What| -> Vec<(f64, f64)> {
        let rates = &all[technique as usize].modules;
        MODULES.iter().zip(rates).map(|(&m, r)| (m as f64, r[what as usize])).collect()
    };
    let mut outcome = Outcome::default();
    let direct = [Technique::RandomDirect, Technique::LinearDirect, Technique::MatrixDirect];
    for (what, id, title) in [
        (What::Scan, "scan", "Sequential, in steady use"),
        (What::Cold, "cold", "Sequential, buffer empty before each module"),
        (What::Select, "select", "Random, every page of a module"),
        (What::Five, "five", "Random, five pages of a module"),
    ] {
        let mut drawn: Vec<_> = direct.map(|t| series(t.name(), of(t, what))).into();
        drawn.push(paper_points("clDM, the paper's sums", vec![(5.0, 0.3), (1000.0, 0.118)]));
        if matches!(what, What::Select | What::Five) {
            drawn.push(paper_points("cmDM, more than", vec![(5.0, 0.8)]));
        }
        let (x, y) = (log_axis("pages per module"), axis("faults per request"));
        outcome.panels.push(lines(id, title, x, y, drawn));
    }
    let last = MODULES.len() - 1;
    let [linear, matrix] = [Technique::LinearDirect, Technique::MatrixDirect];
    let ours = of(matrix, What::Five)[0].1;
    let equal = |what| of(matrix, what)[last].1 / of(linear, what)[last].1;
    outcome.claims = vec![
        claims::measures("E6 linear, small", &[], of(linear, What::Five)[0].1),
        claims::says("E6 matrix, small", &[], number(ours), ours >= 0.8)
            .because(format!("It is {}.", number(ours))),
        claims::measures("E6 large, five", &[], equal(What::Five)),
        claims::measures("E6 large", &[], equal(What::Select)),
    ];
    let best = |what: What| most(&of(linear, what), &of(matrix, what));
    outcome.claims.extend(scans(&best, all[matrix as usize].used / 20, settings));
    outcome.notes.push(
        "Buffer: 1,000 pages for 5,000,000 objects. E6's small modules have five pages, so that \
         both readings of Random ask for all of them."
            .to_owned(),
    );
    Ok(outcome)
}

/// E7, whose figure depends on the length of the run.
fn scans(best: &dyn Fn(What) -> f64, first_slots: u64, settings: &Settings<'_>) -> Vec<Claim> {
    let why = format!(
        "The figure depends on the length of the run, which the paper does not give: {} here, {} \
         with an empty buffer, {} over ten times as many requests. The {first_slots} pages of the \
         first slots are all that scans need, and a buffer of {} pages keeps ever more of them.",
        number(best(What::Scan)),
        number(best(What::Cold)),
        number(best(What::Long)),
        runs::scaled(1000, runs::objects(true, settings.quick)),
    );
    vec![
        claims::measures("E7", &[], best(What::Scan)).remark(why),
        claims::measures("E7 cold", &[], best(What::Cold)),
        claims::measures("E7 long", &[], best(What::Long)),
    ]
}

/// The largest ratio over all module sizes.
fn most(linear: &[(f64, f64)], matrix: &[(f64, f64)]) -> f64 {
    linear.iter().zip(matrix).map(|(l, m)| l.1 / m.1.max(1e-6)).fold(0.0, f64::max)
}
