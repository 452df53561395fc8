//! Collecting what nothing names any more.
//!
//! Owns: [`BucketStore::collect`], one cycle; beside it what goes over a whole store:
//! [`BucketStore::verify`], [`BucketStore::compact`], [`BucketStore::stat`].
//!
//! A cycle closes old intents, deletes what is retired, and removes the records of objects that are
//! gone. It may run at any time, beside everything, in several processes at once, and be ended
//! anywhere: what it did not do the next cycle does.

mod candidates;
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
use crate::format::{Class, keys};
use crate::mutation::{self, Mutation};
use crate::store::{BucketStore, Current, Inner, Target, together};
use cycle::Cycle;
use holdall::{Error, Result};
use intents::Closed;
use reach::Reached;
use retired::Due;
use walk::Walk;

/// Deletions that are under way together.
const TOGETHER: usize = 32;
/// Records or intents that are read together.
const READS: usize = 256;
/// Records that are swept together: each makes several requests at once.
const SWEPT: usize = 8;

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

/// Blobs that were deleted, and their bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Deleted {
    blobs: u64,
    bytes: u64,
}

impl Collected {
    fn add(&mut self, deleted: Deleted) {
        self.blobs += deleted.blobs;
        self.bytes += deleted.bytes;
    }
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
        candidates::delete_candidates(store, &cycle, &closed, &shared, &mut report).await?;
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
        let (mut targets, mut gone) = (Vec::new(), Vec::new());
        for listed in page {
            let target = target_of(&listed.key)?;
            report.records += 1;
            match class_of(&listed)? {
                Class::Small | Class::Blobs => {}
                Class::Retired | Class::Shared | Class::GoneRetired => targets.push(target),
                Class::Gone => {
                    let old = cycle.is_old(store, listed.date / 1000);
                    let free = old && !closed.busy.contains(&listed.key);
                    gone.extend(free.then_some(listed));
                }
            }
        }
        let removed = together(gone, TOGETHER, |listed| remove_gone(store, listed, options));
        report.gone += removed.await?.into_iter().map(u64::from).sum::<u64>();
        let found = read_all(store, targets).await?;
        report.read += found.len() as u64;
        let swept = together(found, SWEPT, |(target, current)| async move {
            sweep_one(store, cycle, &target, &current).await
        });
        for (deleted, due) in swept.await? {
            report.add(deleted);
            shared.extend(due);
        }
        progress(report);
    }
    Ok(shared)
}

/// Deletes what a record retired that shares nothing; what is due of one that does is returned.
async fn sweep_one(
    store: &Inner,
    cycle: &Cycle,
    target: &Target,
    current: &Current,
) -> Result<(Deleted, Option<Due>)> {
    let Some(due) = retired::due(store, cycle, target, current).await? else {
        return Ok((Deleted::default(), None));
    };
    if current.record.shared && !mutation::is(Mutation::B10Shared) {
        return Ok((Deleted::default(), Some(due)));
    }
    Ok((due.delete(store).await?, None))
}

/// Removes the record of a gone object if it is what the listing showed. Returns whether.
async fn remove_gone(store: &Inner, listed: Listed, options: CollectOptions) -> Result<bool> {
    if mutation::is(Mutation::B12Tag) {
        store.backend.delete(&listed.key).await?;
    } else if store.backend.features().delete_if {
        return store.backend.delete_if(&listed.key, &listed.tag).await;
    } else if options.alone {
        let now = store.read(&target_of(&listed.key)?).await?;
        if now.is_some_and(|now| now.tag == listed.tag) {
            store.backend.delete(&listed.key).await?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// Deletes blobs, the deepest first.
async fn delete_blobs(store: &Inner, blobs: &Reached) -> Result<Deleted> {
    let mut done = Deleted::default();
    let mut deepest_first: Vec<_> = blobs.values().collect();
    deepest_first.sort_by_key(|place| std::cmp::Reverse(place.depth));
    for level in deepest_first.chunk_by(|a, b| a.depth == b.depth) {
        let blobs = level.iter().map(|place| keys::blob(place.blob.id));
        let deleted =
            together(blobs, TOGETHER, |key| async move { store.backend.delete(&key).await });
        deleted.await?;
        done.blobs += level.len() as u64;
        done.bytes += level.iter().map(|place| place.blob.len).sum::<u64>();
    }
    Ok(done)
}
