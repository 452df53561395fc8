//! The head of a store in a bucket: what it is, and its sizes.

use super::{Id, MAX_FANOUT, MAX_PAYLOAD, MAX_RETIRED, MAX_SLICES};
use bytes::Bytes;
use holdall::{Error, Result};
use serde::{Deserialize, Serialize};

/// The format that this build reads and writes.
pub const FORMAT: u32 = 1;
/// Features that this build knows; a head that names another is refused.
pub const FEATURES: [&str; 0] = [];
/// Most bytes of a head.
pub(crate) const MAX_HEAD: u64 = 64 * 1024;

/// What is the same for all that use the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// What the prefix is for.
    pub holds: String,
    /// The format.
    pub format: u32,
    /// What one must know to use it, beside the format.
    pub features: Vec<String>,
    /// The store's id, 32 hexadecimal digits.
    pub store: String,
    /// Its sizes.
    pub sizes: Sizes,
}

/// The sizes of a store; they hold for what is written from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sizes {
    /// Most bytes that lie in a record.
    pub embedded: u64,
    /// Most bytes of a segment.
    pub segment: u64,
    /// Most slices that a record lists itself.
    pub slices: usize,
    /// Most entries of a node; at least 4.
    pub fanout: usize,
    /// Retired blobs that a record lists itself.
    pub retired: usize,
    /// Seconds for which nothing is deleted that somebody may still read or write.
    pub grace: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            embedded: 64 * 1024,
            segment: MAX_PAYLOAD,
            slices: MAX_SLICES,
            fanout: MAX_FANOUT,
            retired: MAX_RETIRED,
            grace: 24 * 60 * 60,
        }
    }
}

const HOLDS: &str = "objects";

impl Head {
    /// The head of a new store.
    pub fn new(store: Id, sizes: Sizes) -> Self {
        let store = store.to_string();
        Self { holds: HOLDS.into(), format: FORMAT, features: Vec::new(), store, sizes }
    }

    /// The stored form: JSON.
    ///
    /// # Errors
    /// None that is known of.
    pub fn encode(&self) -> Result<Bytes> {
        let text = serde_json::to_vec_pretty(self);
        text.map(Bytes::from).map_err(|e| Error::Invalid(format!("a head: {e}")))
    }

    /// Reads a head; `place` names the store in errors.
    ///
    /// # Errors
    /// [`Error::NotAStore`] if it is none; [`Error::Unsupported`] for another format, feature or size.
    pub fn decode(stored: &[u8], place: &str) -> Result<Self> {
        let none = |detail: String| Error::NotAStore { path: place.into(), detail };
        let what: serde_json::Value = serde_json::from_slice(stored)
            .map_err(|e| none(format!("its head is no JSON: {e}")))?;
        if what.get("holds").and_then(|v| v.as_str()) != Some(HOLDS) {
            return Err(none("its head says that it holds something else".into()));
        }
        let unsupported =
            |detail: String| Error::Unsupported { detail: format!("{place} {detail}") };
        if what.get("format").and_then(serde_json::Value::as_u64) != Some(FORMAT.into()) {
            return Err(unsupported("is of another format".into()));
        }
        let head: Self = serde_json::from_value(what)
            .map_err(|e| unsupported(format!("has a head that is not understood: {e}")))?;
        if let Some(feature) = head.features.iter().find(|f| !FEATURES.contains(&f.as_str())) {
            return Err(unsupported(format!("needs the feature {feature}")));
        }
        if Id::parse(&head.store).is_none() {
            return Err(none("its head has no id".into()));
        }
        head.sizes.check()?;
        Ok(head)
    }
}

impl Sizes {
    /// Whether a store can have these.
    ///
    /// # Errors
    /// [`Error::Invalid`] if not.
    pub fn check(&self) -> Result<()> {
        let fits = (1..=MAX_PAYLOAD).contains(&self.segment)
            && self.embedded <= super::record::MAX_EMBEDDED
            && self.embedded <= self.segment
            && (4..=MAX_FANOUT).contains(&self.fanout)
            && (self.fanout..=MAX_SLICES).contains(&self.slices)
            && (1..=MAX_RETIRED).contains(&self.retired);
        if fits {
            return Ok(());
        }
        Err(Error::Invalid(format!("a store in a bucket cannot have the sizes {self:?}")))
    }
}
