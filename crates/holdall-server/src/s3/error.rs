//! Errors as S3 names them: a code for each refusal.
//!
//! Owns: [`from_store`], [`custom`], [`blocking`].

use crate::http::body;
use crate::refusal::{Refusal, Why};
use http::StatusCode;
use s3s::{S3Error, S3ErrorCode, S3Result};

impl From<Refusal> for S3Error {
    fn from(e: Refusal) -> Self {
        let code = match e.why {
            Why::NoObject => S3ErrorCode::NoSuchKey,
            Why::NoBucket => S3ErrorCode::NoSuchBucket,
            Why::NoUpload => S3ErrorCode::NoSuchUpload,
            Why::NotEmpty => S3ErrorCode::BucketNotEmpty,
            Why::LongName => S3ErrorCode::KeyTooLongError,
            Why::Unmet => S3ErrorCode::PreconditionFailed,
            Why::NotModified => return S3ErrorCode::NotModified.into(),
            Why::Conflict | Why::Locked => S3ErrorCode::ConditionalRequestConflict,
            Why::Outside => S3ErrorCode::InvalidRange,
            Why::BadPart => S3ErrorCode::InvalidPart,
            Why::Invalid => S3ErrorCode::InvalidRequest,
            Why::BadValue => S3ErrorCode::InvalidArgument,
            Why::BadAddress => S3ErrorCode::InvalidURI,
            Why::BadXml => S3ErrorCode::MalformedXML,
            Why::NoDigest => S3ErrorCode::InvalidDigest,
            Why::OtherDigest => S3ErrorCode::BadDigest,
            Why::BadSignature => S3ErrorCode::SignatureDoesNotMatch,
            Why::CutOff => S3ErrorCode::IncompleteBody,
            Why::Late => S3ErrorCode::RequestTimeout,
            Why::TooLong => S3ErrorCode::EntityTooLarge,
            Why::Denied => S3ErrorCode::AccessDenied,
            Why::NotOffered => S3ErrorCode::NotImplemented,
            Why::Busy => S3ErrorCode::SlowDown,
            Why::Stopped => S3ErrorCode::ServiceUnavailable,
            Why::Internal => S3ErrorCode::InternalError,
            // S3 has no code for these, or `s3s` does not know it.
            Why::Reserved => return custom("Reserved", e.why.status(), e.text),
            Why::Offset => return custom("InvalidWriteOffset", e.why.status(), e.text),
            Why::OtherSigned => {
                return custom("XAmzContentSHA256Mismatch", e.why.status(), e.text);
            }
            Why::BadTrailer => return custom("MalformedTrailerError", e.why.status(), e.text),
            Why::Full => return custom("InsufficientStorage", e.why.status(), e.text),
        };
        Self::with_message(code, e.text)
    }
}

/// What a client reads of an error of the engine, or of a refusal.
pub fn from_store(e: impl Into<Refusal>) -> S3Error {
    e.into().into()
}

/// An error with a code that `s3s` does not know.
pub fn custom(code: &'static str, status: StatusCode, text: impl Into<String>) -> S3Error {
    let mut e = S3Error::with_message(S3ErrorCode::Custom(code.into()), text.into());
    e.set_status_code(status);
    e
}

/// As [`body::blocking`], of S3's operations.
///
/// # Errors
/// Those of `work`.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> S3Result<T> + Send + 'static,
) -> S3Result<T> {
    body::run(work).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_tells_the_status_that_http_has_but_for_two() {
        let told = |why: Why| S3Error::from(why.says("so"));
        for why in [
            Why::NoObject,
            Why::NoBucket,
            Why::NoUpload,
            Why::NotEmpty,
            Why::Reserved,
            Why::LongName,
            Why::Unmet,
            Why::Conflict,
            Why::Outside,
            Why::Offset,
            Why::BadPart,
            Why::Invalid,
            Why::BadValue,
            Why::BadAddress,
            Why::BadXml,
            Why::NoDigest,
            Why::OtherDigest,
            Why::OtherSigned,
            Why::BadSignature,
            Why::BadTrailer,
            Why::CutOff,
            Why::Denied,
            Why::NotOffered,
            Why::Full,
            Why::Busy,
            Why::Stopped,
            Why::Internal,
        ] {
            assert_eq!(told(why).status_code(), Some(why.status()), "{why:?}");
            assert_eq!(told(why).message(), Some("so"), "{why:?}");
        }
        for why in [Why::Late, Why::TooLong] {
            assert_eq!(told(why).status_code(), Some(StatusCode::BAD_REQUEST), "{why:?}");
        }
        assert_eq!(*told(Why::NotModified).code(), S3ErrorCode::NotModified);
    }

    #[test]
    fn a_refusal_comes_through_a_transaction_as_it_was() {
        let through = holdall::Error::from(Why::NoUpload.says("gone"));
        assert_eq!(*from_store(through).code(), S3ErrorCode::NoSuchUpload);
        let told = from_store(holdall::Error::ReadOnly);
        assert_eq!(*told.code(), S3ErrorCode::AccessDenied);
    }
}
