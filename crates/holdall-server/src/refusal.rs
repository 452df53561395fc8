//! Why a request is not done, in the server's own words. Each door turns it into its own answer: S3
//! into XML with a code, WebDAV and the page into a status.
//!
//! Owns: [`Refusal`], [`Why`], and the answer to an error of the engine.

use http::StatusCode;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// There is no such object.
    NoObject,
    /// There is no such bucket or collection.
    NoBucket,
    /// There is no such unfinished upload.
    NoUpload,
    /// A bucket that is to be deleted holds objects.
    NotEmpty,
    /// The name is the server's own.
    Reserved,
    /// A name is too long.
    LongName,
    /// What was asked for holds no longer: a condition, or what was looked at before.
    Unmet,
    /// What a reader has is still so.
    NotModified,
    /// What was read was changed before it was used.
    Conflict,
    /// A lock of somebody else is in the way.
    Locked,
    /// Bytes are asked for that are not there.
    Outside,
    /// An append begins elsewhere than at the end.
    Offset,
    /// A part is missing, or is another one.
    BadPart,
    /// The request as a whole cannot be used.
    Invalid,
    /// A header or a parameter cannot be used.
    BadValue,
    /// An address cannot be used.
    BadAddress,
    /// A body of XML cannot be used.
    BadXml,
    /// An announced digest is none.
    NoDigest,
    /// The body has another digest than was announced.
    OtherDigest,
    /// The body has another SHA-256 than its signature says.
    OtherSigned,
    /// A chunk of the body is not signed as the request says.
    BadSignature,
    /// What came behind the body is not what was announced.
    BadTrailer,
    /// The body ended early, or could not be read.
    CutOff,
    /// The body did not come in time.
    Late,
    /// The body is too long.
    TooLong,
    /// The user may not do this.
    Denied,
    /// This is not offered.
    NotOffered,
    /// The store has no room.
    Full,
    /// It may be done a little later.
    Busy,
    /// The store takes no writes.
    Stopped,
    /// The server failed; its log says how.
    Internal,
}

/// A request that is not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// What happened.
    pub why: Why,
    /// What the client reads of it.
    pub text: String,
}

/// What becomes of a request, or of a step of it.
pub type Result<T, E = Refusal> = std::result::Result<T, E>;

impl Why {
    /// A refusal that says so in these words.
    pub fn says(self, text: impl Into<String>) -> Refusal {
        Refusal { why: self, text: text.into() }
    }

    /// The status that HTTP has for it.
    pub fn status(self) -> StatusCode {
        match self {
            Self::NotModified => StatusCode::NOT_MODIFIED,
            Self::Invalid
            | Self::BadValue
            | Self::BadAddress
            | Self::BadXml
            | Self::BadPart
            | Self::Offset
            | Self::LongName
            | Self::NoDigest
            | Self::OtherDigest
            | Self::OtherSigned
            | Self::BadTrailer
            | Self::CutOff => StatusCode::BAD_REQUEST,
            Self::Denied | Self::Reserved | Self::BadSignature => StatusCode::FORBIDDEN,
            Self::NoObject | Self::NoBucket | Self::NoUpload => StatusCode::NOT_FOUND,
            Self::Late => StatusCode::REQUEST_TIMEOUT,
            Self::NotEmpty | Self::Conflict => StatusCode::CONFLICT,
            Self::Unmet => StatusCode::PRECONDITION_FAILED,
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Outside => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::Locked => StatusCode::LOCKED,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NotOffered => StatusCode::NOT_IMPLEMENTED,
            Self::Busy | Self::Stopped => StatusCode::SERVICE_UNAVAILABLE,
            Self::Full => StatusCode::INSUFFICIENT_STORAGE,
        }
    }
}

impl Refusal {
    /// An error that the client cannot help. It is logged whole, and answered without paths of the
    /// server.
    pub fn internal(error: &dyn std::fmt::Display) -> Self {
        tracing::error!(%error, "request failed");
        Why::Internal.says("the server could not do this; its log says why")
    }
}

/// Damage and failed writes are logged whole, and answered without paths of the server.
impl From<holdall::Error> for Refusal {
    fn from(e: holdall::Error) -> Self {
        use holdall::Error;
        match e {
            Error::Other(inner) => match inner.downcast::<Self>() {
                Ok(told) => *told,
                Err(other) => Self::internal(&other),
            },
            Error::NotFound(_) | Error::Dangling(_) => {
                Why::NoObject.says("there is no such object")
            }
            Error::Exists(_) => Why::Unmet.says("an object of this key exists"),
            Error::Conflict { .. } => {
                Why::Unmet.says("the object was changed since it was looked at")
            }
            // 503 would ask the client to send again what may have happened.
            e @ Error::OutcomeUnknown { .. } => {
                tracing::error!(error = %e, "a change without an answer");
                Why::Internal.says(
                    "whether the object was changed is not known; read it again before you repeat \
                     the change",
                )
            }
            Error::Range { start, end, size, .. } => {
                Why::Outside.says(format!("bytes {start} to {end} do not lie inside {size} bytes"))
            }
            Error::Invalid(text) | Error::TooLarge(text) => Why::Invalid.says(text),
            Error::Full(text) => {
                tracing::warn!(error = %text, "no space");
                Why::Full.says("the store is full; delete objects or give it more room")
            }
            e @ Error::NoRoom { .. } => {
                tracing::warn!(error = %e, "no space");
                Why::Full.says("the disk of the store is full; give it more room")
            }
            Error::SnapshotTooOld { .. } => {
                Why::Busy.says("what was being read was replaced meanwhile; try again")
            }
            Error::Busy(by) => {
                tracing::warn!(%by, "a change waited too long");
                Why::Busy.says("others change the store; try again")
            }
            Error::Poisoned(text) => {
                tracing::error!(error = %text, "the store takes no commits; restart the server");
                Why::Stopped.says("the store takes no writes after a failed one")
            }
            e @ Error::Moved { .. } => {
                tracing::error!(error = %e, "the store takes no commits");
                Why::Stopped.says("the store takes no writes until its file is put back")
            }
            Error::ReadOnly => Why::Denied.says("the store is served for reading only"),
            other => Self::internal(&other),
        }
    }
}

/// On its way through a transaction of the engine, which it ends.
impl From<Refusal> for holdall::Error {
    fn from(e: Refusal) -> Self {
        Self::Other(Box::new(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_waited_too_long_may_be_tried_again() {
        let refused = Refusal::from(holdall::Error::Busy(Box::default()));
        assert_eq!(refused.why.status(), StatusCode::SERVICE_UNAVAILABLE);
    }

    #[test]
    fn a_change_that_may_have_happened_is_an_error_without_details() {
        let (object, detail) = ("object \"a\"".into(), "no answer from 10.0.0.1".into());
        let refused = Refusal::from(holdall::Error::OutcomeUnknown { object, detail });
        assert_eq!(refused.why.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(refused.text.contains("read it again") && !refused.text.contains("10.0.0.1"));
    }
}
