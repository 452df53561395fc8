//! Every system ages in a directory and gives back what it was given; needs no root.

use super::bench::Bench;
use super::case::{Case, Run, Sizes};
use super::system::{Ask, Kind};
use super::volume::FileSystem;
use holdall_instrument::experiment::Settings;
use holdall_instrument::parts::{NoParts, PartFiles, Parts};
use holdall_instrument::price::{DiskPrice, Price};

/// Runs `case` with what `parts` keeps.
fn with_bench<T>(parts: &dyn Parts, work: impl FnOnce(&Bench<'_>) -> T) -> T {
    let dir = tempfile::tempdir().unwrap();
    let price = DiskPrice::given(Price::QUICK, "x");
    let settings = Settings {
        quick: true,
        seed: 7,
        repetitions: 1,
        price: &price,
        parts,
        dir: dir.path(),
        progress: &|_, _| {},
    };
    work(&Bench::new(&settings).unwrap())
}

fn case(kind: Kind) -> Case {
    Case {
        kind,
        sizes: Sizes::Uniform(100 << 10),
        volume: 32 << 20,
        occupancy: 0.1,
        ask: Ask { request: 16 << 10, hint: false },
        together: 1,
        in_gaps: false,
        ages: vec![1, 2],
        limit: 600,
    }
}

fn run(case: &Case) -> Run {
    with_bench(&NoParts, |bench| bench.run(case).unwrap())
}

#[test]
fn embedded_stores_age_and_keep_every_byte() {
    let ext4 = Kind::Files(FileSystem::Ext4);
    for kind in [Kind::Holdall, ext4, Kind::Sqlite, Kind::Redb] {
        for (hint, together) in [(false, 1), (true, 1), (false, 4)] {
            let ask = Ask { request: 16 << 10, hint };
            let run = run(&Case { ask, together, ..case(kind) });
            let ages: Vec<f64> = run.points.iter().map(|p| p.age).collect();
            // As far beyond as the last objects written, of which there are ten and more.
            let [0.0, one, two] = ages[..] else { panic!("{run:?}") };
            assert!((1.0..1.8).contains(&one) && (2.0..2.8).contains(&two), "{run:?}");
            assert!(
                run.remarks.is_empty() || run.remarks[0].starts_with("in a directory"),
                "{run:?}"
            );
            assert!(run.objects > 8 && run.points.iter().all(|p| p.fragments >= 1.0), "{run:?}");
        }
    }
}

#[test]
fn the_server_ages_or_says_what_is_missing() {
    for kind in [Kind::Bytea, Kind::LargeObjects] {
        for together in [1, 4] {
            let run = run(&Case { together, ..case(kind) });
            let skipped = run.remarks.iter().any(|r| r.starts_with("skipped: "));
            assert_eq!(run.points.len(), if skipped { 0 } else { 3 }, "{run:?}");
        }
    }
}

#[test]
fn files_age_on_every_file_system_or_say_what_is_missing() {
    for system in [FileSystem::Xfs, FileSystem::Btrfs] {
        let volume = system.facts().3;
        let run = run(&Case { volume, occupancy: 0.02, ..case(Kind::Files(system)) });
        let skipped = run.remarks.iter().any(|r| r.starts_with("skipped: "));
        assert_eq!(run.points.len(), if skipped { 0 } else { 3 }, "{run:?}");
    }
}

#[test]
fn a_store_that_is_full_ends_its_run_with_a_remark() {
    let full = Case { occupancy: 2.0, ..case(Kind::Holdall) };
    let run = run(&full);
    assert!(run.points.is_empty() && run.remarks.iter().any(|r| r.contains("full")), "{run:?}");
}

#[test]
fn a_run_that_was_kept_is_not_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let parts = PartFiles { dir: dir.path().join("p"), version: "1".into(), afresh: false };
    let case = Case { ages: vec![1], ..case(Kind::Holdall) };
    let first = with_bench(&parts, |bench| bench.run(&case).unwrap());
    // Throughput would differ.
    assert_eq!(with_bench(&parts, |bench| bench.run(&case).unwrap()), first);
    let other = Case { ages: vec![1, 2], ..case };
    assert_ne!(with_bench(&parts, |bench| bench.run(&other).unwrap()), first);
}

#[test]
fn too_long_a_run_is_cut_off() {
    let run = run(&Case { limit: 0, ..case(Kind::Holdall) });
    assert!(run.remarks.iter().any(|r| r.starts_with("cut off")), "{run:?}");
}

#[test]
fn objects_loaded_into_gaps_lie_in_pieces() {
    let sizes = Sizes::Constant(256 << 10);
    for kind in [Kind::Holdall, Kind::Files(FileSystem::Ext4)] {
        let apart = Case { in_gaps: true, sizes, occupancy: 0.2, volume: 64 << 20, ..case(kind) };
        let (gaps, clean) = (run(&apart), run(&Case { in_gaps: false, ..apart }));
        let [a, b] = [&gaps, &clean].map(|run| match &run.points[..] {
            [first, ..] => first.fragments,
            [] => panic!("{run:?}"),
        });
        // In a directory nothing keeps files to the gaps.
        assert!(a > 4.0 * b || !gaps.remarks.is_empty(), "{kind:?}: {gaps:?}, {clean:?}");
    }
}
