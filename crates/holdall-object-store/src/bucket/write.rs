//! Objects put, removed, copied and renamed in a bucket.

use super::failed;
use crate::attributes::to_stored;
use crate::error;
use crate::write::{known_version, put_result};
use bytes::Bytes;
use holdall_bucket::BucketStore;
use holdall_bucket::store::{PutMode as Mode, PutOptions as Options};
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, PutMode, PutOptions, PutPayload, PutResult, RenameOptions,
    RenameTargetMode, Result,
};

/// Puts an object. Chunks of a long payload are sent as they are, not joined first.
///
/// # Errors
/// AlreadyExists and Precondition as the mode says; NotSupported for an attribute that has no place;
/// those of the store.
pub async fn put(
    store: &BucketStore,
    location: &Path,
    payload: PutPayload,
    opts: &PutOptions,
) -> Result<PutResult> {
    let mode = match &opts.mode {
        PutMode::Overwrite => Mode::Overwrite,
        PutMode::Create => Mode::Create,
        PutMode::Update(known) => Mode::Update(known_version(location, known)?),
    };
    let options = Options { mode, attributes: to_stored(&opts.attributes)? };
    let (name, failed) = (location.as_ref(), failed(location.as_ref()));
    if payload.as_ref().len() < 2 {
        let put = store.put_with(name, Bytes::from(payload), options).await;
        return put.map(put_result).map_err(failed);
    }
    let mut writer = store.writer(name, options).map_err(&failed)?;
    for chunk in &payload {
        writer.push(chunk).await.map_err(&failed)?;
    }
    writer.finish().await.map(put_result).map_err(failed)
}

/// Removes an object.
///
/// # Errors
/// NotFound; those of the store.
pub async fn remove(store: &BucketStore, location: Path) -> Result<Path> {
    match store.remove(location.as_ref()).await.map_err(failed(location.as_ref()))? {
        true => Ok(location),
        false => Err(error::none(&location)),
    }
}

/// Copies an object; large ones share their blobs.
///
/// # Errors
/// NotFound; AlreadyExists as the mode says; those of the store.
pub async fn copy(
    store: &BucketStore,
    from: &Path,
    to: &Path,
    options: &CopyOptions,
) -> Result<()> {
    let mode = match options.mode {
        CopyMode::Overwrite => Mode::Overwrite,
        CopyMode::Create => Mode::Create,
    };
    let copied = store.copy_with(from.as_ref(), to.as_ref(), mode).await;
    copied.map(drop).map_err(error::at(from, to))
}

/// Renames an object: a copy, then a removal of what was copied.
///
/// # Errors
/// As [`copy`]; Precondition if the object was changed meanwhile, and both are there.
pub async fn rename(
    store: &BucketStore,
    from: &Path,
    to: &Path,
    options: &RenameOptions,
) -> Result<()> {
    let mode = match options.target_mode {
        RenameTargetMode::Overwrite => Mode::Overwrite,
        RenameTargetMode::Create => Mode::Create,
    };
    let renamed = store.rename_with(from.as_ref(), to.as_ref(), mode).await;
    renamed.map(drop).map_err(error::at(from, to))
}
