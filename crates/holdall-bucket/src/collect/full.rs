//! A full cycle: finds blobs that neither a record nor an intent names.
//!
//! A request that took effect long after it was sent can leave one. All is listed in an order that
//! cannot miss what is being written: blobs, then intents, then records, then intents again. Where blobs
//! are many, each pass takes some of them, so that what is held is bounded.

use super::candidates::named_by_intents;
use super::cycle::Cycle;
use super::reach::{Absent, Place, Reached, live, reach};
use super::walk::Walk;
use super::{Collected, SWEPT, delete_blobs, read_all, strange, target_of};
use crate::format::{BlobId, BlobRef, Id, keys};
use crate::mutation::{self, Mutation};
use crate::store::{Inner, together};
use holdall::Result;
use std::collections::BTreeSet;

/// Blobs of a pass, some 100 bytes of memory each.
pub(super) const PASS: usize = 2_000_000;

/// Deletes all blobs that nothing names and no operation under way wrote, in passes of `most` blobs and
/// a few pages. Each pass reads all records.
pub(super) async fn collect(
    store: &Inner,
    cycle: &Cycle,
    most: usize,
    report: &mut Collected,
    progress: &mut (dyn FnMut(&Collected) + Send),
) -> Result<()> {
    let mut walk = Walk::new(keys::BLOBS);
    let mut more = true;
    while more && !report.overtaken {
        let early = match mutation::is(Mutation::B14Order) {
            true => Some(operations(store).await?),
            false => None,
        };
        let mut listed = Reached::new();
        while more && listed.len() < most {
            let page = walk.next(store).await?;
            more = page.is_some();
            for blob in page.into_iter().flatten() {
                let id = keys::parse_blob(&blob.key).ok_or_else(|| strange(&blob.key))?;
                listed.insert(id, Place::lone(BlobRef { id, len: blob.len }));
            }
        }
        if !listed.is_empty() {
            pass(store, cycle, listed, early, report, progress).await?;
        }
    }
    Ok(())
}

/// Deletes those of some blobs that nothing names. What is listed later was written later or is of
/// another pass.
async fn pass(
    store: &Inner,
    cycle: &Cycle,
    mut unnamed: Reached,
    early: Option<BTreeSet<Id>>,
    report: &mut Collected,
    progress: &mut (dyn FnMut(&Collected) + Send),
) -> Result<()> {
    let open = match early {
        Some(early) => early,
        None => operations(store).await?,
    };
    let counts = !mutation::is(Mutation::B14Open);
    unnamed.retain(|id, _| !(counts && open.contains(&id.operation)));
    let mut walk = Walk::new(keys::RECORDS);
    while let Some(page) = walk.next(store).await? {
        let targets: Result<Vec<_>> = page.iter().map(|listed| target_of(&listed.key)).collect();
        let found = read_all(store, targets?).await?;
        report.read += found.len() as u64;
        let left = &unnamed;
        let named = together(found, SWEPT, |(_, current)| async move {
            let named = live(store, &current.record).await?;
            let retired: Vec<_> = current.record.retired.iter().map(|entry| entry.named).collect();
            let named =
                named.into_keys().chain(reach(store, &retired, Absent::Skipped).await?.into_keys());
            Ok(named.filter(|id| left.contains_key(id)).collect::<Vec<_>>())
        });
        for id in named.await?.iter().flatten() {
            unnamed.remove(id);
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
    report.add(delete_blobs(store, &unnamed).await?);
    Ok(())
}

/// The operations that have an intent.
pub(crate) async fn operations(store: &Inner) -> Result<BTreeSet<Id>> {
    let mut all = BTreeSet::new();
    let mut walk = Walk::new(keys::INTENTS);
    while let Some(page) = walk.next(store).await? {
        for listed in page {
            all.insert(keys::parse_intent(&listed.key).ok_or_else(|| strange(&listed.key))?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Backend, Memory};
    use crate::format::{BlobKind, Sizes, encode_blob};
    use crate::store::Options;
    use std::sync::Arc;

    #[tokio::test]
    async fn a_full_cycle_in_many_passes_deletes_what_nothing_names_and_no_more() {
        let memory = Arc::new(Memory::default());
        let sizes =
            Sizes { embedded: 10, segment: 50, slices: 16, fanout: 8, retired: 8, grace: 3600 };
        let store = Options::default().sizes(sizes).create(memory.clone()).await.unwrap();
        for n in 0..30 {
            store.put(&format!("{n}"), vec![n; 40 * usize::from(n)]).await.unwrap();
        }
        let named = store.stat(&mut |_| {}).await.unwrap().blobs;
        for n in 0..2500 {
            let id = BlobId { operation: store.inner.draw().unwrap(), number: 1 };
            let stored = encode_blob(id, BlobKind::Segment, &[n as u8; 9]);
            memory.put_new(&keys::blob(id), stored).await.unwrap();
        }
        let cycle = Cycle::begin(&store.inner).await.unwrap();
        let mut report = Collected::default();
        collect(&store.inner, &cycle, 500, &mut report, &mut |_| {}).await.unwrap();
        assert_eq!((report.blobs, report.overtaken), (2500, false));
        assert!(report.read >= 2 * 30, "there are several passes: {report:?}");
        assert_eq!(store.stat(&mut |_| {}).await.unwrap().blobs, named);
        assert_eq!(store.verify(&mut |_| {}).await.unwrap().problems, []);
    }
}
