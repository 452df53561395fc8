//! What a bucket store asks of a server: seven methods.
//!
//! Owns: [`Backend`] and its answers. [`Memory`] keeps a bucket in memory; `S3` speaks to a server.
//! [`conformance`] returns whether another implementation does what is asked of it.

mod body;
pub mod conformance;
mod faulty;
mod memory;
mod s3;

pub use body::Body;
pub use faulty::{Faults, Faulty};
pub use memory::Memory;
pub use s3::{Quoting, S3};

use async_trait::async_trait;
use bytes::Bytes;
use holdall::Result;
use std::fmt;
use std::ops::Range;

/// What distinguishes two contents of a key, as a server says it. Often a hash of the content, so that
/// equal contents may have equal tags.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub String);

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a key holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The bytes asked for.
    pub bytes: Body,
    /// How many there are in all.
    pub len: u64,
    /// Which content it is.
    pub tag: Tag,
    /// When it was written, by the server's clock, in milliseconds since 1970 UTC.
    pub date: u64,
}

/// The answer of [`Backend::get`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Got {
    /// The key holds nothing.
    Absent,
    /// The key holds what the caller has.
    Same,
    /// What it holds.
    Found(Found),
}

/// The answer of a conditional request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// It was done, and the key has this tag now.
    Done(Tag),
    /// The condition did not hold, says the server; it may have held for a repeat of the request.
    NotDone,
    /// Nothing is known, for this reason.
    Unknown(String),
}

/// A key of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The key.
    pub key: String,
    /// Bytes there.
    pub len: u64,
    /// Which content it is.
    pub tag: Tag,
    /// When it was written, as [`Found::date`].
    pub date: u64,
}

/// A page of a listing, in the order of keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The keys.
    pub keys: Vec<Listed>,
    /// What keys begin with that go on behind the delimiter, each once, ending with it.
    pub folders: Vec<String>,
    /// Where to go on: what to give as `after`. `None` at the end.
    pub next: Option<String>,
}

/// What a server offers beside what all must.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// [`Backend::delete_if`] heeds its tag.
    pub delete_if: bool,
}

/// A bucket, or a prefix of one. Reads of a key and conditional writes are linearizable; listings show
/// what was written before they began. Keys are relative to the prefix.
///
/// An error means that the request had no effect and will have none: the server refuses it for good.
/// Whatever may be otherwise another time is tried again inside, but for conditional writes.
#[async_trait]
pub trait Backend: fmt::Debug + Send + Sync {
    /// Reads a key, or the bytes `range` of it, which begin inside and are cut to what there is; unless it
    /// has the tag `unless`.
    async fn get(&self, key: &str, range: Option<Range<u64>>, unless: Option<&Tag>) -> Result<Got>;

    /// Writes a key that is used for nothing else, ever. Repeating it does no harm.
    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()>;

    /// Writes a key if it has the tag `expected`, or with `None` if it holds nothing. Sent once.
    async fn put_if(&self, key: &str, expected: Option<&Tag>, bytes: Bytes) -> Result<Put>;

    /// Deletes a key. That it holds nothing is no error.
    async fn delete(&self, key: &str) -> Result<()>;

    /// Deletes a key if it has this tag; only where [`Features::delete_if`] says so. Returns whether
    /// the server says that it did.
    async fn delete_if(&self, key: &str, tag: &Tag) -> Result<bool>;

    /// At most `limit` keys and folders together that begin with `prefix`, behind `after`; with
    /// `folders`, keys with a `/` behind the prefix are shown as folders.
    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        folders: bool,
        limit: usize,
    ) -> Result<Page>;

    /// What it offers.
    fn features(&self) -> Features;
}
