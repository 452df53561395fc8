//! Blobs that are not there.

use crate::format::BlobId;
use holdall::Error;

/// What errors say about a blob that a record named when it was read.
const MISSING: &str = "is not there";

/// The error of a blob that is not there: damage, unless its record was replaced since.
pub(crate) fn missing_blob(id: BlobId) -> Error {
    Error::corrupt(format!("blob {id}"), MISSING)
}

/// Whether a blob was not there.
pub(crate) fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Corrupt { detail, .. } if detail == MISSING)
}
