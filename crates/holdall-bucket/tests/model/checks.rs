//! What must hold.
//!
//! Owns: what is checked after each step, and what is left when everybody is gone and gc alone
//! has run.

use crate::bucket::{Bucket, Request};
use crate::faults::{Fate, step};
use crate::process::{Outcome, Process, Script};
use crate::record::{Blob, Blobs};
use crate::rules::Setting;
use std::collections::BTreeSet;

/// Cycles after which nothing may be left: one condemns, one removes resolved intents, two more
/// for what comes of that.
const CYCLES: u16 = 4;
/// No process has a number from here on.
const LAST: u16 = 32_000;

/// After each step.
pub fn now(bucket: &Bucket) -> Result<(), String> {
    if let Some(wrong) = bucket.wrong {
        return Err(wrong.to_owned());
    }
    match bucket.missing() {
        Some((name, blob)) => Err(format!("the record of {name:?} names {blob:?}, which is gone")),
        None => Ok(()),
    }
}

/// That what a reader holds is there, with all that lies below it.
pub fn held(bucket: &Bucket, process: &Process) -> Result<(), String> {
    let Some(held) = process.held().filter(|held| held.ends > bucket.second) else { return Ok(()) };
    match bucket.below(&held.blobs).iter().find(|blob| !bucket.blobs.contains(blob)) {
        Some(blob) => Err(format!("{:?} holds {blob:?}, which is gone", process.op)),
        None => Ok(()),
    }
}

/// That what a process reported is true.
pub fn outcomes(bucket: &Bucket, process: &Process) -> Result<(), String> {
    for (op, outcome) in (process.op.0..).zip(process.outcomes) {
        let was_applied = bucket.applied.contains(&crate::record::Op(op));
        match outcome {
            Some(Outcome::Done) if !was_applied => {
                return Err(format!("#{op} was reported as done and was not applied"));
            }
            Some(Outcome::Lost) if was_applied => {
                return Err(format!("#{op} was reported as lost and was applied"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Runs one process to its end without anybody else. `say` gets its requests.
pub fn alone(
    bucket: &mut Bucket,
    process: &mut Process,
    setting: &Setting,
    say: &mut dyn FnMut(&Process),
) -> Result<(), String> {
    while process.request.is_some() {
        say(process);
        step(bucket, process, Fate::Normal, setting);
        now(bucket)?;
    }
    Ok(())
}

/// What is left after everybody is gone, and gc alone has run.
pub fn left(
    bucket: &mut Bucket,
    setting: &Setting,
    say: &mut dyn FnMut(&Process),
) -> Result<(), String> {
    bucket.late.clear();
    // All holds end.
    bucket.second = u16::MAX;
    for number in 0..CYCLES {
        let mut gc = Process::new(LAST + number, Script::Gc, setting);
        alone(bucket, &mut gc, setting, say)?;
    }
    let leaked: Vec<Blob> = unnamed(bucket).difference(&bucket.stray).copied().collect();
    if !leaked.is_empty() {
        return Err(format!("gc leaves blobs {leaked:?}, which no record names"));
    }
    if let Some((op, intent)) = bucket.intents.first_key_value() {
        return Err(format!("gc leaves the intent of {op:?}: {intent:?}"));
    }
    for (name, (_, record)) in &bucket.records {
        if record.gone || !record.retired.is_empty() {
            return Err(format!("gc leaves the record of {name:?}: {record:?}"));
        }
    }
    let mut full = Process::new(LAST + CYCLES, Script::Full, setting);
    alone(bucket, &mut full, setting, say)?;
    let leaked = unnamed(bucket);
    if leaked.is_empty() {
        Ok(())
    } else {
        Err(format!("gc --full leaves blobs {leaked:?}, which no record names"))
    }
}

fn unnamed(bucket: &Bucket) -> Blobs {
    let live = |(_, record): &crate::bucket::Tagged| bucket.below(&record.live);
    let named: BTreeSet<Blob> = bucket.records.values().flat_map(live).collect();
    bucket.blobs.difference(&named).copied().collect()
}

/// Whether a request can change what [`now`] looks at.
pub fn matters(request: &Request) -> bool {
    matches!(request, Request::PutIf(_) | Request::DeleteBlob(_) | Request::RemoveIf(..))
}
