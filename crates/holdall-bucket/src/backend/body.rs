//! The bytes of an answer, in the parts in which they came.
//!
//! Owns: [`Body`], so that a large read copies each byte once, from where the network left it.

use bytes::Bytes;

/// The bytes of an answer.
#[derive(Debug, Clone, Default)]
pub struct Body(Vec<Bytes>);

impl Body {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The parts, in order.
    pub fn parts(&self) -> &[Bytes] {
        &self.0
    }

    /// All of it. Cost: a copy, if it came in several parts.
    pub fn whole(&self) -> Bytes {
        match self.0.as_slice() {
            [] => Bytes::new(),
            [one] => one.clone(),
            parts => parts.concat().into(),
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self(vec![bytes])
    }
}

impl From<Vec<Bytes>> for Body {
    fn from(parts: Vec<Bytes>) -> Self {
        Self(parts)
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.whole() == other.whole()
    }
}

impl Eq for Body {}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Body {
    fn eq(&self, other: &T) -> bool {
        self.whole() == other.as_ref()
    }
}
