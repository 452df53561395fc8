//! Free space in pieces, before the objects come (Sears §5.2).
//!
//! Owns: the small objects between which the gaps lie, and their keys.

use anyhow::Result;

use super::markers::Content;
use super::system::{Ask, System, is_full};

/// Bytes of a small object, and of a gap.
const SMALL: usize = 16 << 10;
/// Beyond the keys of the objects that are measured.
const FIRST: u64 = 1 << 40;

/// Fills a store of `bytes` bytes with small objects, as far as they fit, and deletes every second.
/// The keys of the others.
pub(super) fn lay(store: &mut dyn System, content: &Content, bytes: u64) -> Result<Vec<u64>> {
    let (mut one, mut keys) = (Vec::new(), Vec::new());
    // Its markers are none of an object that is measured.
    content.fill(u32::MAX, 0, SMALL, &mut one);
    for key in FIRST..FIRST + bytes / SMALL as u64 {
        match store.put(key, &one, Ask { request: SMALL, hint: false }) {
            Err(error) if is_full(&error) => break,
            put => put?,
        }
        keys.push(key);
    }
    let (gone, stay): (Vec<u64>, Vec<u64>) = keys.into_iter().partition(|key| key % 2 == 1);
    gone.into_iter().try_for_each(|key| store.delete(key))?;
    Ok(stay)
}
