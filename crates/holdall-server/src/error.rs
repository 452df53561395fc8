//! Errors that keep the server from starting.
//!
//! Owns: [`StartError`].

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
