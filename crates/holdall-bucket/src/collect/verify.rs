//! Verifying a store in a bucket: everything is read.

use super::full::operations;
use super::reach::{Absent, live, reach};
use super::walk::Walk;
use super::{class_of, strange, target_of};
use crate::backend::Got;
use crate::format::{BlobId, BlobKind, BlobRef, Id, decode_stored, keys, stored_len};
use crate::store::{BucketStore, Current, Inner, Target, is_missing, together};
use holdall::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Blobs that are read together.
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
        let (unnamed, read) = Default::default();
        let mut verify = Verify { store, report: Verified::default(), unnamed, read };
        verify.list_blobs().await?;
        let open = operations(store).await?;
        let mut walk = Walk::new(keys::RECORDS);
        while let Some(page) = walk.next(store).await? {
            for listed in page {
                let target = target_of(&listed.key)?;
                if let Err(e) = class_of(&listed) {
                    verify.problem(Some(&target), &e);
                    continue;
                }
                verify.record(&target).await?;
                progress(&verify.report);
            }
        }
        verify.count_unnamed(&open);
        // Records come in no order.
        verify.report.problems.sort_by(|a, b| a.object.cmp(&b.object));
        Ok(verify.report)
    }
}

impl Verify<'_> {
    async fn list_blobs(&mut self) -> Result<()> {
        let mut walk = Walk::new(keys::BLOBS);
        while let Some(page) = walk.next(self.store).await? {
            for listed in page {
                let id = keys::parse_blob(&listed.key).ok_or_else(|| strange(&listed.key))?;
                self.unnamed.insert(id, listed.len);
            }
        }
        Ok(())
    }

    fn problem(&mut self, target: Option<&Target>, error: &Error) {
        let object = target.map(|target| (target.collection.clone(), target.name.clone()));
        let detail = match error {
            Error::Corrupt { place, detail } => format!("{place}: {detail}"),
            other => other.to_string(),
        };
        self.report.problems.push(BucketProblem { object, detail });
    }

    /// Looks at a record until what it names is there, or it says the same twice.
    async fn record(&mut self, target: &Target) -> Result<()> {
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
            self.report.objects += u64::from(!current.record.gone);
            return Ok(());
        }
    }

    async fn look(&mut self, current: &Current) -> Result<()> {
        let retired: Vec<_> = current.record.retired.iter().map(|entry| entry.named).collect();
        for id in reach(self.store, &retired, Absent::Skipped).await?.keys() {
            self.unnamed.remove(id);
        }
        let named = live(self.store, &current.record).await?;
        let mut unread = Vec::new();
        for (id, place) in &named {
            self.unnamed.remove(id);
            if self.read.insert(*id) {
                unread.push((
                    place.blob,
                    if place.leaf { BlobKind::Segment } else { BlobKind::Node },
                ));
            }
        }
        let store = self.store;
        let (count, bytes) = (unread.len() as u64, unread.iter().map(|(b, _)| b.len).sum::<u64>());
        together(unread, READS, |(blob, kind)| read_blob(store, blob, kind)).await?;
        self.report.blobs += count;
        self.report.bytes += bytes;
        Ok(())
    }

    fn count_unnamed(&mut self, open: &BTreeSet<Id>) {
        for (_, len) in self.unnamed.iter().filter(|(id, _)| !open.contains(&id.operation)) {
            self.report.unnamed += 1;
            self.report.unnamed_bytes += len;
        }
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
