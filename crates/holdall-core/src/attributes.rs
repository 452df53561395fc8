//! Attributes of objects: what a caller keeps beside the bytes, and which go when the bytes change.
//!
//! Owns: the names that mean something to the engine. Pure. `heap_record` has them as bytes.

use std::collections::BTreeMap;

/// Attributes of an object, such as its content type. One whose key begins with `#` says something
/// of the bytes, as a digest does, and so does [`MTIME`]: a change of the bytes drops them.
pub type Attributes = BTreeMap<String, Vec<u8>>;

/// Most bytes all attributes of an object may take, with 64 KiB pages; an eighth of a page
/// with smaller ones.
pub const MAX_ATTRIBUTES: usize = 4096;

/// An attribute whose key begins so says something of the object's bytes, as a digest does:
/// with any change of the bytes it goes.
pub const OF_BYTES: char = '#';

/// The attribute by which a caller names a time of the last change that is not the engine's, as of
/// a file that was imported: nanoseconds since 1970 UTC as decimal text. It is of the bytes.
pub const MTIME: &str = "mtime";

/// Drops what describes the bytes, for an object whose bytes are now others.
pub fn drop_those_of_bytes(attributes: &mut Attributes) {
    attributes.retain(|key, _| !key.starts_with(OF_BYTES) && key != MTIME);
}
