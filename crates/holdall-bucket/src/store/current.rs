//! The name of an object, and its record as it was read.

use crate::backend::Tag;
use crate::format::{Record, keys};
use holdall::Result;
use std::sync::Arc;
use std::time::Duration;

/// An object's name, and the key of its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) collection: String,
    pub(crate) name: String,
    pub(crate) key: String,
}

/// A record, and the tag that it was read with.
#[derive(Debug, Clone)]
pub(crate) struct Current {
    pub(crate) tag: Tag,
    /// When it was written, by the server's clock, in seconds since 1970 UTC; `None` of what was
    /// written here and not read since.
    pub(crate) written: Option<u64>,
    /// When it was seen to be there, by the clock here.
    pub(crate) seen: Duration,
    pub(crate) record: Arc<Record>,
}

impl Target {
    /// # Errors
    /// As [`keys::record`].
    pub(crate) fn new(collection: &str, name: &str) -> Result<Self> {
        let key = keys::record(collection, name)?;
        Ok(Self { collection: collection.into(), name: name.into(), key })
    }

    /// How errors name it.
    pub(crate) fn shown(&self) -> String {
        if self.collection == holdall::DEFAULT_COLLECTION {
            return format!("object {:?}", self.name);
        }
        format!("object {:?} of collection {:?}", self.name, self.collection)
    }
}

impl Current {
    /// The object, unless it is gone.
    pub(crate) fn object(&self) -> Option<&Arc<Record>> {
        (!self.record.gone).then_some(&self.record)
    }
}
