//! Putting whole objects: small ones in one request, larger ones blob by blob.
//!
//! Owns: [`PutMode`], [`PutOptions`]; the edit that replaces an object; [`Writer`], for streams.

use super::change::{Changed, Edit, successor};
use super::current::{Current, Target};
use super::inner::{Inner, TOGETHER};
use super::operation::Operation;
use super::tree::Draft;
use super::version::ObjectVersion;
use crate::format::{BlobKind, BlobRef, Blobs, EMBEDDED, Record, reference};
use crate::mutation::{self, Mutation};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, TryStreamExt};
use holdall::{Attributes, Error, Result};
use holdall_core::segment_tree::{MAX_OBJECT, Slice, Top, Tree, build};
use std::sync::Arc;

/// What a put does about an object that has the name already.
pub type PutMode = holdall_core::PutMode<ObjectVersion>;

/// How an object is put.
#[derive(Debug, Clone, Default)]
pub struct PutOptions {
    /// What to do about an object that has the name already.
    pub mode: PutMode,
    /// The object's attributes. Those of an object that is replaced are dropped.
    pub attributes: Attributes,
}

/// What the bytes of a put lie in.
#[derive(Debug, Clone)]
pub(super) enum Body {
    /// The record.
    Bytes(Bytes),
    /// Blobs, one behind the other.
    Blobs(Vec<BlobRef>),
    /// What another object names.
    Shared { tree: Tree, blobs: Blobs, embedded: Bytes },
}

/// An edit that replaces an object.
pub(super) struct Replace {
    pub(super) target: Target,
    pub(super) body: Body,
    pub(super) options: PutOptions,
    /// Nodes of the last attempt.
    written: Vec<BlobRef>,
}

/// # Errors
/// As [`holdall_core::PutMode::check`].
pub(super) fn check_mode(target: &Target, base: Option<&Current>, mode: PutMode) -> Result<()> {
    let version = base.and_then(Current::object).map(|old| ObjectVersion::of(old));
    mode.check(version.as_ref(), &|| target.shown())
}

impl Replace {
    pub(super) fn new(target: &Target, body: Body, options: PutOptions) -> Self {
        Self { target: target.clone(), body, options, written: Vec::new() }
    }

    /// A tree of whole blobs: nodes, if they are more than a record lists.
    async fn tree_of(
        &mut self,
        store: &Inner,
        operation: &mut Operation,
        sent: &[BlobRef],
    ) -> Result<(Tree, Blobs)> {
        let mut blobs = Blobs::default();
        let slices: Vec<Slice> =
            sent.iter().map(|b| Slice::run(reference(blobs.alias(*b), 0), b.len)).collect();
        let most = store.sizes().slices;
        let mut draft = Draft::new(blobs, Vec::new(), store.sizes().fanout, operation);
        let tree =
            draft.run(store, &mut |draft| build(draft, slices.iter().copied(), most)).await?;
        let nodes = draft.write_nodes(store, &self.target).await;
        self.written.append(&mut draft.written);
        nodes?;
        Ok((tree, draft.blobs))
    }
}

#[async_trait]
impl Edit for Replace {
    async fn apply(
        &mut self,
        store: &Inner,
        operation: &mut Operation,
        base: Option<&Current>,
    ) -> Result<Option<Record>> {
        check_mode(&self.target, base, self.options.mode)?;
        let mut record = successor(store, &self.target, operation, base)?;
        record.attributes.clone_from(&self.options.attributes);
        match self.body.clone() {
            Body::Bytes(bytes) => {
                let len = bytes.len() as u64;
                let all = (len > 0).then(|| Slice::run(reference(EMBEDDED, 0), len));
                record.tree = Tree { size: len, top: Top::Inline(all.into_iter().collect()) };
                record.embedded = bytes;
            }
            Body::Blobs(sent) => {
                operation.unused.append(&mut self.written);
                (record.tree, record.blobs) = self.tree_of(store, operation, &sent).await?;
            }
            Body::Shared { tree, blobs, embedded } => {
                (record.tree, record.blobs, record.embedded) = (tree, blobs, embedded);
                record.shared = true;
            }
        }
        Ok(Some(record))
    }
}

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
            writer.send(bytes).await?;
            return writer.end().await;
        }
        let mut operation = Operation::new(self)?;
        let base = self.base_for(target, options.mode).await?;
        let mut edit = Replace::new(target, Body::Bytes(bytes), options);
        self.change(target, &mut operation, base, &mut edit).await
    }

    /// The base that a put of this mode begins with. One that was at hand only is good for what
    /// depends on nothing, or on the version that it has, if it was seen lately.
    pub(super) async fn base_for(&self, target: &Target, mode: PutMode) -> Result<Option<Current>> {
        let known = self.cache.record(&target.key);
        if known.as_ref().is_some_and(|known| !self.is_fresh(known)) {
            return self.read(target).await;
        }
        match (mode, known) {
            (PutMode::Overwrite, known) => Ok(known),
            (PutMode::Create, known) => Ok(known.filter(|known| known.record.gone)),
            (PutMode::Update(only), Some(known))
                if known.object().is_some_and(|old| ObjectVersion::of(old) == only) =>
            {
                Ok(Some(known))
            }
            _ => self.read(target).await,
        }
    }
}

/// A blob on its way: its place in the object, and what it is.
type Sending = BoxFuture<'static, Result<(usize, BlobRef)>>;

/// Puts an object of any length that comes in parts. Bytes are sent as they come; the object appears
/// with [`Writer::finish`], or never: then a collector removes what was sent.
pub struct Writer {
    store: Arc<Inner>,
    target: Target,
    options: PutOptions,
    operation: Operation,
    /// The record that will be replaced, as far as it is known.
    base: Option<Current>,
    waiting: BytesMut,
    size: u64,
    sending: FuturesUnordered<Sending>,
    sent: Vec<Option<BlobRef>>,
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
            waiting: BytesMut::new(),
            size: 0,
            sending: FuturesUnordered::new(),
            sent: Vec::new(),
        })
    }

    /// Bytes so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Puts bytes behind those before. Holds at most one segment in memory that is not under way, and
    /// eight that are.
    ///
    /// # Errors
    /// Those of the backend. The object is not put then.
    pub async fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        let segment = self.store.sizes().segment as usize;
        while !rest.is_empty() {
            let now = rest.len().min(segment - self.waiting.len());
            let (first, later) = rest.split_at(now);
            self.waiting.extend_from_slice(first);
            rest = later;
            if self.waiting.len() == segment {
                let whole = self.waiting.split().freeze();
                self.send(whole).await?;
            }
        }
        Ok(())
    }

    /// Sends whole segments, and what is behind them as a shorter one.
    pub(super) async fn send(&mut self, bytes: Bytes) -> Result<()> {
        let segment = self.store.sizes().segment as usize;
        let mut rest = bytes;
        while !rest.is_empty() {
            let part = rest.split_to(rest.len().min(segment));
            if self.sent.is_empty() {
                self.begin().await?;
            }
            self.operation.announce(&self.store, &self.target).await?;
            while self.sending.len() >= TOGETHER {
                self.settle().await?;
            }
            self.size += part.len() as u64;
            if self.size > MAX_OBJECT {
                let detail = format!("an object can have {MAX_OBJECT} bytes at most");
                return Err(Error::Invalid(detail));
            }
            let (id, at) = (self.operation.next_blob()?, self.sent.len());
            let store = self.store.clone();
            self.sent.push(None);
            self.sending.push(Box::pin(async move {
                Ok((at, store.write_blob(id, BlobKind::Segment, &part).await?))
            }));
        }
        Ok(())
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
        if let Some((at, blob)) = self.sending.try_next().await? {
            self.sent[at] = Some(blob);
        }
        Ok(())
    }

    /// Makes the object appear, and returns its version.
    ///
    /// # Errors
    /// [`Error::Exists`] and [`Error::Conflict`] as [`PutMode`] says; [`Error::OutcomeUnknown`]; those
    /// of the backend.
    pub async fn finish(self) -> Result<ObjectVersion> {
        let target = self.target.clone();
        super::version_of(&target, self.end().await?)
    }

    pub(super) async fn end(mut self) -> Result<Changed> {
        let rest = self.waiting.split().freeze();
        if self.sent.is_empty() && rest.len() as u64 <= self.store.sizes().embedded {
            let base = self.store.base_for(&self.target, self.options.mode).await?;
            let mut edit = Replace::new(&self.target, Body::Bytes(rest), self.options);
            return self.store.change(&self.target, &mut self.operation, base, &mut edit).await;
        }
        self.send(rest).await?;
        while !self.sending.is_empty() {
            self.settle().await?;
        }
        let sent: Vec<BlobRef> = self.sent.iter().flatten().copied().collect();
        let mut base = self.base.take();
        if base.as_ref().is_some_and(|base| !self.store.is_fresh(base)) {
            base = self.store.read(&self.target).await?;
        }
        let mut edit = Replace::new(&self.target, Body::Blobs(sent), self.options.clone());
        self.store.change(&self.target, &mut self.operation, base, &mut edit).await
    }
}
