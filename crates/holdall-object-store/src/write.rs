//! Objects put, removed, copied and renamed: one transaction each.

use crate::attributes::to_stored;
use crate::error;
use crate::store::HoldallObjectStore;
use bytes::Bytes;
use holdall::{Oid, PutMode as Mode, Target, WriteTx};
use object_store::path::Path;
use object_store::{PutMode, PutOptions, PutPayload, PutResult, Result, UpdateVersion};
use std::fmt::Display;
use std::str::FromStr;

/// Bytes from which an object is written before the writer's lock is taken.
const STREAMED: usize = 1 << 20;

fn precondition(path: &Path, text: &str) -> object_store::Error {
    object_store::Error::Precondition { path: path.to_string(), source: text.to_owned().into() }
}

/// The version that an update is of.
///
/// # Errors
/// Precondition if none is named, or one of another store.
pub fn known_version<V: FromStr>(location: &Path, known: &UpdateVersion) -> Result<V> {
    let none = || precondition(location, "an update names the e_tag that it knows");
    let etag = known.e_tag.as_deref().ok_or_else(none)?;
    let foreign = |_| precondition(location, "the e_tag is none of this store");
    etag.parse().map_err(foreign)
}

fn mode(location: &Path, given: &PutMode) -> Result<Mode> {
    Ok(match given {
        PutMode::Overwrite => Mode::Overwrite,
        PutMode::Create => Mode::Create,
        PutMode::Update(known) => Mode::Update(known_version(location, known)?),
    })
}

/// What a put returns.
pub fn put_result(version: impl Display) -> PutResult {
    let e_tag = Some(version.to_string());
    PutResult { e_tag, version: None, extensions: Default::default() }
}

/// What a put in a transaction returns.
pub fn result(tx: &mut WriteTx, oid: Oid) -> holdall::Result<PutResult> {
    Ok(put_result(tx.metadata(oid)?.version))
}

/// Puts an object. Durable when it returns. Cost: one commit.
///
/// # Errors
/// AlreadyExists and Precondition as the mode says; those of the engine.
pub fn put(
    own: &HoldallObjectStore,
    location: &Path,
    payload: &PutPayload,
    opts: &PutOptions,
) -> Result<PutResult> {
    let (mode, name) = (mode(location, &opts.mode)?, location.as_ref());
    let size = payload.content_length();
    let options = holdall::PutOptions {
        mode,
        attributes: to_stored(&opts.attributes)?,
        expected_size: u64::try_from(size).ok(),
        ..holdall::PutOptions::default()
    };
    let updates = matches!(mode, Mode::Update(_));
    let written = own.store.write(|tx| {
        let mut objects = tx.collection(&own.collection)?;
        let chunks: Vec<&Bytes> = payload.iter().collect();
        let oid = match &chunks[..] {
            [] => objects.put_with(name, &[], &options)?,
            [bytes] if size < STREAMED => objects.put_with(name, bytes, &options)?,
            chunks => {
                let mut writer = objects.writer(Target::from(name), options)?;
                chunks.iter().try_for_each(|chunk| writer.push(chunk))?;
                writer.finish()?
            }
        };
        drop(objects);
        result(tx, oid)
    });
    written.map_err(|e| match e {
        holdall::Error::NotFound(_) if updates => precondition(location, "it is not there"),
        e => error::convert(name, e),
    })
}

/// Removes objects in one transaction; those that are not there get an error each.
pub fn remove(own: &HoldallObjectStore, paths: Vec<Result<Path>>) -> Vec<Result<Path>> {
    let removed = own.store.write(|tx| {
        let mut objects = tx.collection(&own.collection)?;
        let one = |path: &Result<Path>| match path {
            Ok(path) => objects.remove(path.as_ref()),
            Err(_) => Ok(false),
        };
        paths.iter().map(one).collect::<holdall::Result<Vec<bool>>>()
    });
    match removed {
        Ok(removed) => {
            let told = |(path, there): (Result<Path>, bool)| match path {
                Ok(path) if !there => Err(error::none(&path)),
                path => path,
            };
            paths.into_iter().zip(removed).map(told).collect()
        }
        Err(e) => {
            let text = e.to_string();
            paths.into_iter().map(|path| path.and_then(|_| Err(error::message(&*text)))).collect()
        }
    }
}

/// Checks both ends of a copy or rename: the source is there, and the target is not if it must
/// be new.
fn source(
    own: &HoldallObjectStore,
    tx: &mut WriteTx,
    from: &Path,
    to: &Path,
    new: bool,
) -> holdall::Result<Oid> {
    let mut objects = tx.collection(&own.collection)?;
    let none = || holdall::Error::NotFound(from.to_string());
    let oid = objects.lookup(from.as_ref())?.ok_or_else(none)?;
    if new && objects.lookup(to.as_ref())?.is_some() {
        return Err(holdall::Error::Exists(to.to_string()));
    }
    Ok(oid)
}

/// Copies an object; the two share their segments. Cost: one commit, whatever its size.
///
/// # Errors
/// NotFound; AlreadyExists if the copy must be `new`; those of the engine.
pub fn copy(own: &HoldallObjectStore, from: &Path, to: &Path, new: bool) -> Result<()> {
    let copied = own.store.write(|tx| {
        let oid = source(own, tx, from, to, new)?;
        if from == to {
            return Ok(());
        }
        tx.collection(&own.collection)?.copy(oid, Target::from(to.as_ref())).map(drop)
    });
    copied.map_err(error::at(from, to))
}

/// Renames an object. Cost: one commit.
///
/// # Errors
/// As [`copy`].
pub fn rename(own: &HoldallObjectStore, from: &Path, to: &Path, new: bool) -> Result<()> {
    let renamed = own.store.write(|tx| {
        source(own, tx, from, to, new)?;
        if from == to {
            return Ok(());
        }
        let mut objects = tx.collection(&own.collection)?;
        objects.remove(to.as_ref())?;
        objects.rename(from.as_ref(), to.as_ref())
    });
    renamed.map_err(error::at(from, to))
}
