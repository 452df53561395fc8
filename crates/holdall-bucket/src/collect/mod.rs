//! Collecting what nothing names any more.
//!
//! Owns: [`BucketStore::collect`], one cycle; beside it what goes over a whole store:
//! [`BucketStore::verify`], [`BucketStore::compact`], [`BucketStore::stat`].
//!
//! A cycle closes old intents, deletes what is retired, and removes the records of objects that are
//! gone. It may run at any time, beside everything, in several processes at once, and be ended
//! anywhere: what it did not do the next cycle does.

mod compact;
mod cycle;
mod full;
mod intents;
mod ranges;
mod reach;
mod retired;
mod stat;
mod verify;
mod walk;

pub use compact::Compacted;
pub(crate) use full::operations;
pub use stat::BucketStat;
pub use verify::{BucketProblem, Verified};

use crate::backend::Listed;
use crate::format::{BlobId, Class, IntentKind, Named, keys};
use crate::mutation::{self, Mutation};
use crate::store::{BucketStore, Current, Inner, Target, together};
use cycle::Cycle;
use holdall::{Error, Result};
use intents::Closed;
use reach::{Absent, Place, Reached, live, reach};
use retired::{Due, Kept};
use std::collections::BTreeSet;
use walk::Walk;

/// Deletions that are under way together.
const TOGETHER: usize = 32;
/// Records that are read together.
const READS: usize = 256;

/// What a cycle did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// Its number.
    pub cycle: u64,
    /// Records that listings showed.
    pub records: u64,
    /// Records that were read.
    pub read: u64,
    /// Intents that were looked at.
    pub intents: u64,
    /// Operations that were closed, having failed.
    pub closed: u64,
    /// Blobs that were deleted.
    pub blobs: u64,
    /// Their payload bytes, as far as that is known.
    pub bytes: u64,
    /// Records of gone objects that were removed.
    pub gone: u64,
    /// Whether another cycle began meanwhile, so that this one left candidates to it.
    pub overtaken: bool,
}

/// How to collect.
#[derive(Debug, Clone, Copy, Default)]
pub struct CollectOptions {
    /// Nobody else uses the store: records of gone objects may be removed where the server has no
    /// conditional deletion.
    pub alone: bool,
    /// Blobs that nothing names for reasons that records do not tell are looked for too: everything
    /// is listed and every record read, once for each two million blobs.
    pub full: bool,
}

impl BucketStore {
    /// Runs a cycle. `progress` sees the report grow.
    ///
    /// Cost: a request for a thousand names, and one for each that retired something, that shares
    /// or that is gone.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a record cannot be read: then nothing that depends on it is deleted;
    /// those of the backend.
    pub async fn collect(
        &self,
        options: CollectOptions,
        progress: &mut (dyn FnMut(&Collected) + Send),
    ) -> Result<Collected> {
        let store = &*self.inner;
        let cycle = Cycle::begin(store).await?;
        let mut report = Collected { cycle: cycle.number, ..Collected::default() };
        let closed = intents::close(store, &cycle, &mut report).await?;
        progress(&report);
        let shared = sweep(store, &cycle, &closed, options, &mut report, progress).await?;
        delete_candidates(store, &cycle, &closed, &shared, &mut report).await?;
        if options.full && !report.overtaken {
            full::collect(store, &cycle, full::PASS, &mut report, progress).await?;
        }
        progress(&report);
        Ok(report)
    }
}

fn strange(key: &str) -> Error {
    Error::corrupt(key, "is nothing of this store; something else uses its prefix")
}

fn target_of(key: &str) -> Result<Target> {
    let (collection, name) = keys::parse_record(key).ok_or_else(|| strange(key))?;
    Target::new(&collection, &name)
}

fn class_of(listed: &Listed) -> Result<Class> {
    let class = Class::of_len(listed.len);
    class.ok_or_else(|| Error::corrupt(&*listed.key, "is of no class of records"))
}

/// Reads records, several together.
async fn read_all(store: &Inner, targets: Vec<Target>) -> Result<Vec<(Target, Current)>> {
    let read = together(targets, READS, |target| async move {
        let current = store.read(&target).await?;
        Ok((target, current))
    });
    let read = read.await?;
    Ok(read.into_iter().filter_map(|(target, current)| Some((target, current?))).collect())
}

/// Goes through all records: deletes what those retired that share nothing, removes gone ones, and
/// returns what is due of those that share.
async fn sweep(
    store: &Inner,
    cycle: &Cycle,
    closed: &Closed,
    options: CollectOptions,
    report: &mut Collected,
    progress: &mut (dyn FnMut(&Collected) + Send),
) -> Result<Vec<Due>> {
    let mut shared = Vec::new();
    let mut walk = Walk::new(keys::RECORDS);
    while let Some(page) = walk.next(store).await? {
        let mut targets = Vec::new();
        for listed in &page {
            let target = target_of(&listed.key)?;
            report.records += 1;
            match class_of(listed)? {
                Class::Small | Class::Blobs => {}
                Class::Retired | Class::Shared | Class::GoneRetired => targets.push(target),
                Class::Gone => {
                    if cycle.is_old(store, listed.date / 1000) && !closed.busy.contains(&listed.key)
                    {
                        remove_gone(store, listed, options, report).await?;
                    }
                }
            }
        }
        for (target, current) in read_all(store, targets).await? {
            report.read += 1;
            let Some(due) = retired::due(store, cycle, &target, &current).await? else { continue };
            if current.record.shared && !mutation::is(Mutation::B10Shared) {
                shared.push(due);
            } else {
                due.delete(store, report).await?;
            }
        }
        progress(report);
    }
    Ok(shared)
}

/// Removes the record of a gone object if it is what the listing showed.
async fn remove_gone(
    store: &Inner,
    listed: &Listed,
    options: CollectOptions,
    report: &mut Collected,
) -> Result<()> {
    if mutation::is(Mutation::B12Tag) {
        store.backend.delete(&listed.key).await?;
    } else if store.backend.features().delete_if {
        report.gone += u64::from(store.backend.delete_if(&listed.key, &listed.tag).await?);
    } else if options.alone {
        let now = store.read(&target_of(&listed.key)?).await?;
        if now.is_some_and(|now| now.tag == listed.tag) {
            store.backend.delete(&listed.key).await?;
            report.gone += 1;
        }
    }
    Ok(())
}

/// Deletes what closed operations wrote and what sharing records retired, unless somebody names it.
async fn delete_candidates(
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
    delete_blobs(store, &free, report).await?;
    for operation in &closed.failed {
        store.backend.delete(&keys::intent(*operation)).await?;
    }
    retired::delete_shared(store, shared, &kept, report).await
}

/// The blobs that lie below these operations.
async fn written_by(store: &Inner, operations: &[crate::format::Id]) -> Result<Reached> {
    let mut found = Reached::new();
    for operation in operations {
        let mut walk = Walk::new(&keys::blobs_of(*operation));
        while let Some(page) = walk.next(store).await? {
            for listed in page {
                let id = keys::parse_blob(&listed.key).ok_or_else(|| strange(&listed.key))?;
                let blob = crate::format::BlobRef { id, len: listed.len };
                found.insert(id, Place::lone(blob));
            }
        }
    }
    Ok(found)
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
        for (target, current) in read_all(store, targets).await? {
            report.read += 1;
            if !current.record.shared {
                continue;
            }
            let named = live(store, &current.record).await?;
            kept.named.extend(named.into_keys().filter(|id| candidates.contains(id)));
            let due = dues.iter().find(|due| due.is_of(&target.key, &current));
            let stays = |named: &Named| due.is_none_or(|due| !due.has(named));
            let staying = current.record.retired.iter().map(|entry| entry.named).filter(stays);
            let reached = reach(store, &staying.collect::<Vec<_>>(), Absent::Skipped).await?;
            kept.young.extend(reached.into_keys().filter(|id| candidates.contains(id)));
        }
    }
    Ok(kept)
}

/// The candidates that an intent says somebody will name, or reads.
async fn named_by_intents(
    store: &Inner,
    candidates: &BTreeSet<BlobId>,
) -> Result<BTreeSet<BlobId>> {
    let mut announced = BTreeSet::new();
    if candidates.is_empty() {
        return Ok(announced);
    }
    let mut walk = Walk::new(keys::INTENTS);
    while let Some(page) = walk.next(store).await? {
        for listed in page {
            let operation = keys::parse_intent(&listed.key).ok_or_else(|| strange(&listed.key))?;
            let Some((_, intent)) = store.intent(operation).await? else { continue };
            if intent.kind == IntentKind::Hold && mutation::is(Mutation::B15Holds) {
                continue;
            }
            let named: Vec<Named> = intent.shared;
            let reached = reach(store, &named, Absent::Skipped).await?;
            announced.extend(reached.into_keys().filter(|id| candidates.contains(id)));
        }
    }
    Ok(announced)
}

/// Deletes blobs, the deepest first.
async fn delete_blobs(store: &Inner, blobs: &Reached, report: &mut Collected) -> Result<()> {
    let mut deepest_first: Vec<_> = blobs.values().collect();
    deepest_first.sort_by_key(|place| std::cmp::Reverse(place.depth));
    for level in deepest_first.chunk_by(|a, b| a.depth == b.depth) {
        let blobs = level.iter().map(|place| keys::blob(place.blob.id));
        let deleted =
            together(blobs, TOGETHER, |key| async move { store.backend.delete(&key).await });
        deleted.await?;
        report.blobs += level.len() as u64;
        report.bytes += level.iter().map(|place| place.blob.len).sum::<u64>();
    }
    Ok(())
}
