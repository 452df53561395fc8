//! The value of a key, kept inline so that a lookup allocates nothing.
//!
//! Owns: [`Value`]. Invariant: 1 to [`MAX_VALUE`] bytes.

use super::MAX_VALUE;
use std::fmt;
use std::ops::Deref;

/// A value of 1 to [`MAX_VALUE`] bytes, read as a slice.
#[derive(Clone, Copy)]
pub struct Value {
    len: u8,
    bytes: [u8; MAX_VALUE],
}

impl Value {
    /// The value with these bytes, or `None` unless there are 1 to [`MAX_VALUE`].
    pub fn new(value: &[u8]) -> Option<Self> {
        if value.is_empty() {
            return None;
        }
        let mut bytes = [0; MAX_VALUE];
        bytes.get_mut(..value.len())?.copy_from_slice(value);
        Some(Self { len: value.len() as u8, bytes })
    }
}

impl Deref for Value {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Value {}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
