//! Each part of each rule is taken out, and one of the engines must notice.
//!
//! Owns: the table [`ALL`]. A row names the small case that shows the mutation, or says why
//! nothing can show it; that is tried, too.

use crate::cases::{
    COPIED, COPIED_BACK, COPIED_FLAGGED, CREATED, CREATED_AGAIN, DELETED, EDITED, FORGOTTEN, HELD,
    HELD_LONG, HELD_PURGED, HELD_SHARED, LEFT, MOVED, MOVED_COLLECTED, MOVED_FULL, MOVED_FULL_NEW,
    MOVED_STALE, MOVED_THREE, PUT_COLLECTED, PUT_FAULTS, PUT_FULL, PUT_RENEW, PUT_TWICE,
};
use crate::exhaustive::{Case, Order, search};
use crate::random::run;
use crate::rules::Mutation as M;
use crate::tree_cases::{
    JOINED, TREE_COPIED, TREE_DELETED, TREE_EDITED, TREE_FORGOTTEN, TREE_FULL, TREE_PART,
};
use std::time::Instant;

/// How a mutation shows.
enum Shows {
    /// In every order of this case.
    In(Case),
    /// In no small case that was found; some seed shows it.
    BySeed,
    /// Not at all, for this reason. The case is where it would show.
    Never(Case, &'static str),
}

use Shows::{BySeed, In, Never};

/// All mutations in their order.
const ALL: &[(M, Shows)] = &[
    (M::R01Rewrite, In(PUT_COLLECTED)),
    (M::R01Create, In(CREATED_AGAIN)),
    (M::R02Recent, In(CREATED)),
    (M::R02Proof, In(CREATED)),
    (M::R02Late, In(CREATED)),
    (M::R02Conflict, In(PUT_FAULTS)),
    (M::R02Own, In(CREATED)),
    (M::R03First, In(PUT_COLLECTED)),
    (M::R03Again, In(PUT_COLLECTED)),
    (M::R03Blob, In(PUT_FULL)),
    (M::R03Over, In(PUT_FAULTS)),
    (M::R03Late, In(PUT_FAULTS)),
    (M::R04Absent, In(PUT_COLLECTED)),
    (M::R05Check, In(PUT_COLLECTED)),
    (M::R05Order, In(PUT_TWICE)),
    (M::R05Renew, In(PUT_RENEW)),
    (M::R06Flag, In(COPIED)),
    (M::R06Read, In(COPIED_FLAGGED)),
    (M::R06Order, In(COPIED_FLAGGED)),
    (M::R06Target, In(COPIED_BACK)),
    (M::R06Others, In(JOINED)),
    (M::R07Change, In(EDITED)),
    (M::R07Delete, In(DELETED)),
    (M::R07Below, In(TREE_EDITED)),
    (M::R08Early, In(PUT_FULL)),
    (M::R08Loss, In(PUT_FAULTS)),
    (M::R08Share, In(COPIED_FLAGGED)),
    (
        M::R08Now,
        Never(
            MOVED_THREE,
            "what the cycle's number is read for covers it: cycles that begin after that read see \
             the copy's record, and older ones end at their own read. The state `resolved` could go.",
        ),
    ),
    (
        M::R08Newer,
        Never(MOVED_THREE, "the cycle that removes is the newest one, so none newer resolved it."),
    ),
    (M::R08Check, In(MOVED_THREE)),
    (M::R09Condemn, In(PUT_COLLECTED)),
    (M::R09Fence, In(PUT_COLLECTED)),
    (M::R09Share, In(MOVED_COLLECTED)),
    (M::R09First, In(PUT_FAULTS)),
    (M::R09Live, In(FORGOTTEN)),
    (
        M::R09Retired,
        Never(
            EDITED,
            "no record names a blob that its own has retired and rule 11 does not know. It keeps \
             such blobs for readers until they were retired for a grace, which is 0 here.",
        ),
    ),
    (
        M::R09Recent,
        Never(
            COPIED,
            "an operation whose blobs the record still has is shown by them; one that has none \
             left has nothing to lose by a fence. It saves the fence.",
        ),
    ),
    (M::R09Below, In(TREE_FORGOTTEN)),
    (M::R10Shared, In(COPIED)),
    (M::R10First, In(DELETED)),
    (
        M::R10Live,
        Never(
            COPIED_BACK,
            "an object gets a retired blob back only as a copy's target, which is flagged.",
        ),
    ),
    (M::R10Below, In(TREE_DELETED)),
    (M::R10Depth, In(TREE_DELETED)),
    (M::R11Fenced, In(LEFT)),
    (M::R11Retired, In(COPIED)),
    (M::R11Live, Never(COPIED_BACK, "the record is flagged, so it is itself among the roots.")),
    (M::R11Intents, In(COPIED)),
    (M::R11Order, In(MOVED)),
    (M::R11Cycle, In(MOVED_STALE)),
    (M::R11Gone, In(MOVED)),
    (M::R11Entries, In(MOVED)),
    (M::R11Below, In(TREE_COPIED)),
    (M::R11Tops, In(TREE_PART)),
    (M::R11Leading, BySeed),
    (M::R12Plain, In(PUT_COLLECTED)),
    (M::R12Retired, In(DELETED)),
    (
        M::R12Open,
        Never(
            PUT_TWICE,
            "the put loses its base and reports that its outcome is unknown, which is no damage: \
             it lets puts that take longer than the grace succeed.",
        ),
    ),
    (M::R13Record, In(PUT_FAULTS)),
    (M::R13Names, In(LEFT)),
    (M::R13Intents, In(MOVED)),
    (M::R14Blobs, In(PUT_FULL)),
    (M::R14Intents, In(PUT_FULL)),
    (
        M::R14Shares,
        Never(
            MOVED_FULL,
            "a record that named the blob names it still, live or retired, as only a newer cycle \
             takes the entry out. Share intents need not be listed while retired blobs are named.",
        ),
    ),
    (M::R14NoShares, Never(MOVED_FULL_NEW, "as the one before.")),
    // What lies below a retired node would be found by nobody; small cases lack the cycles for it.
    (M::R14Retired, BySeed),
    (M::R14Both, In(MOVED_FULL)),
    (M::R14Cycle, In(MOVED_FULL)),
    (M::R14Below, In(TREE_FULL)),
    (M::R15Order, In(HELD_SHARED)),
    (M::R15Flag, In(HELD_PURGED)),
    (M::R15Clock, In(HELD)),
    (M::R15Over, In(HELD_LONG)),
    (M::R15Early, In(HELD)),
    (M::R15Condemn, In(HELD_LONG)),
    (M::R15Removed, In(HELD)),
    (M::R15Intents, In(HELD)),
    (M::R15Passed, In(HELD_LONG)),
];

/// Whether a small case shows it.
pub fn shows_in_a_case(mutation: M) -> bool {
    ALL.iter().any(|(own, shows)| *own == mutation && matches!(shows, In(_)))
}

/// Mutations that runs by seed notice soon.
const SOON: [M; 17] = [
    M::R01Rewrite,
    M::R02Recent,
    M::R02Proof,
    M::R03Again,
    M::R04Absent,
    M::R05Check,
    M::R06Flag,
    M::R07Change,
    M::R08Early,
    M::R09Fence,
    M::R10Shared,
    M::R11Retired,
    M::R12Plain,
    M::R14Intents,
    M::R15Flag,
    M::R15Early,
    M::R15Intents,
];
/// Seeds for each of them.
const SEEDS: u64 = 1_000;
/// Seeds for what nothing shows.
const ARGUED: u64 = 500;
/// Most requests tried in a case; none reaches that unless a mutation makes it endless.
const MOST: usize = 5_000_000;

#[test]
fn each_rule_is_needed() {
    for (i, (mutation, shows)) in ALL.iter().enumerate() {
        assert_eq!(*mutation as usize, i, "{mutation:?} is not in its place");
        let (begun, name) = (Instant::now(), format!("{mutation:?}"));
        match shows {
            In(case) => {
                let found = search(*case, Some(*mutation), Order::Breadth, MOST);
                let wrong = found.wrong.unwrap_or_else(|| panic!("{name} is not noticed"));
                let (why, steps) = wrong;
                let (case, steps) = (case.name, steps.len());
                println!("{name:<12} {case}: {why}, {steps} steps, {:?}", begun.elapsed());
            }
            BySeed => {
                let noticed = (0..SEEDS).find_map(|seed| run(seed, Some(*mutation)).err());
                let why = noticed.unwrap_or_else(|| panic!("no seed notices {name}"));
                println!("{name:<12} by seed: {why}, {:?}", begun.elapsed());
            }
            Never(case, why) => {
                let found = search(*case, Some(*mutation), Order::Depth, MOST);
                assert!(found.complete, "{name}: more than {MOST} requests");
                assert!(found.wrong.is_none(), "{name} is noticed: {:?}", found.wrong);
                for seed in 0..ARGUED {
                    let noticed = run(seed, Some(*mutation)).err();
                    assert!(noticed.is_none(), "{name} is noticed by seed {seed}: {noticed:?}");
                }
                println!("{name:<12} not noticed, as argued: {why} {:?}", begun.elapsed());
            }
        }
    }
    assert_eq!(ALL.len(), M::R15Passed as usize + 1, "mutations without a row");
}

#[test]
fn seeds_notice_mutations() {
    for mutation in SOON {
        let noticed = (0..SEEDS).find_map(|seed| Some((seed, run(seed, Some(mutation)).err()?)));
        let (seed, why) = noticed.unwrap_or_else(|| panic!("no seed notices {mutation:?}"));
        println!("{:<12} seed {seed}: {why}", format!("{mutation:?}"));
    }
}
