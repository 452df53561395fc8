//! Conditions of requests: on the ETag and on the time of the last change (RFC 9110 section 13).
//!
//! Owns: [`Read`], which a get or head evaluates, and [`mode`], which turns a put's into what the
//! engine checks within the transaction.

use crate::meta::{Meta, etag_of};
use holdall::{PutMode, Reader};
use s3s::dto::{ETagCondition, Timestamp};
use s3s::{S3Result, s3_error};
use std::time::SystemTime;

/// Conditions of a read.
#[derive(Debug, Default)]
pub struct Read {
    /// If-Match.
    pub matches: Option<ETagCondition>,
    /// If-None-Match.
    pub matches_not: Option<ETagCondition>,
    /// If-Modified-Since.
    pub since: Option<Timestamp>,
    /// If-Unmodified-Since.
    pub not_since: Option<Timestamp>,
}

/// Whether an object with this ETag satisfies a condition that names ETags.
pub fn matches(condition: &ETagCondition, etag: &str) -> bool {
    condition.as_etag().is_none_or(|wanted| wanted.value() == etag)
}

/// Whole seconds since 1970, as dates in headers have them.
fn seconds(time: SystemTime) -> i64 {
    let of = |d: std::time::Duration| i64::try_from(d.as_secs()).unwrap_or(i64::MAX);
    time.duration_since(SystemTime::UNIX_EPOCH).map_or_else(|e| -of(e.duration()), of)
}

fn stamp(time: &Timestamp) -> i64 {
    time::OffsetDateTime::from(time.clone()).unix_timestamp()
}

/// Whether two times are the same second.
pub fn is_at(given: &Timestamp, modified: SystemTime) -> bool {
    stamp(given) == seconds(modified)
}

impl Read {
    /// Refuses where a condition is not met.
    ///
    /// # Errors
    /// PreconditionFailed, NotModified.
    pub fn check(&self, meta: &Meta, etag: &str) -> S3Result<()> {
        let modified = seconds(meta.modified());
        match (&self.matches, &self.not_since) {
            (Some(wanted), _) if !matches(wanted, etag) => {
                return Err(s3_error!(PreconditionFailed, "the object has another ETag"));
            }
            (None, Some(time)) if modified > stamp(time) => {
                return Err(s3_error!(PreconditionFailed, "the object was changed since"));
            }
            _ => {}
        }
        match (&self.matches_not, &self.since) {
            (Some(known), _) if matches(known, etag) => Err(s3_error!(NotModified)),
            (None, Some(time)) if modified <= stamp(time) => Err(s3_error!(NotModified)),
            _ => Ok(()),
        }
    }

    /// As [`Read::check`] for the source of a copy, where a failure is always an error.
    ///
    /// # Errors
    /// PreconditionFailed.
    pub fn check_source(&self, meta: &Meta, etag: &str) -> S3Result<()> {
        let failed = |_| s3_error!(PreconditionFailed, "the source does not meet the conditions");
        self.check(meta, etag).map_err(failed)
    }
}

/// What the engine is to check of a put under conditions, by the state it is sent against. The
/// engine refuses where the object changes between that state and the commit.
///
/// # Errors
/// PreconditionFailed; NoSuchKey where an ETag is asked of an object that is not there.
pub fn mode(
    reader: &Reader,
    key: &str,
    matches_: Option<&ETagCondition>,
    matches_not: Option<&ETagCondition>,
) -> S3Result<PutMode> {
    if matches_.is_none() && matches_not.is_none() {
        return Ok(PutMode::Overwrite);
    }
    let there = match reader.metadata(key) {
        Ok(found) => Some(found),
        Err(holdall::Error::NotFound(_)) => None,
        Err(e) => return Err(crate::error::from_store(e)),
    };
    if let Some(not) = matches_not {
        return match there {
            None => Ok(PutMode::Create),
            Some(found) if matches(not, &etag_of(&found)) => {
                Err(s3_error!(PreconditionFailed, "the object exists"))
            }
            Some(found) => Ok(PutMode::Update(found.version)),
        };
    }
    let found = there.ok_or_else(|| s3_error!(NoSuchKey, "there is no object {key}"))?;
    if matches_.is_some_and(|wanted| !matches(wanted, &etag_of(&found))) {
        return Err(s3_error!(PreconditionFailed, "the object has another ETag"));
    }
    Ok(PutMode::Update(found.version))
}
