//! What a store in a bucket holds, by listings alone.

use super::walk::Walk;
use super::{class_of, strange, target_of};
use crate::format::{Class, keys};
use crate::store::BucketStore;
use holdall::Result;
use std::collections::BTreeMap;

/// What a store holds. Bytes are those that lie in the bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BucketStat {
    /// Objects of each collection that has some.
    pub collections: BTreeMap<String, u64>,
    /// Objects.
    pub objects: u64,
    /// Objects that may share blobs with others.
    pub shared: u64,
    /// Records of objects that are gone.
    pub gone: u64,
    /// Records that retired blobs which are not deleted yet; those that share are not counted.
    pub retiring: u64,
    /// Bytes of all records.
    pub record_bytes: u64,
    /// Blobs.
    pub blobs: u64,
    /// Bytes of all blobs.
    pub blob_bytes: u64,
    /// Operations that are under way, or were broken off.
    pub intents: u64,
    /// Versions of objects that somebody holds.
    pub holds: u64,
}

impl BucketStore {
    /// What the store holds. Cost: a request for a thousand records, blobs and intents, and one for
    /// each intent.
    ///
    /// # Errors
    /// [`holdall::Error::Corrupt`] if something else lies there; those of the backend.
    pub async fn stat(&self, progress: &mut (dyn FnMut(&BucketStat) + Send)) -> Result<BucketStat> {
        let store = &*self.inner;
        let mut stat = BucketStat::default();
        let mut walk = Walk::new(keys::RECORDS);
        while let Some(page) = walk.next(store).await? {
            for listed in page {
                let (class, target) = (class_of(&listed)?, target_of(&listed.key)?);
                stat.record_bytes += listed.len;
                stat.retiring += u64::from(matches!(class, Class::Retired | Class::GoneRetired));
                if class.is_object() {
                    stat.objects += 1;
                    stat.shared += u64::from(class == Class::Shared);
                    *stat.collections.entry(target.collection).or_default() += 1;
                } else {
                    stat.gone += 1;
                }
            }
            progress(&stat);
        }
        let mut walk = Walk::new(keys::BLOBS);
        while let Some(page) = walk.next(store).await? {
            for listed in page {
                keys::parse_blob(&listed.key).ok_or_else(|| strange(&listed.key))?;
                stat.blobs += 1;
                stat.blob_bytes += listed.len;
            }
            progress(&stat);
        }
        let mut walk = Walk::new(keys::INTENTS);
        while let Some(page) = walk.next(store).await? {
            stat.intents += page.len() as u64;
        }
        stat.holds = self.holds().await?.len() as u64;
        stat.intents = stat.intents.saturating_sub(stat.holds);
        Ok(stat)
    }
}
