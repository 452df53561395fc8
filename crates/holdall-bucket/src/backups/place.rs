//! What a place of backups is called, and what it holds first.
//!
//! Owns: the form `file:///DIRECTORY` beside `s3://BUCKET/PREFIX`; the first object, by which a place of
//! backups differs from anything else that uses a bucket.

use crate::access::Access;
use crate::address::{Address, SCHEME, Tries};
use holdall::{Error, Result};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The name of the first object.
pub(crate) const FIRST: &str = "holdall.json";
/// What it says of a place of backups.
pub(crate) const BACKUPS: &str = "backups";
/// The version of what lies there.
pub(crate) const VERSION: u32 = 1;

/// The first object.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct First {
    /// What the place is for.
    pub(crate) holds: String,
    pub(crate) version: u32,
    /// The id of the store, in hexadecimal digits.
    pub(crate) store: String,
}

/// Whether this names a place in a bucket, rather than a file.
pub fn is_bucket(text: &str) -> bool {
    text.starts_with(SCHEME) || text.starts_with("file://")
}

/// A client of the place, and the prefix there.
///
/// # Errors
/// [`Error::Invalid`] if it is none, or cannot be reached so.
pub(crate) fn open(text: &str, access: &Access) -> Result<(Arc<dyn ObjectStore>, Path)> {
    let bad = |why: &str| Error::Invalid(format!("{text}: {why}"));
    if text.starts_with(SCHEME) {
        let address = Address::parse(text)?;
        let store = address.client(address.builder(access)?, Tries::Several)?;
        return Ok((Arc::new(store), address.prefix));
    }
    let Some(directory) = text.strip_prefix("file://") else {
        return Err(bad("write s3://BUCKET/PREFIX or file:///DIRECTORY"));
    };
    if !directory.starts_with('/') {
        return Err(bad("a directory is named from the root on: file:///DIRECTORY"));
    }
    std::fs::create_dir_all(directory)
        .map_err(|e| Error::Io { action: format!("making {directory}"), source: e })?;
    let store = LocalFileSystem::new_with_prefix(directory).map_err(|e| bad(&e.to_string()))?;
    Ok((Arc::new(store.with_fsync(true)), Path::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_one_form() {
        let access = Access { endpoint: Some("http://127.0.0.1:1".into()), ..Access::default() };
        for (text, prefix) in [("s3://b", ""), ("s3://b/", ""), ("s3://b/x/y/", "x/y")] {
            assert_eq!(open(text, &access).unwrap().1.as_ref(), prefix, "{text}");
        }
        for text in ["s3://", "s3:///x", "s3://a:b/x", "gs://b/x", "file://x", "s3://b/x//y", "b"] {
            let e = open(text, &access).unwrap_err();
            assert!(matches!(&e, Error::Invalid(what) if what.starts_with(text)), "{text}: {e}");
        }
        assert!(is_bucket("s3://b/x") && !is_bucket("s3:/b") && !is_bucket("b.holdall"));
    }
}
