//! Records, nodes, lists and intents made by somebody who can compute checksums: errors, no panic,
//! and memory that their length bounds. HOLDALL_FUZZ_RUNS=5 runs 100,000 inputs instead of 20,000,
//! HOLDALL_FUZZ_SEED moves them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../holdall/tests/counting/mod.rs"]
mod counting;
mod fuzz_bodies;

use holdall_bucket::format::{Blobs, Intent, Record, decode_list, decode_node, seal};
use holdall_core::bytes::push_varint;
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// Inputs of each body.
const INPUTS: u64 = 5000;
/// Most memory that a body takes: its input, what it makes of it, twice.
const MOST_MEMORY: usize = 64 << 10;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

/// Runs a body with seeded inputs; some must be accepted, and some refused.
fn run(name: &str) {
    let _alone = counting::alone();
    let (_, body) = fuzz_bodies::ALL.iter().find(|(known, _)| *known == name).unwrap();
    let (seed, count) = (number("HOLDALL_FUZZ_SEED", 1), INPUTS * number("HOLDALL_FUZZ_RUNS", 1));
    let (mut accepted, mut most) = (0, 0);
    for i in 0..count {
        let mut rng = SmallRng::seed_from_u64(seed << 32 | i);
        let mut data = vec![0; rng.random_range(0..400)];
        rng.fill(&mut data[..]);
        let mut fine = false;
        let taken = counting::peak(|| {
            let run = std::panic::AssertUnwindSafe(|| body(&data));
            match std::panic::catch_unwind(run) {
                Ok(found) => fine = found,
                Err(panic) => {
                    println!("{name}: seed {seed}, input {i}");
                    std::panic::resume_unwind(panic);
                }
            }
        });
        assert!(taken < MOST_MEMORY, "{name}, seed {seed}, input {i}: {taken} bytes of memory");
        accepted += u64::from(fine);
        most = most.max(taken);
    }
    println!("{name}: {accepted} of {count} accepted, at most {most} bytes of memory");
    assert!(accepted > count / 20 && accepted < count, "{name}: {accepted} of {count} accepted");
}

#[test]
fn changed_records_with_right_checksums_are_survived() {
    run("bucket_record");
}

#[test]
fn changed_nodes_are_survived() {
    run("bucket_node");
}

#[test]
fn changed_lists_are_survived() {
    run("bucket_list");
}

#[test]
fn changed_intents_with_right_checksums_are_survived() {
    run("bucket_intent");
}

#[test]
fn changed_heads_and_strange_keys_are_survived() {
    run("bucket_head");
    run("bucket_key");
}

/// Reads `bytes`, and returns how many bytes of memory that took at a time.
fn memory(bytes: &[u8], read: impl Fn(&[u8]) -> bool, accepted: bool) -> usize {
    let mut fine = false;
    let taken = counting::peak(|| fine = read(bytes));
    assert_eq!(fine, accepted);
    taken
}

fn varints(numbers: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut out = Vec::new();
    numbers.into_iter().for_each(|n| push_varint(&mut out, n));
    out
}

/// A table of as many blobs as fit into `len` bytes, each in the fewest bytes.
fn table(len: usize) -> (Vec<u8>, u64) {
    // Of 128 operations each up to 16,384 numbers: row, number and length in four bytes.
    let mut out = varints([128]);
    (0..128_u8).for_each(|n| out.extend([n; 16]));
    let count = ((len - out.len() - 8) / 4) as u64;
    push_varint(&mut out, count);
    (0..count).for_each(|n| out.extend(varints([n % 128, n / 128, 1])));
    (out, count)
}

#[test]
fn counts_that_are_out_of_proportion_take_no_memory() {
    let _alone = counting::alone();
    let record = |body: &[u8]| {
        let mut stored = b"HRec\x01\x01\0\0".to_vec();
        stored.extend([0; 4 + 48 + 32]);
        stored.extend(body);
        seal(&mut stored);
        memory(&stored, |stored| Record::decode(stored, "r").is_ok(), false)
    };
    let node = |payload: &[u8]| {
        memory(payload, |payload| decode_node(payload, &mut Blobs::default(), "n").is_ok(), false)
    };
    let list = |payload: &[u8]| memory(payload, |payload| decode_list(payload, "l").is_ok(), false);
    // Bytes for all that is claimed are there, but there may not be as many.
    for (claimed, each) in [(1_900_000_u64, 2_usize), (1_200_000, 3), (900_000, 4), (200_000, 16)] {
        let filler = vec![1; claimed as usize * each];
        let claim = [varints([claimed]), filler.clone()].concat();
        for before in [&[0; 4][..], &[0; 5], &[0; 6], &[0; 7], &[0; 8], &[0, 0, 0, 0, 1]] {
            let taken = record(&[before, &claim].concat());
            assert!(taken < 1 << 20, "a record that claims {claimed}: {taken} bytes");
            let taken = node(&[before, &claim].concat()).max(list(&[before, &claim].concat()));
            assert!(taken < 1 << 20, "a blob that claims {claimed}: {taken} bytes");
        }
        for before in [&[][..], &[0], &[0, 0], &[1, 0, 0]] {
            let taken = node(&[before, &claim].concat()).max(list(&[before, &claim].concat()));
            assert!(taken < 1 << 20, "a blob that claims {claimed}: {taken} bytes");
        }
    }
    let (long, _) = table(8 << 20);
    assert!(node(&[&[0], &long[..]].concat()) < 1 << 20);
    assert!(list(&long) < 1 << 20);
}

#[test]
fn the_longest_intent_takes_a_multiple_of_its_length() {
    let _alone = counting::alone();
    let mut stored = b"HInt\x01\x01\x02\0\0\0\0\0".to_vec();
    stored.extend([0; 16 + 4]);
    let (rows, count) = table((1 << 20) - 64);
    stored.extend(rows);
    stored.push(0);
    seal(&mut stored);
    let taken = memory(&stored, |stored| Intent::decode(stored, "i").is_ok(), true);
    println!("{count} rows: {taken} bytes of memory for {}", stored.len());
    assert!(taken < 32 * stored.len(), "{taken} bytes of memory for {}", stored.len());
    stored.resize((1 << 20) + 1, 0);
    seal(&mut stored);
    assert!(Intent::decode(&stored, "i").is_err());
}
