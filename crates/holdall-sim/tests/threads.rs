//! Real threads beside each other, a few rounds of them.

#[test]
fn threads_beside_each_other_lose_nothing() {
    let mut commits = 0;
    for seed in 0..8 {
        match holdall_sim::threads::round(seed) {
            Ok(more) => commits += more,
            Err(what) => panic!("round {seed}: {what}"),
        }
    }
    assert!(commits > 1000, "{commits} commits");
}
