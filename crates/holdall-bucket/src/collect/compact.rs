//! Compacting: what is left of blobs that are mostly dead is written again, together.
//!
//! The object stays what it is, and its version too: only the record and where its bytes lie change.

use super::walk::Walk;
use super::{class_of, target_of};
use crate::format::{BlobId, Class, EMBEDDED, Record, alias_of, keys};
use crate::store::{
    AtHand, BucketStore, Current, Edit, Inner, Known, Object, Operation, Splice, Splices, Target,
    What, Written, fetch_nodes, is_missing,
};
use holdall::{Error, Result};
use holdall_core::segment_tree::{Slice, slices};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that one change writes again at most.
const AT_ONCE: u64 = 64 << 20;

/// What compacting did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compacted {
    /// Objects with blobs that were looked at.
    pub objects: u64,
    /// Objects of which something was written again.
    pub rewritten: u64,
    /// Bytes written again.
    pub bytes: u64,
    /// Objects left alone since they share blobs with others.
    pub shared: u64,
    /// Objects left alone since somebody changed them meanwhile, or since it took too long.
    pub changed: u64,
}

impl BucketStore {
    /// Writes again what is left of blobs of which less than half is named. The blobs themselves go
    /// with a later cycle of collecting. Objects that share blobs are left alone.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; those of the backend.
    pub async fn compact(
        &self,
        progress: &mut (dyn FnMut(&Compacted) + Send),
    ) -> Result<Compacted> {
        let store = &self.inner;
        let mut report = Compacted::default();
        let mut walk = Walk::new(keys::RECORDS);
        while let Some(page) = walk.next(store).await? {
            for listed in page {
                let target = target_of(&listed.key)?;
                match class_of(&listed)? {
                    Class::Blobs | Class::Retired => {
                        report.objects += 1;
                        compact_one(store, &target, &mut report).await?;
                    }
                    Class::Shared => report.shared += 1,
                    Class::Small | Class::Gone | Class::GoneRetired => {}
                }
            }
            progress(&report);
        }
        Ok(report)
    }
}

async fn compact_one(store: &Arc<Inner>, target: &Target, report: &mut Compacted) -> Result<()> {
    let mut any = false;
    loop {
        let Some(current) =
            store.read(target).await?.filter(|c| !c.record.shared && !c.record.gone)
        else {
            return Ok(());
        };
        let ranges = match sparse(store, &current).await {
            Err(e) if is_missing(&e) && is_replaced(store, target, &current).await? => continue,
            ranges => ranges?,
        };
        if ranges.is_empty() {
            return Ok(());
        }
        let bytes: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        match rewrite(store, target, &current, ranges).await {
            Ok(true) => {}
            // A collector closed it since it took long, or the server refused it: the object is as it was,
            // and others are still to be compacted.
            Ok(false) | Err(Error::Conflict { .. }) => {
                report.changed += 1;
                return Ok(());
            }
            Err(e) => return Err(e),
        }
        report.bytes += bytes;
        report.rewritten += u64::from(!std::mem::replace(&mut any, true));
    }
}

async fn is_replaced(store: &Inner, target: &Target, current: &Current) -> Result<bool> {
    Ok(store.read(target).await?.is_none_or(|now| now.tag != current.tag))
}

/// The ranges of an object that lie in blobs of which it names less than half, up to what one change
/// writes again.
async fn sparse(store: &Inner, current: &Current) -> Result<Vec<Range<u64>>> {
    let record = &current.record;
    let (mut blobs, mut at_hand) = (record.blobs.clone(), AtHand::new());
    let all = 0..record.tree.size;
    fetch_nodes(store, &record.tree, &mut blobs, &mut at_hand, std::slice::from_ref(&all)).await?;
    let located: Result<Vec<_>> = slices(&Known(&at_hand), &record.tree, all).collect();
    let located = located?;
    let blob_of = |slice: &Slice| {
        let alias = alias_of(slice.reference);
        if slice.is_run() && alias != EMBEDDED { blobs.get(alias) } else { None }
    };
    // Bytes that two slices name count twice, which keeps their blob.
    let mut named: BTreeMap<BlobId, u64> = BTreeMap::new();
    for l in &located {
        if let Some(blob) = blob_of(&l.slice) {
            *named.entry(blob.id).or_default() += l.slice.len;
        }
    }
    let few = |id: &BlobId, len: u64| named.get(id).is_some_and(|named| named * 2 < len);
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let mut bytes = 0;
    for l in &located {
        if !blob_of(&l.slice).is_some_and(|blob| few(&blob.id, blob.len)) {
            continue;
        }
        bytes += l.slice.len;
        if bytes > AT_ONCE && !ranges.is_empty() {
            break;
        }
        match ranges.last_mut() {
            Some(last) if last.end == l.start => last.end = l.end(),
            _ => ranges.push(l.start..l.end()),
        }
    }
    Ok(ranges)
}

/// Writes some ranges of an object again. Returns whether; if not, somebody changed it.
async fn rewrite(
    store: &Arc<Inner>,
    target: &Target,
    current: &Current,
    ranges: Vec<Range<u64>>,
) -> Result<bool> {
    let mut object = Object::new(store.clone(), target.clone(), current.clone());
    let mut again = Vec::with_capacity(ranges.len());
    for range in ranges {
        match object.read(range.clone()).await {
            Ok(bytes) => again.push(Splice::Replace(range, bytes)),
            Err(Error::SnapshotTooOld { .. }) => return Ok(false),
            Err(e) => return Err(e),
        }
    }
    let mut operation = Operation::new(store)?;
    operation.base_was_read();
    let mut edit = Splices::new(target, What::Rewrite(again), None, false);
    let edited = match edit.apply(store, &mut operation, Some(current)).await {
        Err(e) if is_missing(&e) && is_replaced(store, target, current).await? => return Ok(false),
        edited => edited?,
    };
    let Some(edited) = edited else { return Ok(true) };
    let old = &current.record;
    let same = Record {
        operation: old.operation,
        change: old.change,
        recent: old.recent.clone(),
        modified: old.modified,
        attributes: old.attributes.clone(),
        ..edited
    };
    let record = store.prepare(target, &mut operation, Some(current), same).await?;
    operation.check_open(store, target).await?;
    match store.write(target, Some(current), record, None).await? {
        Written::Done(_) => {
            operation.end(store).await;
            Ok(true)
        }
        Written::Lost(_) => Ok(false),
    }
}
