//! What a place of backups is called, and what it holds first.
//!
//! Owns: the forms `s3://BUCKET/PREFIX` and `file:///DIRECTORY`; the first object, by which a place of
//! backups differs from anything else that uses a bucket.

use crate::access::Access;
use holdall::{Error, Result};
use object_store::aws::S3ConditionalPut;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// The name of the first object.
pub(crate) const FIRST: &str = "holdall.json";
/// What it says of a place of backups.
pub(crate) const BACKUPS: &str = "backups";
/// The version of what lies there.
pub(crate) const VERSION: u32 = 1;
/// Tries of a request, and how long they may take.
const TRIES: usize = 6;
const TRYING: Duration = Duration::from_secs(60);

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
    text.starts_with("s3://") || text.starts_with("file://")
}

/// A client of the place, and the prefix there.
///
/// # Errors
/// [`Error::Invalid`] if it is none, or cannot be reached so.
pub(crate) fn open(text: &str, access: &Access) -> Result<(Arc<dyn ObjectStore>, Path)> {
    let bad = |why: &str| Error::Invalid(format!("{text}: {why}"));
    let prefix = |rest: &str| {
        let parsed = Path::parse(rest.trim_matches('/'));
        parsed.map_err(|e| bad(&format!("no prefix: {e}")))
    };
    if let Some(rest) = text.strip_prefix("s3://") {
        let (bucket, rest) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(bad("it names no bucket; write s3://BUCKET/PREFIX"));
        }
        if bucket.contains(['?', '#', '@', ':']) {
            return Err(bad("a bucket's name has letters, digits, dots and hyphens only"));
        }
        // There is one provider in this program; a second call finds it set.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let backoff = BackoffConfig { max_backoff: Duration::from_secs(5), ..Default::default() };
        let retry = RetryConfig { backoff, max_retries: TRIES, retry_timeout: TRYING };
        let builder = access.builder(bucket)?.with_retry(retry);
        let store = builder.with_conditional_put(S3ConditionalPut::ETagMatch).build();
        let store = store.map_err(|e| bad(&e.to_string()))?;
        return Ok((Arc::new(store), prefix(rest)?));
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
