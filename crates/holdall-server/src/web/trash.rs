//! What was deleted at the page, and can be brought back.
//!
//! Deleted trees lie in the collection [`TRASH`] under `TIME-ID/COLLECTION/NAME`, and are removed
//! after [`DAYS`] days. A delete over S3 or WebDAV is final.

use crate::catalog::{Bucket, Served};
use crate::dav::{self, Node, Place, Tree};
use crate::error::from_store;
use holdall::ListOptions;
use s3s::{S3Result, s3_error};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The collection of what was deleted; no bucket has such a name.
pub const TRASH: &str = ".trash";
/// Days after which it is removed.
pub const DAYS: u64 = 30;

fn place(collection: &str, key: Vec<u8>) -> Place {
    Place { collection: Some(collection.to_owned()), key, plain: true }
}

fn trash(served: &Served) -> Bucket {
    Bucket { name: TRASH.to_owned(), served: served.clone() }
}

/// The part of a trash name that says what was deleted, and when.
fn split(id: &str) -> S3Result<(u64, &str, &str)> {
    let parse = || {
        let (first, rest) = id.split_once('/')?;
        let (collection, key) = rest.split_once('/')?;
        Some((first.split_once('-')?.0.parse().ok()?, collection, key))
    };
    let sound = parse().filter(|(_, collection, key)| !collection.is_empty() && !key.is_empty());
    sound.ok_or_else(|| s3_error!(InvalidRequest, "{id:?} names nothing that was deleted"))
}

/// The collection that something in the trash came from.
///
/// # Errors
/// InvalidRequest.
pub fn origin(id: &str) -> S3Result<&str> {
    split(id).map(|(_, collection, _)| collection)
}

/// Moves what lies at a place into the trash, in one transaction where it has room, and tells the
/// name by which it is brought back. Blocks.
///
/// # Errors
/// NoSuchKey; those of the engine.
pub fn put(bucket: &Bucket, at: &Place, node: &Node) -> S3Result<String> {
    if !node.is_there() || at.key.is_empty() {
        return Err(s3_error!(NoSuchKey, "there is nothing to delete"));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|e| crate::error::internal(&e.to_string()))?;
    let key = String::from_utf8_lossy(&at.key);
    let stamp = format!("{:012}-{}", now.as_secs(), crate::digest::hex(&random));
    let id = format!("{stamp}/{}/{key}", bucket.name);
    let name = [format!("{stamp}/{}/", bucket.name).as_bytes(), &at.key].concat();
    let to = trash(&bucket.served);
    let make = bucket.served.store.write(|tx| tx.collection(TRASH)?.create_collection());
    match make {
        Ok(()) | Err(holdall::Error::Exists(_)) => {}
        Err(e) => return Err(from_store(e)),
    }
    let from = Tree::new(bucket.clone(), at.clone(), node);
    let target = Tree { bucket: to, place: place(TRASH, name), folder: from.folder };
    dav::carry_tree(from, target, true)?;
    Ok(id)
}

/// Brings back what was deleted under this name. Blocks.
///
/// # Errors
/// NoSuchKey; PreconditionFailed where something lies in its place by now.
pub fn restore(bucket: &Bucket, id: &str) -> S3Result<()> {
    let (_, _, key) = split(id)?;
    let (source, target) = (trash(&bucket.served), place(&bucket.name, key.as_bytes().to_vec()));
    let from = place(TRASH, id.as_bytes().to_vec());
    let found = |bucket: &Bucket, at: &Place| {
        let mut reader = bucket.read().map_err(from_store)?;
        dav::look(&mut reader, at).map_err(from_store)
    };
    let node = found(&source, &from)?;
    if !node.is_there() {
        return Err(s3_error!(NoSuchKey, "it is not in the trash any more"));
    }
    if found(bucket, &target)?.is_there() {
        return Err(s3_error!(PreconditionFailed, "something of its name is there by now"));
    }
    let from = Tree::new(source, from, &node);
    let to = Tree { bucket: bucket.clone(), place: target, folder: from.folder };
    dav::carry_tree(from, to, false)
}

/// Removes what was deleted long ago. Blocks.
///
/// # Errors
/// Those of the engine.
pub fn sweep(served: &Served, now: SystemTime) -> S3Result<()> {
    match served.store.read().and_then(|reader| reader.collection(TRASH)) {
        Ok(_) => {}
        Err(holdall::Error::NotFound(_)) => return Ok(()),
        Err(e) => return Err(from_store(e)),
    }
    let old = now.checked_sub(Duration::from_secs(DAYS * 24 * 3600)).unwrap_or(UNIX_EPOCH);
    let old = old.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    loop {
        let mut left = false;
        let options = ListOptions { prefix: b"", start_after: None, delimiter: None, limit: 1000 };
        let gone = |tx: &mut holdall::WriteTx| {
            left = false;
            let listing = tx.collection(TRASH)?.list(&options)?;
            for entry in listing.entries {
                let holdall::Listed::Object(entry) = entry else { continue };
                let name = String::from_utf8_lossy(&entry.name).into_owned();
                let stamp = name.split('-').next().and_then(|text| text.parse::<u64>().ok());
                // Names begin with the time: what follows is younger.
                if stamp.is_none_or(|stamp| stamp >= old) {
                    return Ok(());
                }
                crate::side::remove(tx, TRASH, &entry.name)?;
                left = true;
            }
            Ok(())
        };
        served.store.write(gone).map_err(from_store)?;
        if !left {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trash_name_says_where_it_came_from() {
        assert_eq!(origin("000000000012-ab/docs/a/b").unwrap(), "docs");
        assert_eq!(split("000000000012-ab/docs/a/b").unwrap(), (12, "docs", "a/b"));
        for bad in ["", "x", "12/docs/a", "12-a/docs", "12-a//a", "12-a/docs/", "z-a/docs/a"] {
            assert!(origin(bad).is_err(), "{bad}");
        }
    }
}
