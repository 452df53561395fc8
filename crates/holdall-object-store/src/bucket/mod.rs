//! A store in a bucket as `object_store` sees it.
//!
//! Owns: [`BucketObjectStore`]. Its calls are those of [`BucketStore`], on the caller's own threads.

mod list;
mod read;
mod upload;
mod write;

use crate::error::{NAME, convert};
use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use holdall_bucket::BucketStore;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};
use std::ops::Range;

/// Objects removed at the same time.
const TOGETHER: usize = 16;

/// One collection of a store in a bucket, which other processes may use meanwhile. Clones share it.
///
/// Each call is one change of one object, seen everywhere once it returned. A rename is a copy and a
/// removal: who looks between sees both names. Whether an error means that nothing happened is as
/// [`BucketStore`] says; [`holdall::Error::OutcomeUnknown`] is the source of a
/// [`Generic`](object_store::Error::Generic) error.
///
/// ```
/// # use holdall_bucket::{BucketStore, backend::Memory};
/// # use holdall_object_store::BucketObjectStore;
/// # use object_store::{ObjectStore, ObjectStoreExt, PutMode, path::Path};
/// # use std::sync::Arc;
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Or `BucketStore::open_at("s3://bucket/prefix", &Access::default())`.
/// let store = BucketStore::create(Arc::new(Memory::default())).await?;
/// let bucket = BucketObjectStore::new(store);
/// let path = Path::from("tables/a.parquet");
/// let put = bucket.put(&path, "first".into()).await?;
/// bucket.put_opts(&path, "second".into(), PutMode::Update(put.into()).into()).await?;
/// assert_eq!(bucket.get_range(&path, 1..3).await?, "ec");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct BucketObjectStore {
    store: BucketStore,
}

impl std::fmt::Display for BucketObjectStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{NAME}({}, {})", self.store.name(), self.store.collection_name())
    }
}

impl BucketObjectStore {
    /// The collection that `store` is seen from.
    pub fn new(store: BucketStore) -> Self {
        Self { store }
    }

    /// The store.
    pub fn store(&self) -> &BucketStore {
        &self.store
    }
}

/// The error of a call to which an object that is not there is an answer: what is missing then is the
/// bucket, and nobody may take that for the object.
fn failed(path: &str) -> impl Fn(holdall::Error) -> Error {
    move |e| match convert(path, e) {
        Error::NotFound { source, .. } => Error::Generic { store: NAME, source },
        other => other,
    }
}

#[async_trait]
impl ObjectStore for BucketObjectStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        write::put(&self.store, location, payload, &opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(upload::Upload::new(&self.store, location, &opts)?))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        read::get(&self.store, location, &options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        read::ranges(&self.store, location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let store = self.store.clone();
        let removed = locations.map(move |location| {
            let store = store.clone();
            async move { write::remove(&store, location?).await }
        });
        removed.buffered(TOGETHER).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        list::stream(&self.store, prefix, None)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        list::stream(&self.store, prefix, Some(offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        list::delimited(&self.store, prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        write::copy(&self.store, from, to, &options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        write::rename(&self.store, from, to, &options).await
    }
}
