//! The form `s3://BUCKET/PREFIX`, and clients of such a place.
//!
//! Owns: [`Address`]; how often a request is tried, by whom it matters.

use crate::access::Access;
use holdall::{Error, Result};
use object_store::aws::{AmazonS3, AmazonS3Builder, S3ConditionalPut};
use object_store::path::Path;
use object_store::{BackoffConfig, RetryConfig};
use std::time::Duration;

/// What an address of a bucket begins with.
pub(crate) const SCHEME: &str = "s3://";
/// Tries of a request, and how long they may take.
const TRIES: usize = 6;
const TRYING: Duration = Duration::from_secs(60);
/// Most time between two.
const PAUSE: Duration = Duration::from_secs(5);

/// How often a client sends a request that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tries {
    /// Once: the caller decides, by what it reads.
    Once,
    /// Some times, for a minute.
    Several,
}

/// A bucket, and a prefix there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// What it was named as.
    pub(crate) text: String,
    pub(crate) bucket: String,
    pub(crate) prefix: Path,
}

impl Address {
    /// Reads `s3://BUCKET/PREFIX`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is none.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let bad = |why: &str| Error::Invalid(format!("{text}: {why}"));
        let Some(rest) = text.strip_prefix(SCHEME) else {
            return Err(bad("write s3://BUCKET/PREFIX"));
        };
        let (bucket, rest) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(bad("it names no bucket; write s3://BUCKET/PREFIX"));
        }
        if bucket.contains(['?', '#', '@', ':']) {
            return Err(bad("a bucket's name has letters, digits, dots and hyphens only"));
        }
        let prefix = Path::parse(rest.trim_matches('/'));
        let prefix = prefix.map_err(|e| bad(&format!("no prefix: {e}")))?;
        Ok(Self { text: text.to_owned(), bucket: bucket.to_owned(), prefix })
    }

    /// What makes clients of the bucket.
    ///
    /// # Errors
    /// [`Error::Invalid`] if what `access` names is not understood.
    pub(crate) fn builder(&self, access: &Access) -> Result<AmazonS3Builder> {
        // There is one provider in this program; a second call finds it set.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = access.builder(&self.bucket)?;
        Ok(builder.with_conditional_put(S3ConditionalPut::ETagMatch))
    }

    /// A client. Nothing is asked of the server yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there can be none.
    pub(crate) fn client(&self, builder: AmazonS3Builder, tries: Tries) -> Result<AmazonS3> {
        let backoff = BackoffConfig { max_backoff: PAUSE, ..Default::default() };
        let max_retries = if tries == Tries::Once { 0 } else { TRIES };
        let retry = RetryConfig { backoff, max_retries, retry_timeout: TRYING };
        let client = builder.with_retry(retry).build();
        client.map_err(|e| Error::Invalid(format!("{}: {e}", self.text)))
    }
}
