//! What a parent says of where in a child a key lies.
//!
//! Owns: [`Share`]. Pure.

/// How much of a node's cells probably lies before a key, of 2^32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share(pub(super) u32);

impl Share {
    /// What share `part` is of `whole`, which is not 0; rounded down, and at most all.
    pub(super) fn ratio(part: u64, whole: u64) -> Self {
        // So that the part fits once it is shifted.
        let shift = whole.leading_zeros();
        let high = |n: u64| (n << shift) >> 32;
        let share = (high(part.min(whole)) << 32) / high(whole);
        Self(u32::try_from(share).unwrap_or(u32::MAX))
    }

    /// This share of `n`, rounded down.
    #[inline]
    pub fn scale(self, n: usize) -> usize {
        ((u64::from(self.0) * n as u64) >> 32) as usize
    }
}
