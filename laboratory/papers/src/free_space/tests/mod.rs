//! Every experiment runs, alone and small, and says what it should; the suite for every algorithm,
//! the page, and the paper's rules.

mod conformance;
mod page;
mod rules;

use holdall_instrument::experiment::{Outcome, Settings};
use holdall_instrument::parts::NoParts;
use holdall_instrument::price::{DiskPrice, Price};
use std::collections::BTreeSet;

fn quick(id: &str) -> Outcome {
    let settings = Settings {
        quick: true,
        seed: 5,
        repetitions: 1,
        price: &DiskPrice::given(Price::QUICK, "given"),
        parts: &NoParts,
        dir: &std::env::temp_dir(),
        progress: &|done, of| assert!(done <= of),
    };
    let all = (super::PAPER.experiments)();
    let experiment = all.iter().find(|e| e.id() == id).unwrap();
    experiment.run(&settings).unwrap()
}

#[test]
fn ids_are_unique_and_every_figure_is_there() {
    let ids: BTreeSet<_> = (super::PAPER.experiments)().iter().map(|e| e.id()).collect();
    assert_eq!(ids.len(), (super::PAPER.experiments)().len());
    for figure in 4..=16 {
        assert!(ids.contains(&*format!("mcauliffe-{figure}")), "{figure}");
    }
}

#[test]
fn quick_runs_give_full_outcomes() {
    for experiment in (super::PAPER.experiments)() {
        let outcome = quick(experiment.id());
        assert!(!outcome.notes.is_empty(), "{}", experiment.id());
        for panel in &outcome.panels {
            assert!(!panel.series.is_empty(), "{}", panel.id);
            for series in &panel.series {
                let finite = |p: &(f64, f64)| p.0.is_finite() && p.1.is_finite();
                assert!(!series.points.is_empty(), "{} {}", experiment.id(), series.name);
                assert!(series.points.iter().all(finite), "{} {}", experiment.id(), series.name);
            }
        }
        for table in &outcome.tables {
            assert!(table.rows.iter().all(|row| row.len() == table.head.len()), "{}", table.id);
        }
    }
}

/// The appendix's law holds at a tenth of the size too, within what its own sum says.
#[test]
fn append_only_tends_to_the_harmonic_law() {
    let outcome = quick("mcauliffe-appendix");
    for row in &outcome.tables[0].rows {
        let number = |i: usize| row[i].trim_end_matches(" %").parse::<f64>().unwrap();
        assert!((number(3) - number(4)).abs() < 3.0, "{row:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_counts() {
    use super::algorithm::Kind;
    use super::heap_file::Options;
    use super::workload::{Churn, Sizes, churn};
    let params = Churn {
        objects: 3000,
        sizes: Sizes::Mixed,
        streams: 4,
        transactions: 400,
        batch: (8, 16),
        random: true,
        filler: Kind::Ao(8),
        options: Options { pool_pages: 20, ..Options::default() },
        disk: holdall_testkit::CostModel::default(),
        seed: 9,
    };
    for kind in Kind::all() {
        let a = churn(kind, &params, &|_| ()).unwrap().last();
        let b = churn(kind, &params, &|_| ()).unwrap().last();
        assert_eq!((a.counters, a.disk, a.pages), (b.counters, b.disk, b.pages));
        assert!(a.counters.created > 3000 && a.counters.deleted > 0);
    }
}
