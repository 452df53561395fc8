//! Intents that are older than the grace: their operations are closed.
//!
//! First the intent is condemned, so that a writer who looks sees it. Then the target is read: if it
//! shows the operation, that succeeded. If not, the target is written again as it is, with a new nonce:
//! a write that was begun before finds another tag and loses, one begun later sees the intent.

use super::Collected;
use super::cycle::Cycle;
use super::reach::{Absent, live, reach};
use super::walk::Walk;
use crate::backend::Tag;
use crate::format::{Id, Intent, IntentKind, IntentState, Named, Record, keys};
use crate::mutation::{self, Mutation};
use crate::store::{Inner, Target, Written, write_intent};
use holdall::Result;
use std::collections::BTreeSet;

/// Tries to fence a record that changes.
const FENCES: u32 = 8;

/// What the intents tell.
#[derive(Debug, Default)]
pub(crate) struct Closed {
    /// Operations that can never succeed: what they wrote is to be deleted.
    pub(crate) failed: Vec<Id>,
    /// The keys of records that an open operation is about.
    pub(crate) busy: BTreeSet<String>,
}

/// What became of an operation.
enum Fate {
    Succeeded,
    Fenced,
    Undecided,
}

/// Looks at all intents; closes the old ones.
pub(crate) async fn close(store: &Inner, cycle: &Cycle, report: &mut Collected) -> Result<Closed> {
    let mut closed = Closed::default();
    let mut resolved = Vec::new();
    let mut walk = Walk::new(keys::INTENTS);
    while let Some(page) = walk.next(store).await? {
        for listed in page {
            let Some(operation) = keys::parse_intent(&listed.key) else {
                return Err(super::strange(&listed.key));
            };
            report.intents += 1;
            let Some((tag, intent)) = store.intent(operation).await? else { continue };
            let old = cycle.is_old(store, listed.date / 1000);
            if intent.state == IntentState::Resolved {
                resolved.extend((old && intent.cycle < cycle.number).then_some(operation));
                continue;
            }
            if intent.kind != IntentKind::Hold {
                let key = keys::record(&intent.collection, &intent.name)?;
                closed.busy.insert(key);
            }
            if old {
                close_one(store, cycle, operation, tag, intent, &mut closed).await?;
            }
        }
    }
    report.closed = closed.failed.len() as u64;
    // A later cycle may have read what was named before these were resolved, and count on them.
    if !resolved.is_empty() && cycle.is_own(store).await? {
        for operation in resolved {
            store.backend.delete(&keys::intent(operation)).await?;
        }
    }
    Ok(closed)
}

async fn close_one(
    store: &Inner,
    cycle: &Cycle,
    operation: Id,
    tag: Tag,
    mut intent: Intent,
    closed: &mut Closed,
) -> Result<()> {
    if intent.kind == IntentKind::Hold {
        return end_hold(store, cycle, operation, tag, intent).await;
    }
    intent.state = IntentState::Condemned;
    intent.nonce = store.draw()?;
    let condemned = match mutation::is(Mutation::B09Condemn) {
        true => Some(tag),
        false => write_intent(store, operation, Some(&tag), &intent).await?,
    };
    let Some(tag) = condemned else { return Ok(()) };
    let target = Target::new(&intent.collection, &intent.name)?;
    let fate = fence(store, operation, &target, intent.kind).await?;
    match (intent.kind, fate) {
        (_, Fate::Undecided) => {}
        (IntentKind::Write, Fate::Succeeded) => {
            store.backend.delete(&keys::intent(operation)).await?;
        }
        (IntentKind::Write, Fate::Fenced) => closed.failed.push(operation),
        (_, _) => {
            intent.state = IntentState::Resolved;
            intent.cycle = cycle.number;
            intent.nonce = store.draw()?;
            write_intent(store, operation, Some(&tag), &intent).await?;
        }
    }
    Ok(())
}

/// Ends a hold, if its end is older than the grace: readers may have begun just before. Its reader can
/// make it longer until it is condemned; since nothing comes of a hold, it is then removed at once.
async fn end_hold(
    store: &Inner,
    cycle: &Cycle,
    operation: Id,
    tag: Tag,
    mut intent: Intent,
) -> Result<()> {
    if intent.state == IntentState::Open {
        if !cycle.is_old(store, intent.ends) && !mutation::is(Mutation::B15Ends) {
            return Ok(());
        }
        intent.state = IntentState::Condemned;
        intent.nonce = store.draw()?;
        if !mutation::is(Mutation::B15Condemn)
            && write_intent(store, operation, Some(&tag), &intent).await?.is_none()
        {
            return Ok(());
        }
    }
    store.backend.delete(&keys::intent(operation)).await
}

async fn fence(store: &Inner, operation: Id, target: &Target, kind: IntentKind) -> Result<Fate> {
    for _ in 0..FENCES {
        let Some(current) = store.read(target).await? else { return Ok(Fate::Fenced) };
        let shows = current.record.remembers(operation)
            || (kind == IntentKind::Write && names(store, &current.record, operation).await?);
        if shows {
            return Ok(Fate::Succeeded);
        }
        if mutation::is(Mutation::B09Fence) {
            return Ok(Fate::Fenced);
        }
        let again = Record::clone(&current.record);
        match store.write(target, Some(&current), again, None).await? {
            Written::Done(now) if now.record.operation == current.record.operation => {
                return Ok(Fate::Fenced);
            }
            Written::Done(_) | Written::Lost(_) => {}
        }
    }
    Ok(Fate::Undecided)
}

/// Whether a record names a blob of the operation, live or retired.
async fn names(store: &Inner, record: &Record, operation: Id) -> Result<bool> {
    if mutation::is(Mutation::B09Named) {
        return Ok(false);
    }
    let own = |named: &Named| named.blob.id.operation == operation;
    if record.retired.iter().any(|entry| own(&entry.named)) {
        return Ok(true);
    }
    if live(store, record).await?.keys().any(|id| id.operation == operation) {
        return Ok(true);
    }
    let retired: Vec<Named> = record.retired.iter().map(|entry| entry.named).collect();
    let reached = reach(store, &retired, Absent::Skipped).await?;
    Ok(reached.keys().any(|id| id.operation == operation))
}
