//! Replacing whole objects.
//!
//! Owns: [`PutMode`], [`PutOptions`]; the edit that replaces an object, and the base it begins with.

use super::change::{Edit, successor};
use super::current::{Current, Target};
use super::inner::Inner;
use super::operation::Operation;
use super::tree::Draft;
use super::version::ObjectVersion;
use crate::format::{BlobRef, Blobs, EMBEDDED, Record, reference};
use async_trait::async_trait;
use bytes::Bytes;
use holdall::{Attributes, Result};
use holdall_core::segment_tree::{Slice, Top, Tree, build};

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
