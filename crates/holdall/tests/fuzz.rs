//! Every fuzz body with seeded inputs, a bounded number of them. HOLDALL_FUZZ_RUNS=100 runs a
//! hundred times as many, HOLDALL_FUZZ_SEED moves them.

#[expect(dead_code, reason = "what other tests use too")]
mod fuzz_bodies;

use rand::{Rng, SeedableRng, rngs::SmallRng};

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

fn run(names: &[&str], count: u64) {
    let seed = number("HOLDALL_FUZZ_SEED", 1);
    for (name, body) in fuzz_bodies::ALL.iter().filter(|(name, _)| names.contains(name)) {
        for i in 0..count * number("HOLDALL_FUZZ_RUNS", 1) {
            let mut rng = SmallRng::seed_from_u64(seed << 32 | i);
            let mut data = vec![0; rng.random_range(0..600)];
            rng.fill(&mut data[..]);
            // Shown only if the body panics.
            println!("{name}: seed {seed}, input {i}");
            body(&data);
        }
    }
}

#[test]
fn parsers_survive_seeded_nonsense() {
    let mut names: Vec<&str> = fuzz_bodies::ALL.iter().map(|(name, _)| *name).collect();
    names.retain(|name| !name.ends_with("_store") && !["hostile_log", "model"].contains(name));
    assert_eq!(names.len(), 12);
    run(&names, 1500);
}

#[test]
fn changed_stores_survive_reading() {
    run(&["open_store"], 400);
}

#[test]
fn changed_stores_survive_writing() {
    run(&["write_store"], 400);
}

#[test]
fn changed_backups_survive_restoring() {
    run(&["restored_store"], 400);
}

#[test]
fn changed_stores_survive_salvage() {
    run(&["salvaged_store"], 400);
}

#[test]
fn operations_agree_with_the_model() {
    run(&["model"], 60);
}
