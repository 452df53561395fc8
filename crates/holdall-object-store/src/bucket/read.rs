//! Objects read from a bucket.

use super::failed;
use crate::attributes::{from_stored, meta};
use crate::error;
use crate::read::{check, inside, wanted};
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use holdall_bucket::BucketStore;
use holdall_bucket::store::{Object, ObjectInfo};
use object_store::path::Path;
use object_store::{
    GetOptions, GetResult, GetResultPayload, OBJECT_STORE_COALESCE_DEFAULT, ObjectMeta, Result,
    coalesce_ranges,
};
use std::ops::Range;

/// What is known of an object as `object_store` has it.
pub fn meta_of(location: Path, found: &ObjectInfo) -> ObjectMeta {
    meta(location, found.size, found.version, Some(found.last_modified()))
}

async fn open(store: &BucketStore, location: &Path) -> Result<Object> {
    let opened = store.open(location.as_ref()).await.map_err(failed(location.as_ref()))?;
    opened.ok_or_else(|| error::none(location))
}

/// Finds an object. Cost: a request; those of the bytes are sent as they are taken.
///
/// # Errors
/// NotFound; those of [`check`] and [`wanted`]; those of the store.
pub async fn get(store: &BucketStore, location: &Path, options: &GetOptions) -> Result<GetResult> {
    check(options)?;
    let object = open(store, location).await?;
    let found = object.info();
    let meta = meta_of(location.clone(), &found);
    let range = wanted(options, &meta)?;
    let payload = match options.head {
        true => stream::empty().boxed(),
        false => pieces(location, object, range.clone()),
    };
    Ok(GetResult {
        payload: GetResultPayload::Stream(payload),
        meta,
        range,
        attributes: from_stored(&found.attributes),
        extensions: Default::default(),
    })
}

async fn piece(location: &Path, mut object: Object, range: Range<u64>) -> Result<Bytes> {
    object.read(range).await.map_err(failed(location.as_ref()))
}

fn pieces(location: &Path, object: Object, range: Range<u64>) -> BoxStream<'static, Result<Bytes>> {
    let location = location.clone();
    let pieces = object.pieces(range).into_stream();
    pieces.map(move |piece| piece.map_err(failed(location.as_ref()))).boxed()
}

/// The bytes of several ranges of one version. Those that lie near each other are read together.
///
/// # Errors
/// NotFound; a range that begins outside the object; those of the store.
pub async fn ranges(
    store: &BucketStore,
    location: &Path,
    ranges: &[Range<u64>],
) -> Result<Vec<Bytes>> {
    let object = open(store, location).await?;
    let ranges: Result<Vec<_>> = ranges.iter().map(|range| inside(range, object.size())).collect();
    let fetch = |range: Range<u64>| piece(location, object.clone(), range);
    coalesce_ranges(&ranges?, fetch, OBJECT_STORE_COALESCE_DEFAULT).await
}
