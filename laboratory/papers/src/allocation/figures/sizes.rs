//! Figure 13, and how figures of sizes are drawn (Iyengar §3.2, §4.4). Owns no state.

use super::throughput::loads;
use super::{described, ranks};
use crate::allocation::workload::Pareto;
use anyhow::Result;
use holdall_instrument::draw::{axis, bars, series};
use holdall_instrument::experiment::{Outcome, Settings};
use holdall_instrument::picture::Panel;
use rand::SeedableRng;
use rand::rngs::SmallRng;

/// How many objects there are of each size; two bars to a doubling.
pub(super) fn histogram(id: &str, title: &str, sizes: &[usize], caption: &str) -> Panel {
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
    described(bars(id, title, x, y, vec![series("objects", points)]), caption)
}

/// Figure 13.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for load in loads() {
        let mut rng = SmallRng::seed_from_u64(settings.seed);
        let sizes: Vec<usize> = (0..100_000).map(|_| load.sizes.draw(&mut rng)).collect();
        let mean = sizes.iter().sum::<usize>() as f64 / sizes.len() as f64;
        let Pareto { alpha, scale, cutoff } = load.sizes;
        let caption = format!(
            "100,000 draws with α = {alpha}, k = {scale:.0}, C = {cutoff:.0} bytes: their mean is \
             {mean:.0} bytes."
        );
        outcome.panels.push(histogram(load.id, load.name, &sizes, &caption));
    }
    outcome.notes.push(
        "Figure 13 has the proxy log itself, which is drawn here from the α and the mean that the \
         paper prints beneath it; the Olympic Games' objects stand beside it for comparison."
            .to_owned(),
    );
    Ok(outcome)
}
