//! Putting objects from their first byte to the last: small ones in one request, larger ones blob by
//! blob.
//!
//! Owns: [`Writer`]. A segment is sent as soon as it is full; while eight are under way, the next waits.

use super::change::Changed;
use super::current::{Current, Target};
use super::inner::{Inner, TOGETHER};
use super::operation::Operation;
use super::put::{Body, PutOptions, Replace, check_mode};
use super::version::ObjectVersion;
use crate::format::{BlobDraft, BlobId, BlobKind, BlobRef, encode_blob, keys};
use crate::mutation::{self, Mutation};
use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use holdall::{Error, Result};
use holdall_core::segment_tree::MAX_OBJECT;
use std::sync::Arc;
use std::task::Poll;

impl Inner {
    /// Puts an object whose bytes are in memory.
    ///
    /// # Errors
    /// As [`Inner::change`]; those that the mode says.
    pub(crate) async fn put(
        self: &Arc<Self>,
        target: &Target,
        bytes: Bytes,
        options: PutOptions,
    ) -> Result<Changed> {
        super::check_attributes(&options.attributes)?;
        if bytes.len() as u64 > self.sizes().embedded {
            let mut writer = Writer::new(self.clone(), target.clone(), options)?;
            writer.send_all(bytes).await?;
            return writer.end().await;
        }
        self.put_small(target, bytes, options).await
    }

    async fn put_small(
        &self,
        target: &Target,
        bytes: Bytes,
        options: PutOptions,
    ) -> Result<Changed> {
        let mut operation = Operation::new(self)?;
        let base = self.base_for(target, options.mode).await?;
        let mut edit = Replace::new(target, Body::Bytes(bytes), options);
        self.change(target, &mut operation, base, &mut edit).await
    }
}

/// A blob on its way.
type Sending = BoxFuture<'static, Result<()>>;

/// Puts an object of any length that comes in parts. Bytes are sent as they come; the object appears
/// with [`Writer::finish`], or never: then a collector removes what was sent.
///
/// Within a runtime of tokio, requests go on while nobody waits for the writer.
pub struct Writer {
    store: Arc<Inner>,
    target: Target,
    options: PutOptions,
    operation: Operation,
    /// The record that will be replaced, as far as it is known.
    base: Option<Current>,
    /// The segment that is not full yet.
    filling: Option<BlobDraft>,
    size: u64,
    sending: FuturesUnordered<Sending>,
    sent: Vec<BlobRef>,
    /// Whether all that was pushed is here or on its way: not after a push that failed or was dropped.
    whole: bool,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("target", &self.target).field("size", &self.size).finish()
    }
}

impl Writer {
    pub(crate) fn new(store: Arc<Inner>, target: Target, options: PutOptions) -> Result<Self> {
        super::check_attributes(&options.attributes)?;
        let operation = Operation::new(&store)?;
        Ok(Self {
            store,
            target,
            options,
            operation,
            base: None,
            filling: None,
            size: 0,
            sending: FuturesUnordered::new(),
            sent: Vec::new(),
            whole: true,
        })
    }

    /// Bytes so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Puts bytes behind those before. A segment that is full is sent at once; the call waits only
    /// while eight are under way, and once for the record and the intent. Holds the segment that is not
    /// full in memory, and the eight.
    ///
    /// After an error, or if the future is dropped before it ends, the object cannot be put any more.
    ///
    /// # Errors
    /// Those of the backend, of segments sent before too.
    pub async fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.check()?;
        self.whole = false;
        self.fill(bytes).await?;
        self.whole = true;
        Ok(())
    }

    /// # Errors
    /// [`Error::Invalid`] after a push that failed or was dropped.
    fn check(&self) -> Result<()> {
        if self.whole {
            return Ok(());
        }
        let shown = self.target.shown();
        Err(Error::Invalid(format!("{shown}: a write of it failed or was given up before")))
    }

    async fn fill(&mut self, bytes: &[u8]) -> Result<()> {
        self.grow(bytes.len())?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let mut draft = match self.filling.take() {
                Some(draft) => draft,
                None => {
                    let id = self.operation.next_blob()?;
                    BlobDraft::new(id, BlobKind::Segment, self.store.sizes().segment)
                }
            };
            let (first, later) = rest.split_at(rest.len().min(draft.room() as usize));
            draft.push(first);
            rest = later;
            if draft.room() > 0 {
                self.filling = Some(draft);
            } else {
                self.send_draft(draft).await?;
            }
        }
        self.look()
    }

    fn grow(&mut self, by: usize) -> Result<()> {
        self.size = self.size.saturating_add(by as u64);
        if self.size > MAX_OBJECT {
            let detail = format!("an object can have {MAX_OBJECT} bytes at most");
            return Err(Error::Invalid(detail));
        }
        Ok(())
    }

    async fn send_draft(&mut self, draft: BlobDraft) -> Result<()> {
        self.make_room().await?;
        let (blob, stored) = draft.finish();
        self.send(blob, || stored)
    }

    /// Sends all bytes of an object, in whole segments, and what is behind them as a shorter one.
    async fn send_all(&mut self, bytes: Bytes) -> Result<()> {
        self.grow(bytes.len())?;
        let segment = self.store.sizes().segment as usize;
        let mut rest = bytes;
        while !rest.is_empty() {
            let part = rest.split_to(rest.len().min(segment));
            self.make_room().await?;
            let id: BlobId = self.operation.next_blob()?;
            let blob = BlobRef { id, len: part.len() as u64 };
            self.send(blob, move || encode_blob(id, BlobKind::Segment, &part))?;
        }
        Ok(())
    }

    /// Sees that a blob may be sent: the intent is written, and fewer than eight are under way.
    async fn make_room(&mut self) -> Result<()> {
        if self.sent.is_empty() {
            self.begin().await?;
        }
        self.operation.announce(&self.store, &self.target).await?;
        while self.sending.len() >= TOGETHER {
            self.settle().await?;
        }
        Ok(())
    }

    /// Begins the request of a blob.
    fn send(
        &mut self,
        blob: BlobRef,
        stored: impl FnOnce() -> Bytes + Send + 'static,
    ) -> Result<()> {
        let store = self.store.clone();
        self.sending.push(
            self.store
                .begin(async move { store.backend.put_new(&keys::blob(blob.id), stored()).await }),
        );
        self.sent.push(blob);
        self.look()
    }

    /// Finds the record that will be replaced and writes the intent, together.
    async fn begin(&mut self) -> Result<()> {
        let known = self.store.base_for(&self.target, self.options.mode);
        let base = async {
            match known.await? {
                Some(base) => Ok(Some(base)),
                None if mutation::is(Mutation::B04Absent) => Ok(None),
                None => self.store.placeholder(&self.target).await,
            }
        };
        let (base, announced) =
            futures::join!(base, self.operation.announce(&self.store, &self.target));
        announced?;
        self.base = base?;
        // What a mode refuses needs no bytes sent.
        check_mode(&self.target, self.base.as_ref(), self.options.mode)
    }

    /// Waits for one blob.
    async fn settle(&mut self) -> Result<()> {
        self.sending.next().await.unwrap_or(Ok(()))
    }

    /// Lets what is under way go on, and sees what ended, without waiting.
    fn look(&mut self) -> Result<()> {
        let mut context = std::task::Context::from_waker(futures::task::noop_waker_ref());
        while let Poll::Ready(Some(ended)) = self.sending.poll_next_unpin(&mut context) {
            ended?;
        }
        Ok(())
    }

    /// Makes the object appear, and returns its version.
    ///
    /// # Errors
    /// [`Error::Invalid`] after a push that failed or was dropped; [`Error::Exists`] and
    /// [`Error::Conflict`] as [`PutMode`](super::PutMode) says; [`Error::OutcomeUnknown`]; those of the
    /// backend.
    pub async fn finish(self) -> Result<ObjectVersion> {
        let target = self.target.clone();
        super::version_of(&target, self.end().await?)
    }

    pub(super) async fn end(mut self) -> Result<Changed> {
        self.check()?;
        let rest = self.filling.take();
        let small = rest.as_ref().map_or(0, BlobDraft::len) <= self.store.sizes().embedded;
        if self.sent.is_empty() && small {
            let bytes = rest.map_or_else(Vec::new, |rest| rest.payload());
            return self.store.put_small(&self.target, bytes.into(), self.options).await;
        }
        if let Some(rest) = rest {
            self.send_draft(rest).await?;
        }
        while !self.sending.is_empty() {
            self.settle().await?;
        }
        let body = Body::Blobs(std::mem::take(&mut self.sent));
        let mut edit = Replace::new(&self.target, body, self.options.clone());
        let mut base = self.base.take();
        if base.as_ref().is_some_and(|base| !self.store.is_fresh(base)) {
            base = self.store.read(&self.target).await?;
        }
        self.store.change(&self.target, &mut self.operation, base, &mut edit).await
    }
}
