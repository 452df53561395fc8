//! Candidates: what closed operations wrote and what sharing records retired. They go unless
//! somebody names them, or has said that he will.

use super::cycle::Cycle;
use super::intents::{self, Closed};
use super::reach::{Absent, Place, Reached, live, reach};
use super::retired::{self, Due, Kept};
use super::walk::Walk;
use super::{
    Collected, READS, SWEPT, TOGETHER, class_of, delete_blobs, read_all, strange, target_of,
};
use crate::format::{BlobId, BlobRef, Class, Id, IntentKind, Named, keys};
use crate::mutation::{self, Mutation};
use crate::store::{Inner, together};
use holdall::Result;
use std::collections::BTreeSet;

/// Deletes what closed operations wrote and what sharing records retired, unless somebody names it.
pub(super) async fn delete_candidates(
    store: &Inner,
    cycle: &Cycle,
    closed: &Closed,
    shared: &[Due],
    report: &mut Collected,
) -> Result<()> {
    let written = written_by(store, &closed.failed).await?;
    let mut candidates: BTreeSet<BlobId> = written.keys().copied().collect();
    candidates.extend(shared.iter().flat_map(Due::candidates));
    let mut kept = named_by_records(store, &candidates, shared, report).await?;
    // Last: who will name a candidate was read above, or has an intent now.
    kept.announced = named_by_intents(store, &candidates).await?;
    if !cycle.is_own(store).await? {
        report.overtaken = true;
        return Ok(());
    }
    let free = written.into_iter().filter(|(id, _)| kept.is_free(id)).collect();
    report.add(delete_blobs(store, &free).await?);
    intents::remove(store, closed.failed.clone()).await?;
    report.add(retired::delete_shared(store, shared, &kept).await?);
    Ok(())
}

/// The blobs that lie below these operations.
async fn written_by(store: &Inner, operations: &[Id]) -> Result<Reached> {
    let found = together(operations, TOGETHER, |operation| async move {
        let mut found = Vec::new();
        let mut walk = Walk::new(&keys::blobs_of(*operation));
        while let Some(page) = walk.next(store).await? {
            for listed in page {
                let id = keys::parse_blob(&listed.key).ok_or_else(|| strange(&listed.key))?;
                found.push((id, Place::lone(BlobRef { id, len: listed.len })));
            }
        }
        Ok(found)
    });
    Ok(found.await?.into_iter().flatten().collect())
}

/// The candidates that a sharing record names, and those that it retired and that are not due.
async fn named_by_records(
    store: &Inner,
    candidates: &BTreeSet<BlobId>,
    dues: &[Due],
    report: &mut Collected,
) -> Result<Kept> {
    let mut kept = Kept::default();
    if candidates.is_empty() || mutation::is(Mutation::B11Records) {
        return Ok(kept);
    }
    let mut walk = Walk::new(keys::RECORDS);
    while let Some(page) = walk.next(store).await? {
        let mut targets = Vec::new();
        for listed in &page {
            if matches!(class_of(listed)?, Class::Shared | Class::GoneRetired) {
                targets.push(target_of(&listed.key)?);
            }
        }
        let found = read_all(store, targets).await?;
        report.read += found.len() as u64;
        let sharing = found.into_iter().filter(|(_, current)| current.record.shared);
        let named = together(sharing, SWEPT, |(target, current)| async move {
            let named = live(store, &current.record).await?;
            let due = dues.iter().find(|due| due.is_of(&target.key, &current));
            let stays = |named: &Named| due.is_none_or(|due| !due.has(named));
            let staying = current.record.retired.iter().map(|entry| entry.named).filter(stays);
            let young = reach(store, &staying.collect::<Vec<_>>(), Absent::Skipped).await?;
            let asked = |reached: Reached| -> Vec<BlobId> {
                reached.into_keys().filter(|id| candidates.contains(id)).collect()
            };
            Ok((asked(named), asked(young)))
        });
        for (named, young) in named.await? {
            kept.named.extend(named);
            kept.young.extend(young);
        }
    }
    Ok(kept)
}

/// The candidates that an intent says somebody will name, or reads.
pub(super) async fn named_by_intents(
    store: &Inner,
    candidates: &BTreeSet<BlobId>,
) -> Result<BTreeSet<BlobId>> {
    let mut announced = BTreeSet::new();
    if candidates.is_empty() {
        return Ok(announced);
    }
    let mut walk = Walk::new(keys::INTENTS);
    while let Some(page) = walk.next(store).await? {
        let reached = together(page, READS, |listed| async move {
            let operation = keys::parse_intent(&listed.key).ok_or_else(|| strange(&listed.key))?;
            let Some((_, intent)) = store.intent(operation).await? else { return Ok(Vec::new()) };
            if intent.kind == IntentKind::Hold && mutation::is(Mutation::B15Holds) {
                return Ok(Vec::new());
            }
            let reached = reach(store, &intent.shared, Absent::Skipped).await?;
            let asked = reached.into_keys().filter(|id| candidates.contains(id));
            Ok(asked.collect::<Vec<_>>())
        });
        announced.extend(reached.await?.into_iter().flatten());
    }
    Ok(announced)
}
