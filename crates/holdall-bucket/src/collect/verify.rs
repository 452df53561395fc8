//! Verifying a store in a bucket: everything is read.

use super::full::operations;
use super::reach::{Absent, Reached, live, reach};
use super::walk::Walk;
use super::{class_of, strange, target_of};
use crate::backend::Got;
use crate::format::{BlobId, BlobKind, BlobRef, Id, decode_stored, keys, stored_len};
use crate::store::{BucketStore, Current, Inner, Target, is_missing, together};
use holdall::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// Records that are looked at together,
const RECORDS: usize = 256;
/// and blobs that are read together.
const READS: usize = 8;

/// What verifying found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Objects that were looked at.
    pub objects: u64,
    /// Blobs that were read.
    pub blobs: u64,
    /// Their payload bytes.
    pub bytes: u64,
    /// Blobs that nothing names and no operation under way wrote: a full cycle of collecting deletes
    /// them.
    pub unnamed: u64,
    /// Their bytes in the bucket.
    pub unnamed_bytes: u64,
    /// What is damaged.
    pub problems: Vec<BucketProblem>,
}

/// Something damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketProblem {
    /// The object, by collection and name; `None` if its record does not tell.
    pub object: Option<(String, String)>,
    /// What is wrong.
    pub detail: String,
}

struct Verify<'s> {
    store: &'s Inner,
    found: Mutex<Found>,
    reads: Semaphore,
}

#[derive(Default)]
struct Found {
    report: Verified,
    /// Blobs that were there when verifying began, or were seen since, with their stored length; taken
    /// out once somebody names them.
    unnamed: BTreeMap<BlobId, u64>,
    read: BTreeSet<BlobId>,
}

impl BucketStore {
    /// Reads all records and all blobs that they name, and verifies each checksum, length and sum. May
    /// run beside everything. Holds the numbers of all blobs in memory.
    ///
    /// # Errors
    /// Those of the backend; damage is reported, not an error.
    pub async fn verify(&self, progress: &mut (dyn FnMut(&Verified) + Send)) -> Result<Verified> {
        let store = &*self.inner;
        let verify = Verify { store, found: Mutex::default(), reads: Semaphore::new(READS) };
        verify.list_blobs().await?;
        let open = operations(store).await?;
        let mut walk = Walk::new(keys::RECORDS);
        while let Some(page) = walk.next(store).await? {
            let mut targets = Vec::new();
            for listed in page {
                let target = target_of(&listed.key)?;
                match class_of(&listed) {
                    Ok(_) => targets.push(target),
                    Err(e) => verify.problem(Some(&target), &e),
                }
            }
            for some in targets.chunks(RECORDS) {
                together(some, RECORDS, |target| verify.record(target)).await?;
                progress(&verify.found().report);
            }
        }
        Ok(verify.end(&open))
    }
}

impl Verify<'_> {
    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn list_blobs(&self) -> Result<()> {
        let mut walk = Walk::new(keys::BLOBS);
        while let Some(page) = walk.next(self.store).await? {
            for listed in page {
                let id = keys::parse_blob(&listed.key).ok_or_else(|| strange(&listed.key))?;
                self.found().unnamed.insert(id, listed.len);
            }
        }
        Ok(())
    }

    fn problem(&self, target: Option<&Target>, error: &Error) {
        let object = target.map(|target| (target.collection.clone(), target.name.clone()));
        let detail = match error {
            Error::Corrupt { place, detail } => format!("{place}: {detail}"),
            other => other.to_string(),
        };
        self.found().report.problems.push(BucketProblem { object, detail });
    }

    /// Looks at a record until what it names is there, or it says the same twice.
    async fn record(&self, target: &Target) -> Result<()> {
        let mut before: Option<Current> = None;
        loop {
            let current = match self.store.read(target).await {
                Ok(Some(current)) => current,
                Ok(None) => return Ok(()),
                Err(e) if is_damage(&e) => {
                    self.problem(Some(target), &e);
                    return Ok(());
                }
                Err(e) => return Err(e),
            };
            match self.look(&current).await {
                Ok(()) => {}
                // It may have been replaced since; then its blobs are rightly gone.
                Err(e)
                    if is_missing(&e) && before.as_ref().is_none_or(|b| b.tag != current.tag) =>
                {
                    before = Some(current);
                    continue;
                }
                Err(e) if is_damage(&e) => self.problem(Some(target), &e),
                Err(e) => return Err(e),
            }
            self.found().report.objects += u64::from(!current.record.gone);
            return Ok(());
        }
    }

    async fn look(&self, current: &Current) -> Result<()> {
        let retired: Vec<_> = current.record.retired.iter().map(|entry| entry.named).collect();
        let retired = reach(self.store, &retired, Absent::Skipped).await?;
        let named = live(self.store, &current.record).await?;
        let unread = self.found().take(&retired, &named);
        let store = self.store;
        let (count, bytes) = (unread.len() as u64, unread.iter().map(|(b, _)| b.len).sum::<u64>());
        let read = |(blob, kind)| async move {
            let _permit = self.reads.acquire().await;
            read_blob(store, blob, kind).await
        };
        together(unread, READS, read).await?;
        let report = &mut self.found().report;
        report.blobs += count;
        report.bytes += bytes;
        Ok(())
    }

    fn end(self, open: &BTreeSet<Id>) -> Verified {
        let found = self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut report = found.report;
        for (_, len) in found.unnamed.iter().filter(|(id, _)| !open.contains(&id.operation)) {
            report.unnamed += 1;
            report.unnamed_bytes += len;
        }
        // Records come in no order.
        report.problems.sort_by(|a, b| a.object.cmp(&b.object));
        report
    }
}

impl Found {
    /// Takes what a record reaches; the blobs of it that nobody has read yet.
    fn take(&mut self, retired: &Reached, named: &Reached) -> Vec<(BlobRef, BlobKind)> {
        let mut unread = Vec::new();
        for id in retired.keys().chain(named.keys()) {
            self.unnamed.remove(id);
        }
        for (id, place) in named {
            if self.read.insert(*id) {
                let kind = if place.leaf { BlobKind::Segment } else { BlobKind::Node };
                unread.push((place.blob, kind));
            }
        }
        unread
    }
}

fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. } | Error::Unsupported { .. })
}

/// Reads a whole blob, and verifies it.
async fn read_blob(store: &Inner, blob: BlobRef, kind: BlobKind) -> Result<()> {
    match store.backend.get(&keys::blob(blob.id), None, None).await? {
        Got::Found(found) => {
            if found.len != stored_len(blob.len) {
                let detail = format!("{} bytes, {} are said", found.len, stored_len(blob.len));
                return Err(Error::corrupt(format!("blob {}", blob.id), detail));
            }
            decode_stored(blob.id, kind, &found.bytes.whole()).map(drop)
        }
        _ => Err(crate::store::missing_blob(blob.id)),
    }
}
