//! Errors: those that keep the server from starting, and how the engine's become S3's.
//!
//! Owns: [`StartError`], [`from_store`].

use http::StatusCode;
use s3s::{S3Error, S3ErrorCode, s3_error};
use std::path::PathBuf;

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A store could not be opened or created.
    #[error("{path}: {source}")]
    Store {
        /// The store.
        path: PathBuf,
        /// The engine's error.
        source: holdall::Error,
    },
    /// Two stores hold a bucket of the same name.
    #[error(
        "both {first} and {second} hold the bucket {bucket:?}; serve one of them, or rename the \
         collection in one"
    )]
    SameBucket {
        /// The bucket.
        bucket: String,
        /// A store that has it.
        first: PathBuf,
        /// Another one.
        second: PathBuf,
    },
    /// The configuration cannot be used.
    #[error("{0}")]
    Config(String),
    /// No credentials were given.
    #[error(
        "no credentials: set HOLDALL_ACCESS_KEY and HOLDALL_SECRET_KEY, name users in a \
         configuration file, or say --anonymous to serve everybody"
    )]
    NoCredentials,
    /// The operating system refused something.
    #[error("{action}: {source}")]
    Io {
        /// What was being done.
        action: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// Certificate or key cannot be used.
    #[error("TLS: {0}")]
    Tls(String),
}

impl StartError {
    /// A system error while doing `action`.
    pub fn io(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let action = action.into();
        move |source| Self::Io { action, source }
    }
}

/// What a client is told of an error of the engine. Damage and failed writes are logged whole,
/// and told without paths of the server.
pub fn from_store(e: holdall::Error) -> S3Error {
    use holdall::Error;
    match e {
        Error::Other(inner) => match inner.downcast::<S3Error>() {
            Ok(told) => *told,
            Err(other) => internal(&other.to_string()),
        },
        Error::NotFound(_) | Error::Dangling(_) => s3_error!(NoSuchKey, "there is no such object"),
        Error::Exists(_) => s3_error!(PreconditionFailed, "an object of this key exists"),
        Error::Conflict { .. } => {
            s3_error!(PreconditionFailed, "the object was changed since it was looked at")
        }
        Error::Range { start, end, size, .. } => {
            s3_error!(InvalidRange, "bytes {start} to {end} do not lie inside {size} bytes")
        }
        Error::Invalid(text) | Error::TooLarge(text) => s3_error!(InvalidRequest, "{text}"),
        Error::Full(text) => {
            tracing::warn!(error = %text, "no space");
            let told = "the store is full; delete objects or give it more room";
            custom("InsufficientStorage", StatusCode::INSUFFICIENT_STORAGE, told)
        }
        e @ Error::NoRoom { .. } => {
            tracing::warn!(error = %e, "no space");
            let told = "the disk of the store is full; give it more room";
            custom("InsufficientStorage", StatusCode::INSUFFICIENT_STORAGE, told)
        }
        Error::SnapshotTooOld { .. } => {
            s3_error!(SlowDown, "what was being read was replaced meanwhile; try again")
        }
        Error::Poisoned(text) => {
            tracing::error!(error = %text, "the store takes no commits; restart the server");
            s3_error!(ServiceUnavailable, "the store takes no writes after a failed one")
        }
        e @ Error::Moved { .. } => {
            tracing::error!(error = %e, "the store takes no commits");
            s3_error!(ServiceUnavailable, "the store takes no writes until its file is put back")
        }
        Error::ReadOnly => s3_error!(AccessDenied, "the store is served for reading only"),
        other => internal(&other.to_string()),
    }
}

/// An error with a code that `s3s` does not know.
pub fn custom(code: &'static str, status: StatusCode, text: impl Into<String>) -> S3Error {
    let mut e = S3Error::with_message(S3ErrorCode::Custom(code.into()), text.into());
    e.set_status_code(status);
    e
}

/// An error that the client cannot help.
pub fn internal(text: &str) -> S3Error {
    tracing::error!(error = text, "request failed");
    s3_error!(InternalError, "the server could not do this; its log says why")
}

/// An S3 error on its way through a transaction of the engine, which it ends.
pub fn through(e: S3Error) -> holdall::Error {
    holdall::Error::Other(Box::new(e))
}
