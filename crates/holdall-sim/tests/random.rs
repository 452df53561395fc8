//! Random simulations: a bounded number of seeds, the seeds that found bugs, and that a seed
//! gives the same run each time.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use holdall_sim::{Report, Script, run};

fn play(seed: u64) -> Report {
    match run(&Script::draw(seed)) {
        Ok(report) => report,
        Err(failure) => panic!("holdall-sim --seed {seed}: {failure}"),
    }
}

#[test]
fn bounded_random() {
    let mut sum = Report::default();
    for seed in 10_000..10_200 {
        let report = play(seed);
        sum.commits += report.commits;
        sum.crashes += report.crashes;
        sum.checks += report.checks;
        sum.errors += report.errors;
        sum.divided += report.divided;
        sum.met.add(&report.met);
    }
    // A generator that no longer does anything must not pass.
    assert!(sum.commits > 5000, "{} commits", sum.commits);
    assert!(sum.crashes > 2000, "{} crashes", sum.crashes);
    assert!(sum.checks > 5000, "{} states compared", sum.checks);
    assert!(sum.errors > 200, "{} errors", sum.errors);
    assert!(sum.divided > 1000, "{} divided records", sum.divided);
    let missing = sum.met.missing();
    assert!(missing.is_empty(), "pairs that never met: {missing:#?}");
}

#[test]
fn the_document_has_the_table_of_pairs() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/testing.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (begin, end) = ("<!-- the table of pairs -->\n", "<!-- its end -->");
    let (before, rest) = text.split_once(begin).expect("a place for the table");
    let (found, behind) = rest.split_once(end).expect("an end of the table");
    let wanted = holdall_sim::pairs::table();
    if std::env::var_os("HOLDALL_REWRITE_GOLDEN").is_some() {
        std::fs::write(path, format!("{before}{begin}{wanted}{end}{behind}")).unwrap();
    } else {
        assert!(found == wanted, "docs/testing.md: run this with HOLDALL_REWRITE_GOLDEN=1");
    }
}

#[test]
fn seeds_that_found_bugs() {
    for line in include_str!("seeds.txt").lines().filter(|l| !l.starts_with('#')) {
        let seed = line.split_whitespace().next().unwrap();
        play(seed.parse().unwrap());
    }
}

#[test]
fn a_seed_gives_the_same_run_each_time() {
    for seed in 0..20 {
        let (a, b) = (play(seed), play(seed));
        assert!(a.trace == b.trace, "seed {seed}: the trace differs");
        assert!(a.volume == b.volume, "seed {seed}: the volume differs");
        // Another thread has other thread-local state.
        let c = std::thread::spawn(move || play(seed)).join().unwrap();
        assert!(a == c, "seed {seed}: the run in another thread differs");
    }
    assert!(play(0).trace != play(1).trace);
}
