//! Linear and matrix placement by size of the module (Eickler figure 10). Owns no state.

use anyhow::Result;

use super::super::workload::Technique;
use super::runs::{self, MODULES, What};
use crate::kit::{claims, notes, plot::from_zero};
use holdall_instrument::draw::{log_axis, number, paper_points, series};
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
        drawn.push(paper_points("paper: clDM", vec![(5.0, 0.3), (1000.0, 0.118)]));
        if matches!(what, What::Select | What::Five) {
            drawn.push(paper_points("paper: cmDM", vec![(5.0, 0.8)]));
        }
        let x = log_axis("pages per module");
        outcome.panels.push(from_zero([id, title], x, "faults per request", drawn));
    }
    let curves = |what| direct.map(|technique| of(technique, what));
    let [random, linear, matrix] = curves(What::Five).map(|curve| curve[0].1);
    let ours = format!("{}; random placement {}", number(matrix), number(random));
    outcome.claims = vec![
        claims::measures("E6 linear, small", &[], linear),
        claims::says("E6 matrix, small", &[], ours, matrix >= 0.8 && matrix < random),
    ];
    for (what, reading) in [(What::Five, "five pages"), (What::Select, "every page")] {
        outcome.claims.extend(larger(&curves(what), reading));
    }
    let best = |what| most(&of(Technique::LinearDirect, what), &of(Technique::MatrixDirect, what));
    outcome.claims.extend(scans(&best, all[Technique::MatrixDirect as usize].used / 20, settings));
    outcome.notes.extend(notes::of("eickler-10", &[]));
    Ok(outcome)
}

/// What E6 says of larger modules under a reading of Random, from the curves of random, linear and
/// matrix placement.
fn larger(curves: &[Vec<(f64, f64)>; 3], reading: &str) -> [Claim; 2] {
    let last = MODULES.len() - 1;
    let [random, linear, matrix] = [0, 1, 2].map(|n| curves[n][last].1);
    // Modules of 2,000 pages have 50 transactions, some of which meet a module in the buffer.
    let falls = |curve: &[(f64, f64)]| {
        let steps = curve.windows(2).all(|w| w[1].1 <= w[0].1 * 1.05);
        steps && curve[last].1 < curve[0].1 / 2.0
    };
    let ends = |curve: &[(f64, f64)]| {
        format!("{} at 5 pages, {} at 5,000", number(curve[0].1), number(curve[last].1))
    };
    let ours = format!("linear {}; matrix {}", ends(&curves[1]), ends(&curves[2]));
    let why = format!(
        "Five requests of a module of 5,000 pages spread over its 100,000 handles, on 589 pages: \
         each finds another page, and the buffer holds no more of them than under random \
         placement, which has {}.",
        number(random)
    );
    let of = matrix / linear;
    let equal = (0.85..=1.15).contains(&of) && linear.max(matrix) <= random / 2.0;
    let alike = format!("{} ×; linear {}, random {}", number(of), number(linear), number(random));
    [
        ("E6 improves, {0}", ours, falls(&curves[1]) && falls(&curves[2])),
        ("E6 large, {0}", alike, equal),
    ]
    .map(|(id, ours, so)| claims::says(id, &[&reading], ours, so).because(&why))
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
        claims::measures("E7", &[], best(What::Scan)).because(why),
        claims::measures("E7 cold", &[], best(What::Cold)),
        claims::measures("E7 long", &[], best(What::Long)),
    ]
}

/// The largest ratio over all module sizes.
fn most(linear: &[(f64, f64)], matrix: &[(f64, f64)]) -> f64 {
    linear.iter().zip(matrix).map(|(l, m)| l.1 / m.1.max(1e-6)).fold(0.0, f64::max)
}
