//! Building and scanning in closed form, and the experiments as a whole.

use std::collections::HashSet;

use holdall_testkit::CostModel;

use super::runs::{OBJECT, build_and_scan};
use super::store::Config;
use super::technique::Technique;

#[test]
fn building_and_scanning_closed_forms() {
    let model = CostModel::default();
    let esm = build_and_scan(Technique::Esm(1), Config::default(), OBJECT, 4096).unwrap();
    // Each append writes a leaf page, and behind the 507th an index page too.
    let expected = 37.0 * (2560.0 + (2560.0 - 507.0));
    let ours = model.time_ms(&esm.build);
    assert!((ours / expected - 1.0).abs() < 0.003, "{ours} for {expected}");
    let eos = build_and_scan(Technique::Eos(4), Config::default(), OBJECT, 64 * 1024).unwrap();
    assert_eq!(model.time_ms(&eos.build), 160.0 * (33.0 + 64.0));
    assert_eq!(eos.build.pages_written, 2560);
    assert_eq!(eos.build.reads, 0);
}

#[test]
fn experiments_have_names_of_their_own() {
    let all = (super::PAPER.experiments)();
    let ids: HashSet<_> = all.iter().map(|e| e.id()).collect();
    assert_eq!(ids.len(), all.len());
    for id in ["biliris-5", "biliris-12", "biliris-table2", "biliris-modern", "biliris-eos-mix"] {
        assert!(ids.contains(id), "{id}");
    }
}
