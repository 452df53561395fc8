//! Versions of objects in a bucket.

use crate::format::{Id, Record};
use holdall::Error;
use std::fmt;
use std::str::FromStr;

/// A version of an object: changes with every change of its bytes or attributes, and with nothing
/// else. Compare versions for equality only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectVersion {
    incarnation: Id,
    change: u64,
    operation: Id,
}

impl ObjectVersion {
    /// That of what a record says.
    pub(crate) fn of(record: &Record) -> Self {
        Self::made(record.incarnation, record.change, record.operation)
    }

    pub(crate) fn made(incarnation: Id, change: u64, operation: Id) -> Self {
        Self { incarnation, change, operation }
    }

    /// The operation that made it.
    #[doc(hidden)]
    pub fn operation(&self) -> Id {
        self.operation
    }
}

impl fmt::Display for ObjectVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:x}-{}", self.incarnation, self.change, self.operation)
    }
}

impl FromStr for ObjectVersion {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parsed = || {
            let mut parts = text.split('-');
            let incarnation = Id::parse(parts.next()?)?;
            let change = u64::from_str_radix(parts.next()?, 16).ok()?;
            let operation = Id::parse(parts.next()?)?;
            let version = Self { incarnation, change, operation };
            (parts.next().is_none() && version.to_string() == text).then_some(version)
        };
        parsed().ok_or_else(|| Error::Invalid(format!("{text:?} is no version of an object")))
    }
}
