//! Every crash point of every sequence of up to two operations, and of the recoveries after
//! single ones. More: `holdall-sim --exhaustive 3 --twice 2`.

use holdall_sim::exhaustive::{Plan, exhaustive};

#[test]
fn bounded_exhaustive() {
    let plan = Plan { length: 2, twice: 1, random: 1 };
    match exhaustive(&plan, &mut |_| {}) {
        Ok(tried) => {
            assert_eq!(tried.sequences, 8 + 64);
            assert!(tried.crashes > 2000 && tried.twice > 1000, "{tried:?}");
        }
        Err(found) => panic!("{:?}: {}", found.0.ops, found.1),
    }
}
