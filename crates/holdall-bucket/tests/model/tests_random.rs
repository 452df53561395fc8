//! Bounded runs of the random engine.

use crate::random::{Tally, run, trace};
use std::time::{Duration, Instant};

/// Runs of a usual test.
const RUNS: u64 = 20_000;
/// Steps printed of a run that fails.
const PRINTED: usize = 200;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn bounded_random() {
    if let Some(seed) = number("HOLDALL_MODEL_SEED") {
        let failure = trace(seed, None, None);
        println!("{failure:#?}");
        assert!(failure.is_none(), "seed {seed}");
        return;
    }
    let (begun, mut sum) = (Instant::now(), Tally::default());
    let most = Duration::from_secs(number("HOLDALL_MODEL_SECONDS").unwrap_or(0));
    for seed in 0.. {
        if seed >= RUNS && begun.elapsed() >= most {
            break;
        }
        match run(seed, None, None) {
            Ok(tally) => sum.add(tally),
            Err(why) => fail(seed, &why),
        }
    }
    println!("{sum:?} in {:?}", begun.elapsed());
}

fn fail(seed: u64, why: &str) {
    let steps = trace(seed, None, None).map(|failure| failure.trace).unwrap_or_default();
    let last = steps.len().saturating_sub(PRINTED);
    panic!("seed {seed}: {why}\n{}", steps[last..].join("\n"));
}
