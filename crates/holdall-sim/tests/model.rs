//! The simulation itself: it notices what is wrong, and makes failing scripts small.

use holdall_sim::shrink::shrink;
use holdall_sim::{Crash, End, Names, Op, Params, Script, TxOp, dump, run};
use holdall_testkit::{CrashKind, FaultPlan, FaultyStorage, LossPolicy};
use std::sync::Arc;

fn put(name: u8, size: u32) -> Op {
    let op = TxOp::Put { coll: 0, name, size, seed: 1, attributes: 0 };
    Op::Write { ops: vec![op], end: End::Commit }
}

#[test]
fn syncs_that_do_nothing_lose_commits_and_it_shows() {
    // What the simulation relies on: without syncs, a power cut loses acknowledged data.
    let storage = Arc::new(FaultyStorage::new(1));
    let options = Params::tiny().options();
    let store = options.create_on(storage.clone()).unwrap();
    store.write(|tx| tx.put("a", b"1")).unwrap();
    storage.set_plan(FaultPlan { ignore_log_sync: true, ..FaultPlan::default() });
    store.write(|tx| tx.put("b", b"2")).unwrap();
    let cut = storage.crash(CrashKind::PowerCut(LossPolicy::LoseAll), 1).unwrap();
    let after = options.open_on(Arc::new(cut)).unwrap();
    let found = dump(&after.read().unwrap()).unwrap();
    let wanted = dump(&store.read().unwrap()).unwrap();
    assert!(found.difference(&wanted).unwrap().contains("is missing"));
    assert_eq!(wanted.difference(&wanted), None);
}

#[test]
fn a_failing_script_shrinks_to_what_matters() {
    // A page size that no store takes makes any script fail; nothing else is needed.
    let params = Params { page_size: 1000, ..Params::tiny() };
    let script = Script { seed: 1, params, ops: (0..40).map(|n| put(n, 3000)).collect() };
    let (small, failure) = shrink(&script, 500).unwrap();
    assert!(failure.what.contains("page size"), "{failure}");
    assert!(small.ops.is_empty(), "{:?}", small.ops);
    let fine = Script { params: Params::tiny(), ..script };
    assert!(shrink(&fine, 500).is_none());
}

#[test]
fn a_script_by_hand_crashes_and_goes_on() {
    let crash = Crash {
        kind: CrashKind::PowerCut(LossPolicy::Random),
        seed: 7,
        read_only: true,
        again: Vec::new(),
    };
    let ops = vec![put(0, 10), Op::Crash(crash), put(1, 50_000), Op::Probe(3), Op::Damage(4)];
    let report = run(&Script { seed: 3, params: Params::tiny(), ops }).unwrap();
    assert_eq!((report.commits, report.crashes), (2, 6));
}

#[test]
fn many_objects_in_one_call_are_committed_or_refused_as_a_whole() {
    let many = |names, bad, end| {
        let op = TxOp::Many { coll: 1, names, count: 60, size: 9000, seed: 5, bad };
        let first = TxOp::Put { coll: 0, name: 0, size: 10, seed: 1, attributes: 0 };
        Op::Write { ops: vec![first, op], end }
    };
    let kinds = [Names::None, Names::Behind, Names::Across, Names::Back, Names::Drawn];
    let play = |bad| {
        let ops = kinds.map(|names| many(names, bad, End::Commit)).to_vec();
        let params = Params { page_size: 8192, ..Params::tiny() };
        let mut script = Script { seed: 3, params, ops };
        script.params.tuning.log_bytes = 1 << 20;
        script.params.tuning.dirty_pages = 1000;
        run(&script).unwrap()
    };
    let kept = play(None);
    assert_eq!((kept.commits, kept.errors), (5, 0), "{:#?}", kept.trace);
    for bad in [0, 31, 59] {
        let refused = play(Some(bad));
        // Objects without a name have none that could be refused.
        assert_eq!((refused.commits, refused.errors), (1, 0), "{:#?}", refused.trace);
        let told = refused.trace.iter().filter(|line| line.contains("refused a name")).count();
        assert_eq!(told, 4, "{:#?}", refused.trace);
    }
}
