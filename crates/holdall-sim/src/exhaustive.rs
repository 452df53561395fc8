//! Every short sequence of operations, crashed at every call.
//!
//! Owns: the alphabet; the walk over sequences, crash points, ways to lose data, and crash
//! points of the recovery. Parameters are the least there are, so that each path is near.
//!
//! Cost: sequences of length k are `8^k`; each has some tens of crash points, each of them
//! some ways to lose data, and each recovery about ten crash points of its own.

use crate::op::{Again, Crash, End, Fault, Op, TxOp};
use crate::params::Params;
use crate::script::{Failure, Script, run};
use holdall_testkit::{CrashKind, LossPolicy};

/// What is tried.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Longest sequence.
    pub length: usize,
    /// Longest sequence whose recovery crashes too, at each of its calls.
    pub twice: usize,
    /// Random choices of what a power cut loses, beside all and nothing.
    pub random: u64,
}

/// What was tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tried {
    /// Sequences of operations.
    pub sequences: u64,
    /// Runs with a crash.
    pub crashes: u64,
    /// Runs with a second crash inside the recovery.
    pub twice: u64,
}

fn put(name: u8, size: u32, end: End) -> Op {
    let seed = u64::from(size);
    Op::Write { ops: vec![TxOp::Put { coll: 0, name, size, seed, attributes: 0 }], end }
}

/// The operations that sequences are made of.
#[must_use]
pub fn alphabet() -> Vec<Op> {
    vec![
        // In a record.
        put(0, 100, End::Commit),
        // In a segment that passes through the log.
        put(1, 6000, End::Commit),
        // In a segment written to its place and synced first.
        put(0, 30_000, End::Commit),
        put(1, 200, End::Deferred),
        // A segment that passed through the log and was given back at once.
        Op::Write {
            ops: [6000, 6100]
                .map(|size| TxOp::Put { coll: 0, name: 1, size, seed: 7, attributes: 0 })
                .to_vec(),
            end: End::Commit,
        },
        Op::Write { ops: vec![TxOp::DeleteName { coll: 0, name: 0 }], end: End::Commit },
        Op::Checkpoint,
        Op::Close(None),
    ]
}

/// Runs everything of `plan`; `each` is called after each sequence.
///
/// # Errors
/// The first script that fails, and how.
pub fn exhaustive(
    plan: &Plan,
    each: &mut dyn FnMut(&Tried),
) -> Result<Tried, Box<(Script, Failure)>> {
    let mut tried = Tried::default();
    let alphabet = alphabet();
    for length in 1..=plan.length {
        for number in 0..alphabet.len().pow(length as u32) {
            let mut rest = number;
            let mut ops = Vec::with_capacity(length);
            for _ in 0..length {
                ops.push(alphabet[rest % alphabet.len()].clone());
                rest /= alphabet.len();
            }
            sequence(&ops, plan, &mut tried)?;
            tried.sequences += 1;
            each(&tried);
        }
    }
    Ok(tried)
}

fn attempt(ops: Vec<Op>, seed: u64) -> Result<Vec<String>, Box<(Script, Failure)>> {
    let script = Script { seed, params: Params::tiny(), ops };
    match run(&script) {
        Ok(report) => Ok(report.trace),
        Err(failure) => Err(Box::new((script, *failure))),
    }
}

/// Whether the planned crash struck before the sequence was over.
fn struck(trace: &[String]) -> bool {
    trace.iter().any(|line| line.contains("crash: "))
}

fn sequence(ops: &[Op], plan: &Plan, tried: &mut Tried) -> Result<(), Box<(Script, Failure)>> {
    let mut kinds = vec![
        CrashKind::ProcessKilled,
        CrashKind::PowerCut(LossPolicy::LoseAll),
        CrashKind::PowerCut(LossPolicy::KeepAll),
    ];
    kinds.extend((0..plan.random).map(|_| CrashKind::PowerCut(LossPolicy::Random)));
    for at in 1.. {
        let mut any = false;
        for (i, kind) in kinds.iter().enumerate() {
            let seed = at * 31 + i as u64;
            let crash = |again| Crash { kind: *kind, seed, read_only: i == 0, again };
            let with = |again| {
                let mut all = vec![Op::Arm(Fault::Crash(at), crash(again))];
                all.extend_from_slice(ops);
                // What was recovered must also serve.
                all.push(put(2, 5000, End::Commit));
                all
            };
            if !struck(&attempt(with(Vec::new()), seed)?) {
                break;
            }
            any = true;
            tried.crashes += 1;
            if ops.len() <= plan.twice {
                again(&with, kinds.get(i % 3).copied(), seed, tried)?;
            }
        }
        if !any {
            break;
        }
    }
    Ok(())
}

/// Crashes the recovery at each of its calls.
fn again(
    with: &dyn Fn(Vec<Again>) -> Vec<Op>,
    kind: Option<CrashKind>,
    seed: u64,
    tried: &mut Tried,
) -> Result<(), Box<(Script, Failure)>> {
    let kind = kind.unwrap_or(CrashKind::ProcessKilled);
    for at in 1.. {
        let trace = attempt(with(vec![Again::Crash(at, kind, seed ^ at)]), seed)?;
        tried.twice += 1;
        if trace.iter().any(|line| line.contains("failed false")) {
            break;
        }
    }
    Ok(())
}
