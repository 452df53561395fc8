//! What can go wrong in a store of the lab. Owns no state.

use std::fmt;
use std::io;

/// Why a store refused.
#[derive(Debug)]
pub enum Error {
    /// The disk failed.
    Io(io::Error),
    /// Nothing free can take the object, and the file may not grow.
    Full,
    /// The object is longer than an empty page can hold, or empty.
    Size(usize),
    /// Another active transaction created or deleted the object.
    Locked,
    /// The caller's mistake.
    Misuse(&'static str),
    /// The disk does not hold what it should.
    Corrupt(String),
}

/// A result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "disk: {error}"),
            Self::Full => write!(f, "no space: raise the limit of the file"),
            Self::Size(len) => write!(f, "an object of {len} bytes fits no page"),
            Self::Locked => write!(f, "the object is locked by another transaction"),
            Self::Misuse(what) => write!(f, "{what}"),
            Self::Corrupt(what) => write!(f, "damaged: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
