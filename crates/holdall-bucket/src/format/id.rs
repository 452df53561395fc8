//! Random numbers by which everything in a bucket is named.

use std::fmt;

/// 128 random bits: of an operation, a write, an incarnation of a name, a store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Id(pub [u8; 16]);

impl Id {
    /// Bytes of its encoding.
    pub const BYTES: usize = 16;

    /// The first eight bytes, by which records remember operations.
    pub fn short(self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// Reads 32 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        let plain = |b: &u8| b.is_ascii_digit() || (b'a'..=b'f').contains(b);
        if digits.len() != 2 * Self::BYTES || !digits.iter().all(plain) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|n| Self(n.to_be_bytes()))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A blob: the operation that wrote it, and its number among that operation's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId {
    /// The operation.
    pub operation: Id,
    /// Its number.
    pub number: u32,
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.operation, self.number)
    }
}
