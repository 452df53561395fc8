//! What a parent says of where in a child a key lies.
//!
//! Owns: [`Share`]. Pure.

/// How much of a node's cells probably lies before a key, of 2^32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share(pub(super) u32);

impl Share {
    /// This share of `n`, rounded down.
    #[inline]
    pub fn of(self, n: usize) -> usize {
        ((u64::from(self.0) * n as u64) >> 32) as usize
    }
}
