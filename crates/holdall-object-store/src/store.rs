//! The store as `object_store` sees it.
//!
//! Owns: [`HoldallObjectStore`]. The engine's calls may wait for a disk or a lock, so each runs on
//! a thread that tokio keeps for that.

use crate::error::{self, NAME};
use crate::multipart::{Upload, Uploads};
use crate::{list, read, write};
use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use holdall::{DEFAULT_COLLECTION, Reader, Store};
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions,
    RenameTargetMode, Result,
};
use std::ops::Range;
use std::sync::Arc;

/// Names removed in one transaction.
const NAMES_PER_TRANSACTION: usize = 1000;

/// One collection of a store. Clones share it.
#[derive(Debug, Clone)]
pub struct HoldallObjectStore {
    pub(crate) store: Store,
    pub(crate) collection: Arc<str>,
    pub(crate) uploads: Arc<Uploads>,
}

impl std::fmt::Display for HoldallObjectStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{NAME}({})", self.collection)
    }
}

impl HoldallObjectStore {
    /// The default collection of a store.
    pub fn new(store: Store) -> Self {
        Self::with_collection(store, DEFAULT_COLLECTION)
    }

    /// A collection of a store. It is made with its first object.
    pub fn with_collection(store: Store, name: &str) -> Self {
        Self { store, collection: name.into(), uploads: Arc::default() }
    }

    /// The newest durable state of the collection; `None` if nothing was put there yet.
    pub(crate) fn reader(&self) -> holdall::Result<Option<Reader>> {
        match self.store.read()?.collection(&self.collection) {
            Ok(reader) => Ok(Some(reader)),
            Err(holdall::Error::NotFound(_)) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Runs what may wait where waiting hurts nobody.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let own = self.clone();
        let ended = tokio::task::spawn_blocking(move || work(&own)).await;
        ended.unwrap_or_else(|e| Err(error::message(e.to_string())))
    }
}

#[async_trait]
impl ObjectStore for HoldallObjectStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        let location = location.clone();
        self.run(move |own| write::put(own, &location, &payload, &opts)).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(Upload::new(self.clone(), location.clone(), opts)))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let location = location.clone();
        self.run(move |own| read::get(own, location, &options)).await
    }

    async fn get_ranges(
        &self,
        location: &Path,
        ranges: &[Range<u64>],
    ) -> Result<Vec<bytes::Bytes>> {
        let (location, ranges) = (location.clone(), ranges.to_vec());
        self.run(move |own| read::ranges(own, &location, &ranges)).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let own = self.clone();
        let batches = locations.ready_chunks(NAMES_PER_TRANSACTION).then(move |batch| {
            let own = own.clone();
            async move { own.run(move |own| Ok(write::remove(own, batch))).await }
        });
        let each = |batch: Result<Vec<Result<Path>>>| match batch {
            Ok(batch) => batch,
            Err(e) => vec![Err(e)],
        };
        batches.flat_map(move |batch| futures::stream::iter(each(batch))).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        list::stream(self.clone(), prefix, None)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        list::stream(self.clone(), prefix, Some(offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let prefix = list::folder(prefix);
        self.run(move |own| list::delimited(own, &prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let (from, to, new) = (from.clone(), to.clone(), options.mode == CopyMode::Create);
        self.run(move |own| write::copy(own, &from, &to, new)).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let new = options.target_mode == RenameTargetMode::Create;
        let (from, to) = (from.clone(), to.clone());
        self.run(move |own| write::rename(own, &from, &to, new)).await
    }
}
