//! Bounded runs of the random engine.
//!
//! Owns: how many seeds, and what is printed of one that fails.

use crate::random::{run, trace};
use crate::tally::Tally;
use std::time::{Duration, Instant};

/// Seeds of a usual test: some 15 seconds.
const RUNS: u64 = 20_000;
/// Steps printed of a run that fails.
const PRINTED: usize = 200;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn bounded_random() {
    if let Some(seed) = number("HOLDALL_MODEL_SEED") {
        let (steps, wrong) = trace(seed);
        println!("{}", steps.join("\n"));
        assert!(wrong.is_none(), "seed {seed}: {wrong:?}");
        return;
    }
    let (begun, mut sum) = (Instant::now(), Tally::default());
    let most = Duration::from_secs(number("HOLDALL_MODEL_SECONDS").unwrap_or(0));
    for seed in 0.. {
        if seed >= RUNS && begun.elapsed() >= most {
            break;
        }
        match run(seed, None) {
            Ok(tally) => sum.add(tally),
            Err(why) => fail(seed, &why),
        }
    }
    println!("{sum:?} in {:?}", begun.elapsed());
    // A generator that no longer does anything must not pass.
    assert!(sum.steps / sum.runs > 400, "{sum:?}");
    assert!(sum.done / sum.runs > 20 && sum.lost / sum.runs > 10, "{sum:?}");
    assert!(sum.unknown / sum.runs > 1 && sum.crashed / sum.runs > 0, "{sum:?}");
    assert!(sum.late / sum.runs > 5 && sum.blobs_deleted / sum.runs > 10, "{sum:?}");
    assert!(sum.records_removed / sum.runs > 0 && sum.held / sum.runs > 2, "{sum:?}");
    assert!(sum.trees / sum.runs > 1 && sum.joints * 10 > sum.runs, "{sum:?}");
}

#[test]
fn a_seed_gives_the_same_run_each_time() {
    for seed in 0..20 {
        assert!(trace(seed) == trace(seed), "seed {seed}: the runs differ");
    }
    assert!(trace(0) != trace(1));
}

fn fail(seed: u64, why: &str) {
    let (steps, _) = trace(seed);
    let last = steps.len().saturating_sub(PRINTED);
    panic!("seed {seed}: {why}\n{}", steps[last..].join("\n"));
}
