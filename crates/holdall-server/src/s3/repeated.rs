//! Completions that come once more: clients repeat one whose answer they did not get.
//!
//! Owns: [`repeated`]. What comes again must ask for what was done; with other parts, another size
//! or a condition that the object does not meet it is refused.

use crate::objects::meta::{OfBytes, PartInfo};
use crate::objects::{catalog::Bucket, condition};
use crate::s3::error::from_store;
use crate::s3::get::find;
use crate::s3::parts::{Asked, check_kind, check_part, check_sums, etag_of_parts, number_of};
use s3s::{S3Result, s3_error};

/// What the object became, if this very upload was completed before; `None` if it was not.
/// Blocks.
///
/// # Errors
/// InvalidPart, InvalidRequest, BadDigest for what was not completed so; PreconditionFailed.
pub fn repeated(
    bucket: &Bucket,
    (key, id): (&str, &str),
    asked: &Asked,
    conditions: &condition::Read,
) -> S3Result<Option<OfBytes>> {
    let Ok(found) = find(bucket, key, None) else { return Ok(None) };
    let of_bytes = found.meta.of_bytes.filter(|b| b.upload.as_deref() == Some(id));
    let Some(of_bytes) = of_bytes else { return Ok(None) };
    let reader = bucket.read().map_err(from_store)?;
    let condition::Read { matches, matches_not, .. } = conditions;
    condition::mode(&reader, key, matches.as_ref(), matches_not.as_ref())?;
    check(asked, &of_bytes)?;
    if asked.size.is_some_and(|size| size != found.metadata.size) {
        let size = found.metadata.size;
        return Err(s3_error!(InvalidRequest, "the parts have {size} bytes together"));
    }
    Ok(Some(of_bytes))
}

fn check(asked: &Asked, done: &OfBytes) -> S3Result<()> {
    let other = || s3_error!(InvalidPart, "the upload was completed with other parts");
    if asked.parts.len() != done.parts.len() {
        return Err(other());
    }
    let mut etags = Vec::with_capacity(asked.parts.len());
    for (part, PartInfo { number, sums, .. }) in asked.parts.iter().zip(&done.parts) {
        let (given, etag) = number_of(part)?;
        if given != *number {
            return Err(other());
        }
        check_part(part, sums)?;
        etags.push(etag);
    }
    if etag_of_parts(etags.into_iter()) != done.etag {
        return Err(other());
    }
    let kind = if done.composite { "COMPOSITE" } else { "FULL_OBJECT" };
    check_kind(asked.kind.as_ref(), Some(kind).filter(|_| !done.sums.is_empty()))?;
    check_sums(&asked.sums, &done.sums, done.composite)
}
