//! A full cycle: finds blobs that neither a record nor an intent names.
//!
//! A request that took effect long after it was sent can leave one. All is listed in an order that
//! cannot miss what is being written: blobs, then intents, then records, then intents again.

use super::cycle::Cycle;
use super::reach::{Absent, Place, Reached, live, reach};
use super::walk::Walk;
use super::{Collected, delete_blobs, named_by_intents, read_all, strange, target_of};
use crate::format::{BlobId, BlobRef, Id, keys};
use crate::mutation::{self, Mutation};
use crate::store::Inner;
use holdall::Result;
use std::collections::BTreeSet;

/// Deletes all blobs that nothing names and no operation under way wrote. Holds their numbers in memory.
pub(super) async fn collect(
    store: &Inner,
    cycle: &Cycle,
    report: &mut Collected,
    progress: &mut (dyn FnMut(&Collected) + Send),
) -> Result<()> {
    let early = match mutation::is(Mutation::B14Order) {
        true => Some(operations(store).await?),
        false => None,
    };
    let mut unnamed = Reached::new();
    let mut walk = Walk::new(keys::BLOBS);
    while let Some(page) = walk.next(store).await? {
        for listed in page {
            let id = keys::parse_blob(&listed.key).ok_or_else(|| strange(&listed.key))?;
            unnamed.insert(id, Place::lone(BlobRef { id, len: listed.len }));
        }
    }
    let open = match early {
        Some(early) => early,
        None => operations(store).await?,
    };
    let counts = !mutation::is(Mutation::B14Open);
    unnamed.retain(|id, _| !(counts && open.contains(&id.operation)));
    let mut walk = Walk::new(keys::RECORDS);
    while let Some(page) = walk.next(store).await? {
        let targets: Result<Vec<_>> = page.iter().map(|listed| target_of(&listed.key)).collect();
        for (_, current) in read_all(store, targets?).await? {
            report.read += 1;
            let named = live(store, &current.record).await?;
            named.keys().for_each(|id| forget(&mut unnamed, id));
            let retired: Vec<_> = current.record.retired.iter().map(|entry| entry.named).collect();
            let named = reach(store, &retired, Absent::Skipped).await?;
            named.keys().for_each(|id| forget(&mut unnamed, id));
        }
        progress(report);
    }
    let candidates: BTreeSet<BlobId> = unnamed.keys().copied().collect();
    let announced = named_by_intents(store, &candidates).await?;
    unnamed.retain(|id, _| !announced.contains(id));
    if !cycle.is_own(store).await? {
        report.overtaken = true;
        return Ok(());
    }
    delete_blobs(store, &unnamed, report).await
}

fn forget(unnamed: &mut Reached, id: &BlobId) {
    unnamed.remove(id);
}

/// The operations that have an intent.
pub(super) async fn operations(store: &Inner) -> Result<BTreeSet<Id>> {
    let mut all = BTreeSet::new();
    let mut walk = Walk::new(keys::INTENTS);
    while let Some(page) = walk.next(store).await? {
        for listed in page {
            all.insert(keys::parse_intent(&listed.key).ok_or_else(|| strange(&listed.key))?);
        }
    }
    Ok(all)
}
