//! Making a failing script small.
//!
//! Owns nothing. Takes out operations, then calls inside transactions, then makes sizes and
//! options plain, as long as the script still fails; what it fails with may change.

use crate::op::{Op, TxOp};
use crate::params::Params;
use crate::script::{Failure, Script, run};

/// A script that fails and from which nothing more can be taken, and how it fails. Returns
/// `None` if `script` does not fail. `tries` bounds the runs.
pub fn shrink(script: &Script, mut tries: usize) -> Option<(Script, Failure)> {
    let mut best = (script.clone(), *run(script).err()?);
    // What comes after the failure does not matter.
    best.0.ops.truncate(best.1.at + 1);
    let mut again = true;
    while again && tries > 0 {
        again = take_out(&mut best, &mut tries);
        again |= simplify(&mut best, &mut tries);
    }
    Some(best)
}

fn better(best: &mut (Script, Failure), candidate: Script, tries: &mut usize) -> bool {
    if *tries == 0 {
        return false;
    }
    *tries -= 1;
    match run(&candidate) {
        Ok(_) => false,
        Err(failure) => {
            *best = (candidate, *failure);
            true
        }
    }
}

/// Removes runs of operations, long ones first.
fn take_out(best: &mut (Script, Failure), tries: &mut usize) -> bool {
    let mut any = false;
    let mut len = best.0.ops.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        while at < best.0.ops.len() {
            let mut candidate = best.0.clone();
            let to = (at + len).min(candidate.ops.len());
            candidate.ops.drain(at..to);
            if better(best, candidate, tries) {
                any = true;
            } else {
                at += len;
            }
        }
        if len == 1 || *tries == 0 {
            return any;
        }
        len /= 2;
    }
}

/// Removes calls, recoveries' troubles and long sizes; tries the plainest options.
fn simplify(best: &mut (Script, Failure), tries: &mut usize) -> bool {
    let mut any = false;
    for at in 0..best.0.ops.len() {
        let mut part = 0;
        while let Some(op) = best.0.ops.get(at).and_then(|op| without(op, part)) {
            let mut candidate = best.0.clone();
            candidate.ops[at] = op;
            if better(best, candidate, tries) {
                any = true;
            } else {
                part += 1;
            }
        }
    }
    let plain = Params {
        page_size: best.0.params.page_size,
        debug_sums: best.0.params.debug_sums,
        ..Params::tiny()
    };
    if best.0.params != plain {
        any |= better(best, Script { params: plain, ..best.0.clone() }, tries);
    }
    any
}

/// The operation without its part number `part`; `None` if it has fewer.
fn without(op: &Op, part: usize) -> Option<Op> {
    let mut op = op.clone();
    match &mut op {
        Op::WriteAround { ops, between, then, .. } => {
            let parts = [ops.len(), between.len(), then.len()];
            match part {
                n if n < parts[0] => drop(ops.remove(n)),
                n if n < parts[0] + parts[1] => drop(between.remove(n - parts[0])),
                n if n < parts.iter().sum() => drop(then.remove(n - parts[0] - parts[1])),
                _ => return None,
            }
        }
        Op::Write { ops, .. } if part < ops.len() => {
            ops.remove(part);
        }
        Op::Write { ops, .. } => {
            let nth = part - ops.len();
            let call = ops.get_mut(nth)?;
            if !shorter(call) {
                return None;
            }
        }
        Op::CheckpointWith(between)
        | Op::VerifyBeside(between)
        | Op::Defrag(between)
        | Op::Several(between)
        | Op::DefragAtCopies(between)
            if part < between.len() =>
        {
            between.remove(part);
        }
        Op::Crash(crash) | Op::Arm(_, crash) if part < crash.again.len() => {
            crash.again.remove(part);
        }
        _ => return None,
    }
    Some(op)
}

fn shorter(call: &mut TxOp) -> bool {
    match call {
        TxOp::Put { size, .. }
        | TxOp::Stream { size, .. }
        | TxOp::Create { size, .. }
        | TxOp::Many { size, .. }
        | TxOp::Edit { size, .. }
            if *size > 16 =>
        {
            *size /= 2;
            true
        }
        TxOp::Many { count, .. } if *count > 1 => {
            *count /= 2;
            true
        }
        _ => false,
    }
}
