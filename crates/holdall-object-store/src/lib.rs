//! Holdall stores for programs that speak [`object_store`]: DataFusion, the `parquet` crate, and
//! others that read and write a bucket.
//!
//! [`HoldallObjectStore`] is one collection of a store. A put is one transaction and durable when
//! it returns; so are a copy, a rename, and the completion of a multipart upload, which joins the
//! segments of its parts and copies no byte. [`PutMode::Update`](object_store::PutMode::Update) is
//! checked in the transaction.
//!
//! ```
//! # use holdall::Store;
//! # use holdall_object_store::HoldallObjectStore;
//! # use object_store::{ObjectStore, ObjectStoreExt, PutMode, path::Path};
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let store = Store::open_or_create(dir.path().join("data.holdall"))?;
//! let bucket = HoldallObjectStore::new(store.clone());
//! let path = Path::from("tables/a.parquet");
//! let put = bucket.put(&path, "first".into()).await?;
//!
//! // Only if nobody changed it meanwhile.
//! let mode = PutMode::Update(put.into());
//! bucket.put_opts(&path, "second".into(), mode.clone().into()).await?;
//! assert!(bucket.put_opts(&path, "third".into(), mode.into()).await.is_err());
//! assert_eq!(bucket.get_range(&path, 1..3).await?, "ec");
//! # drop(bucket);
//! # store.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! Names that [`object_store::path::Path`] has no form for (`a//b`, `../x`, those that are not
//! UTF-8) and markers of folders (`a/`) are not listed and cannot be reached. Tags and extensions
//! are not kept.
//!
//! With the feature `bucket`, `BucketObjectStore` does the same for a store in a bucket, which many
//! processes use at once.

mod attributes;
#[cfg(feature = "bucket")]
mod bucket;
mod error;
mod list;
mod multipart;
mod read;
mod store;
mod write;

#[cfg(feature = "bucket")]
pub use bucket::BucketObjectStore;
pub use store::HoldallObjectStore;

/// The guide, whose example is run.
#[cfg(all(doctest, feature = "bucket"))]
#[doc = include_str!("../../../docs/object-store.md")]
struct Guide;
