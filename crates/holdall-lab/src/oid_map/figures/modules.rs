//! Linear and matrix placement by size of the module (Eickler figure 10). Owns no state.

use anyhow::Result;

use super::super::workload::Technique;
use super::runs::{self, MODULES};
use crate::experiment::{Outcome, Settings};
use crate::kit::claim::{between, finish, holds, note, ratio};
use crate::kit::draw::{axis, lines, log_axis, number, paper_points, series};

pub fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let all = runs::all(settings, true)?;
    let of = |technique: Technique, what: usize| -> Vec<(f64, f64)> {
        let rates = &all[technique as usize].modules;
        MODULES.iter().zip(rates).map(|(&m, r)| (m as f64, r[what])).collect()
    };
    let mut outcome = Outcome::default();
    let direct = [Technique::RandomDirect, Technique::LinearDirect, Technique::MatrixDirect];
    for (what, id, title) in [
        (0, "scan", "Sequential, in steady use"),
        (1, "cold", "Sequential, buffer empty before each module"),
        (2, "select", "Random"),
    ] {
        let mut drawn: Vec<_> = direct.map(|t| series(t.name(), of(t, what))).into();
        if what == 2 {
            let points = vec![(5.0, 1.5 / 5.0), (1000.0, 0.118)];
            drawn.push(paper_points("clDM, the paper's sums", points));
        }
        let (x, y) = (log_axis("pages per module"), axis("faults per request"));
        outcome.panels.push(lines(id, title, x, y, drawn));
    }
    let (linear, matrix) = (of(Technique::LinearDirect, 2), of(Technique::MatrixDirect, 2));
    let last = MODULES.len() - 1;
    let small = "Random, modules of 5 pages";
    let unit = "faults per request";
    let equal = matrix[last].1 / linear[last].1;
    let text = "Random, modules of 5,000 pages: matrix against linear";
    outcome.claims = vec![
        ratio("E6 linear, small", small, 0.3, linear[0].1, unit, 0.15),
        holds(
            "E6 matrix, small",
            small,
            "more than 4/5",
            number(matrix[0].1),
            "at least 0.8",
            matrix[0].1 >= 0.8,
        )
        .because(format!("It is {}.", number(matrix[0].1))),
        between("E6 large", text, "the same", equal, "×", 0.85, 1.15),
    ];
    let (steady, cold) = (most(&of, 0), most(&of, 1));
    let text = "scan: faults of linear over matrix placement, at the best module size";
    let why = format!(
        "With an empty buffer it is {} and cannot exceed the 20 slots of a data page. In steady use \
         the {} pages of the first slots are all that a scan needs, and a buffer of {} pages keeps \
         many of them from one scan to the next. So the ratio depends on how long one measures; \
         the paper's 25 lies between the two.",
        number(cold),
        all[Technique::MatrixDirect as usize].used / 20,
        runs::scaled(1000, runs::objects(true, settings.quick)),
    );
    outcome.claims.push(between("E7", text, "up to 25 ×", steady, "×", 20.0, 30.0).because(why));
    let text = "the same with an empty buffer before each module";
    outcome.claims.push(note("E7 cold", text, "", format!("{} ×", number(cold))));
    outcome.notes.push(
        "Random here asks for an object of every page of the module, in random order: the paper's \
         sums for 5 and 1,000 pages do so. Buffer: 1,000 pages for 5,000,000 objects."
            .to_owned(),
    );
    Ok(finish(outcome, settings.quick))
}

/// The largest ratio of linear to matrix over all module sizes.
fn most(of: &impl Fn(Technique, usize) -> Vec<(f64, f64)>, what: usize) -> f64 {
    let (linear, matrix) = (of(Technique::LinearDirect, what), of(Technique::MatrixDirect, what));
    linear.iter().zip(&matrix).map(|(l, m)| l.1 / m.1.max(1e-6)).fold(0.0, f64::max)
}
