//! A hash of page numbers.
//!
//! Owns: no state.

/// Hashes page numbers by one multiplication: they are dense and not hostile.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct PageHash;

/// The hasher behind [`PageHash`].
#[derive(Debug, Default)]
pub(crate) struct PageHasher(u64);

impl std::hash::Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.write_u64(u64::from(*b) ^ self.0);
        }
    }

    fn write_u64(&mut self, n: u64) {
        let m = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = m ^ (m >> 29);
    }
}

impl std::hash::BuildHasher for PageHash {
    type Hasher = PageHasher;

    fn build_hasher(&self) -> PageHasher {
        PageHasher(0)
    }
}
