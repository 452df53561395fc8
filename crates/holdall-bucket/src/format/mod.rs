//! What lies in a bucket, byte by byte: keys, records, blobs, nodes, intents, the head.
//!
//! Pure: no I/O. docs/bucket-format.md is the description of what this reads and writes. What is read
//! comes from a server, so every length, count and sum is checked before it is used.

mod blob;
mod blobs;
mod head;
mod header;
mod id;
mod intent;
pub mod keys;
mod node;
mod part;
mod record;
mod rest;
mod slices;
#[cfg(test)]
mod tests;

pub(crate) use blob::BlobDraft;
pub use blob::{
    BlobKind, HEADER, MAX_PAYLOAD, Stretch, UNIT, decode_stored, encode_blob, stored_len,
};
pub use blobs::{BlobRef, Blobs, EMBEDDED, alias_of, byte_of, reference};
pub(crate) use head::MAX_HEAD;
pub use head::{FEATURES, FORMAT, Head, Sizes};
#[doc(hidden)]
pub use header::seal;
pub use header::{HEADER_READ, MAX_RECENT, RecordHeader};
pub use id::{BlobId, Id};
pub use intent::{Intent, IntentKind, IntentState};
pub use node::{MAX_FANOUT, decode_list, decode_node, encode_list, encode_node};
pub use part::{Named, Part, Retired};
pub use record::{Class, MAX_RETIRED, MAX_SLICES, Record};

use holdall::{Error, Result};

/// An error about an object of the bucket.
fn damaged(place: &str, detail: impl Into<String>) -> Error {
    Error::corrupt(place, detail)
}

/// What a parser takes next, or an error that it ends too early.
fn or_short<T>(taken: Option<T>, place: &str) -> Result<T> {
    taken.ok_or_else(|| damaged(place, "ends too early, or holds a number out of range"))
}
