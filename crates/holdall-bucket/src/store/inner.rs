//! What all parts of a store use: the backend, the head, what is at hand.
//!
//! Owns: [`Inner`]; reading records, intents and blobs.

use super::cache::Cache;
use super::current::{Current, Target};
use super::environment::Environment;
use super::missing::missing_blob;
use crate::backend::{Backend, Body, Got, Tag};
use crate::format::{BlobId, BlobKind, BlobRef, Head, Id, Intent, Record, Sizes, Stretch, keys};
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::BoxFuture;
use holdall::{Error, Result};
use std::sync::Arc;
use std::time::Duration;

/// Tries of a change that others come before.
pub(crate) const TRIES: u32 = 16;
/// Requests of one call that are under way together.
pub(crate) const TOGETHER: usize = 8;
/// The longest wait between two tries.
const LONGEST: Duration = Duration::from_secs(2);
const SHORTEST: Duration = Duration::from_millis(5);

/// What a store's handles share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) head: Head,
    pub(crate) cache: Cache,
}

impl Inner {
    pub(crate) fn sizes(&self) -> &Sizes {
        &self.head.sizes
    }

    /// The time in nanoseconds since 1970 UTC.
    pub(crate) fn nanos(&self) -> u64 {
        u64::try_from(self.environment.now().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn draw(&self) -> Result<Id> {
        self.environment.draw()
    }

    /// Waits before try `attempt`, by chance so that two that met do not meet again.
    pub(crate) async fn pause(&self, attempt: u32) -> Result<()> {
        let most = (SHORTEST * 2_u32.saturating_pow(attempt)).min(LONGEST);
        let chance = (self.draw()?.short() % 1024) as u32;
        self.environment.sleep(most * chance / 1024).await;
        Ok(())
    }

    /// Begins `work`, as [`Environment::begin`].
    pub(crate) fn begin<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> BoxFuture<'static, Result<T>> {
        let (tell, told) = oneshot::channel();
        // Nobody may wait for it any more.
        let work = self.environment.begin(async move { drop(tell.send(work.await)) }.boxed());
        let told = async move {
            work.await;
            let ended = |_| Error::Invalid("a request ended without an answer".into());
            told.await.map_err(ended)?
        };
        told.boxed()
    }

    /// The record of `target`. Cost: one read, without a body if it is the one at hand.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is damaged or another's; those of the backend.
    pub(crate) async fn read(&self, target: &Target) -> Result<Option<Current>> {
        let known = self.cache.record(&target.key);
        let unless = known.as_ref().map(|known| &known.tag);
        match self.backend.get(&target.key, None, unless).await? {
            Got::Absent => {
                self.cache.forget(&target.key);
                Ok(None)
            }
            Got::Same => known.map(Some).ok_or_else(|| {
                Error::corrupt(&*target.key, "the server says that it is unchanged")
            }),
            Got::Found(found) => {
                let record = Record::decode(&found.bytes.whole(), &target.shown())?;
                if record.collection != target.collection || record.name != target.name {
                    let detail = format!("its record is of {:?}", record.name);
                    return Err(Error::corrupt(target.shown(), detail));
                }
                let written = Some(found.date / 1000);
                let current = Current { tag: found.tag, written, record: Arc::new(record) };
                self.cache.keep(&target.key, &current);
                Ok(Some(current))
            }
        }
    }

    /// An intent and its tag.
    pub(crate) async fn intent(&self, operation: Id) -> Result<Option<(Tag, Intent)>> {
        let key = keys::intent(operation);
        match self.backend.get(&key, None, None).await? {
            Got::Found(found) => Ok(Some((found.tag, Intent::decode(&found.bytes.whole(), &key)?))),
            _ => Ok(None),
        }
    }

    /// Writes a blob.
    pub(crate) async fn write_blob(
        &self,
        id: BlobId,
        kind: BlobKind,
        payload: &[u8],
    ) -> Result<BlobRef> {
        let stored = crate::format::encode_blob(id, kind, payload);
        self.backend.put_new(&keys::blob(id), stored).await?;
        Ok(BlobRef { id, len: payload.len() as u64 })
    }

    /// A stretch of a blob as it is stored, not verified yet; `None` if there is no such blob.
    pub(crate) async fn read_stretch(&self, stretch: Stretch) -> Result<Option<Body>> {
        let key = keys::blob(stretch.blob().id);
        match self.backend.get(&key, Some(stretch.stored()), None).await? {
            Got::Found(found) => Ok(Some(found.bytes)),
            _ => Ok(None),
        }
    }

    /// The payload of a whole blob of this kind; `None` if there is none.
    pub(crate) async fn read_whole(&self, id: BlobId, kind: BlobKind) -> Result<Option<Vec<u8>>> {
        match self.backend.get(&keys::blob(id), None, None).await? {
            Got::Found(found) => {
                crate::format::decode_stored(id, kind, &found.bytes.whole()).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The payload of a node, at hand or read.
    ///
    /// # Errors
    /// Those of [`missing_blob`]; [`Error::Corrupt`]; those of the backend.
    pub(crate) async fn read_node(&self, id: BlobId) -> Result<Arc<Vec<u8>>> {
        if let Some(payload) = self.cache.node(id) {
            return Ok(payload);
        }
        let payload = self.read_whole(id, BlobKind::Node).await?;
        let payload = payload.ok_or_else(|| missing_blob(id))?.into();
        self.cache.keep_node(id, &payload);
        Ok(payload)
    }
}
