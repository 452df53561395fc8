//! What came of a change, in a file or a bucket.
//!
//! Owns: [`Done`], and [`Id`] of an object that was stored.

use std::fmt;

use holdall::{Error, Oid};
use holdall_bucket::store::ObjectVersion;

use crate::failure::Outcome;

/// What identifies an object that was stored.
pub enum Id {
    /// In a file.
    Oid(Oid),
    /// In a bucket.
    Version(ObjectVersion),
}

/// What came of a change.
pub struct Done {
    /// Of an object that was stored.
    pub id: Option<Id>,
    /// The size of an object that was stored or edited.
    pub size: Option<u64>,
}

impl Id {
    /// The field of JSON that has it.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Oid(_) => "oid",
            Self::Version(_) => "version",
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Oid(oid) => oid.fmt(f),
            Self::Version(version) => version.fmt(f),
        }
    }
}

impl Done {
    /// What identifies the object that was stored.
    ///
    /// # Errors
    /// That it did not come.
    pub fn stored(self) -> Outcome<Id> {
        let none = || Error::Invalid("the OID of the object did not come".into()).into();
        self.id.ok_or_else(none)
    }
}
