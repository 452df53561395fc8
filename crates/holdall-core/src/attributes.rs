//! Attributes of objects: what a caller keeps beside the bytes, and which go when the bytes change.
//!
//! Owns: the names that mean something to the engine, the limit, and the stored form
//! (docs/format.md "Heap record"). Pure.

use crate::bytes::{Reader, push_varint, varint_len};
use crate::{Error, Result};
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

/// Refuses attributes whose stored form takes more than `most` bytes. Cost: a look at each
/// length.
///
/// # Errors
/// [`Error::Invalid`].
pub fn check(attributes: &Attributes, most: usize) -> Result<()> {
    let len = stored_len(attributes);
    if len > most {
        let text = format!("attributes of {len} bytes; at most {most} fit an object");
        return Err(Error::Invalid(text));
    }
    Ok(())
}

/// The stored form, of `most` bytes at most: key length, key, value length, value; repeated.
///
/// # Errors
/// As [`check`].
pub fn encode(attributes: &Attributes, most: usize) -> Result<Vec<u8>> {
    check(attributes, most)?;
    Ok(join(attributes))
}

/// Reads the stored form. `place` names the object in errors.
///
/// # Errors
/// [`Error::Corrupt`] for anything that cannot be.
pub fn decode(bytes: &[u8], place: &dyn Fn() -> String) -> Result<Attributes> {
    let mut r = Reader::new(bytes);
    let mut out = Attributes::new();
    while !r.rest().is_empty() {
        let pair = (|| {
            let n = usize::try_from(r.varint()?).ok()?;
            let key = String::from_utf8(r.take(n)?.to_vec()).ok()?;
            let n = usize::try_from(r.varint()?).ok()?;
            Some((key, r.take(n)?.to_vec()))
        })();
        let (key, value) = pair.ok_or_else(|| Error::corrupt(place(), "broken attributes"))?;
        out.insert(key, value);
    }
    Ok(out)
}

fn stored_len(attributes: &Attributes) -> usize {
    let part = |len: usize| varint_len(len as u64).saturating_add(len);
    let pair =
        |(key, value): (&String, &Vec<u8>)| part(key.len()).saturating_add(part(value.len()));
    attributes.iter().map(pair).fold(0, usize::saturating_add)
}

/// The stored form, however long.
pub(crate) fn join(attributes: &Attributes) -> Vec<u8> {
    let mut out = Vec::with_capacity(stored_len(attributes));
    for (key, value) in attributes {
        push_varint(&mut out, key.len() as u64);
        out.extend_from_slice(key.as_bytes());
        push_varint(&mut out, value.len() as u64);
        out.extend_from_slice(value);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place() -> String {
        "object \"a\"".into()
    }

    proptest! {
        #[test]
        fn the_limit_is_that_of_the_stored_form(
            attributes in prop::collection::btree_map(".{0,200}",
                prop::collection::vec(any::<u8>(), 0..300), 0..5),
        ) {
            let stored = join(&attributes);
            prop_assert_eq!(encode(&attributes, stored.len()).unwrap(), stored.clone());
            prop_assert_eq!(decode(&stored, &place).unwrap(), attributes.clone());
            if let Some(less) = stored.len().checked_sub(1) {
                let refused = check(&attributes, less);
                prop_assert!(matches!(refused, Err(Error::Invalid(_))));
                prop_assert!(encode(&attributes, less).is_err());
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Err(e) = decode(&bytes, &place) {
                prop_assert!(e.is_corrupt());
            }
        }
    }
}
