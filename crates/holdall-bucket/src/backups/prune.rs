//! Removing backups that need not stay.
//!
//! Owns: the order: first the lists, of backups that others build on last, then the parts that no list
//! names. So what is listed is whole, wherever it was broken off.

use super::bucket::{Bucket, Object};
use super::keep::Keep;
use super::manifest::Listed;
use super::{parts, unfinished};
use holdall::{BackupId, Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Age after which parts of a backup that is not listed are nobody's, in milliseconds.
const ABANDONED: i64 = 24 * 3600 * 1000;

/// What was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// Backups.
    pub backups: Vec<Listed>,
    /// Bytes of parts.
    pub bytes: u64,
}

impl Bucket {
    /// Removes the backups that `keep` lets go, and what is left of those that were broken off more than a
    /// day ago. Cost: a list request for each thousand parts, and a request for each object removed.
    ///
    /// # Errors
    /// Those of asking. What is still listed then is whole.
    pub fn prune(&self, keep: &Keep) -> Result<Pruned> {
        self.prune_until(keep, &|| false)
    }

    /// As [`Bucket::prune`], until `stop`.
    ///
    /// # Errors
    /// As [`Bucket::prune`]; [`Error::Cancelled`] if it was stopped.
    pub(crate) fn prune_until(&self, keep: &Keep, stop: &dyn Fn() -> bool) -> Result<Pruned> {
        self.must_hold_backups()?;
        let backups = self.backups()?;
        let stay = keep.of(&backups);
        let mut pruned = Pruned::default();
        // None is listed longer than what it builds on.
        let mut gone: Vec<Listed> =
            backups.by_time().into_iter().filter(|listed| !stay.contains(&listed.id.0)).collect();
        gone.reverse();
        for listed in &gone {
            if stop() {
                return Err(Error::Cancelled);
            }
            self.wait(self.client.remove(&listed.name()))?;
        }
        pruned.bytes = self.sweep(&gone, &stay, stop)?;
        pruned.backups = gone;
        Ok(pruned)
    }

    /// Removes parts: of these backups, and abandoned ones. Returns their bytes.
    fn sweep(
        &self,
        gone: &[Listed],
        stay: &BTreeSet<[u8; 16]>,
        stop: &dyn Fn() -> bool,
    ) -> Result<u64> {
        let gone: BTreeSet<[u8; 16]> = gone.iter().map(|listed| listed.id.0).collect();
        let mut folders: BTreeMap<[u8; 16], Vec<Object>> = BTreeMap::new();
        for object in self.wait(self.client.list(parts::FOLDER))? {
            let id: Option<BackupId> = object.name.split('/').nth(1).and_then(|id| id.parse().ok());
            if let Some(id) = id {
                folders.entry(id.0).or_default().push(object);
            }
        }
        // By the server's clock, which gave all of them their times.
        let newest = |objects: &Vec<Object>| objects.iter().map(|object| object.modified).max();
        let now = folders.values().filter_map(newest).max().unwrap_or(0);
        // Listed now: what was published since is not swept.
        let listed = self.backups()?;
        let mut bytes = 0;
        for (id, objects) in folders {
            let old = newest(&objects).is_some_and(|newest| newest < now - ABANDONED);
            let known = stay.contains(&id) || listed.get(BackupId(id)).is_some();
            if known || !(gone.contains(&id) || old) {
                continue;
            }
            for object in objects {
                if stop() {
                    return Err(Error::Cancelled);
                }
                self.wait(self.client.remove(&object.name))?;
                bytes += object.bytes;
            }
            unfinished::forget(self, BackupId(id))?;
        }
        Ok(bytes)
    }
}
