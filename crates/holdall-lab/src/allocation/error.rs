//! What can go wrong in a store of blocks. Owns no state.

use std::fmt;
use std::io;

/// Why a store of blocks refused.
#[derive(Debug)]
pub enum Error {
    /// The disk failed.
    Io(io::Error),
    /// No free block fits, the tail is used up, and coalescing did not help.
    Full,
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
            Self::Full => write!(f, "no space for the block: raise the file's limit"),
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
