//! What all parts of a store use: the backend, the head, what is at hand.
//!
//! Owns: [`Inner`]; reading records, intents and blobs.

use super::cache::Cache;
use super::current::{Current, Target};
use super::environment::Environment;
use super::missing::missing_blob;
use crate::backend::{Backend, Body, Got, Tag};
use crate::format::{
    BlobId, BlobKind, BlobRef, HEADER_READ, Head, Id, Intent, Record, RecordHeader, Sizes, Stretch,
    keys,
};
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

/// How long a base that was seen is good for a write: fewer changes than a record remembers take longer.
const FRESH: Duration = Duration::from_secs(1);

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
        // Who waits for it may be gone.
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
        let seen = self.environment.now();
        let got = self.backend.get(&target.key, None, unless).await?;
        match self.taken(target, known, got, seen) {
            // A client that goes on with an answer that broke off may have joined two records, if a
            // server gives the tag of the one with the bytes of the other. Damage is there again.
            Err(Error::Corrupt { .. }) => {
                let got = self.backend.get(&target.key, None, None).await?;
                self.taken(target, None, got, seen)
            }
            taken => taken,
        }
    }

    /// The header of the record of `target`; `listed` is the tag that a listing showed. Cost: one read of a
    /// kilobyte, and one of the whole record if its header is longer; none if what is at hand has that tag.
    ///
    /// # Errors
    /// As [`Inner::read`].
    pub(crate) async fn read_header(
        &self,
        target: &Target,
        listed: Option<&Tag>,
    ) -> Result<Option<RecordHeader>> {
        let known = self.cache.header(&target.key);
        if let Some((tag, header)) = &known
            && listed == Some(tag)
        {
            return Ok(Some(header.clone()));
        }
        let unless = known.as_ref().map(|(tag, _)| tag);
        match self.backend.get(&target.key, Some(0..HEADER_READ), unless).await? {
            Got::Absent => return Ok(None),
            Got::Same if known.is_some() => return Ok(known.map(|(_, header)| header)),
            Got::Found(found) => {
                let header = RecordHeader::decode(&found.bytes.whole());
                let is_of = |header: &RecordHeader| {
                    header.collection == target.collection && header.name == target.name
                };
                if let Some(header) = header.filter(is_of) {
                    self.cache.keep_header(&target.key, found.tag, &header);
                    return Ok(Some(header));
                }
            }
            Got::Same => {}
        }
        // It is longer, or damaged: the whole record tells which.
        Ok(self.read(target).await?.map(|current| RecordHeader::from(&*current.record)))
    }

    fn taken(
        &self,
        target: &Target,
        known: Option<Current>,
        got: Got,
        seen: Duration,
    ) -> Result<Option<Current>> {
        let current = match got {
            Got::Absent => {
                self.cache.forget(&target.key);
                return Ok(None);
            }
            Got::Same => {
                let known = known.ok_or_else(|| {
                    Error::corrupt(&*target.key, "the server says that it is unchanged")
                })?;
                Current { seen, ..known }
            }
            Got::Found(found) => {
                let record = Record::decode(&found.bytes.whole(), &target.shown())?;
                if record.collection != target.collection || record.name != target.name {
                    let detail = format!("its record is of {:?}", record.name);
                    return Err(Error::corrupt(target.shown(), detail));
                }
                let written = Some(found.date / 1000);
                Current { tag: found.tag, written, seen, record: Arc::new(record) }
            }
        };
        self.cache.keep(&target.key, &current);
        Ok(Some(current))
    }

    /// Whether a base was seen so lately that few changes can have come since. With more than a record
    /// remembers, nobody could tell what became of a write on it.
    pub(crate) fn is_fresh(&self, base: &Current) -> bool {
        self.environment.now().saturating_sub(base.seen) <= FRESH
    }

    /// An intent and its tag. As a record, it is read again before it counts as damaged.
    pub(crate) async fn intent(&self, operation: Id) -> Result<Option<(Tag, Intent)>> {
        let found = self.dated_intent(operation).await?;
        Ok(found.map(|(tag, intent, _)| (tag, intent)))
    }

    /// The same with the second at which it was written, by the server's clock.
    pub(crate) async fn dated_intent(&self, operation: Id) -> Result<Option<(Tag, Intent, u64)>> {
        let key = keys::intent(operation);
        let decoded = |got| match got {
            Got::Found(found) => {
                let intent = Intent::decode(&found.bytes.whole(), &key)?;
                Ok(Some((found.tag, intent, found.date / 1000)))
            }
            _ => Ok(None),
        };
        match decoded(self.backend.get(&key, None, None).await?) {
            Err(Error::Corrupt { .. }) => decoded(self.backend.get(&key, None, None).await?),
            decoded => decoded,
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
