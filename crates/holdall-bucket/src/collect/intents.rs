//! Intents that are older than the grace: their operations are closed.
//!
//! First the intents are condemned, so that writers who look see it. Then the target is read: if it
//! shows an operation, that succeeded. If not, the target is written again as it is, with a new nonce:
//! a write that was begun before finds another tag and loses, one begun later sees the intent. One such
//! write is enough for all operations on a target that were condemned before it was read.

use super::cycle::Cycle;
use super::reach::{Absent, live, reach};
use super::walk::Walk;
use super::{Collected, READS, TOGETHER};
use crate::backend::{Listed, Tag};
use crate::format::{Id, Intent, IntentKind, IntentState, Named, Record, keys};
use crate::mutation::{self, Mutation};
use crate::store::{Inner, Target, Written, together, write_intent};
use holdall::Result;
use std::collections::{BTreeMap, BTreeSet};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Succeeded,
    Fenced,
    Undecided,
}

/// An intent as it was read.
struct Found {
    operation: Id,
    tag: Tag,
    intent: Intent,
    /// Whether it is older than the grace.
    old: bool,
}

impl Found {
    /// The key of the record that it is about.
    fn about(&self) -> Result<String> {
        keys::record(&self.intent.collection, &self.intent.name)
    }
}

/// Looks at all intents; closes the old ones.
pub(crate) async fn close(store: &Inner, cycle: &Cycle, report: &mut Collected) -> Result<Closed> {
    let mut closed = Closed::default();
    let mut resolved = Vec::new();
    let mut walk = Walk::new(keys::INTENTS);
    while let Some(page) = walk.next(store).await? {
        report.intents += page.len() as u64;
        let read = together(page, READS, |listed| read_one(store, cycle, listed)).await?;
        let mut old = Vec::new();
        for found in read.into_iter().flatten() {
            let intent = &found.intent;
            if intent.state == IntentState::Resolved {
                let due = found.old && intent.cycle < cycle.number;
                resolved.extend(due.then_some(found.operation));
                continue;
            }
            if intent.kind != IntentKind::Hold {
                closed.busy.insert(found.about()?);
            }
            old.extend(found.old.then_some(found));
        }
        closed.failed.extend(close_old(store, cycle, old).await?);
    }
    report.closed = closed.failed.len() as u64;
    // A later cycle may have read what was named before these were resolved, and count on them.
    if !resolved.is_empty() && cycle.is_own(store).await? {
        remove(store, resolved).await?;
    }
    Ok(closed)
}

/// Closes the operations of old intents. Returns those that failed and wrote blobs of their own.
async fn close_old(store: &Inner, cycle: &Cycle, old: Vec<Found>) -> Result<Vec<Id>> {
    let is_hold = |found: &Found| found.intent.kind == IntentKind::Hold;
    let (holds, old): (Vec<_>, Vec<_>) = old.into_iter().partition(is_hold);
    together(holds, READS, |found| end_hold(store, cycle, found)).await?;
    let condemned = together(old, READS, |found| condemn(store, found)).await?;
    let mut by_record = BTreeMap::<String, Vec<Found>>::new();
    for found in condemned.into_iter().flatten() {
        by_record.entry(found.about()?).or_default().push(found);
    }
    let fenced = together(by_record.into_values(), TOGETHER, |found| async move {
        let fates = fence(store, &found).await?;
        Ok(found.into_iter().zip(fates).collect::<Vec<_>>())
    });
    let fated = fenced.await?.into_iter().flatten();
    let settled = together(fated, READS, |(found, fate)| settle(store, cycle, found, fate)).await?;
    Ok(settled.into_iter().flatten().collect())
}

/// Removes intents.
pub(crate) async fn remove(store: &Inner, operations: Vec<Id>) -> Result<()> {
    let removed = together(operations, TOGETHER, |operation| async move {
        store.backend.delete(&keys::intent(operation)).await
    });
    removed.await.map(drop)
}

/// An intent that was listed, if it is there still.
async fn read_one(store: &Inner, cycle: &Cycle, listed: Listed) -> Result<Option<Found>> {
    let Some(operation) = keys::parse_intent(&listed.key) else {
        return Err(super::strange(&listed.key));
    };
    let old = cycle.is_old(store, listed.date / 1000);
    let read = store.intent(operation).await?;
    Ok(read.map(|(tag, intent)| Found { operation, tag, intent, old }))
}

/// Makes an intent condemned. `None` if somebody else did something with it.
async fn condemn(store: &Inner, mut found: Found) -> Result<Option<Found>> {
    if mutation::is(Mutation::B09Condemn) {
        return Ok(Some(found));
    }
    found.intent.state = IntentState::Condemned;
    found.intent.nonce = store.draw()?;
    let tag = write_intent(store, found.operation, Some(&found.tag), &found.intent).await?;
    Ok(tag.map(|tag| Found { tag, ..found }))
}

/// Ends a hold, if its end is older than the grace: readers may have begun just before. Its reader can
/// make it longer until it is condemned; since nothing comes of a hold, it is then removed at once.
async fn end_hold(store: &Inner, cycle: &Cycle, found: Found) -> Result<()> {
    let Found { operation, tag, mut intent, .. } = found;
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

/// Says in the intent what became of its operation. Returns an operation that failed.
async fn settle(store: &Inner, cycle: &Cycle, found: Found, fate: Fate) -> Result<Option<Id>> {
    let Found { operation, tag, mut intent, .. } = found;
    match (intent.kind, fate) {
        (_, Fate::Undecided) => {}
        (IntentKind::Write, Fate::Succeeded) => {
            store.backend.delete(&keys::intent(operation)).await?;
        }
        (IntentKind::Write, Fate::Fenced) => return Ok(Some(operation)),
        (_, _) => {
            intent.state = IntentState::Resolved;
            intent.cycle = cycle.number;
            intent.nonce = store.draw()?;
            write_intent(store, operation, Some(&tag), &intent).await?;
        }
    }
    Ok(None)
}

/// What became of operations whose intents, all about one record, are condemned. Those that it does not
/// show can never succeed afterwards.
async fn fence(store: &Inner, condemned: &[Found]) -> Result<Vec<Fate>> {
    let mut shown = vec![false; condemned.len()];
    let told = |shown: &[bool], otherwise: Fate| {
        let fate = |shown: &bool| if *shown { Fate::Succeeded } else { otherwise };
        shown.iter().map(fate).collect()
    };
    let Some(first) = condemned.first() else { return Ok(Vec::new()) };
    let target = Target::new(&first.intent.collection, &first.intent.name)?;
    for _ in 0..FENCES {
        let Some(current) = store.read(&target).await? else {
            return Ok(told(&shown, Fate::Fenced));
        };
        look_for(store, &current.record, condemned, &mut shown).await?;
        if shown.iter().all(|shown| *shown) || mutation::is(Mutation::B09Fence) {
            return Ok(told(&shown, Fate::Fenced));
        }
        let again = Record::clone(&current.record);
        match store.write(&target, Some(&current), again, None).await? {
            Written::Done(now) if now.record.operation == current.record.operation => {
                return Ok(told(&shown, Fate::Fenced));
            }
            Written::Done(_) | Written::Lost(_) => {}
        }
    }
    Ok(told(&shown, Fate::Undecided))
}

/// Notes the operations that a record remembers, or of which it names a blob, live or retired.
async fn look_for(
    store: &Inner,
    record: &Record,
    condemned: &[Found],
    shown: &mut [bool],
) -> Result<()> {
    for (found, shown) in condemned.iter().zip(&mut *shown) {
        *shown |= record.remembers(found.operation);
    }
    let writes = |found: &Found| found.intent.kind == IntentKind::Write;
    let open =
        |shown: &[bool]| condemned.iter().zip(shown).any(|(found, shown)| writes(found) && !shown);
    let retired: Vec<Named> = record.retired.iter().map(|entry| entry.named).collect();
    // What takes no request comes first.
    for turn in 0..3 {
        if mutation::is(Mutation::B09Named) || !open(shown) {
            return Ok(());
        }
        let named: BTreeSet<Id> = match turn {
            0 => retired.iter().map(|named| named.blob.id.operation).collect(),
            1 => live(store, record).await?.keys().map(|id| id.operation).collect(),
            _ => {
                let reached = reach(store, &retired, Absent::Skipped).await?;
                reached.keys().map(|id| id.operation).collect()
            }
        };
        for (found, shown) in condemned.iter().zip(&mut *shown) {
            *shown |= writes(found) && named.contains(&found.operation);
        }
    }
    Ok(())
}
