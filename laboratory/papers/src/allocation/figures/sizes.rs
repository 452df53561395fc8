//! Figure 13, and how figures of sizes are drawn (Iyengar §3.2, §4.4). Owns no state.

use super::ranks;
use super::throughput::loads;
use crate::allocation::workload::Pareto;
use crate::kit::notes;
use anyhow::Result;
use holdall_instrument::draw::{axis, bars, series};
use holdall_instrument::experiment::{Outcome, Settings};
use holdall_instrument::picture::Panel;
use rand::SeedableRng;
use rand::rngs::SmallRng;

/// How many objects there are of each size; two bars to a doubling.
pub(super) fn histogram(id: &str, title: &str, sizes: &[usize]) -> Panel {
    let rank = |size: usize| ((size.max(1) as f64).log2() * 2.0).ceil() as usize;
    let ranked = || sizes.iter().map(|&size| rank(size));
    let first = ranked().min().unwrap_or_default();
    let mut counts = vec![0.0; ranked().max().unwrap_or_default() - first + 1];
    for rank in ranked() {
        counts[rank - first] += 100.0 / sizes.len() as f64;
    }
    let most = |i: usize| 2f64.powf((first + i) as f64 / 2.0);
    let x = ranks("bytes, at most", (0..counts.len()).map(|i| format!("{:.0}", most(i))));
    let points = counts.into_iter().enumerate().map(|(i, share)| (i as f64, share)).collect();
    let y = axis("share of the objects (%)");
    bars(id, title, x, y, vec![series("objects", points)])
}

/// Figure 13.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for load in loads() {
        let mut rng = SmallRng::seed_from_u64(settings.seed);
        let sizes: Vec<usize> = (0..100_000).map(|_| load.sizes.draw(&mut rng)).collect();
        let mean = sizes.iter().sum::<usize>() as f64 / sizes.len() as f64;
        let Pareto { alpha, scale, cutoff } = load.sizes;
        outcome.panels.push(histogram(load.id, load.name, &sizes));
        let [k, c, mean] = [scale, cutoff, mean].map(|bytes| format!("{bytes:.0}"));
        outcome.notes.extend(notes::of("iyengar-13 draws", &[&load.name, &alpha, &k, &c, &mean]));
    }
    outcome.notes.extend(notes::of("iyengar-13", &[]));
    Ok(outcome)
}
